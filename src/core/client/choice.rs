//! Which transaction a client runs next, and how long it waits before it.

use super::{ClientWorkload, Program};
use crate::script::Prng;

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

    /// The next program; and how long to wait before it, in nanoseconds, where the client waits.
    #[inline]
    pub fn next(&mut self, workload: &ClientWorkload) -> (usize, Option<i64>) {
        let programs = &workload.programs;
        let program = if workload.is_deck { self.deal(programs) } else { draw(&mut self.random, programs) };
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

/// Draws a script by the weights (`chooseScript` in pgbench.c): with one there is nothing to draw.
#[inline]
fn draw(random: &mut Prng, programs: &[Program]) -> usize {
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
