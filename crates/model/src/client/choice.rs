//! Which transaction a client runs next, and how long it waits before it.

use bench_script::Prng;

use super::workload::{ClientWorkload, Program};

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
