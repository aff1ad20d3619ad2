//! A script of a mix.

use super::choice::Pauses;
use crate::error::SqlError;
use crate::feeder::Source;
use crate::script::Script;

/// A script of a mix.
pub struct Program<'a> {
    pub script: Script,
    /// Where its transactions get rows from.
    pub feeds: Vec<Source<'a>>,
    /// Relative to the other scripts' weights, which are together above 0; in a deck, its number of cards.
    pub weight: u32,
    /// How long a client waits around its transactions.
    pub pauses: Option<Pauses>,
    /// Its first command's place among the commands of the run.
    pub first_command: usize,
    /// Whether errors of the data fail the transaction only, and not the client.
    pub tolerant: bool,
}

impl Program<'_> {
    /// Whether a client goes on after this error, with another try or its next transaction.
    pub fn outlives(&self, error: &SqlError) -> bool {
        error.is_retryable() || self.tolerant && error.is_of_data()
    }
}
