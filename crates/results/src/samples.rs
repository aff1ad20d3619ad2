//! The series of a run: one column for each figure, one value for each interval.

use std::collections::BTreeMap;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One value for each interval; `None` where the platform or the server's version has none.
pub type Series = Vec<Option<f64>>;

macro_rules! samples {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Intervals, column by column: each key is an array with one element per interval, in order of time; null: not
        /// known. A transaction belongs to the interval in which it ended. Counts, bytes and buffers are totals of the
        /// interval. `wal_bytes` and the figures after it are null if the interval was not observed or the platform
        /// does not provide them; `waits` then has 0. In a run on several nodes, an interval covers all nodes together:
        /// percentiles and standard deviation are null, and shares of processors are the mean over the nodes that
        /// clients ran on. WAL and buffers written cover the whole server, whose sessions report their share at most
        /// once a second; processors, memory and disks cover the whole host.
        // Columns, because a soak of hours has tens of thousands of intervals.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Samples {
            $($(#[$doc])* pub $name: Series,)*
            /// Wait event to its share of the clients' time in each interval, 0 if it did not occur: `type:event` as in
            /// pg_stat_activity of the run's server; `CPU` (running on a processor) and `Runnable` (waiting for a processor) for
            /// clients without a wait event; `Unobserved` for clients that ended before they were sampled. In an observed
            /// interval, the shares of all keys add up to 1.
            pub waits: BTreeMap<String, Vec<f64>>,
            /// Bucket to committed transactions with a latency in the bucket, 0 if there are none. Bucket k
            /// holds latencies from 10^(k/10) to 10^((k+1)/10) µs, bucket 0 also those below 1 µs.
            pub latency_histogram: BTreeMap<u32, Vec<f64>>,
        }

        impl Samples {
            /// Names of the columns, which are those of `bench.samples`.
            pub const COLUMNS: &[&str] = &[$(stringify!($name),)*];

            /// The columns, in the order of their names.
            pub fn columns_mut(&mut self) -> Vec<&mut Series> {
                vec![$(&mut self.$name,)*]
            }
        }
    };
}

samples! {
    /// End of the interval, in seconds since the start of the measurement or of the warm-up.
    elapsed,
    /// True length of the interval in seconds.
    secs,
    /// Active clients.
    clients,
    /// Transactions committed.
    transactions,
    /// `transactions` / `secs`.
    tps,
    /// Transactions that failed with a serialization failure or deadlock after `max_tries`.
    failed,
    /// Clients ended by another error.
    aborted,
    /// Transactions with more than one try.
    retried,
    /// Transactions skipped because they could no longer meet the `latency_limit`, with a rate.
    skipped,
    /// Committed transactions above the `latency_limit`.
    late,
    /// Mean latency in milliseconds; null, like the others, if no transaction was committed.
    latency_avg_ms,
    /// Standard deviation of the latency in milliseconds.
    latency_stddev_ms,
    /// Median latency in milliseconds, within 1 %.
    latency_p50_ms,
    /// 95th percentile of the latency in milliseconds, within 1 %.
    latency_p95_ms,
    /// 99th percentile of the latency in milliseconds, within 1 %.
    latency_p99_ms,
    /// Greatest latency in milliseconds.
    latency_max_ms,
    /// With a rate: mean delay between due time and start, in milliseconds; part of the latency.
    lag_avg_ms,
    /// WAL generated, in bytes.
    wal_bytes,
    /// WAL records generated.
    wal_records,
    /// Full-page images in the WAL.
    wal_fpi,
    /// Number of times WAL was written because WAL buffers were full.
    wal_buffers_full,
    /// Number of times WAL was flushed to disk by a system call.
    wal_syncs,
    /// Checkpoints that began.
    checkpoints,
    /// Buffers written by the checkpointer.
    buffers_checkpoint,
    /// Buffers written by the background writer.
    buffers_clean,
    /// Pages that backends wrote or extended relations by; PostgreSQL 15 counts them late, when its checkpointer looks.
    buffers_backend,
    /// Buffers of this database found in shared buffers.
    blks_hit,
    /// Buffers of this database not found in shared buffers.
    blks_read,
    /// Temporary files of this database.
    temp_files,
    /// Bytes written to temporary files.
    temp_bytes,
    /// Share of all processors' time in user mode.
    cpu_user,
    /// Share of all processors' time in the kernel, interrupts included.
    cpu_system,
    /// Share of all processors' time idle while something waited for a disk.
    cpu_iowait,
    /// Share of all processors' time that the hypervisor gave to others.
    cpu_steal,
    /// Share of all processors' time idle.
    cpu_idle,
    /// Memory available without swapping, in bytes, at the interval's end.
    memory_available_bytes,
    /// Data written to files but not yet to disk, in bytes, at the interval's end.
    memory_dirty_bytes,
    /// Bytes read from disks.
    disk_read_bytes,
    /// Bytes written to disks.
    disk_written_bytes,
    /// Time during which the control group's quota throttled the server, in seconds.
    throttled_secs,
    /// Replay lag at the interval's end, in milliseconds: of the target if it is a standby, else of the standby
    /// furthest behind; null without a standby.
    replay_lag_ms,
    /// WAL received by that standby, or sent to it, and not yet replayed, in bytes.
    replay_lag_bytes,
}

/// Seconds that a bin of counters lasts at least: backends report theirs at most once a second (PGSTAT_MIN_INTERVAL), so
/// that shorter intervals have either nothing or the counts of several.
const BIN_SECS: f64 = 1.0;

/// Consecutive intervals of the lengths `secs` put together until they last a second; what is left at the end belongs to
/// the last bin.
pub fn bins(secs: &[f64]) -> Vec<Range<usize>> {
    let mut bins: Vec<Range<usize>> = Vec::new();
    let (mut first, mut sum) = (0, 0.0);
    for (index, secs) in secs.iter().enumerate() {
        sum += secs;
        // A hundredth is the clock's.
        if sum >= BIN_SECS * 0.99 {
            bins.push(first..index + 1);
            (first, sum) = (index + 1, 0.0);
        }
    }
    match bins.last_mut() {
        Some(last) => last.end = secs.len(),
        None if secs.is_empty() => {}
        None => bins.push(0..secs.len()),
    }
    bins
}

impl Samples {
    /// The times and the WAL counters in bins of a second and longer. Where a counter is known of some intervals of a bin
    /// only, the others are taken to have had as much per second.
    pub fn wal_in_bins(&self) -> Samples {
        let secs: Vec<f64> =
            (0..self.len()).map(|row| self.secs.get(row).copied().flatten().unwrap_or(BIN_SECS)).collect();
        let bins = bins(&secs);
        let sum_of = |series: &Series, bin: &Range<usize>| {
            let known =
                || bin.clone().filter_map(|row| Some((series.get(row).copied().flatten()?, secs[row])));
            let (sum, covered) = known().fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
            (covered > 0.0).then(|| sum * secs[bin.clone()].iter().sum::<f64>() / covered)
        };
        Samples {
            elapsed: bins.iter().map(|bin| self.elapsed[bin.end - 1]).collect(),
            secs: bins.iter().map(|bin| Some(secs[bin.clone()].iter().sum())).collect(),
            wal_bytes: bins.iter().map(|bin| sum_of(&self.wal_bytes, bin)).collect(),
            wal_fpi: bins.iter().map(|bin| sum_of(&self.wal_fpi, bin)).collect(),
            ..Samples::default()
        }
    }

    /// How many intervals there are.
    pub fn len(&self) -> usize {
        self.elapsed.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.elapsed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_last_a_second_and_leave_nothing_out() {
        assert_eq!(bins(&[]), []);
        assert_eq!(bins(&[0.25; 3]), vec![0..3; 1]);
        assert_eq!(bins(&[0.25; 10]), [0..4, 4..10]);
        assert_eq!(bins(&[0.4; 7]), [0..3, 3..7]);
        assert_eq!(bins(&[1.0, 0.999, 2.0]), [0..1, 1..2, 2..3]);
    }

    #[test]
    fn counters_that_come_once_a_second_are_no_comb() {
        let samples = Samples {
            elapsed: (1..=8).map(|end| Some(f64::from(end) * 0.25)).collect(),
            secs: vec![Some(0.25); 8],
            wal_bytes: [0.0, 400.0, 0.0, 0.0, 0.0, 0.0, 800.0, 0.0].map(Some).to_vec(),
            wal_fpi: vec![None, Some(3.0), None, Some(5.0), None, None, None, None],
            ..Samples::default()
        };
        let bins = samples.wal_in_bins();
        assert_eq!(bins.elapsed, [Some(1.0), Some(2.0)]);
        assert_eq!(bins.wal_bytes, [Some(400.0), Some(800.0)]);
        assert_eq!(bins.wal_fpi, [Some(16.0), None]);
    }
}
