//! How statements are executed, and what becomes of their rows.

use super::values::words;

words! {
    /// How a statement reaches the server, as pgbench -M.
    #[derive(Default)]
    pub enum QueryMode {
        /// As text with the values in it, parsed and planned each time.
        Simple = "simple",
        /// With parameters, parsed and planned each time.
        Extended = "extended",
        /// With parameters, parsed once and planned as prepared statements are.
        #[default]
        Prepared = "prepared",
    }
}

words! {
    /// What becomes of the rows that a statement returns.
    #[derive(Default)]
    pub enum Results {
        /// Detoasted and turned into text, as for a client, then dropped.
        #[default]
        Serialize = "serialize",
        /// Not looked at.
        Discard = "discard",
    }
}
