//! What pg_stat_statements counts.

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
