//! A script of a mix, and which of them comes next.

use crate::error::SqlError;
use crate::feeder::Source;
use crate::script::{Prng, Script};

/// A script of a mix.
pub struct Program<'a> {
    pub script: Script,
    /// Where its transactions get rows from.
    pub feeds: Vec<Source<'a>>,
    /// Relative to the other scripts' weights, which are together above 0.
    pub weight: u32,
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

/// The script of the next transaction (`chooseScript` in pgbench.c): with one there is nothing to draw.
#[inline]
pub(super) fn choose(random: &mut Prng, programs: &[Program]) -> usize {
    if programs.len() == 1 {
        return 0;
    }
    let total: i64 = programs.iter().map(|program| i64::from(program.weight)).sum();
    let mut drawn = random.int64_range(0, total - 1);
    for (index, program) in programs.iter().enumerate() {
        drawn -= i64::from(program.weight);
        if drawn < 0 {
            return index;
        }
    }
    programs.len() - 1
}
