//! The wait that dominates: what clients spent most of their time waiting for, what to try against it, and how much faster
//! they could be without it; and caches: tables that had to be read from files first, sorts and hashes that did not fit into
//! memory.

use bench_base::sentence::{MEGABYTE, figure, grouped, listed, percent, seconds};
use bench_results::{Document, Finding, Severity, Topic, Wait};
use bench_stats::robust::median;
use serde_json::json;

use crate::dips::detect::Detected;
use crate::intervals::{Intervals, finding};

/// The share of clients' time from which on a wait is the run's limit.
const LEAST_SHARE: f64 = 0.25;
/// The share from which on an event is named beside others of its limit.
const LEAST_NAMED: f64 = 0.02;
/// Events named in one sentence.
const MOST_NAMED: usize = 3;

/// What limits a run, by the wait events that show it.
struct WaitLimit {
    /// In lower case, since PostgreSQL 17 spells some in another way (`WALSync`, `WalSync`); with a star at the end, all
    /// that begin so. An event belongs to the first limit that has it. `test/faults/wait_events.sh` holds them against
    /// each server's own names.
    events: &'static [&'static str],
    /// A name for it among the figures.
    name: &'static str,
    /// The subject of a sentence, with its verb.
    is_the_limit: &'static str,
    advice: &'static str,
}

const LIMITS: &[WaitLimit] = &[
    WaitLimit {
        events: &["io:walsync", "io:walwrite", "lwlock:walwrite"],
        name: FLUSHES,
        is_the_limit: "flushes of WAL to disk are the limit",
        advice: "Put pg_wal on a faster disk or one of its own. Larger transactions flush less often; more clients share a \
                 flush, and commit_delay lets more of them do so. If losing the last transactions in a crash is \
                 acceptable, run with settings => '{\"synchronous_commit\": \"off\"}' to see the difference.",
    },
    WaitLimit {
        events: &["io:datafileread", "io:datafileprefetch", "io:aioiocompletion"],
        name: READS,
        is_the_limit: "reads of table and index files are the limit",
        advice: "Use larger shared_buffers or more memory, or warm up longer if the caches were still filling (pg_prewarm \
                 fills them at once). Otherwise use faster disks, or read fewer pages per transaction.",
    },
    WaitLimit {
        events: &["io:datafileextend", "lock:extend"],
        name: "extension",
        is_the_limit: "the extension of tables and indexes is the limit",
        advice: "Spread the inserts over partitions or tables, or insert fewer and larger batches. PostgreSQL 16 and later \
                 extend relations with less contention.",
    },
    WaitLimit {
        events: &["io:datafilewrite", "io:datafileflush", "io:datafilesync"],
        name: "writes",
        is_the_limit: "writes to table and index files are the limit",
        advice: "Use larger shared_buffers, and let the background writer do more (bgwriter_lru_maxpages, bgwriter_delay), \
                 so that clients write fewer pages themselves.",
    },
    WaitLimit {
        events: &["io:buffile*"],
        name: "temporary files",
        is_the_limit: "temporary files are the limit",
        advice: "Raise work_mem, so that sorts and hashes stay in memory, or find the query that spills.",
    },
    WaitLimit {
        events: &["lock:transactionid", "lock:tuple"],
        name: "row locks",
        is_the_limit: "rows that other clients had locked are the limit",
        advice: "Spread the clients over more rows (a larger scale), update contended rows last in the transaction, or \
                 shorten it.",
    },
    WaitLimit {
        events: &["lock:*"],
        name: "locks",
        is_the_limit: "locks are the limit",
        advice: "Find who holds them: log_lock_waits logs waits longer than deadlock_timeout. Keep DDL, LOCK and advisory \
                 locks short, or out of the run.",
    },
    WaitLimit {
        events: &["lwlock:buffercontent", "buffer:*", "lwlock:buffermapping", "bufferpin:*"],
        name: "contended pages",
        is_the_limit: "pages that many clients need at once are the limit",
        advice: "Spread the clients over more rows, or use a smaller fillfactor or partitions; of ascending keys, the last \
                 index page is contended.",
    },
    WaitLimit {
        events: &["lwlock:walinsert", "lwlock:walbufmapping", "io:walinit*"],
        name: "WAL inserts",
        is_the_limit: "inserts into the WAL buffers are the limit",
        advice: "Write less WAL: fewer indexes, wal_compression, fewer full-page images by rarer checkpoints; and try larger \
                 wal_buffers.",
    },
    WaitLimit {
        events: &["ipc:syncrep"],
        name: "synchronous replication",
        is_the_limit: "the synchronous standby is the limit",
        advice: "Look at the standby's disk and at the network's round trip, or lower synchronous_commit to remote_write or \
                 local where that is acceptable.",
    },
    WaitLimit {
        events: &["lwlock:lockmanager"],
        name: "lock manager",
        is_the_limit: "the lock manager is the limit",
        advice: "Use fewer relations per statement: fewer partitions and indexes, so that locks take the fast path.",
    },
    WaitLimit {
        events: &["lwlock:*", "timeout:spindelay"],
        name: "internal locks",
        is_the_limit: "locks inside the server are the limit",
        advice: "Use fewer clients: beyond the processors, they contend. The wait event's description in PostgreSQL's manual \
                 (pg_stat_activity) says what the lock protects.",
    },
    WaitLimit {
        events: &["io:*", "ipc:*"],
        name: "other waits",
        is_the_limit: "this wait is the limit",
        advice: "Look the wait event up in PostgreSQL's manual under pg_stat_activity.",
    },
];

/// The names of the limits by reads and by flushes of WAL.
pub const READS: &str = "reads";
pub const FLUSHES: &str = "WAL flushes";

impl WaitLimit {
    /// The limit that an event (`IO:WALSync`) shows; `None` of those that no limit does: time on a processor, and waits
    /// that the script asks for.
    fn of(event: &str) -> Option<&'static WaitLimit> {
        let event = event.to_ascii_lowercase();
        let matches = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(start) => event.starts_with(start),
            None => event == *pattern,
        };
        LIMITS.iter().find(|limit| limit.events.iter().any(matches))
    }
}

/// Whether a wait event is a read of a table's or an index's file.
fn is_read(event: &str) -> bool {
    WaitLimit::of(event).is_some_and(|limit| limit.name == READS)
}

/// What clients spent their time in that shows one limit.
struct Spent {
    limit: &'static WaitLimit,
    /// The share of their time, of all events together.
    share: f64,
    /// The events with their shares.
    events: Vec<(String, f64)>,
}

/// The limit that clients spent the most time at.
fn most_spent(waits: &[Wait]) -> Option<Spent> {
    let mut all: Vec<Spent> = Vec::new();
    for wait in waits {
        let name = format!("{}:{}", wait.wait_event_type, wait.wait_event);
        let (Some(limit), true) = (WaitLimit::of(&name), wait.share.is_finite()) else { continue };
        match all.iter_mut().find(|spent| spent.limit.name == limit.name) {
            Some(spent) => {
                spent.share += wait.share;
                spent.events.push((name, wait.share));
            }
            None => all.push(Spent { limit, share: wait.share, events: vec![(name, wait.share)] }),
        }
    }
    all.into_iter().max_by(|one, other| one.share.total_cmp(&other.share))
}

/// The finding on the wait that dominates.
pub fn findings(document: &Document, intervals: &Intervals, detected: &Detected) -> Option<Finding> {
    let waits = document.merged_waits();
    let Spent { limit, share, mut events } = most_spent(&waits)?;
    let of = |kind: &str| {
        waits.iter().filter(|wait| wait.wait_event_type == kind).map(|wait| wait.share).sum::<f64>()
    };
    let (on_processor, for_processor) = (of("CPU"), of("Runnable"));
    // What clients waited for in dips only is told with them.
    let usually = outside_dips(intervals, detected, limit).unwrap_or(share);
    let dominates =
        share.min(usually) >= LEAST_SHARE && share <= 1.0 && share >= on_processor.max(for_processor);
    if !dominates || document.summary.transactions == 0 {
        return None;
    }
    events.sort_by(|one, other| other.1.total_cmp(&one.1));
    let named: Vec<String> = events
        .iter()
        .enumerate()
        .filter(|(index, (_, share))| *index == 0 || *index < MOST_NAMED && *share >= LEAST_NAMED)
        .map(|(index, (event, share))| {
            let of_time = if index == 0 { " of their time" } else { "" };
            format!("{}{of_time} in {event}", percent(*share))
        })
        .collect();
    let gain = gain(document, &waits, share);
    let at_best = gain.map_or(String::new(), |gain| {
        format!(" Without these waits, throughput would be at most {} times as high.", figure(gain))
    });
    Some(finding(
        Severity::Notice,
        Topic::Waits,
        format!("Clients spent {}: {}.{at_best}", listed(&named), limit.is_the_limit),
        json!({
            "limit": limit.name,
            "share": share,
            "events": events.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            "gain": gain,
        }),
        limit.advice,
    ))
}

/// How many times the throughput could be at most if clients never waited so: an upper bound, since another wait takes
/// the place of one that is gone, and transactions use no fewer processors than now. `None` under a rate, which sets the
/// throughput.
fn gain(document: &Document, waits: &[Wait], share: f64) -> Option<f64> {
    if document.run.rate.is_some() || share >= 1.0 {
        return None;
    }
    let busy: f64 = waits.iter().filter(|wait| wait.wait_event_type == "CPU").map(|wait| wait.share).sum();
    let used = busy * document.all_clients() as f64;
    let most = document.all_processors().filter(|_| used > 0.0).map(|processors| processors as f64 / used);
    Some((1.0 / (1.0 - share)).min(most.unwrap_or(f64::INFINITY)).max(1.0))
}

/// The share of clients' time in a limit's events outside of dips; `None` where that is not known.
fn outside_dips(intervals: &Intervals, detected: &Detected, limit: &WaitLimit) -> Option<f64> {
    let mut sums = vec![0.0; intervals.len()];
    for (_, shares) in
        intervals.waits().filter(|(event, _)| WaitLimit::of(event).is_some_and(|of| of.name == limit.name))
    {
        sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
    }
    let in_dip = |index: &usize| detected.dips.iter().any(|dip| dip.intervals.contains(index));
    let outside: Vec<usize> = (0..intervals.len()).filter(|index| !in_dip(index)).collect();
    let secs: f64 = outside.iter().map(|&index| intervals.secs[index]).sum();
    let spent: f64 = outside.iter().map(|&index| sums[index] * intervals.secs[index]).sum();
    (secs > 0.0 && intervals.waits().next().is_some()).then(|| spent / secs)
}

/// Intervals below which the run's quarters say little.
const LEAST_INTERVALS_OF_COLD: usize = 8;
/// The share of clients' time in reads in the first quarter, which has halved at least in the last one.
const LEAST_READS: f64 = 0.2;
/// How many times the throughput of the first quarter the last one has at least.
const LEAST_RISE: f64 = 1.3;
/// Bytes of temporary files worth a word: in all, and for each second.
const LEAST_SPILLED: f64 = 10e6;
const LEAST_SPILLED_PER_SEC: f64 = 1e6;
/// The findings on caches.
pub fn cache_findings(document: &Document, intervals: &Intervals) -> Vec<Finding> {
    [cold(document, intervals), spilled(document, intervals)].into_iter().flatten().collect()
}

fn cold(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let count = intervals.len();
    if count < LEAST_INTERVALS_OF_COLD {
        return None;
    }
    let mut reads = vec![0.0; count];
    for (_, shares) in intervals.waits().filter(|(event, _)| is_read(event)) {
        reads.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
    }
    let quarter = count / 4;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (first_reads, last_reads) = (mean(&reads[..quarter]), mean(&reads[count - quarter..]));
    let (before, after) = (median(&intervals.tps[..quarter])?, median(&intervals.tps[count - quarter..])?);
    let was_cold =
        first_reads >= LEAST_READS && last_reads <= first_reads / 2.0 && after >= before * LEAST_RISE;
    if !was_cold {
        return None;
    }
    let last_cold = reads.iter().rposition(|&share| share >= first_reads / 2.0).unwrap_or(0);
    let filled_after = intervals.ends[last_cold];
    Some(finding(
        Severity::Warning,
        Topic::Cache,
        format!(
            "The caches were cold: throughput rose from {} tps in the first {} to {} tps in the last, while clients' time \
             in reads from files fell from {} to {}.",
            grouped(before),
            seconds(intervals.secs[..quarter].iter().sum()),
            grouped(after),
            percent(first_reads),
            percent(last_reads)
        ),
        json!({
            "tps_first": before,
            "tps_last": after,
            "reads_first": first_reads,
            "reads_last": last_reads,
            "filled_after_secs": filled_after,
        }),
        format!(
            "Run again with warmup => {:.0}, or load the tables into memory with pg_prewarm before the run.",
            (document.run.warmed_up_secs() + filled_after).ceil()
        ),
    ))
}

fn spilled(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let sum = |values: Option<Vec<f64>>| values.map(|values| values.iter().sum::<f64>());
    let bytes = sum(intervals.column(|samples| &samples.temp_bytes))?;
    let files = sum(intervals.column(|samples| &samples.temp_files)).filter(|files| *files > 0.0);
    let secs = intervals.measured_secs();
    let tells = bytes >= LEAST_SPILLED && bytes >= LEAST_SPILLED_PER_SEC * secs;
    if !tells {
        return None;
    }
    let work_mem = document.environment.server_settings.iter().find(|setting| setting.name == "work_mem");
    let work_mem = work_mem.map_or("4MB", |setting| &setting.setting);
    let in_files = files.map_or(String::new(), |files| format!(" in {} files", grouped(files)));
    Some(finding(
        Severity::Warning,
        Topic::Temp,
        format!(
            "Queries in this database wrote {} MB of temporary files{in_files}, {} MB per second: their sorts and hashes \
             did not fit into work_mem ({work_mem}).",
            grouped(bytes / MEGABYTE),
            figure(bytes / secs / MEGABYTE)
        ),
        json!({ "bytes": bytes, "files": files, "bytes_per_sec": bytes / secs, "work_mem": work_mem }),
        "Raise work_mem (settings => '{\"work_mem\": \"64MB\"}') and compare. Each sort or hash of each client may use as \
         much; hashes use hash_mem_multiplier times as much.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_however_they_are_spelled() {
        let name = |event| WaitLimit::of(event).map(|limit| limit.name);
        assert_eq!(name("IO:WALSync"), Some("WAL flushes"));
        assert_eq!(name("IO:WalSync"), Some("WAL flushes"));
        assert_eq!(name("LWLock:WALWrite"), Some("WAL flushes"));
        assert_eq!(name("Lock:tuple"), Some("row locks"));
        assert_eq!(name("Lock:relation"), Some("locks"));
        assert_eq!(name("IO:BufFileWrite"), Some("temporary files"));
        assert_eq!(name("Timeout:SpinDelay"), Some("internal locks"));
        assert_eq!(name("IO:SLRURead"), Some("other waits"));
        for event in
            ["CPU:CPU", "Runnable:Runnable", "Client:ClientRead", "Timeout:PgSleep", "Extension:Extension"]
        {
            assert_eq!(name(event), None, "{event}");
        }
    }
}
