//! What a statement does, as pg_stat_statements counts it: in total and in one call, and how alike two calls are.

use serde::{Deserialize, Serialize};

/// Totals of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    pub calls: i64,
    /// Rows returned or changed.
    pub rows: i64,
    /// Blocks found in shared buffers.
    pub hit: i64,
    /// Blocks read into shared buffers.
    pub read: i64,
    /// Execution time in milliseconds.
    pub exec_ms: f64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.rows += more.rows;
        self.hit += more.hit;
        self.read += more.read;
        self.exec_ms += more.exec_ms;
    }

    /// A share of it.
    pub fn part(&self, share: f64) -> Self {
        let of = |total: i64| (total as f64 * share).round() as i64;
        Self {
            calls: of(self.calls),
            rows: of(self.rows),
            hit: of(self.hit),
            read: of(self.read),
            exec_ms: self.exec_ms * share,
        }
    }

    /// What has come since an earlier reading. Where counters have gone back, they were reset in between: then all of it.
    pub fn since(&self, earlier: &Self) -> Self {
        if self.calls < earlier.calls {
            return *self;
        }
        Self {
            calls: self.calls - earlier.calls,
            rows: (self.rows - earlier.rows).max(0),
            hit: (self.hit - earlier.hit).max(0),
            read: (self.read - earlier.read).max(0),
            exec_ms: (self.exec_ms - earlier.exec_ms).max(0.0),
        }
    }
}

/// What a statement does per call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Call {
    /// Rows returned or changed.
    pub rows: f64,
    /// Blocks found in shared buffers.
    pub hit: f64,
    /// Blocks read into shared buffers.
    pub read: f64,
    /// Execution time in milliseconds.
    pub ms: f64,
}

impl Call {
    /// Totals of so many calls, per call; `None` without a call.
    pub fn of(calls: i64, rows: i64, hit: i64, read: i64, exec_ms: f64) -> Option<Self> {
        let per_call = |total: f64| total / calls as f64;
        (calls > 0).then(|| Self {
            rows: per_call(rows as f64),
            hit: per_call(hit as f64),
            read: per_call(read as f64),
            ms: per_call(exec_ms),
        })
    }

    /// What so many of it do.
    pub fn times(&self, times: f64) -> Self {
        let mut sum = Self::default();
        sum.add(self, times);
        sum
    }

    /// Adds so many others.
    pub fn add(&mut self, more: &Self, times: f64) {
        self.rows += more.rows * times;
        self.hit += more.hit * times;
        self.read += more.read * times;
        self.ms += more.ms * times;
    }

    /// Blocks accessed, wherever they were found.
    pub fn blocks(&self) -> f64 {
        self.hit + self.read
    }
}

/// How alike two figures are: the smaller by the larger, from 0 to 1. Figures below `least` are alike: a ratio of next to
/// nothing says nothing.
pub(super) fn ratio(one: f64, other: f64, least: f64) -> f64 {
    let (small, large) = (one.min(other), one.max(other));
    if large <= least { 1.0 } else { (small.max(least.min(large)) / large).clamp(0.0, 1.0) }
}

/// How alike the calls of one statement are, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    pub rows: f64,
    pub blocks: f64,
    /// Rows and blocks together: their product.
    pub score: f64,
}

/// Rows below a hundredth per call, and blocks below one, count as none.
pub fn likeness(captured: &Call, replayed: &Call) -> Likeness {
    let rows = ratio(captured.rows, replayed.rows, 0.01);
    let blocks = ratio(captured.blocks(), replayed.blocks(), 1.0);
    Likeness { rows, blocks, score: rows * blocks }
}

/// The score of a whole: those of the statements, each with its share of the captured time. What was not replayed scores 0.
pub fn overall(scores: &[(f64, Option<f64>)]) -> Option<f64> {
    let total: f64 = scores.iter().map(|(share, _)| share).sum();
    (total > 0.0)
        .then(|| scores.iter().map(|(share, score)| share * score.unwrap_or(0.0)).sum::<f64>() / total)
}
