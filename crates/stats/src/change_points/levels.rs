//! Which changes are worth telling.

use std::ops::Range;

use crate::robust;

/// Runs that a level shows itself in: two beside each other may be chance, or one disturbance.
const LEAST_RUNS: usize = 3;

/// The bounds of levels that differ: of those given, in order, the ends included, the changes go that
/// [`Change::tells`] does not keep, the smallest first, since what is left of one is joined to its neighbours.
pub fn that_differ<T>(values: &[f64], mut bounds: Vec<(usize, T)>, margin: f64) -> Vec<(usize, T)> {
    loop {
        let change = |number: usize| {
            let [start, index, end] = [number - 1, number, number + 1].map(|bound| bounds[bound].0);
            LevelChange::new(values, start..index, index..end)
        };
        let idle = (1..bounds.len().saturating_sub(1))
            .map(|number| (number, change(number)))
            .filter(|(_, change)| !change.tells(margin))
            .min_by(|(_, one), (_, other)| one.step().total_cmp(&other.step()));
        let Some((number, _)) = idle else { return bounds };
        bounds.remove(number);
    }
}

/// The runs before a change and after it, by their medians, which a few wild values do not move.
struct LevelChange<'a> {
    before: &'a [f64],
    after: &'a [f64],
    from: f64,
    to: f64,
}

impl<'a> LevelChange<'a> {
    fn new(values: &'a [f64], before: Range<usize>, after: Range<usize>) -> Self {
        let (before, after) = (&values[before], &values[after]);
        let middle = |values| robust::median(values).unwrap_or(f64::NAN);
        Self { before, after, from: middle(before), to: middle(after) }
    }

    /// How far the levels are apart.
    fn step(&self) -> f64 {
        (self.to - self.from).abs()
    }

    /// Whether the levels, by medians and by means, are at least the margin apart, a share of the former, and at
    /// least three runs of each lie nearer to their own level than to the other.
    fn tells(&self, margin: f64) -> bool {
        let halfway = (self.from + self.to) / 2.0;
        let near = |values: &[f64], level: f64| {
            values.iter().filter(|value| (**value - halfway) * (level - halfway) > 0.0).count()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let means = (mean(self.after) - mean(self.before)).abs();
        self.step() > 0.0
            && self.step() >= margin * self.from.abs()
            && means >= margin * mean(self.before).abs()
            && near(self.before, self.from) >= LEAST_RUNS
            && near(self.after, self.to) >= LEAST_RUNS
    }
}
