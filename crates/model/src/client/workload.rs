//! What clients run: the scripts of a mix, which of them is next, and the pauses around transactions.

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
    fn draw_think_ns(self, random: &mut Prng) -> i64 {
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
    /// What the length of each `\sleep` is multiplied by; 0: none is performed.
    pub sleep_scale: f64,
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

/// A client's choice of its transactions.
pub(super) struct Choice {
    random: Prng,
    /// The cards that are left of a deck, as programs.
    deck: Vec<usize>,
    /// The program before; `None` before the first one.
    last: Option<usize>,
}

impl Choice {
    pub fn new(random: Prng) -> Self {
        Self { random, deck: Vec::new(), last: None }
    }

    /// The next program; and how long to wait before it, in nanoseconds, where the client waits. Programs `are_pairs` in a duel: one
    /// of each arm.
    #[inline]
    pub fn next(&mut self, workload: &ClientWorkload, are_pairs: bool) -> (usize, Option<i64>) {
        let programs = &workload.programs;
        let program = match (workload.is_deck, are_pairs) {
            (true, _) => self.deal(programs),
            // The first of a pair stands for both.
            (false, true) => 2 * draw(&mut self.random, programs, 2),
            (false, false) => draw(&mut self.random, programs, 1),
        };
        // Before its first transaction a client thinks as well, so that not all come at once.
        let last = self.last.replace(program).unwrap_or(program);
        let (think, keying) = (programs[last].pauses, programs[program].pauses);
        if think.is_none() && keying.is_none() {
            return (program, None);
        }
        let think_ns = think.map_or(0, |pauses| pauses.draw_think_ns(&mut self.random));
        (program, Some(think_ns.saturating_add(keying.map_or(0, |pauses| pauses.keying_ns))))
    }

    /// The next card of the deck: a new one is shuffled where none is left (Durstenfeld, algorithm 235 of the CACM).
    fn deal(&mut self, programs: &[Program]) -> usize {
        if self.deck.is_empty() {
            let cards = programs.iter().enumerate();
            self.deck
                .extend(cards.flat_map(|(index, card)| std::iter::repeat_n(index, card.weight as usize)));
            for last in (1..self.deck.len()).rev() {
                self.deck.swap(last, self.random.uint64_range(0, last as u64) as usize);
            }
        }
        self.deck.pop().unwrap_or_default()
    }
}

/// Draws a script by the weights (`chooseScript` in pgbench.c), or a group of `step` scripts by that of its first: with one there
/// is nothing to draw.
#[inline]
fn draw(random: &mut Prng, programs: &[Program], step: usize) -> usize {
    if programs.len() == step {
        return 0;
    }
    let weights = || programs.iter().step_by(step).map(|program| i64::from(program.weight));
    let mut drawn = random.int64_range(0, weights().sum::<i64>() - 1);
    for (index, weight) in weights().enumerate() {
        drawn -= weight;
        if drawn < 0 {
            return index;
        }
    }
    programs.len() / step - 1
}
