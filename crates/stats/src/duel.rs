//! The two arms of a duel, by batches of their time.
//!
//! Each batch has both arms, in the same milliseconds; the unit is the ratio of their figures in a batch (batch means; Law,
//! "Simulation Modeling and Analysis", 9.5). What lasts longer than a batch and favours one arm would make neighbouring ratios
//! alike, and the interval too narrow: then batches are joined two by two until they are independent (Fishman, "Grouping
//! observations in digital simulation", Management Science 24, 1978).

use std::collections::BTreeMap;

use super::compare::{Better, GroupComparison, Terms, batches as compare_batches};
use super::histogram::{bucket_bounds_ns, percentile_of};

/// Batches of a run.
pub const BATCHES: usize = 64;

/// Batches are joined only as long as so many are left.
const FEWEST: usize = 8;

/// So many transactions have to lie beyond a percentile for a batch to tell it.
const BEYOND: f64 = 10.0;

/// How sure a single look is, where nobody looks before the end.
pub const CONFIDENCE: f64 = 0.95;

/// The looks at a run that ends as soon as it is decided: one when each quarter of its time is over. False verdicts of all
/// looks together are at most 5 %, of which t² have been spent when t of the time is over (Kim & DeMets, "Design and analysis
/// of group sequential tests based on the type I error spending rate function", Biometrika 74, 1987). These are the levels
/// of the intervals at each look (Jennison & Turnbull, "Interim analyses: the repeated confidence interval approach", JRSS B
/// 51, 1989), by numerical integration of the joint distribution, for normal deviates of 2.955, 2.559, 2.301 and 2.092; with
/// batches they are Student's ("significance level approach", Jennison & Turnbull, "Group sequential methods", 3.8).
const LOOKS: [f64; 4] = [0.996_876, 0.989_514, 0.978_601, 0.963_56];

/// Batches between two looks.
const BETWEEN_LOOKS: usize = BATCHES / LOOKS.len();

/// Sums of one arm in one batch, over all clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmBatch {
    /// Transactions that ended without an error.
    pub transactions: u64,
    /// Of these, in milliseconds.
    pub latency_ms: f64,
    /// Transactions that were given up at an error.
    pub failed: u64,
    /// Transactions that took more than one try.
    pub retried: u64,
    /// Transactions whose processor time is known.
    pub timed: u64,
    /// Of these, in microseconds.
    pub cpu_us: f64,
    /// Transactions whose blocks, WAL and rows are known.
    pub counted: u64,
    /// Blocks of shared buffers that these looked up, found there or read.
    pub blocks: u64,
    /// Bytes of WAL that these wrote.
    pub wal_bytes: u64,
    /// Rows that their statements returned or changed.
    pub rows: u64,
    /// Latencies, by bucket of [`super::histogram`].
    pub latencies: BTreeMap<u32, u64>,
}

impl ArmBatch {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.latency_ms += other.latency_ms;
        self.failed += other.failed;
        self.retried += other.retried;
        self.timed += other.timed;
        self.cpu_us += other.cpu_us;
        self.counted += other.counted;
        self.blocks += other.blocks;
        self.wal_bytes += other.wal_bytes;
        self.rows += other.rows;
        for (bucket, count) in &other.latencies {
            *self.latencies.entry(*bucket).or_default() += count;
        }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.transactions == 0 && self.failed == 0
    }

    fn per_transaction(sum: f64, transactions: u64) -> Option<f64> {
        (transactions > 0).then(|| sum / transactions as f64)
    }

    /// Milliseconds of a transaction.
    pub fn latency_avg_ms(&self) -> Option<f64> {
        Self::per_transaction(self.latency_ms, self.transactions)
    }

    /// The latency in milliseconds below which the fraction `p` of the transactions lies; `None` where they are too few.
    pub fn percentile_ms(&self, p: f64) -> Option<f64> {
        let count: u64 = self.latencies.values().sum();
        if (count as f64) * (1.0 - p) < BEYOND {
            return None;
        }
        let buckets = self.latencies.iter().map(|(bucket, count)| {
            let (low, high) = bucket_bounds_ns(*bucket as usize);
            (low as f64, high as f64, *count)
        });
        percentile_of(buckets, p).map(|ns| ns / 1e6)
    }

    /// Microseconds of processor time of a transaction.
    pub fn cpu_avg_us(&self) -> Option<f64> {
        Self::per_transaction(self.cpu_us, self.timed)
    }

    fn attempts(&self) -> u64 {
        self.transactions + self.failed
    }
}

/// What the arms are compared by.
#[derive(Clone, Copy, Debug)]
pub struct DuelMetric {
    /// As bench.duel calls it.
    pub name: &'static str,
    /// Whether it is a time, of which less is faster.
    pub is_time: bool,
    /// Of a transaction.
    pub of: fn(&ArmBatch) -> Option<f64>,
}

/// All of them; the first is what a run that ends early is decided by.
pub const METRICS: [DuelMetric; 10] = [
    DuelMetric { name: "latency_avg_ms", is_time: true, of: ArmBatch::latency_avg_ms },
    DuelMetric { name: "latency_p50_ms", is_time: true, of: |batch| batch.percentile_ms(0.5) },
    DuelMetric { name: "latency_p95_ms", is_time: true, of: |batch| batch.percentile_ms(0.95) },
    DuelMetric { name: "latency_p99_ms", is_time: true, of: |batch| batch.percentile_ms(0.99) },
    DuelMetric { name: "server_cpu_us", is_time: true, of: ArmBatch::cpu_avg_us },
    DuelMetric {
        name: "blocks",
        is_time: false,
        of: |batch| ArmBatch::per_transaction(batch.blocks as f64, batch.counted),
    },
    DuelMetric {
        name: "wal_bytes",
        is_time: false,
        of: |batch| ArmBatch::per_transaction(batch.wal_bytes as f64, batch.counted),
    },
    DuelMetric {
        name: "rows",
        is_time: false,
        of: |batch| ArmBatch::per_transaction(batch.rows as f64, batch.counted),
    },
    DuelMetric {
        name: "failed",
        is_time: false,
        of: |batch| ArmBatch::per_transaction(batch.failed as f64, batch.attempts()),
    },
    DuelMetric {
        name: "retried",
        is_time: false,
        of: |batch| ArmBatch::per_transaction(batch.retried as f64, batch.attempts()),
    },
];

/// A figure of both arms.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelFigure {
    /// Of each arm, over all batches.
    pub means: [f64; 2],
    pub comparison: GroupComparison,
    /// Independent batches that the interval is made of.
    pub batches: usize,
}

/// How many of the batches of a run count, and how sure its intervals have to be. Of one that `ends_early`, batches after the
/// last look were not looked at.
pub fn looked_at(batches: usize, ends_early: bool) -> (usize, f64) {
    let looks = (batches / BETWEEN_LOOKS).min(LOOKS.len());
    match (ends_early, looks.checked_sub(1)) {
        (true, Some(last)) => (looks * BETWEEN_LOOKS, LOOKS[last]),
        (true, None) => (batches, LOOKS[0]),
        (false, _) => (batches, CONFIDENCE),
    }
}

/// Whether there is a look at the end of so many batches.
pub fn is_look(batches: usize) -> bool {
    batches > 0 && batches.is_multiple_of(BETWEEN_LOOKS)
}

/// Whether these batches, up to a look, decide a run that ends early: its interval lies within the margin, or beyond it, so that
/// the verdict would be the same however long it went on.
pub fn is_decided(batches: &[[ArmBatch; 2]], margin: f64) -> bool {
    let (count, confidence) = looked_at(batches.len(), true);
    let terms = Terms { margin, confidence, better: Better::Lower };
    let ratio = compare(&batches[..count], METRICS[0].of, terms).and_then(|found| found.comparison.ratio);
    ratio.is_some_and(|ratio| {
        let (least, most) = (1.0 - margin, 1.0 + margin);
        ratio.high < least || ratio.low > most || (ratio.low >= least && ratio.high <= most)
    })
}

/// Both arms over all batches.
pub fn whole(batches: &[[ArmBatch; 2]]) -> [ArmBatch; 2] {
    batches.iter().fold(Default::default(), |mut sum: [ArmBatch; 2], batch| {
        sum.iter_mut().zip(batch).for_each(|(sum, arm)| sum.add(arm));
        sum
    })
}

/// Compares a figure of the arms; `None` where a whole arm lacks it, or both have nothing of it. Batches in which an arm
/// lacks it are joined with those that follow, until both have it.
pub fn compare(
    batches: &[[ArmBatch; 2]],
    figure: impl Fn(&ArmBatch) -> Option<f64>,
    terms: Terms,
) -> Option<DuelFigure> {
    let both = |batch: &[ArmBatch; 2]| {
        let [a, b] = [figure(&batch[0])?, figure(&batch[1])?];
        (a > 0.0 && b > 0.0).then_some((a, b))
    };
    let mut groups: Vec<[ArmBatch; 2]> = Vec::new();
    let mut open: [ArmBatch; 2] = Default::default();
    for batch in batches {
        open = whole(&[open, batch.clone()]);
        if both(&open).is_some() {
            groups.push(std::mem::take(&mut open));
        }
    }
    if let Some(last) = groups.last_mut() {
        *last = whole(&[std::mem::take(last), open]);
    }
    let all = whole(batches);
    let means = [figure(&all[0])?, figure(&all[1])?];
    let mut values: Vec<(f64, f64)> = groups.iter().filter_map(both).collect();
    while values.len() / 2 >= FEWEST && are_alike(&values) {
        groups = groups.chunks_exact(2).map(whole).collect();
        values = groups.iter().filter_map(both).collect();
    }
    Some(DuelFigure { means, comparison: compare_batches(&values, terms), batches: values.len() })
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
mod tests;
