//! What clients run: the scripts of a mix, and the pauses around their transactions.

use bench_base::error::SqlError;
use bench_script::{Action, Prng, Script, Symbols};

use crate::feeder::RowSource;

/// The longest think time, as a multiple of the mean: TPC-C 5.2.5.4.
const MOST_OF_MEAN: f64 = 10.0;

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

/// How long a client waits around a transaction, in nanoseconds. None of it is part of the transaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pauses {
    /// Before it.
    pub keying_ns: i64,
    /// After it, on average.
    pub think_ns: f64,
}

impl Pauses {
    /// Of times in seconds: keying before each transaction, and the mean of think times after it.
    pub fn of_secs(keying: f64, think: f64) -> Self {
        Self { keying_ns: (keying * 1e9) as i64, think_ns: think * 1e9 }
    }

    /// A think time: exponentially distributed, and cut off at ten times the mean.
    pub(super) fn draw_think_ns(self, random: &mut Prng) -> i64 {
        random.poisson(self.think_ns).min((self.think_ns * MOST_OF_MEAN) as i64)
    }
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
    pub symbols: Symbols,
    /// Tries of a transaction at a serialization failure or deadlock; `u64::MAX`: no limit.
    pub max_tries: u64,
}
