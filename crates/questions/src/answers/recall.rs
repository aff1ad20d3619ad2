//! How much of the exact answers an approximate index returns.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Answer, fields};

/// One execution with the index, beside the exact answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecallSample {
    /// Rows of the exact answer that came with the index as well.
    pub found: u64,
    pub exact: u64,
    pub returned: u64,
    pub index_ms: f64,
    pub exact_ms: f64,
}

impl RecallSample {
    fn recall(&self) -> f64 {
        self.found as f64 / self.exact as f64
    }
}

/// What all executions under one combination of settings say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recall {
    pub executions: u64,
    pub recall: f64,
    pub recall_min: f64,
    /// The 5th percentile, of nearest rank.
    pub recall_p5: f64,
    /// Executions that returned fewer rows than the exact answer has.
    pub short: u64,
    pub index_ms: f64,
    pub exact_ms: f64,
}

/// Rows of the exact answer that the other one has too, counted as often as they are in both; by the value of column `key`,
/// or by whole rows. `None` where one of them is too large to be kept, or has no such column.
pub fn overlap(exact: &Answer, other: &Answer, key: Option<&str>) -> Option<u64> {
    if !exact.is_whole || !other.is_whole {
        return None;
    }
    let place = match key {
        Some(key) => Some(exact.columns.iter().position(|column| column.name == key)?),
        None => None,
    };
    // A sort key behind the columns belongs to no row.
    let identity = |answer: &Answer, row: &[u8]| -> Vec<u8> {
        let width = answer.columns.len();
        match place {
            Some(place) => fields(row).nth(place).unwrap_or_default().to_vec(),
            None => fields(row).take(width).flatten().copied().collect(),
        }
    };
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    for row in &exact.kept {
        bench_base::interrupts::check_now_and_then();
        *counts.entry(identity(exact, row)).or_default() += 1;
    }
    let mut found = 0;
    for row in &other.kept {
        bench_base::interrupts::check_now_and_then();
        if let Some(left) = counts.get_mut(&identity(other, row)).filter(|left| **left > 0) {
            (*left, found) = (*left - 1, found + 1);
        }
    }
    Some(found)
}

/// Sums up executions; those whose exact answer is empty say nothing. `None` where there is no other.
pub fn recall(samples: &[RecallSample]) -> Option<Recall> {
    let samples: Vec<&RecallSample> = samples.iter().filter(|sample| sample.exact > 0).collect();
    let count = samples.len();
    let mut recalls: Vec<f64> = samples.iter().map(|sample| sample.recall()).collect();
    recalls.sort_by(f64::total_cmp);
    let mean = |value: fn(&RecallSample) -> f64| {
        samples.iter().map(|sample| value(sample)).sum::<f64>() / count as f64
    };
    Some(Recall {
        executions: count as u64,
        recall: mean(RecallSample::recall),
        recall_min: *recalls.first()?,
        recall_p5: recalls[(count * 5).div_ceil(100) - 1],
        short: samples.iter().filter(|sample| sample.returned < sample.exact).count() as u64,
        index_ms: mean(|sample| sample.index_ms),
        exact_ms: mean(|sample| sample.exact_ms),
    })
}

/// The first of several combinations whose mean recall is at least `least`.
pub fn pick(all: &[Option<Recall>], least: f64) -> Option<usize> {
    all.iter().position(|one| one.as_ref().is_some_and(|one| one.recall >= least))
}
