//! What findings are made from: the measured intervals whose length and throughput are known, column by column; and how a
//! finding is made of its parts.

use std::ops::Range;

use bench_model::schedule::Rates;
use bench_results::{Finding, Samples, Series, Severity, Topic};
use bench_stats::robust::median;
use serde_json::{Map, Value};

/// The share of intervals in which a column may lack its value and still be read.
const MOST_MISSING: f64 = 0.1;

/// Transactions of a usual interval below which an empty one is ordinary.
const LEAST_TRANSACTIONS: f64 = 5.0;
/// Transactions that a standstill has to have cost: none of 25 is five standard deviations of a Poisson count, as for dips.
const LEAST_DUE: f64 = 25.0;

/// Intervals, in their order.
pub struct Intervals<'a> {
    samples: &'a Samples,
    /// Where each one stands in the columns.
    rows: Vec<usize>,
    /// Begins, in seconds since measuring began.
    pub starts: Vec<f64>,
    /// Ends, as the begins.
    pub ends: Vec<f64>,
    /// Lengths in seconds.
    pub secs: Vec<f64>,
    /// Committed transactions.
    pub transactions: Vec<f64>,
    /// Transactions per second.
    pub tps: Vec<f64>,
}

impl<'a> Intervals<'a> {
    /// The intervals of some samples.
    pub fn of(samples: &'a Samples) -> Intervals<'a> {
        let at = |series: &Series, row: usize| {
            series.get(row).copied().flatten().filter(|value| value.is_finite() && *value >= 0.0)
        };
        let mut intervals = Intervals {
            samples,
            rows: Vec::new(),
            starts: Vec::new(),
            ends: Vec::new(),
            secs: Vec::new(),
            transactions: Vec::new(),
            tps: Vec::new(),
        };
        for row in 0..samples.len() {
            let known = (at(&samples.elapsed, row), at(&samples.secs, row), at(&samples.tps, row));
            let (Some(end), Some(secs), Some(tps)) = known else { continue };
            if secs > 0.0 {
                intervals.rows.push(row);
                intervals.starts.push((end - secs).max(0.0));
                intervals.ends.push(end);
                intervals.secs.push(secs);
                intervals.transactions.push(at(&samples.transactions, row).unwrap_or(tps * secs));
                intervals.tps.push(tps);
            }
        }
        intervals
    }

    /// Takes out what a changing rate asks for: the throughput is what it would be under the mean of the rates. Where hardly
    /// anything was due it says nothing, and is as all others.
    pub fn levelled(mut self, rates: Option<&Rates>) -> Self {
        /// An interval with so many transactions due strays by a fifth.
        const LEAST_DUE: f64 = 25.0;
        let Some(rates) = rates else { return self };
        let due: Vec<f64> =
            self.starts.iter().zip(&self.ends).map(|(start, end)| rates.expected(*start, *end)).collect();
        let mean = due.iter().sum::<f64>() / self.secs.iter().sum::<f64>();
        for (index, due) in due.into_iter().enumerate() {
            let secs = self.secs[index];
            let share = if due < LEAST_DUE { 1.0 } else { self.tps[index] * secs / due };
            (self.tps[index], self.transactions[index]) = (share * mean, share * mean * secs);
        }
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Seconds measured.
    pub fn measured_secs(&self) -> f64 {
        self.secs.iter().sum()
    }

    /// The median length, in seconds; 0 without intervals.
    pub fn typical_secs(&self) -> f64 {
        median(&self.secs).unwrap_or(0.0)
    }

    /// Stretches of intervals in which nothing was committed, beyond what chance explains.
    pub fn standstills(&self) -> Vec<Range<usize>> {
        let at_work: Vec<usize> = (0..self.len()).filter(|&index| self.transactions[index] > 0.0).collect();
        let usual = |values: &[f64]| {
            median(&at_work.iter().map(|&index| values[index]).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        if usual(&self.transactions) < LEAST_TRANSACTIONS {
            return Vec::new();
        }
        let tps = usual(&self.tps);
        let ends = at_work.iter().copied().chain([self.len()]);
        let begins = [0].into_iter().chain(at_work.iter().map(|index| index + 1));
        begins
            .zip(ends)
            .map(|(begin, end)| begin..end)
            .filter(|empty| !empty.is_empty() && tps * self.length_secs(empty) >= LEAST_DUE)
            .collect()
    }

    /// How long a stretch lasts, in seconds: from the end of the interval before it to the begin of the next, as far as
    /// there are such.
    pub fn length_secs(&self, stretch: &Range<usize>) -> f64 {
        let (start, end) = self.times(stretch);
        end - start
    }

    /// When a stretch begins and ends, as [`Intervals::length_secs`].
    pub fn times(&self, stretch: &Range<usize>) -> (f64, f64) {
        let start = if stretch.start > 0 { self.ends[stretch.start - 1] } else { self.starts[0] };
        (start, *self.starts.get(stretch.end).unwrap_or(&self.ends[stretch.end - 1]))
    }

    /// One value of a column for each interval. The few that are missing are the median; `None` where more than
    /// a few are, or values are no numbers.
    pub fn column(&self, pick: impl Fn(&Samples) -> &Series) -> Option<Vec<f64>> {
        let series = pick(self.samples);
        let found: Vec<Option<f64>> = self
            .rows
            .iter()
            .map(|&row| series.get(row).copied().flatten().filter(|value| value.is_finite()))
            .collect();
        let known: Vec<f64> = found.iter().copied().flatten().collect();
        let missing = found.len() - known.len();
        if missing as f64 > found.len() as f64 * MOST_MISSING {
            return None;
        }
        let usual = median(&known)?;
        Some(found.into_iter().map(|value| value.unwrap_or(usual)).collect())
    }

    /// The mean of a column over the measured time.
    pub fn mean(&self, pick: impl Fn(&Samples) -> &Series) -> Option<f64> {
        let weighted =
            self.column(pick)?.iter().zip(&self.secs).map(|(value, secs)| value * secs).sum::<f64>();
        Some(weighted / self.measured_secs())
    }

    /// The wait events and each one's shares of the clients' time. An interval of which nothing was seen, as of a target that
    /// was slow to answer, has the means of the others.
    pub fn waits(&self) -> impl Iterator<Item = (&'a str, Vec<f64>)> + '_ {
        let share = |shares: &[f64], row: usize| {
            shares.get(row).copied().filter(|share| share.is_finite()).unwrap_or(0.0)
        };
        let is_seen = |&row: &usize| self.samples.waits.values().any(|shares| share(shares, row) > 0.0);
        let seen: Vec<bool> = self.rows.iter().map(is_seen).collect();
        let count = seen.iter().filter(|&&seen| seen).count().max(1);
        self.samples.waits.iter().map(move |(event, shares)| {
            let mut shares: Vec<f64> = self.rows.iter().map(|&row| share(shares, row)).collect();
            let mean = shares.iter().sum::<f64>() / count as f64;
            shares.iter_mut().zip(&seen).filter(|(_, seen)| !**seen).for_each(|(share, _)| *share = mean);
            (event.as_str(), shares)
        })
    }
}

/// A finding; `figures` is a JSON object.
pub fn finding(
    severity: Severity,
    topic: Topic,
    finding: String,
    figures: Value,
    advice: impl Into<String>,
) -> Finding {
    let figures = match figures {
        Value::Object(figures) => figures,
        _ => Map::new(),
    };
    Finding { severity, topic, finding, figures, advice: advice.into() }
}
