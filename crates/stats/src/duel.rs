//! Compares the two arms of a duel by batches of its time.
//!
//! Each batch contains both arms, measured in the same milliseconds. The interval comes from each batch's influence on the ratio
//! of the arms' figures (batch means; Law, "Simulation Modeling and Analysis", 9.5). Disturbances that favour one arm for longer
//! than a batch correlate neighbouring batches and make the interval too narrow: such batches are merged in pairs until they are
//! independent (Fishman, "Grouping observations in digital simulation", Management Science 24, 1978).

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::{Better, GroupComparison, Terms, batches as compare_batches};
use crate::histogram::{bucket_bounds_ns, percentile_of};

/// Number of batches of a run.
pub const BATCHES: usize = 64;

/// Batches are merged only while at least this many are left.
const MIN_BATCHES: usize = 8;

/// A percentile needs at least this many transactions above it.
const MIN_TAIL_TRANSACTIONS: f64 = 10.0;

/// The normal deviate of a one-sided test at 20 %: merging batches without need costs little.
const CORRELATION_DEVIATE: f64 = 0.842;

/// The confidence of intervals of a run that is looked at only once, at its end.
pub const CONFIDENCE: f64 = 0.95;

/// The confidence of the interval at each look at a run that ends as soon as it is decided; a look follows each quarter of its
/// time. All looks together give at most 5 % false verdicts, of which a share t² is spent by the time t (Kim & DeMets, "Design
/// and analysis of group sequential tests based on the type I error spending rate function", Biometrika 74, 1987). Numerical
/// integration of the joint distribution gives normal deviates of 2.955, 2.559, 2.301 and 2.092 for these repeated confidence
/// intervals (Jennison & Turnbull, "Interim analyses: the repeated confidence interval approach", JRSS B 51, 1989); batches use
/// Student's quantiles of the same levels ("significance level approach", Jennison & Turnbull, "Group sequential methods", 3.8).
const LOOKS: [f64; 4] = [0.996_876, 0.989_514, 0.978_601, 0.963_56];

/// Number of batches between two looks.
const BATCHES_PER_LOOK: usize = BATCHES / LOOKS.len();

/// Sums of one arm in one batch, over all clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ArmBatch {
    /// Transactions that ended without an error.
    pub transactions: u64,
    /// The sum of their latencies in milliseconds.
    pub latency_ms: f64,
    /// Transactions that ended with an error.
    pub failed: u64,
    /// Transactions that took more than one try.
    pub retried: u64,
    /// Transactions whose processor time is known.
    pub timed: u64,
    /// Their processor time in microseconds. Serialised without cpu_, which in tables is the prefix of shares.
    #[serde(rename = "busy_us")]
    pub cpu_us: f64,
    /// Transactions whose blocks, WAL and rows are known.
    pub counted: u64,
    /// Blocks that these accessed in shared buffers, hits and reads.
    pub blocks: u64,
    /// Bytes of WAL that these wrote.
    pub wal_bytes: u64,
    /// Rows that their statements returned or changed.
    pub rows: u64,
    /// Minor page faults of the sessions during these.
    pub minor_faults: u64,
    /// Numbers of transactions by bucket of [`crate::histogram`].
    pub latencies: BTreeMap<u32, u64>,
}

impl ArmBatch {
    /// Adds the sums of another batch.
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
        self.minor_faults += other.minor_faults;
        for (bucket, count) in &other.latencies {
            *self.latencies.entry(*bucket).or_default() += count;
        }
    }

    /// Copies the sums without the histogram.
    fn without_latencies(&self) -> Self {
        Self { latencies: BTreeMap::new(), ..*self }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.transactions == 0 && self.failed == 0
    }

    fn per_transaction(sum: f64, transactions: u64) -> Option<f64> {
        (transactions > 0).then(|| sum / transactions as f64)
    }

    /// Returns the mean latency of a transaction in milliseconds.
    pub fn latency_avg_ms(&self) -> Option<f64> {
        Self::per_transaction(self.latency_ms, self.transactions)
    }

    /// Returns the latency in milliseconds below which the fraction `p` of the transactions lies; `None` if they are too few.
    pub fn percentile_ms(&self, p: f64) -> Option<f64> {
        let count: u64 = self.latencies.values().sum();
        if (count as f64) * (1.0 - p) < MIN_TAIL_TRANSACTIONS {
            return None;
        }
        let buckets = self.latencies.iter().map(|(bucket, count)| {
            let (low, high) = bucket_bounds_ns(*bucket as usize);
            (low as f64, high as f64, *count)
        });
        percentile_of(buckets, p).map(|ns| ns / 1e6)
    }

    /// Returns the mean processor time of a transaction in microseconds.
    pub fn cpu_avg_us(&self) -> Option<f64> {
        Self::per_transaction(self.cpu_us, self.timed)
    }

    /// Returns the mean number of minor page faults of a transaction.
    pub fn minor_faults_avg(&self) -> Option<f64> {
        Self::per_transaction(self.minor_faults as f64, self.counted)
    }

    fn attempts(&self) -> u64 {
        self.transactions + self.failed
    }
}

/// A figure by which the arms are compared.
#[derive(Clone, Copy, Debug)]
pub struct DuelMetric {
    /// Its name in bench.duel.
    pub name: &'static str,
    /// It is a time: lower is faster.
    pub is_time: bool,
    /// It needs the histogram of latencies.
    pub is_percentile: bool,
    /// Returns its mean or percentile per transaction.
    pub figure: fn(&ArmBatch) -> Option<f64>,
}

impl DuelMetric {
    const fn mean(name: &'static str, is_time: bool, figure: fn(&ArmBatch) -> Option<f64>) -> Self {
        Self { name, is_time, is_percentile: false, figure }
    }

    const fn percentile(name: &'static str, figure: fn(&ArmBatch) -> Option<f64>) -> Self {
        Self { name, is_time: true, is_percentile: true, figure }
    }
}

/// All metrics. The first decides whether a run ends early.
pub const METRICS: [DuelMetric; 11] = [
    DuelMetric::mean("latency_avg_ms", true, ArmBatch::latency_avg_ms),
    DuelMetric::percentile("latency_p50_ms", |batch| batch.percentile_ms(0.5)),
    DuelMetric::percentile("latency_p95_ms", |batch| batch.percentile_ms(0.95)),
    DuelMetric::percentile("latency_p99_ms", |batch| batch.percentile_ms(0.99)),
    DuelMetric::mean("server_cpu_us", true, ArmBatch::cpu_avg_us),
    DuelMetric::mean("blocks", false, |batch| ArmBatch::per_transaction(batch.blocks as f64, batch.counted)),
    DuelMetric::mean("wal_bytes", false, |batch| {
        ArmBatch::per_transaction(batch.wal_bytes as f64, batch.counted)
    }),
    DuelMetric::mean("rows", false, |batch| ArmBatch::per_transaction(batch.rows as f64, batch.counted)),
    DuelMetric::mean("failed", false, |batch| {
        ArmBatch::per_transaction(batch.failed as f64, batch.attempts())
    }),
    DuelMetric::mean("retried", false, |batch| {
        ArmBatch::per_transaction(batch.retried as f64, batch.attempts())
    }),
    DuelMetric::mean("minor_faults", false, ArmBatch::minor_faults_avg),
];

/// Processor time, one of [`METRICS`].
pub const PROCESSOR_TIME: &DuelMetric = &METRICS[4];

/// A figure of both arms.
#[derive(Clone, Debug, PartialEq)]
pub struct DuelFigure {
    /// Each arm's figure over all batches.
    pub means: [f64; 2],
    pub comparison: GroupComparison,
    /// Number of batches, after merging, that the interval is computed from.
    pub batches: usize,
}

/// Returns how many batches of a run to analyse, and the confidence of its intervals. A run that `ends_early` is analysed up to
/// its last look.
pub fn looked_at(batches: usize, ends_early: bool) -> (usize, f64) {
    let looks = (batches / BATCHES_PER_LOOK).min(LOOKS.len());
    match (ends_early, looks.checked_sub(1)) {
        (true, Some(last)) => (looks * BATCHES_PER_LOOK, LOOKS[last]),
        (true, None) => (batches, LOOKS[0]),
        (false, _) => (batches, CONFIDENCE),
    }
}

/// Returns whether a look follows after this many batches.
pub fn is_look(batches: usize) -> bool {
    batches > 0 && batches.is_multiple_of(BATCHES_PER_LOOK)
}

/// Returns whether the batches up to a look decide a run that ends early: its interval is wholly inside or outside the margin.
pub fn is_decided(batches: &[[ArmBatch; 2]], margin: f64) -> bool {
    let (count, confidence) = looked_at(batches.len(), true);
    let terms = Terms { margin, confidence, better: Better::Lower };
    let ratio = compare(&batches[..count], &METRICS[0], terms).and_then(|figure| figure.comparison.ratio);
    ratio.is_some_and(|ratio| {
        let (least, most) = (1.0 - margin, 1.0 + margin);
        ratio.high < least || ratio.low > most || (ratio.low >= least && ratio.high <= most)
    })
}

fn add(sum: &mut [ArmBatch; 2], batch: &[ArmBatch; 2]) {
    sum.iter_mut().zip(batch).for_each(|(sum, arm)| sum.add(arm));
}

/// Sums up all batches of each arm.
pub fn whole(batches: &[[ArmBatch; 2]]) -> [ArmBatch; 2] {
    let mut sum: [ArmBatch; 2] = Default::default();
    batches.iter().for_each(|batch| add(&mut sum, batch));
    sum
}

/// Compares a figure of the arms; `None` if one of them lacks it. The ratio is taken over all batches; its interval comes from
/// the ratios without each batch (delete-a-group jackknife; Shao & Tu, "The jackknife and bootstrap", 2.3), so a stall has the
/// weight that it has in the whole. A batch in which an arm lacks the figure is merged with the following ones.
pub fn compare(batches: &[[ArmBatch; 2]], metric: &DuelMetric, terms: Terms) -> Option<DuelFigure> {
    let logarithm_of = |arms: &[ArmBatch; 2]| {
        let [a, b] = [(metric.figure)(&arms[0])?, (metric.figure)(&arms[1])?];
        (a > 0.0 && b > 0.0).then(|| (b / a).ln())
    };
    // Adding histograms is slow, and only percentiles need them.
    let batches = match metric.is_percentile {
        true => Cow::Borrowed(batches),
        false => batches.iter().map(|arms| arms.each_ref().map(ArmBatch::without_latencies)).collect(),
    };
    let all = whole(&batches);
    let means = [(metric.figure)(&all[0])?, (metric.figure)(&all[1])?];
    let mut groups: Vec<[ArmBatch; 2]> = Vec::new();
    let mut open: [ArmBatch; 2] = Default::default();
    for batch in batches.iter() {
        add(&mut open, batch);
        if logarithm_of(&open).is_some() {
            groups.push(std::mem::take(&mut open));
        }
    }
    if let Some(last) = groups.last_mut() {
        add(last, &open);
    }
    let logarithm = logarithm_of(&all).unwrap_or(f64::NAN);
    let mut contributions = pseudo_values(&groups, logarithm, logarithm_of);
    while groups.len() / 2 >= MIN_BATCHES && are_correlated(&contributions) {
        groups = groups.chunks(2).map(whole).collect();
        contributions = pseudo_values(&groups, logarithm, logarithm_of);
    }
    let comparison = compare_batches(means, logarithm, contributions, terms);
    Some(DuelFigure { means, comparison, batches: groups.len() })
}

/// Returns the jackknife's pseudo-values of the logarithm of the ratio: n times that of all groups, minus n − 1 times that of
/// the others. They are nearly independent if the groups are; not finite if the others lack the figure.
fn pseudo_values(
    groups: &[[ArmBatch; 2]],
    logarithm_of_all: f64,
    logarithm_of: impl Fn(&[ArmBatch; 2]) -> Option<f64>,
) -> Vec<f64> {
    let count = groups.len() as f64;
    // Sums of the groups after and before each group: linear instead of quadratic work.
    let mut after = vec![<[ArmBatch; 2]>::default(); groups.len() + 1];
    for index in (0..groups.len()).rev() {
        after[index] = whole(&[after[index + 1].clone(), groups[index].clone()]);
    }
    let mut before: [ArmBatch; 2] = Default::default();
    let mut values = Vec::with_capacity(groups.len());
    for (index, group) in groups.iter().enumerate() {
        let others = whole(&[before.clone(), after[index + 1].clone()]);
        let logarithm_of_others = logarithm_of(&others).unwrap_or(f64::NAN);
        values.push(count * logarithm_of_all - (count - 1.0) * logarithm_of_others);
        add(&mut before, group);
    }
    values
}

/// Returns whether neighbouring values are positively correlated.
fn are_correlated(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    // Under independence, the lag-1 correlation has mean -1 / count and variance of about 1 / count.
    squares > 0.0 && products / squares > CORRELATION_DEVIATE / count.sqrt() - 1.0 / count
}
