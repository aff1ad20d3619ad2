//! The two arms of a duel, by batches of their time.
//!
//! Each batch has both arms, in the same milliseconds; the unit is what a batch does to the ratio of their figures (batch means;
//! Law, "Simulation Modeling and Analysis", 9.5). What lasts longer than a batch and favours one arm would make neighbours alike,
//! and the interval too narrow: then batches are joined two by two until they are independent (Fishman, "Grouping observations in
//! digital simulation", Management Science 24, 1978).

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::compare::{Better, GroupComparison, Terms, batches as compare_batches};
use crate::histogram::{bucket_bounds_ns, percentile_of};

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
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
    /// Of these, in microseconds. In tables, names that begin with cpu_ are those of shares.
    #[serde(rename = "busy_us")]
    pub cpu_us: f64,
    /// Transactions whose blocks, WAL and rows are known.
    pub counted: u64,
    /// Blocks of shared buffers that these looked up, found there or read.
    pub blocks: u64,
    /// Bytes of WAL that these wrote.
    pub wal_bytes: u64,
    /// Rows that their statements returned or changed.
    pub rows: u64,
    /// Minor page faults of the session meanwhile.
    pub minor_faults: u64,
    /// Latencies, by bucket of [`crate::histogram`].
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
        self.minor_faults += other.minor_faults;
        for (bucket, count) in &other.latencies {
            *self.latencies.entry(*bucket).or_default() += count;
        }
    }

    /// Its sums alone.
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

    /// Minor page faults of a transaction.
    pub fn minor_faults_avg(&self) -> Option<f64> {
        Self::per_transaction(self.minor_faults as f64, self.counted)
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
    /// Whether it is made of each latency, and not of sums alone.
    pub is_percentile: bool,
    /// Of a transaction.
    pub of: fn(&ArmBatch) -> Option<f64>,
}

impl DuelMetric {
    const fn mean(name: &'static str, is_time: bool, of: fn(&ArmBatch) -> Option<f64>) -> Self {
        Self { name, is_time, is_percentile: false, of }
    }

    const fn percentile(name: &'static str, of: fn(&ArmBatch) -> Option<f64>) -> Self {
        Self { name, is_time: true, is_percentile: true, of }
    }
}

/// All of them; the first is what a run that ends early is decided by.
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

/// The processor time among [`METRICS`].
pub const PROCESSOR_TIME: &DuelMetric = &METRICS[4];

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
    let ratio = compare(&batches[..count], &METRICS[0], terms).and_then(|found| found.comparison.ratio);
    ratio.is_some_and(|ratio| {
        let (least, most) = (1.0 - margin, 1.0 + margin);
        ratio.high < least || ratio.low > most || (ratio.low >= least && ratio.high <= most)
    })
}

fn add(sum: &mut [ArmBatch; 2], batch: &[ArmBatch; 2]) {
    sum.iter_mut().zip(batch).for_each(|(sum, arm)| sum.add(arm));
}

/// Both arms over all batches.
pub fn whole(batches: &[[ArmBatch; 2]]) -> [ArmBatch; 2] {
    let mut sum: [ArmBatch; 2] = Default::default();
    batches.iter().for_each(|batch| add(&mut sum, batch));
    sum
}

/// Compares a figure of the arms; `None` where a whole arm lacks it, or both have nothing of it. The ratio is that of the
/// figures over all batches. Its interval comes from how much each batch moves it: the ratio without that batch (the
/// delete-a-group jackknife; Shao & Tu, "The jackknife and bootstrap", 2.3), so that a stall counts for as much as it weighs in
/// the whole. Batches in which an arm lacks the figure are joined with those that follow, until both have it.
pub fn compare(batches: &[[ArmBatch; 2]], metric: &DuelMetric, terms: Terms) -> Option<DuelFigure> {
    let logarithm_of = |arms: &[ArmBatch; 2]| {
        let [a, b] = [(metric.of)(&arms[0])?, (metric.of)(&arms[1])?];
        (a > 0.0 && b > 0.0).then(|| (b / a).ln())
    };
    // Histograms take long to add up, and only percentiles need them.
    let batches = match metric.is_percentile {
        true => Cow::Borrowed(batches),
        false => batches.iter().map(|arms| arms.each_ref().map(ArmBatch::without_latencies)).collect(),
    };
    let all = whole(&batches);
    let means = [(metric.of)(&all[0])?, (metric.of)(&all[1])?];
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
    while groups.len() / 2 >= FEWEST && are_alike(&contributions) {
        groups = groups.chunks(2).map(whole).collect();
        contributions = pseudo_values(&groups, logarithm, logarithm_of);
    }
    let comparison = compare_batches(means, logarithm, contributions, terms);
    Some(DuelFigure { means, comparison, batches: groups.len() })
}

/// What each group contributes to the logarithm of the ratio: n times the whole's, less n − 1 times that of the others. Of groups
/// that are independent these are nearly so too. Not finite where the others lack the figure.
fn pseudo_values(
    groups: &[[ArmBatch; 2]],
    logarithm_of_all: f64,
    logarithm_of: impl Fn(&[ArmBatch; 2]) -> Option<f64>,
) -> Vec<f64> {
    let count = groups.len() as f64;
    // What stands before a group and behind it, each summed once.
    let mut behind = vec![<[ArmBatch; 2]>::default(); groups.len() + 1];
    for place in (0..groups.len()).rev() {
        behind[place] = whole(&[behind[place + 1].clone(), groups[place].clone()]);
    }
    let mut before: [ArmBatch; 2] = Default::default();
    let mut values = Vec::with_capacity(groups.len());
    for (place, group) in groups.iter().enumerate() {
        let others = whole(&[before.clone(), behind[place + 1].clone()]);
        let logarithm_of_others = logarithm_of(&others).unwrap_or(f64::NAN);
        values.push(count * logarithm_of_all - (count - 1.0) * logarithm_of_others);
        add(&mut before, group);
    }
    values
}

/// Whether neighbouring batches are more alike than chance mostly makes them (one-sided, at 20 %): to join batches without need
/// costs little.
fn are_alike(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    // Under independence the correlation has the mean -1 / count and nearly the variance 1 / count.
    squares > 0.0 && products / squares > 0.842 / count.sqrt() - 1.0 / count
}
