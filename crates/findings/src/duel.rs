//! Duels whose arms do not do the same work, or are in each other's way.

use bench_base::sentence::{figure, percent};
use bench_results::{ComparisonLine, Document, Duel, Finding, Severity, StatementLine, Topic};
use serde_json::json;

use super::finding::finding;

/// Differences in rows and in WAL from which on they are told.
const ROWS: f64 = 0.001;
const WAL: f64 = 0.05;
/// The share of an arm's time that waits for locks take, from which on they are told.
const LOCKS: f64 = 0.05;
/// How many half-widths of its 95 % interval a difference has to be: as of one at 99.9 %.
const SURE: f64 = 1.7;

/// What makes the comparison of a duel's arms doubtful.
pub fn findings(document: &Document) -> Vec<Finding> {
    let Some(duel) = &document.duel else { return Vec::new() };
    [rows(duel), wal(duel), locks(duel)].into_iter().flatten().collect()
}

/// Both values of a metric that surely differs by so much.
fn differs(line: &ComparisonLine, least: f64) -> Option<(f64, f64)> {
    let (a, b) = (line.baseline?, line.candidate?);
    let is_none = |value: f64| value == 0.0;
    if is_none(a) != is_none(b) {
        return Some((a, b));
    }
    let (ratio, low, high) = (line.ratio?, line.ratio_low?, line.ratio_high?);
    let half_width = (high / low).ln() / 2.0;
    ((ratio - 1.0).abs() > least && ratio.ln().abs() > SURE * half_width).then_some((a, b))
}

/// How far two numbers of rows are apart, of the greater one.
fn distance(of: &StatementLine) -> f64 {
    let (a, b) = (of.baseline.rows.unwrap_or_default(), of.candidate.rows.unwrap_or_default());
    (a - b).abs() / a.max(b).max(f64::MIN_POSITIVE)
}

fn rows(duel: &Duel) -> Option<Finding> {
    let (a, b) = differs(duel.metric("rows")?, ROWS)?;
    let both = duel.statements.iter().filter(|of| of.baseline.rows.is_some() && of.candidate.rows.is_some());
    let greatest = both.max_by(|one, other| distance(one).total_cmp(&distance(other)));
    let greatest = greatest.filter(|of| distance(of) > ROWS);
    let of_statement = greatest.map_or_else(String::new, |of| {
        let (a, b) = (of.baseline.rows.unwrap_or_default(), of.candidate.rows.unwrap_or_default());
        let (command, workload) = (of.command, &of.workload);
        format!("; command {command} of {workload}: {} and {} per execution", figure(a), figure(b))
    });
    Some(finding(
        Severity::Warning,
        Topic::Rows,
        format!(
            "The arms do not do the same work: transactions of a return or change {} rows, those of b {}{of_statement}.",
            figure(a),
            figure(b)
        ),
        json!({ "a": a, "b": b, "command": greatest.map(|of| of.command) }),
        "Check that both arms are to return the same rows. If they are not, the ratio compares different work.",
    ))
}

fn wal(duel: &Duel) -> Option<Finding> {
    let (a, b) = differs(duel.metric("wal_bytes")?, WAL)?;
    Some(finding(
        Severity::Notice,
        Topic::Duel,
        format!(
            "The arms write different amounts of WAL: a {} bytes per transaction, b {}.",
            figure(a),
            figure(b)
        ),
        json!({ "a": a, "b": b }),
        "Flushes, checkpoints and full-page images that one arm causes also cost the other one. Compare whole runs with \
         bench.ab.",
    ))
}

fn locks(duel: &Duel) -> Option<Finding> {
    let waits = duel.waits.iter().filter(|wait| wait.wait_event_type == "Lock");
    let (a, b) = waits.fold((0.0, 0.0), |(a, b), wait| (a + wait.a, b + wait.b));
    if a.max(b) < LOCKS {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Duel,
        format!("Transactions waited for locks: a for {} of their time, b for {}.", percent(a), percent(b)),
        json!({ "a": a, "b": b }),
        "Either arm may have waited for locks that the other one held. Spread the clients over more rows, or compare whole \
         runs with bench.ab.",
    ))
}
