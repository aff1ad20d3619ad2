//! Whether a series that is still going on has become steady, the end of a warm-up whose length nobody gives; and where a
//! whole series became so ([`truncation`]).
//!
//! As Heidelberger & Welch do it ("Simulation run length control in the presence of an initial transient", Operations
//! Research 31, 1983): the series is looked at from time to time, each time after a tenth more of it, and at each look
//! the trend of all of it and of its second half is judged; a beginning longer than half of it is never left out. The
//! trend is the slope of the means of ten batches ([`trend::slope`]), whose interval does not mind that neighbours are
//! alike.
//!
//! That no trend is significant would be no reason to stop: after five seconds none is. The series has to show that it
//! has none, as tests of equivalence ask for (Schuirmann, "A comparison of the two one-sided tests procedure and the
//! power approach", J. Pharmacokinetics and Biopharmaceutics 15, 1987): what its throughput would change by within the time
//! ahead, ten seconds or a fifth of the time gone if that is longer, is within ±3 %. Up to [`PATIENT_SECS`] the whole interval
//! of 95 % has to be, then the trend with its standard error. A rise that slows down has so little left: with a time
//! constant of τ it is steady after some 4 τ.
//!
//! Where a series varies so much that this would take minutes, its own noise is the measure: after [`NOISY_SECS`] a trend
//! below its standard error is none.
//!
//! Looks that follow each other see almost the same. How often all of them together stop too early is not derived but
//! simulated, in the tests: rises from half of the level or less, with time constants from 1 to 60 s, leave ten seconds
//! that are within 3 % of the level in 95 % of all cases and more. A step that is still to come nobody can know of, nor
//! what changes by less than 3 % in ten seconds from the start.

#[cfg(test)]
mod simulations;

use crate::trend;
use crate::trend::{BATCHES, Slope};

/// How long a warm-up lasts at most that ends when its throughput is steady, in seconds.
pub const LONGEST_SECS: f64 = 300.0;

/// Change of the throughput, as a share of it, that a steady series may have within the time ahead.
const TOLERANCE: f64 = 0.03;

/// The least time ahead, in seconds.
const AHEAD_SECS: f64 = 10.0;

/// The time ahead as a share of the time gone, where that is more.
const AHEAD_SHARE: f64 = 0.2;

/// The confidence of the trend's interval.
const CONFIDENCE: f64 = 0.95;

/// From when on the trend's standard error is enough of an interval, in seconds.
const PATIENT_SECS: f64 = 20.0;

/// From when on a trend within its standard error is none, in seconds.
const NOISY_SECS: f64 = 40.0;

/// How much longer the series is at each look than at the one before.
const GROWTH: f64 = 1.1;

/// Intervals before the first look: two for each batch.
const LEAST_INTERVALS: usize = 2 * BATCHES;

/// A series that is looked at while it grows.
#[derive(Clone, Debug)]
pub struct UntilSteady {
    /// Under a rate without a limit on the latency, a constant lag is asked for as well.
    watches_lag: bool,
    /// The middle of each interval in seconds, and its throughput.
    tps: Vec<(f64, f64)>,
    /// The same with the mean lag in seconds; only of intervals that have one.
    lag: Vec<(f64, f64)>,
    elapsed_secs: f64,
    next_look: usize,
    is_steady: bool,
}

impl UntilSteady {
    /// An empty series. `watches_lag`: of transactions that come at a rate and are never skipped. While the server does not
    /// keep up with them, or makes up for what it is behind by, throughput may be as constant as can be.
    pub fn new(watches_lag: bool) -> Self {
        Self {
            watches_lag,
            tps: Vec::new(),
            lag: Vec::new(),
            elapsed_secs: 0.0,
            next_look: LEAST_INTERVALS,
            is_steady: false,
        }
    }

    /// The next interval: its length in seconds, its throughput, and the mean lag of its transactions in seconds. Returns
    /// whether the series is steady by now, which it then stays.
    pub fn add(&mut self, secs: f64, tps: f64, lag_secs: Option<f64>) -> bool {
        let middle = self.elapsed_secs + secs / 2.0;
        self.elapsed_secs += secs;
        self.tps.push((middle, tps));
        self.lag.extend(lag_secs.map(|lag| (middle, lag)));
        if !self.is_steady && self.tps.len() >= self.next_look {
            self.next_look = (self.tps.len() as f64 * GROWTH).ceil() as usize;
            self.is_steady = self.judge();
        }
        self.is_steady
    }

    fn judge(&self) -> bool {
        [0.0, 0.5].into_iter().any(|left_out| {
            let from_secs = left_out * self.elapsed_secs;
            let of = |points: &[(f64, f64)]| trend::slope(since(points, from_secs));
            let window = since(&self.tps, from_secs);
            let mean = window.iter().map(|point| point.1).sum::<f64>() / window.len() as f64;
            let steady = of(&self.tps).is_some_and(|slope| self.is_level(&slope, mean));
            // A queue that grows by so many seconds in a second takes that share of the arrivals more than are served.
            steady && (!self.watches_lag || of(&self.lag).is_some_and(|lag| lag.slope.abs() <= TOLERANCE))
        })
    }

    /// Whether a trend of a throughput with this mean is none.
    fn is_level(&self, slope: &Slope, mean: f64) -> bool {
        if mean <= 0.0 {
            return false;
        }
        let ahead_secs = AHEAD_SECS.max(AHEAD_SHARE * self.elapsed_secs);
        let error = if self.elapsed_secs < PATIENT_SECS { slope.margin(CONFIDENCE) } else { slope.error };
        let change = (slope.slope.abs() + error) * ahead_secs / mean;
        let is_noise = self.elapsed_secs >= NOISY_SECS && slope.slope.abs() <= slope.error;
        change <= TOLERANCE || is_noise
    }
}

/// The points from this moment on.
fn since(points: &[(f64, f64)], from_secs: f64) -> &[(f64, f64)] {
    &points[points.partition_point(|point| point.0 < from_secs)..]
}

// MSER, the marginal standard error rule: leave out those first values whose leaving makes the mean of the rest
// surest (White 1997, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69;
// of means of five, MSER-5: White, Cobb & Spratt 2000, "A comparison of five steady-state truncation heuristics for
// simulation", Proc. Winter Simulation Conference; Spratt 1998). Both found it the best of those compared.

/// Values per batch.
const BATCH: usize = 5;
/// Batches from which on MSER-5 has enough of them; below, single values are taken, as White did first.
const LEAST_BATCHES: usize = 20;
/// Values, or means, below which there is nothing to judge by.
const LEAST_MEANS: usize = 10;

/// How many of the first values to leave out, at most half; 0 where there are less than 10. Near the end the rule
/// finds a few values that are alike by chance, so that cuts in the second half are not looked at (Hoad, Robinson &
/// Davies 2010, "Automating warm-up length estimation", J. Oper. Res. Soc. 61).
pub fn truncation(values: &[f64]) -> usize {
    let batch = if values.len() >= BATCH * LEAST_BATCHES { BATCH } else { 1 };
    let means: Vec<f64> =
        values.chunks_exact(batch).map(|chunk| chunk.iter().sum::<f64>() / batch as f64).collect();
    if means.len() < LEAST_MEANS {
        return 0;
    }
    // From the last to the first: mean and squares of what is kept (Welford's recurrence).
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let (mut least, mut best) = (f64::INFINITY, 0);
    for (index, value) in means.iter().enumerate().rev() {
        count += 1.0;
        let difference = value - mean;
        mean += difference / count;
        squares += difference * (value - mean);
        let error = squares / (count * count);
        // At equal errors the one that keeps more.
        if index * 2 <= means.len() && error <= least {
            (least, best) = (error, index);
        }
    }
    best * batch
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100, shaken by ±1, after `low` values of 50.
    fn rising(low: usize, length: usize) -> Vec<f64> {
        (0..length).map(|index| if index < low { 50.0 } else { 99.0 + ((index * 7) % 3) as f64 }).collect()
    }

    #[test]
    fn leaves_out_the_rise() {
        assert_eq!(truncation(&rising(0, 60)), 0);
        assert_eq!(truncation(&rising(7, 60)), 7);
        // With batches of five, the batch that holds the seventh value is cut off whole.
        assert_eq!(truncation(&rising(7, 200)), 10);
    }

    #[test]
    fn leaves_out_half_at_most() {
        assert!(truncation(&rising(40, 60)) <= 30);
        assert_eq!(truncation(&[1.0; 9]), 0);
        assert_eq!(truncation(&[]), 0);
    }
}
