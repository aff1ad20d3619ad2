//! What of the server's state a reader should know: other runs, settings that no crash forgives, transaction ids running
//! out.

use bench_base::sentence::{counted, figure, grouped, listed};
use bench_results::{Document, Finding, Severity, Topic};
use serde_json::json;

use super::dips::is_off;
use super::finding::finding;

/// Transaction ids from the oldest unfrozen one to where the server assigns no more: half of 2³², less the three
/// million that it keeps in reserve (xidStopLimit in access/transam/varsup.c, PostgreSQL 14 on).
const XIDS: f64 = 2_147_483_648.0 - 3_000_000.0;
/// The age from which on it is time to act, whatever the rate.
const OLD_XIDS: f64 = 1e9;
/// So few hours at the run's rate, which only matter to a run that may go on for as long.
const LEAST_HOURS: f64 = 6.0;
const SOAK_SECS: f64 = 600.0;

/// The findings on the server.
pub fn findings(document: &Document) -> Vec<Finding> {
    [other_runs(document), xids(document), unsafe_settings(document)].into_iter().flatten().collect()
}

fn other_runs(document: &Document) -> Option<Finding> {
    let runs = &document.run.other_runs;
    let (first, rest) = runs.split_first()?;
    let told = match rest.len() {
        0 => format!("Run {first} was measured"),
        1 => format!("Runs {first} and {} were measured", rest[0]),
        _ => format!(
            "{} from {first} to {} were measured",
            counted(runs.len() as u64, "run"),
            runs[runs.len() - 1]
        ),
    };
    Some(finding(
        Severity::Warning,
        Topic::Others,
        format!("{told} at the same time, in the same database."),
        json!({ "other_runs": runs }),
        "The runs have shared the server: none of them measures what it does alone. Run them one after the other.",
    ))
}

fn xids(document: &Document) -> Option<Finding> {
    let age = document.environment.xid_age? as f64;
    let left = (XIDS - age).max(0.0);
    let used = document.environment.xids_used.filter(|used| *used > 0);
    // The ids were used up in the warm-up too.
    let secs =
        document.summary.secs.map(|secs| secs + document.run.warmed_up_secs()).filter(|secs| *secs > 0.0);
    let per_sec = used.zip(secs).map(|(used, secs)| used as f64 / secs);
    let hours = per_sec.map(|per_sec| left / per_sec / 3600.0);
    let is_soak = secs.is_some_and(|secs| secs >= SOAK_SECS);
    let soon = hours.filter(|hours| *hours < LEAST_HOURS && is_soak);
    if age < OLD_XIDS && soon.is_none() {
        return None;
    }
    let rate = match (per_sec, hours) {
        (Some(per_sec), Some(hours)) => {
            format!(", enough for {} hours at this run's {} per second", figure(hours), grouped(per_sec))
        }
        _ => String::new(),
    };
    Some(finding(
        Severity::Warning,
        Topic::Xids,
        format!(
            "Transaction ids are running out: the oldest database is {} transactions old, and {} are left{rate}.",
            grouped(age),
            grouped(left)
        ),
        json!({ "xid_age": age, "left": left, "per_sec": per_sec, "hours_left": hours }),
        "Run VACUUM FREEZE on the oldest tables (by age(relfrozenxid) in pg_class), and remove whatever holds \
         autovacuum back: old transactions, prepared transactions or replication slots.",
    ))
}

fn unsafe_settings(document: &Document) -> Option<Finding> {
    let off: Vec<&str> =
        ["fsync", "full_page_writes"].into_iter().filter(|name| is_off(document, name)).collect();
    if off.is_empty() {
        return None;
    }
    let names: Vec<String> = off.iter().map(|name| format!("{name} = off")).collect();
    Some(finding(
        Severity::Notice,
        Topic::Safety,
        format!(
            "The server ran with {}: a crash of the machine can corrupt the data, and the figures hold only for \
             such a server.",
            listed(&names)
        ),
        json!({ "off": off }),
        "Turn the setting on to get figures that hold in production.",
    ))
}
