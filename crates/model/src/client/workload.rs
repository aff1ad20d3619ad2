//! What clients run: the scripts of a mix.

use bench_base::error::SqlError;
use bench_script::{Action, Script, Symbols};

use super::pauses::Pauses;
use crate::feeder::RowSource;

/// After which errors a client goes on with its next transaction, beside those after which another try may succeed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tolerance {
    /// After none.
    #[default]
    None,
    /// After errors of the data: as clients of a capture, whose replay meets other rows than it was captured with.
    Data,
    /// After all errors of statements, as pgbench's --continue-on-error: not after those of meta commands, \gset among them.
    Statements,
}

/// A script of a mix.
pub struct Program<'a> {
    pub script: Script,
    /// Where its transactions get rows from.
    pub feeds: Vec<RowSource<'a>>,
    /// Relative to the other scripts' weights, which are together above 0; in a deck, its number of cards.
    pub weight: u32,
    /// How long a client waits around its transactions.
    pub pauses: Option<Pauses>,
    /// Its first command's place among the commands of the run.
    pub first_command: usize,
    pub tolerance: Tolerance,
}

impl Program<'_> {
    /// Whether a client goes on after this error of a command, with another try or its next transaction.
    pub fn outlives(&self, command: usize, error: &SqlError) -> bool {
        error.is_retryable()
            || match self.tolerance {
                Tolerance::None => false,
                Tolerance::Data => error.is_of_data(),
                Tolerance::Statements => {
                    !error.is_of_client
                        && matches!(
                            self.script.commands[command].action,
                            Action::Sql(_) | Action::Pipeline(_)
                        )
                }
            }
    }
}

/// What the clients of one process run, and the names of their variables.
pub struct ClientWorkload<'a> {
    pub programs: Vec<Program<'a>>,
    /// Whether programs are the cards of a deck, which each client deals, instead of being drawn by weight.
    pub is_deck: bool,
    /// Whether programs are pairs, each of the two arms of a duel.
    pub is_duel: bool,
    pub symbols: Symbols,
    /// Tries of a transaction at a serialization failure or deadlock; `u64::MAX`: no limit.
    pub max_tries: u64,
}
