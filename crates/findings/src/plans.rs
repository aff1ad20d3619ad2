//! Plans that changed during the run, and what throughput did then.

use bench_base::sentence::{counted, first_few, grouped, percent, seconds, shortened};
use bench_results::{CommandSummary, Document, Finding, Severity, Topic};
use bench_stats::robust::{median, sigma};
use serde_json::json;

use super::dips::Detected;
use super::finding::finding;
use super::intervals::Intervals;

/// Seconds before and after a change that are compared at most, and intervals that each side has at least.
const MOST_SECS: f64 = 10.0;
const LEAST_INTERVALS: usize = 2;
/// The least fall of the median throughput, as a share and in standard deviations of the intervals before.
const LEAST_FALL: f64 = 0.2;
const LEAST_SIGMAS: f64 = 3.0;
/// From this share on a fall needs no more than so many intervals on each side: machines that others use vary by half of
/// their throughput, and medians do not fall to a quarter just when a plan changes.
const DEEP_FALL: f64 = 0.75;
const DEEP_INTERVALS: usize = 4;
/// Seconds, or intervals if they are longer, by which a dip may begin apart from the change that explains it.
const NEAR_SECS: f64 = 1.0;

/// A command by its first words, and its place in the script, for a sentence.
pub fn place(statement: &CommandSummary) -> String {
    let CommandSummary { command, script, .. } = statement;
    format!("{} (command {command} of script {script})", shortened(&statement.statement))
}

/// The finding on changed plans. Where throughput fell with one, that is the cause, and the dips that it explains are
/// taken out of what was detected.
pub fn findings(document: &Document, intervals: &Intervals, detected: &mut Detected) -> Option<Finding> {
    let statements = document.merged_statements();
    let changed: Vec<&CommandSummary> =
        statements.iter().filter(|statement| statement.plan_changes > 0).collect();
    let falls = changed.iter().filter_map(|statement| Fall::of(statement, intervals));
    let deepest = falls.max_by(|one, other| one.share().total_cmp(&other.share()));
    if let Some(fall) = deepest {
        let near = NEAR_SECS.max(intervals.typical_secs() * 2.0);
        detected.dips.retain(|dip| (dip.start - fall.at).abs() > near);
        return Some(fall.finding());
    }
    if changed.is_empty() {
        return None;
    }
    let described: Vec<String> = changed
        .iter()
        .map(|statement| format!("{} {}", place(statement), counted(statement.plan_changes, "time")))
        .collect();
    Some(finding(
        Severity::Notice,
        Topic::Plan,
        format!("Plans changed during the run: {}.", first_few(&described)),
        json!({
            "statements": changed
                .iter()
                .map(|statement| json!({
                    "script": statement.script,
                    "command": statement.command,
                    "plan_changes": statement.plan_changes,
                }))
                .collect::<Vec<_>>(),
        }),
        "Compare the plans in bench.statements. Run ANALYZE before the run, so that statistics do not change \
         during it. If plans alternate with the parameters' values, set plan_cache_mode.",
    ))
}

/// Throughput that fell when a statement got another plan.
struct Fall<'a> {
    statement: &'a CommandSummary,
    /// Seconds since measuring began.
    at: f64,
    /// The lines of the plans' first scans, before and after.
    scans: Option<(String, String)>,
    tps_before: f64,
    tps_after: f64,
}

impl<'a> Fall<'a> {
    fn of(statement: &'a CommandSummary, intervals: &Intervals) -> Option<Self> {
        let (at, scans) = change(statement.plan.as_deref()?)?;
        let width = ((MOST_SECS / intervals.typical_secs()) as usize).max(LEAST_INTERVALS);
        let last_before = intervals.ends.partition_point(|&end| end <= at);
        let first_after = intervals.starts.partition_point(|&start| start < at);
        let before = &intervals.tps[last_before.saturating_sub(width)..last_before];
        let after = &intervals.tps[first_after..(first_after + width).min(intervals.len())];
        if before.len() < LEAST_INTERVALS || after.len() < LEAST_INTERVALS {
            return None;
        }
        let (tps_before, tps_after) = (median(before)?, median(after)?);
        let fall = Self { statement, at, scans, tps_before, tps_after };
        let noise = sigma(before)? / tps_before;
        // Written so that what is no number is no finding.
        let deep = fall.share() >= DEEP_FALL && before.len().min(after.len()) >= DEEP_INTERVALS;
        let tells = deep || fall.share() >= LEAST_FALL.max(LEAST_SIGMAS * noise);
        tells.then_some(fall)
    }

    /// The share of the throughput that was lost.
    fn share(&self) -> f64 {
        1.0 - self.tps_after / self.tps_before
    }

    fn finding(&self) -> Finding {
        let statement = self.statement;
        let from_to = match &self.scans {
            Some((before, after)) if before != after => format!(" from {before} to {after}"),
            _ => String::new(),
        };
        finding(
            Severity::Warning,
            Topic::Plan,
            format!(
                "From {} on throughput was {} lower, {} instead of {} tps: the plan of {} changed{from_to}.",
                seconds(self.at),
                percent(self.share()),
                grouped(self.tps_after),
                grouped(self.tps_before),
                place(statement)
            ),
            json!({
                "at": self.at,
                "depth": self.share(),
                "tps_before": self.tps_before,
                "tps_after": self.tps_after,
                "statements": [{
                    "script": statement.script,
                    "command": statement.command,
                    "plan_changes": statement.plan_changes,
                }],
            }),
            "Compare the plans in bench.statements. Look for an index that was dropped or became invalid, and for \
             statistics that changed: run ANALYZE before the run.",
        )
    }
}

/// When a plan changed for good for the last time while measuring, in seconds since that began, and the first scans of
/// the two forms. The forms lie under lines of their own, `from 5.250 s on:` (see [`CommandSummary::plan`]).
fn change(plan: &str) -> Option<(f64, Option<(String, String)>)> {
    let lines: Vec<&str> = plan.lines().collect();
    let time_of = |line: &str| line.strip_prefix("from ")?.strip_suffix(" s on:")?.parse::<f64>().ok();
    let place = lines.iter().rposition(|line| time_of(line).is_some())?;
    let at = time_of(lines[place])?;
    let is_head = |line: &&str| line.ends_with(':') && !line.starts_with(' ');
    let begin = lines[..place].iter().rposition(is_head).map_or(0, |head| head + 1);
    let scan = |lines: &[&str]| lines.iter().find(|line| line.contains(" Scan")).map(|line| bare(line));
    Some((at, scan(&lines[begin..place]).zip(scan(&lines[place + 1..]))))
}

/// A plan's line without its arrow and costs.
fn bare(line: &str) -> String {
    let line = line.trim().trim_start_matches("->").trim_start();
    line.split("  (").next().unwrap_or(line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_counts() {
        let plan = "generic plan:\nat first:\nLimit\n  ->  Index Scan using i on t  (cost=1)\n    Index Cond: (id = $1)\n\
                    from 3.250 s on:\nSeq Scan on t\n  Filter: (id = $1)";
        let scans = ("Index Scan using i on t".to_owned(), "Seq Scan on t".to_owned());
        assert_eq!(change(plan), Some((3.25, Some(scans))));
        assert_eq!(change("custom plan:\nSeq Scan on t"), None);
        assert_eq!(change("custom plan:\nat first:\nA\nby turns, first at 1.000 s:\nB"), None);
    }
}
