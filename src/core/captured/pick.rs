//! Which of a few rows of values come nearest to what was captured.

use super::fidelity::{Call, likeness};

/// One row, or two with the share of the second, whose calls are on average most like the captured ones; and how alike.
pub fn pick(captured: &Call, calls: &[Call]) -> Option<(usize, usize, f64, f64)> {
    let mut best: Option<(usize, usize, f64, f64)> = None;
    for (one, first) in calls.iter().enumerate() {
        for (other, second) in calls.iter().enumerate().skip(one) {
            let share = |of: fn(&Call) -> f64| {
                let span = of(second) - of(first);
                if span.abs() > 1e-9 { ((of(captured) - of(first)) / span).clamp(0.0, 1.0) } else { 0.0 }
            };
            for part in [0.0, share(|call| call.rows), share(Call::blocks), 1.0] {
                let between = |of: fn(&Call) -> f64| of(first) + part * (of(second) - of(first));
                let mixed =
                    Call { rows: between(|call| call.rows), hit: between(Call::blocks), ..Call::default() };
                let score = likeness(captured, &mixed).score;
                if best.is_none_or(|(.., least)| score > least + 1e-9) {
                    best = Some((one, other, part, score));
                }
            }
        }
    }
    best
}
