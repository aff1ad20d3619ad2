//! What of the server's state a reader should know: other runs, settings that no crash forgives, transaction ids running
//! out, tables that are not what the run takes them for, a standby that does not keep up.

use bench_base::sentence::{counted, figure, first_few, grouped, listed, milliseconds};
use bench_results::{Document, Finding, Severity, Topic};
use bench_stats::parts;
use bench_stats::robust::median;
use serde_json::{Value, json};

use crate::dips::causes::is_off;
use crate::intervals::{Intervals, finding};

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

/// Accounts that tpcb has for each step of scale, as pgbench (`naccounts`).
const ACCOUNTS_PER_SCALE: f64 = 100_000.0;

/// The findings on the fixture.
pub fn fixture_findings(document: &Document) -> Vec<Finding> {
    [unlogged(document), scale(document)].into_iter().flatten().collect()
}

fn unlogged(document: &Document) -> Option<Finding> {
    let tables = &document.environment.unlogged_tables;
    let first = tables.first()?;
    let which = match tables.len() {
        1 => format!("{first} is unlogged"),
        count => format!("{} are unlogged ({})", counted(count as u64, "table"), first_few(tables)),
    };
    Some(finding(
        Severity::Notice,
        Topic::Unlogged,
        format!("{which}: changes write no WAL, a crash empties such a table, and no standby has its rows."),
        json!({ "tables": tables }),
        "Load the fixture without the option unlogged to get figures that hold for ordinary tables.",
    ))
}

/// A scale or number of rows that the run sets and the tables do not have.
fn scale(document: &Document) -> Option<Finding> {
    let run = &document.run;
    // Of several fixtures, which one a variable means is not known.
    let &[rows] = run.fixture_rows.as_deref()? else { return None };
    let set = |name: &str| {
        let value = run.variables.get(name)?;
        value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).map(|value| (name.to_owned(), value))
    };
    let is_tpcb = run.fixture.as_deref() == Some("tpcb");
    let scale = set("scale").filter(|_| is_tpcb).map(|set| (set, rows as f64 / ACCOUNTS_PER_SCALE));
    let ((name, asked), loaded) = scale.or_else(|| Some((set("rows")?, rows as f64)))?;
    // Scales that are no whole number were loaded by rows.
    let differs = (asked - loaded).abs() >= 1.0 || asked > loaded;
    if rows <= 0 || !asked.is_finite() || !differs {
        return None;
    }
    let (severity, what) = if asked > loaded {
        (Severity::Warning, "statements draw keys that do not exist, and cost less than they should")
    } else {
        (Severity::Notice, "statements use only a part of the rows, which caches hold more easily")
    };
    let shown =
        |value: f64| if value.fract() == 0.0 { grouped(value) } else { Value::from(value).to_string() };
    Some(finding(
        severity,
        Topic::Scale,
        format!(
            "The run set the variable {name} to {}, but the fixture was loaded with {name} {}: {what}.",
            shown(asked),
            shown(loaded)
        ),
        json!({ "variable": name, "set": asked, "loaded": loaded }),
        format!(
            "Leave {name} out of variables: it follows the fixture. Or load the fixture as large as the run needs."
        ),
    ))
}

/// Intervals that a run has to have, six in each of its quarters: by chance the last six of 18 are the greatest once in 18,564
/// times. Of 12 intervals without a trend, one run in some hundreds would pass.
const LEAST_LAG_INTERVALS: usize = 24;
/// WAL in bytes by which the lag has to grow: a segment's usual size, which a standby replays in less than a second.
const LEAST_LAG_BYTES: f64 = 16.0 * MB;
/// Milliseconds by which the lag has to grow, and the bytes with it.
const LEAST_LAG_MS: f64 = 1000.0;
const MB: f64 = 1_048_576.0;

/// A figure in the quarters of a run.
struct StandbyGrowth {
    /// Medians of the first and of the last quarter.
    from: f64,
    to: f64,
}

/// The finding on a lag of replication that grew through the run, and so depends on how long the run was.
pub fn replication_findings(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let bytes = grown(&intervals.column(|samples| &samples.replay_lag_bytes)?)?;
    let ms = intervals.column(|samples| &samples.replay_lag_ms).and_then(|ms| grown(&ms));
    let late = ms.as_ref().is_some_and(|ms| ms.to - ms.from >= LEAST_LAG_MS);
    if bytes.to - bytes.from < LEAST_LAG_BYTES && !late {
        return None;
    }
    let time = ms.as_ref().map_or(String::new(), |ms| {
        format!(" and from {} to {}", milliseconds(ms.from), milliseconds(ms.to))
    });
    let whose = if document.run.target.is_some() { "The replay lag of the target" } else { "The replay lag" };
    Some(finding(
        Severity::Warning,
        Topic::Replication,
        format!(
            "{whose} grew through the run, from {} to {} MB of WAL{time}: replay cannot keep up, and the lag is not steady.",
            figure(bytes.from / MB),
            figure(bytes.to / MB)
        ),
        json!({
            "replay_lag_bytes_before": bytes.from,
            "replay_lag_bytes_after": bytes.to,
            "replay_lag_ms_before": ms.as_ref().map(|ms| ms.from),
            "replay_lag_ms_after": ms.as_ref().map(|ms| ms.to),
        }),
        "A longer run would show a greater lag. One process replays all WAL: look at its processor and its reads on the \
         standby, at queries there that replay waits for (max_standby_streaming_delay) and at recovery_min_apply_delay; or \
         find the rate that the standby can follow.",
    ))
}

/// A figure that grew from quarter to quarter: no value of a quarter is below the median of the quarter before, and none of
/// the last below any of the first half. What goes up and down does not pass.
fn grown(values: &[f64]) -> Option<StandbyGrowth> {
    if values.len() < LEAST_LAG_INTERVALS {
        return None;
    }
    let quarters: Vec<&[f64]> = parts(values, 4).collect();
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let medians: Vec<f64> = quarters.iter().filter_map(|quarter| median(quarter)).collect();
    let rises = medians.windows(2).all(|pair| pair[0] < pair[1])
        && quarters.windows(2).zip(&medians).all(|(pair, median)| least(pair[1]) >= *median)
        && least(quarters[3]) > most(&values[..values.len() / 2]);
    rises.then(|| StandbyGrowth { from: medians[0], to: medians[3] })
}
