//! The two arms of a duel, by batches of their time.
//!
//! Each batch has both arms, in the same milliseconds; the unit is the ratio of their means in a batch (batch means; Law,
//! "Simulation Modeling and Analysis", 9.5). What lasts longer than a batch and favours one arm would make neighbouring ratios
//! alike, and the interval too narrow: then batches are joined two by two until they are independent (Fishman, "Grouping
//! observations in digital simulation", Management Science 24, 1978).

use super::compare::{GroupComparison, Terms, pairs};

/// Batches of a run.
pub const BATCHES: usize = 64;

/// Batches are joined only as long as so many are left.
const FEWEST: usize = 8;

/// Sums of one arm in one batch, over all clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ArmBatch {
    /// Transactions that ended without an error.
    pub transactions: u64,
    /// Of these, in milliseconds.
    pub latency_ms: f64,
    /// Transactions of the stretches whose processor time was read.
    pub timed: u64,
    /// Of these stretches, in microseconds.
    pub cpu_us: f64,
}

impl ArmBatch {
    /// Both together.
    pub fn joined(self, other: Self) -> Self {
        Self {
            transactions: self.transactions + other.transactions,
            latency_ms: self.latency_ms + other.latency_ms,
            timed: self.timed + other.timed,
            cpu_us: self.cpu_us + other.cpu_us,
        }
    }

    /// Milliseconds of a transaction.
    pub fn latency_avg_ms(&self) -> Option<f64> {
        (self.transactions > 0).then(|| self.latency_ms / self.transactions as f64)
    }

    /// Microseconds of processor time of a transaction.
    pub fn cpu_avg_us(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.cpu_us / self.timed as f64)
    }
}

/// A figure of both arms.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelFigure {
    /// Of each arm, over all batches.
    pub means: [f64; 2],
    pub comparison: GroupComparison,
    /// Independent batches that the interval is made of.
    pub batches: usize,
}

/// Compares a figure of the arms; `None` where a whole arm lacks it. Batches in which an arm lacks it are joined with those
/// that follow, until both have it.
pub fn compare(
    batches: &[[ArmBatch; 2]],
    figure: impl Fn(&ArmBatch) -> Option<f64>,
    terms: Terms,
) -> Option<DuelFigure> {
    let both = |batch: &[ArmBatch; 2]| {
        let [a, b] = [figure(&batch[0])?, figure(&batch[1])?];
        (a > 0.0 && b > 0.0).then_some((a, b))
    };
    let join = |one: [ArmBatch; 2], other: [ArmBatch; 2]| [one[0].joined(other[0]), one[1].joined(other[1])];
    let mut groups: Vec<[ArmBatch; 2]> = Vec::new();
    let mut open = [ArmBatch::default(); 2];
    for batch in batches {
        open = join(open, *batch);
        if both(&open).is_some() {
            groups.push(std::mem::take(&mut open));
        }
    }
    if let Some(last) = groups.last_mut() {
        *last = join(*last, open);
    }
    let whole = groups.iter().copied().reduce(join)?;
    let means = [figure(&whole[0])?, figure(&whole[1])?];
    let mut values: Vec<(f64, f64)> = groups.iter().filter_map(both).collect();
    while values.len() / 2 >= FEWEST && are_alike(&values) {
        groups = groups.chunks_exact(2).map(|pair| join(pair[0], pair[1])).collect();
        values = groups.iter().filter_map(both).collect();
    }
    Some(DuelFigure { means, comparison: pairs(&values, terms), batches: values.len() })
}

/// Whether neighbouring ratios are more alike than chance mostly makes them (one-sided, at 20 %): to join batches without need
/// costs little.
fn are_alike(values: &[(f64, f64)]) -> bool {
    let ratios: Vec<f64> = values.iter().map(|(a, b)| (b / a).ln()).collect();
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let products: f64 = ratios.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    // Under independence the correlation has the mean -1 / count and nearly the variance 1 / count.
    squares > 0.0 && products / squares > 0.842 / count.sqrt() - 1.0 / count
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::stats::compare::{Better, Verdict};

    const TERMS: Terms = Terms { margin: 0.0, confidence: 0.95, better: Better::Lower };

    /// A machine whose speed wanders from batch to batch, for both arms alike (`drift`), and for one of them (`apart`), with
    /// transactions whose times have a heavy tail.
    fn batches(
        random: &mut StdRng,
        effect: f64,
        drift: f64,
        apart: f64,
        persistence: f64,
    ) -> Vec<[ArmBatch; 2]> {
        let mut normal = || {
            let (u, v): (f64, f64) = (random.random_range(1e-12..1.0), random.random());
            (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
        };
        let (mut common, mut own) = (0.0, 0.0);
        (0..BATCHES)
            .map(|_| {
                common = 0.95 * common + drift * normal();
                own = persistence * own + apart * normal();
                let mut arm = |shift: f64| {
                    let count = 100;
                    let sum: f64 = (0..count).map(|_| (common + shift + 0.8 * normal()).exp()).sum();
                    ArmBatch { transactions: count, latency_ms: sum, timed: count, cpu_us: sum }
                };
                [arm(0.0), arm(own + effect.ln())]
            })
            .collect()
    }

    /// Shares of duels whose interval excludes the true ratio, and the mean half-width.
    fn misses(effect: f64, drift: f64, apart: f64, persistence: f64) -> (f64, f64) {
        const DUELS: usize = 400;
        let mut random = StdRng::seed_from_u64(11);
        let (mut missed, mut width) = (0, 0.0);
        for _ in 0..DUELS {
            let batches = batches(&mut random, effect, drift, apart, persistence);
            let found = compare(&batches, ArmBatch::latency_avg_ms, TERMS).unwrap();
            let ratio = found.comparison.ratio.unwrap();
            missed += usize::from(effect < ratio.low || effect > ratio.high);
            width += (ratio.high - ratio.low) / 2.0 / DUELS as f64;
        }
        (missed as f64 / DUELS as f64, width)
    }

    #[test]
    fn intervals_hold_the_truth_however_the_machine_wanders() {
        // By 5 % if they are right: of 400, 8.5 % are beyond three standard errors.
        let (steady, width) = misses(1.0, 0.0, 0.0, 0.0);
        assert!(steady < 0.085, "{steady}");
        let (drifting, drifting_width) = misses(1.0, 0.3, 0.0, 0.0);
        assert!(drifting < 0.085, "{drifting}");
        // Drift is no part of the ratios: it costs nothing.
        assert!(drifting_width < 1.1 * width, "{drifting_width} {width}");
        let (found, _) = misses(1.05, 0.3, 0.0, 0.0);
        assert!(found < 0.085, "{found}");
    }

    #[test]
    fn what_favours_one_arm_for_a_while_widens_the_interval() {
        let (misses, _) = misses(1.0, 0.1, 0.05, 0.7);
        assert!(misses < 0.12, "{misses}");
    }

    #[test]
    fn an_effect_is_found() {
        let mut random = StdRng::seed_from_u64(3);
        let batches = batches(&mut random, 1.10, 0.3, 0.0, 0.0);
        let found = compare(&batches, ArmBatch::cpu_avg_us, TERMS).unwrap();
        assert_eq!(found.comparison.verdict, Verdict::Slower);
        assert!((found.means[1] / found.means[0] - 1.1).abs() < 0.05);
    }

    #[test]
    fn an_arm_without_transactions_is_not_compared() {
        let one = ArmBatch { transactions: 5, latency_ms: 1.0, ..ArmBatch::default() };
        assert_eq!(compare(&[[one, ArmBatch::default()]], ArmBatch::latency_avg_ms, TERMS), None);
        assert_eq!(compare(&[], ArmBatch::latency_avg_ms, TERMS), None);
        assert_eq!(compare(&[[one, one]], ArmBatch::cpu_avg_us, TERMS), None);
        // Long transactions: one arm by turns.
        let none = ArmBatch::default();
        let slow = compare(
            &[[one, none], [none, one], [one, none], [none, one], [one, none]],
            ArmBatch::latency_avg_ms,
            TERMS,
        );
        assert_eq!(slow.map(|found| (found.batches, found.means)), Some((2, [0.2, 0.2])));
        let single = compare(&[[one, one]], ArmBatch::latency_avg_ms, TERMS).unwrap();
        assert_eq!((single.comparison.ratio, single.batches), (None, 1));
    }
}
