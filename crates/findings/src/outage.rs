//! How long nothing was committed when connections were lost, as in a failover, and how long until throughput was back.
//!
//! Only whole intervals without a commit are known to be such, so that an outage may have been longer by up to two of them.

use std::ops::Range;

use bench_base::sentence::{counted, grouped, percent, seconds};
use bench_results::{Document, ErrorLine, Finding, Severity, Topic};
use bench_stats::robust::median;
use serde_json::json;

use crate::dips::detect::Detected;
use crate::intervals::{Intervals, finding};

/// The share of the throughput before an outage at which it is back.
const BACK: f64 = 0.9;
/// Intervals that have to be back on their median: one alone may be a burst.
const BACK_INTERVALS: usize = 3;
/// Latencies that it has to last in a closed loop, where clients that began together commit together.
const LEAST_LATENCIES: f64 = 2.0;
/// The SQLSTATE of a transaction whose connection was lost when it may have been committed.
const IN_DOUBT: &str = "08007";

/// Intervals in which nothing was committed.
struct Outage {
    /// Which intervals, with those until throughput was back.
    told: Range<usize>,
    /// From the end of the last interval with a commit, in seconds since measuring began.
    start: f64,
    /// To the begin of the next one with a commit, or the end of the run.
    end: f64,
    /// Whether nothing was committed any more.
    open: bool,
    /// The median throughput before the first outage, tps.
    tps_before: f64,
    /// Seconds from its end until throughput was back at [`BACK`] of that; `None` if it was not.
    back_secs: Option<f64>,
}

impl Outage {
    fn secs(&self) -> f64 {
        self.end - self.start
    }
}

/// The finding on the outages of a run whose connections were lost, or were to be made anew. It tells of their dips too,
/// which are marked.
pub fn findings(document: &Document, intervals: &Intervals, detected: &mut Detected) -> Option<Finding> {
    let (run, unknown) = (&document.run, document.summary.unknown.unwrap_or(0));
    let reconnects = run.on_disconnect == "reconnect";
    let lost: Vec<&ErrorLine> =
        document.errors.iter().filter(|line| is_of_connection(&line.sqlstate)).collect();
    if !reconnects && unknown == 0 && lost.iter().all(|line| line.failed == 0) {
        return None;
    }
    let least_secs = match (run.rate, document.summary.latency_p50_ms) {
        (None, Some(p50)) => p50 / 1000.0 * LEAST_LATENCIES,
        _ => 0.0,
    };
    let mut outages = outages(intervals);
    // Clients that end with their connections leave nobody to come back, which the finding on clients tells.
    outages.retain(|outage| outage.secs() >= least_secs && (reconnects || !outage.open));
    let longest = outages.iter().max_by(|one, other| one.secs().total_cmp(&other.secs()))?;
    for dip in &mut detected.dips {
        dip.told = outages
            .iter()
            .any(|outage| dip.intervals.start < outage.told.end && outage.told.start < dip.intervals.end);
    }
    let failed = lost
        .iter()
        .filter(|line| line.sqlstate != IN_DOUBT)
        .fold(0, |sum: u64, line| sum.saturating_add(line.failed));
    let in_doubt = match unknown {
        0 => String::new(),
        1 => " 1 transaction is in doubt.".to_owned(),
        _ => format!(" {} are in doubt.", counted(unknown, "transaction")),
    };
    let why = if lost.is_empty() && unknown == 0 {
        "No connection was lost: see bench.waits, the server's log and the network for what clients waited for."
    } else {
        "bench.errors shows how connections were lost and why attempts to connect failed, the servers' logs when."
    };
    Some(finding(
        Severity::Warning,
        Topic::Outage,
        format!("Nothing was committed {}; {}.{in_doubt}", how_long(longest, outages.len()), back(longest)),
        json!({
            "outages": outages.len(),
            "outage_secs": longest.secs(),
            "back_at_90_percent_secs": longest.back_secs,
            "tps_before": longest.tps_before,
            "unknown": document.summary.unknown,
            "failed": failed,
            "at": outages.iter().map(|outage| outage.start).collect::<Vec<f64>>(),
            "until": outages.iter().map(|outage| outage.end).collect::<Vec<f64>>(),
        }),
        format!("{why} A shorter sample_interval gives more exact times."),
    ))
}

/// Whether an error is that of a connection: of SQLSTATE class 08, or a server that shuts down, crashed or starts.
fn is_of_connection(sqlstate: &str) -> bool {
    sqlstate.starts_with("08") || sqlstate.starts_with("57P0")
}

/// The outages after a first commit, in their order, and none that chance explains.
fn outages(intervals: &Intervals) -> Vec<Outage> {
    let mut stretches = intervals.standstills();
    stretches.retain(|empty| empty.start > 0);
    let before = 0..stretches.first().map_or(0, |first| first.start);
    let at_work = before.filter(|&index| intervals.transactions[index] > 0.0);
    let tps_before = median(&at_work.map(|index| intervals.tps[index]).collect::<Vec<f64>>()).unwrap_or(0.0);
    stretches.into_iter().map(|empty| outage(intervals, empty, tps_before)).collect()
}

fn outage(intervals: &Intervals, empty: Range<usize>, tps_before: f64) -> Outage {
    let least = tps_before * BACK;
    let is_back = |index: &usize| {
        let following = &intervals.tps[*index..intervals.len().min(index + BACK_INTERVALS)];
        following[0] >= least && median(following).is_some_and(|tps| tps >= least)
    };
    let back = (empty.end..intervals.len()).find(is_back);
    let (start, end) = intervals.times(&empty);
    Outage {
        told: empty.start..back.unwrap_or(empty.end),
        start,
        end,
        open: empty.end == intervals.len(),
        tps_before,
        back_secs: back.map(|index| intervals.starts[index] - end),
    }
}

/// How long the longest of so many lasted, and when.
fn how_long(longest: &Outage, count: usize) -> String {
    let (secs, start) = (seconds(longest.secs()), seconds(longest.start));
    match count {
        1 => format!("for {secs} from {start} on"),
        _ => format!("{count} times, for up to {secs} (from {start} on)"),
    }
}

/// How long it took until throughput was back.
fn back(outage: &Outage) -> String {
    let level = format!("{} of the {} tps before", percent(BACK), grouped(outage.tps_before));
    match outage.back_secs {
        _ if outage.open => "the run ended before anything was".to_owned(),
        None => format!("throughput never recovered to {level}"),
        Some(secs) if secs <= 0.0 => format!("throughput recovered to {level} at once"),
        Some(secs) => format!("throughput recovered to {level} after another {}", seconds(secs)),
    }
}
