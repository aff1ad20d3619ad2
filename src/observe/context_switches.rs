//! Context switches of processes, on platforms that provide them.

/// Context switches of a process so far, voluntary or not, as /proc/PID/status has them (proc(5)); `None` where there is no
/// such process, or the platform does not tell.
pub fn of_process(pid: i32) -> Option<i64> {
    if pid == 0 {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let count = |key: &str| -> Option<i64> {
        let mut lines = status.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
    };
    Some(count("voluntary_ctxt_switches")? + count("nonvoluntary_ctxt_switches")?)
}

/// Context switches, and the transactions that had ended with them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switches {
    count: i64,
    transactions: u64,
}

impl Switches {
    /// Adds others.
    pub fn add(&mut self, count: i64, transactions: u64) {
        self.count += count;
        self.transactions += transactions;
    }

    /// Adds those of another time.
    pub fn merge(&mut self, other: Self) {
        self.add(other.count, other.transactions);
    }

    /// For each transaction; `None` without one.
    pub fn per_transaction(self) -> Option<f64> {
        (self.transactions > 0).then(|| self.count as f64 / self.transactions as f64)
    }
}
