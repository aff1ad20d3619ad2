//! What carries out the clients' statements.

use super::values::words;

words! {
    /// What carries out the clients' statements.
    #[derive(Default)]
    pub enum Driver {
        /// Workers of the server, each of which is a client, inside the server.
        #[default]
        Engine = "engine",
        /// Workers that share the clients' connections to the server.
        Wire = "wire",
    }
}

words! {
    /// What a client does whose connection is lost.
    #[derive(Default)]
    pub enum OnDisconnect {
        /// It ends, as pgbench's does.
        #[default]
        End = "end",
        /// It connects again, and goes on with another transaction.
        Reconnect = "reconnect",
    }
}
