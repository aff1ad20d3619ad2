//! Summaries of latencies: their moments, a histogram, and a coarse one of it.
//!
//! The histogram is log-linear, in the manner of HdrHistogram (http://hdrhistogram.org).
//!
//! Every power of two is cut into 128 buckets of equal width. A bucket is therefore at most 1/128 = 0.78 % as wide
//! as its lower bound, so *any* number reported from a bucket – its middle or an interpolation in it – is within
//! 1 % of *any* latency recorded there. (With 64 that would hold for the middle only.) That is from 512 ns to
//! 2⁴² ns = 73 minutes; below, buckets are 4 ns wide, and above, everything falls into the last one.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

/// log₂ of the buckets per power of two.
const SUB_BUCKET_BITS: u32 = 7;
/// Buckets per power of two.
const SUB_BUCKETS: usize = 1 << SUB_BUCKET_BITS;
/// log₂ of the narrowest bucket's width, ns: 4 ns make 128 buckets reach up to 512 ns, the last power of two below
/// the 1 µs from where on the error is bounded.
const UNIT_BITS: u32 = 2;
/// log₂ of the last bucket's upper bound, ns: the first power of two above one hour.
const LIMIT_BITS: u32 = 42;

/// The number of buckets of every histogram: 4352.
pub const BUCKETS: usize = SUB_BUCKETS * (LIMIT_BITS - UNIT_BITS - SUB_BUCKET_BITS + 1) as usize;

/// The bucket, below [`BUCKETS`], that a latency in ns belongs to.
#[inline]
pub fn bucket_of(latency_ns: u64) -> usize {
    let units = latency_ns >> UNIT_BITS;
    // The position of the highest bit that is set, but never below the one that makes shift 0: the linear part
    // below 512 ns needs no branch of its own.
    let highest_bit = 63 - (units | SUB_BUCKETS as u64).leading_zeros();
    let shift = highest_bit - SUB_BUCKET_BITS;
    let bucket = ((shift as usize) << SUB_BUCKET_BITS) + (units >> shift) as usize;
    bucket.min(BUCKETS - 1)
}

/// The latencies `[low, high)` of a bucket, ns. A bucket past the last counts as the last, which holds all
/// latencies above its bounds as well.
pub fn bucket_bounds_ns(bucket: usize) -> (u64, u64) {
    let bucket = bucket.min(BUCKETS - 1);
    let shift = (bucket >> SUB_BUCKET_BITS).saturating_sub(1);
    let units = (bucket - (shift << SUB_BUCKET_BITS)) as u64;
    let scale = shift as u32 + UNIT_BITS;
    (units << scale, (units + 1) << scale)
}

/// How many latencies fell into each bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// One count per bucket, always [`BUCKETS`] long.
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }

    /// Adds one latency, ns.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.counts[bucket_of(latency_ns)] += 1;
    }

    /// Adds `count` latencies of a bucket; one past the last counts as the last.
    pub fn add(&mut self, bucket: usize, count: u64) {
        self.counts[bucket.min(BUCKETS - 1)] += count;
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Bucket and count of those buckets that hold something, ascending.
    pub fn iter_nonzero(&self) -> impl Iterator<Item = (usize, u64)> + Clone + '_ {
        self.counts.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }

    /// The latency, ns, below which the fraction `p` (0 to 1) of all lies, as [`percentile_of`]; `None` when empty.
    pub fn percentile_ns(&self, p: f64) -> Option<f64> {
        let buckets = self.iter_nonzero().map(|(bucket, count)| {
            let (low, high) = bucket_bounds_ns(bucket);
            (low as f64, high as f64, count)
        });
        percentile_of(buckets, p)
    }
}

/// The fraction `p` (0 to 1, clamped to that) of buckets `(low, high, count)` given in ascending order; `None` when
/// they hold nothing. The result has the unit of the bounds.
///
/// As SQL's `percentile_cont`: the rank `p × (n − 1)` counted from 0, interpolated between the two neighbours where
/// it is not whole. The `c` values of a bucket are taken to lie evenly in it, at the middles of `c` equal parts.
pub fn percentile_of(buckets: impl Iterator<Item = (f64, f64, u64)> + Clone, p: f64) -> Option<f64> {
    // Whoever imports a document says how many there are.
    let total = buckets.clone().fold(0, |total: u64, (_, _, count)| total.saturating_add(count));
    let last = total.checked_sub(1)?;
    let rank = p.clamp(0.0, 1.0) * last as f64;
    let lower_rank = (rank.floor() as u64).min(last);
    let lower = value_at(buckets.clone(), lower_rank)?;
    let share = rank - lower_rank as f64;
    // The comparison is false for a fraction that is not a number, too.
    if share > 0.0 && lower_rank < last {
        let upper = value_at(buckets, lower_rank + 1)?;
        Some(lower + (upper - lower) * share)
    } else {
        Some(lower)
    }
}

/// The value of a rank counted from 0.
fn value_at(buckets: impl Iterator<Item = (f64, f64, u64)>, rank: u64) -> Option<f64> {
    let mut before = 0;
    for (low, high, count) in buckets {
        if rank - before < count {
            let share = ((rank - before) as f64 + 0.5) / count as f64;
            return Some(low + (high - low) * share);
        }
        before += count;
    }
    None
}

/// Count, mean, standard deviation and maximum of latencies, by the sums that pgbench keeps too (`SimpleStats` in pgbench.c).
#[derive(Clone, Copy, Default, Debug, PartialEq)]
pub struct Moments {
    /// How many latencies.
    pub count: u64,
    /// Their sum, ns.
    pub sum_ns: f64,
    /// The sum of their squares, ns².
    pub sum_sq_ns2: f64,
    /// The largest, ns; 0 when there is none.
    pub max_ns: u64,
}

impl Moments {
    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let latency = latency_ns as f64;
        self.count += 1;
        self.sum_ns += latency;
        self.sum_sq_ns2 += latency * latency;
        self.max_ns = self.max_ns.max(latency_ns);
    }

    /// Adds all latencies of another.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.sum_sq_ns2 += other.sum_sq_ns2;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean, ns; `None` without latencies.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns / self.count as f64)
    }

    /// The standard deviation of the population, ns: sqrt(Σx²/n − mean²), as pgbench's `printSimpleStats`.
    /// `None` without latencies. Rounding may bring the difference below 0 where all latencies are alike; that
    /// is 0.
    pub fn stddev_ns(&self) -> Option<f64> {
        let mean = self.mean_ns()?;
        Some((self.sum_sq_ns2 / self.count as f64 - mean * mean).max(0.0).sqrt())
    }
}

// Histograms of few buckets, small enough to be kept for each interval of a run: what a heat map is drawn of.

/// Buckets of each power of ten: each is 26 % wide.
const PER_DECADE: f64 = 10.0;

/// The last bucket, which holds all above its lower bound of more than two hours: longer than a [`Histogram`] knows.
pub const LAST: u32 = 99;

/// Count by bucket, empty ones left out. Bucket k holds the latencies from 10^(k/10) to 10^((k+1)/10) µs; the first one
/// those below 1 µs as well.
pub type CoarseHistogram = BTreeMap<u32, u64>;

/// The bucket of a latency in ns.
fn coarse_bucket_of(latency_ns: f64) -> u32 {
    // A float below 0 is cast to 0.
    (((latency_ns / 1_000.0).log10() * PER_DECADE).floor() as u32).min(LAST)
}

/// The bounds of a bucket as decimal logarithms of milliseconds.
pub fn log_bounds_ms(bucket: u32) -> (f64, f64) {
    let of = |bucket: u32| f64::from(bucket) / PER_DECADE - 3.0;
    (of(bucket), of(bucket.saturating_add(1)))
}

/// The latencies of a histogram, each bucket's in the one where its middle lies: one at a bound may be in the neighbour
/// of its own, 0.8 % away.
pub fn coarse(histogram: &Histogram) -> CoarseHistogram {
    let mut coarse = CoarseHistogram::new();
    for (bucket, count) in histogram.iter_nonzero() {
        let (low, high) = bucket_bounds_ns(bucket);
        *coarse.entry(coarse_bucket_of((low as f64 + high as f64) / 2.0)).or_default() += count;
    }
    coarse
}
