//! How well a run replays an application: statement by statement, and in totals of the whole database.
//!
//! A faithful replay returns as many rows per statement, commits and flushes as often, and waits for the same events. Each of
//! these is a part; the whole is as good as the worst of them, because a replay that is wrong in one part is a wrong benchmark.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use bench_results::{FidelityPart, whole};

use crate::constants::{shortened, without_constants};

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
    /// WAL that it wrote, in bytes.
    pub wal_bytes: f64,
}

impl Counts {
    /// Adds totals.
    pub fn add(&mut self, more: &Self) {
        self.calls += more.calls;
        self.rows += more.rows;
        self.hit += more.hit;
        self.read += more.read;
        self.exec_ms += more.exec_ms;
        self.wal_bytes += more.wal_bytes;
    }

    /// Returns a share of the totals.
    pub fn part(&self, share: f64) -> Self {
        let part = |total: i64| (total as f64 * share).round() as i64;
        Self {
            calls: part(self.calls),
            rows: part(self.rows),
            hit: part(self.hit),
            read: part(self.read),
            exec_ms: self.exec_ms * share,
            wal_bytes: self.wal_bytes * share,
        }
    }

    /// Subtracts an earlier reading. If there are fewer calls than then, the counters were reset: nothing is subtracted.
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
            wal_bytes: (self.wal_bytes - earlier.wal_bytes).max(0.0),
        }
    }
}

/// Means per call of a statement.
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
    /// Divides totals by the number of calls; `None` without a call.
    pub fn of(calls: i64, rows: i64, hit: i64, read: i64, exec_ms: f64) -> Option<Self> {
        let per_call = |total: f64| total / calls as f64;
        (calls > 0).then(|| Self {
            rows: per_call(rows as f64),
            hit: per_call(hit as f64),
            read: per_call(read as f64),
            ms: per_call(exec_ms),
        })
    }

    /// Multiplies the means by a number of calls.
    pub fn times(&self, times: f64) -> Self {
        let mut sum = Self::default();
        sum.add(self, times);
        sum
    }

    /// Adds `times` calls of another.
    pub fn add(&mut self, more: &Self, times: f64) {
        self.rows += more.rows * times;
        self.hit += more.hit * times;
        self.read += more.read * times;
        self.ms += more.ms * times;
    }

    /// Returns the blocks accessed, in shared buffers or read.
    pub fn blocks(&self) -> f64 {
        self.hit + self.read
    }
}

/// Divides the smaller of two figures by the larger: from 0 to 1, where equal. Figures below `least` count as equal to it.
fn ratio(one: f64, other: f64, least: f64) -> f64 {
    let (small, large) = (one.min(other), one.max(other));
    if large <= least { 1.0 } else { (small.max(least.min(large)) / large).clamp(0.0, 1.0) }
}

/// Ratios of the smaller to the larger mean of a statement's calls, each from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Likeness {
    pub rows: f64,
    pub blocks: f64,
    /// Rows and blocks together: their product.
    pub score: f64,
}

impl Likeness {
    /// Returns the lower of both ratios.
    pub fn lower(&self) -> f64 {
        self.rows.min(self.blocks)
    }
}

/// Compares two calls. Rows below a hundredth per call, and blocks below one, count as none.
pub fn likeness(captured: &Call, replayed: &Call) -> Likeness {
    let rows = ratio(captured.rows, replayed.rows, LEAST_ROWS);
    let blocks = ratio(captured.blocks(), replayed.blocks(), LEAST_BLOCKS);
    Likeness { rows, blocks, score: rows * blocks }
}

/// Returns the mean of the statements' scores, weighted by their shares of the captured time; a missing score counts as 0.
pub fn overall(scores: &[(f64, Option<f64>)]) -> Option<f64> {
    let total: f64 = scores.iter().map(|(share, _)| share).sum();
    (total > 0.0)
        .then(|| scores.iter().map(|(share, score)| share * score.unwrap_or(0.0)).sum::<f64>() / total)
}

/// Totals of a database over a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Observed seconds.
    pub secs: f64,
    /// Transactions that ended, by commit or rollback.
    pub transactions: i64,
    /// Executions of top-level statements other than utility commands, as pg_stat_statements counts them.
    pub statements: i64,
    /// Rows that the statements returned or changed.
    pub rows: Option<i64>,
    /// Blocks that the statements accessed, in shared buffers or read.
    pub blocks: Option<i64>,
    /// Execution time of the statements in milliseconds, without commits.
    pub exec_ms: Option<f64>,
    /// Milliseconds of sessions at work, with commits.
    pub active_ms: Option<f64>,
    /// WAL of the whole server.
    pub wal_bytes: Option<i64>,
    /// Full-page images in it.
    pub wal_fpi: Option<i64>,
    /// Flushes of WAL of the whole server.
    pub wal_syncs: Option<i64>,
    /// Sessions that were at work.
    pub sessions: Option<i64>,
    /// Samples of sessions that were idle in a transaction.
    pub idle_in_transaction: i64,
    /// Samples of sessions at work by wait event: `type:event`, or `CPU`.
    pub waits: BTreeMap<String, f64>,
    /// The statements without a workload; `None` where that is not known.
    pub left_out: Option<LeftOut>,
}

/// Statements that are not replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Share of the WAL that all statements wrote.
    pub wal: f64,
    /// Share of the rows that all statements returned or changed.
    pub rows: f64,
    /// The statement that wrote the most WAL, without its constants.
    pub statement: String,
}

/// Share of the WAL from which on statements that are not replayed are described.
const NAMED_WAL: f64 = 0.1;

impl LeftOut {
    /// Sums up statements by their text, counts and whether they are replayed; `None` where they wrote no WAL.
    pub fn of<'a>(statements: impl Iterator<Item = (&'a str, Counts, bool)>) -> Option<Self> {
        let (mut all, mut missing) = (Counts::default(), Counts::default());
        let mut largest = (0.0, "");
        for (text, counts, is_replayed) in statements {
            all.add(&counts);
            if !is_replayed {
                missing.add(&counts);
                if counts.wal_bytes > largest.0 {
                    largest = (counts.wal_bytes, text);
                }
            }
        }
        let rows = if all.rows > 0 { missing.rows as f64 / all.rows as f64 } else { 0.0 };
        let statement = shortened(&without_constants(largest.1));
        (all.wal_bytes > 0.0).then(|| Self { wal: missing.wal_bytes / all.wal_bytes, rows, statement })
    }

    /// Describes them in a sentence, if they wrote much of the WAL.
    pub fn describe(&self) -> Option<String> {
        (self.wal >= NAMED_WAL).then(|| {
            format!(
                "statements that are not replayed wrote {} of the WAL and have {} of the rows, foremost {}",
                percent(self.wal),
                percent(self.rows),
                self.statement
            )
        })
    }
}

/// The key of a session that waits for nothing.
pub const CPU: &str = "CPU";

/// Fewest samples of working sessions for which waits are compared.
const MIN_SAMPLES: f64 = 100.0;

/// Statements per transaction from which on a replay of single statements is another benchmark.
const SEVERAL_STATEMENTS: f64 = 1.2;

/// Score of a part below which its reason is given.
const GOOD_SCORE: f64 = 0.9;

/// Figures per transaction below these count as equal to them. One full-page image more or less is no difference.
const LEAST_STATEMENTS: f64 = 0.01;
const LEAST_ROWS: f64 = 0.01;
const LEAST_BLOCKS: f64 = 1.0;
const LEAST_WAL_BYTES: f64 = 200.0;
const LEAST_WAL_FLUSHES: f64 = 0.05;

/// Shares of a replay's execution time and transactions that can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReplayShares {
    /// Share of the captured execution time that replayed statements have.
    pub kept: Option<f64>,
    /// Share of the run's transactions without an error.
    pub without_error: Option<f64>,
    /// Whether any replayed statement writes.
    pub writes: bool,
}

impl Activity {
    /// Returns the mean of top-level statements per transaction.
    fn statements_per_transaction(&self) -> Option<f64> {
        per(self.statements as f64, self.transactions)
    }

    /// As `statements_per_transaction`; `None` where statements can be replayed one by one.
    pub fn several_statements(&self) -> Option<f64> {
        self.statements_per_transaction().filter(|&statements| statements > SEVERAL_STATEMENTS)
    }

    /// Describes the activity in a sentence: rates and means.
    pub fn describe(&self) -> Option<String> {
        let statements = self.statements_per_transaction().filter(|_| self.secs > 0.0)?;
        let mut text = format!(
            "{} transactions in {:.1} s ({:.1}/s) with {statements:.1} statements on average",
            self.transactions,
            self.secs,
            self.transactions as f64 / self.secs
        );
        let per_transaction =
            |total: Option<i64>| total.and_then(|total| per(total as f64, self.transactions));
        if let Some(bytes) = per_transaction(self.wal_bytes) {
            text += &format!(", {bytes:.0} bytes of WAL");
        }
        if let Some(syncs) = per_transaction(self.wal_syncs) {
            text += &format!(" and {syncs:.2} WAL flushes");
        }
        Some(text + " per transaction")
    }

    /// Returns samples of working sessions by wait event, without waits between transactions.
    fn samples_at_work(&self) -> BTreeMap<&str, f64> {
        const IDLE: [&str; 5] = ["Client:", "Activity:", "Extension:", "Timeout:", "Unobserved"];
        let mut samples: BTreeMap<&str, f64> = BTreeMap::new();
        for (key, count) in
            self.waits.iter().filter(|(key, _)| !IDLE.iter().any(|idle| key.starts_with(idle)))
        {
            *samples.entry(if key == "Runnable" { CPU } else { key }).or_default() += count;
        }
        samples
    }
}

fn per(total: f64, count: i64) -> Option<f64> {
    (count > 0).then(|| total / count as f64)
}

/// Compares a replay with the captured activity, part by part. Rows, blocks, time and WAL are per as many statements as a
/// captured transaction has, so that a wrong number of statements is not counted in every part.
pub fn parts(captured: Option<&Activity>, replayed: &Activity, shares: ReplayShares) -> Vec<FidelityPart> {
    let mut parts = vec![share("kept", shares.kept, |kept| {
        format!(
            "{} of the captured execution time was in statements that are not replayed",
            percent(1.0 - kept)
        )
    })];
    parts.push(share("without error", shares.without_error, |good| {
        format!("{} of the transactions failed", percent(1.0 - good))
    }));
    let Some(captured) = captured.filter(|captured| captured.statements > 0 && captured.transactions > 0)
    else {
        let reason =
            "how often the application commits is only known of captures with secs above 0".to_owned();
        parts.push(FidelityPart {
            part: "statements".to_owned(),
            reason: Some(reason),
            ..FidelityPart::default()
        });
        return parts;
    };
    let captured_statements = captured.statements_per_transaction();
    let replayed_statements = replayed.statements_per_transaction();
    let mut first = compared("statements", captured_statements, replayed_statements, LEAST_STATEMENTS);
    if let (Some(score), Some(one), Some(other)) = (first.score, captured_statements, replayed_statements) {
        first.reason = (score < GOOD_SCORE).then(|| {
            format!("the application's transactions have {one:.1} statements, those of the replay {other:.1}")
        });
    }
    parts.push(first);
    let per_transaction = |activity: &Activity, total: Option<f64>| {
        let per_statement = total.and_then(|total| per(total, activity.statements));
        per_statement.zip(captured_statements).map(|(figure, statements)| figure * statements)
    };
    let compared_totals = |part: &str, total: fn(&Activity) -> Option<f64>, least: f64| {
        let figure = |activity| per_transaction(activity, total(activity));
        compared(part, figure(captured), figure(replayed), least)
    };
    parts.push(compared_totals("rows", |a| a.rows.map(|rows| rows as f64), LEAST_ROWS));
    let mut blocks = compared_totals("blocks", |a| a.blocks.map(|blocks| blocks as f64), LEAST_BLOCKS);
    if let (true, Some(reason)) = (shares.writes && blocks.replayed > blocks.captured, &mut blocks.reason) {
        *reason += " (rows that writes add or move are spread over more blocks)";
    }
    parts.push(blocks);
    let mut wal_bytes =
        compared_totals("WAL bytes", |a| a.wal_bytes.map(|bytes| bytes as f64), LEAST_WAL_BYTES);
    if let Some(reason) = &mut wal_bytes.reason {
        let images = |activity: &Activity| {
            let images = activity.wal_fpi.map(|images| images as f64);
            per_transaction(activity, images).map_or_else(String::new, figure)
        };
        *reason += &match captured.left_out.as_ref().and_then(LeftOut::describe) {
            Some(left_out) => format!(": {left_out}"),
            None => format!(", full-page images {} → {}", images(captured), images(replayed)),
        };
    }
    let wal_flushes =
        compared_totals("WAL flushes", |a| a.wal_syncs.map(|syncs| syncs as f64), LEAST_WAL_FLUSHES);
    for mut part in [wal_bytes, wal_flushes] {
        if !shares.writes && part.captured.is_some_and(|captured| captured > 0.0) {
            part.score = None;
            part.reason = Some("statements that write are not replayed (option writes)".to_owned());
        }
        parts.push(part);
    }
    for (part, total) in [
        ("execution ms", (|a| a.exec_ms) as fn(&Activity) -> Option<f64>),
        ("ms with commit", |a| a.active_ms),
    ] {
        let reason = Some("depends on the machine and its load".to_owned());
        parts.push(FidelityPart { score: None, reason, ..compared_totals(part, total, 0.0) });
    }
    parts.push(waits(captured, replayed));
    parts
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn share(part: &str, replayed: Option<f64>, reason: impl Fn(f64) -> String) -> FidelityPart {
    let score = replayed.map(|share| share.clamp(0.0, 1.0));
    FidelityPart {
        part: part.to_owned(),
        captured: replayed.map(|_| 1.0),
        replayed,
        score,
        reason: score.filter(|&score| score < GOOD_SCORE).map(reason),
    }
}

fn compared(part: &str, captured: Option<f64>, replayed: Option<f64>, least: f64) -> FidelityPart {
    let score = captured.zip(replayed).map(|(captured, replayed)| ratio(captured, replayed, least));
    let reason = match (captured, replayed, score) {
        (Some(captured), Some(replayed), Some(score)) if score < GOOD_SCORE => {
            Some(format!("{part} {} → {}", figure(captured), figure(replayed)))
        }
        _ => None,
    };
    FidelityPart { part: part.to_owned(), captured, replayed, score, reason }
}

/// Formats a figure with at least three significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Compares the shares of the wait events: the sum of the smaller shares.
fn waits(captured: &Activity, replayed: &Activity) -> FidelityPart {
    let part = FidelityPart { part: "waits".to_owned(), ..FidelityPart::default() };
    let (captured, replayed) = (captured.samples_at_work(), replayed.samples_at_work());
    let (captured_samples, replayed_samples): (f64, f64) = (captured.values().sum(), replayed.values().sum());
    if captured_samples < MIN_SAMPLES || replayed_samples <= 0.0 {
        let reason = "sessions were seen at work too rarely".to_owned();
        return FidelityPart { reason: Some(reason), ..part };
    }
    let captured_share = |key: &str| captured.get(key).map_or(0.0, |count| count / captured_samples);
    let replayed_share = |key: &str| replayed.get(key).map_or(0.0, |count| count / replayed_samples);
    let score: f64 = captured.keys().map(|key| captured_share(key).min(replayed_share(key))).sum();
    let difference = |key: &str| (captured_share(key) - replayed_share(key)).abs();
    let events = captured.keys().chain(replayed.keys()).copied();
    let event = events.max_by(|a, b| difference(a).total_cmp(&difference(b))).unwrap_or(CPU);
    let reason = (score < GOOD_SCORE).then(|| {
        format!(
            "{event} takes {} → {} of the time at work",
            percent(captured_share(event)),
            percent(replayed_share(event))
        )
    });
    FidelityPart { captured: Some(1.0), replayed: Some(score), score: Some(score), reason, ..part }
}

/// The calls of a captured statement or transaction, and those of its replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayedCall<'a> {
    pub workload: &'a str,
    /// Share of the captured execution time.
    pub share: f64,
    pub captured: Option<Call>,
    pub replayed: Option<Call>,
    /// The score of rows, blocks and errors; `None` where it was not replayed.
    pub score: Option<f64>,
}

/// Returns the score of all statements or transactions, with the one that lowers it most as the reason.
pub fn calls(all: &[ReplayedCall]) -> FidelityPart {
    /// A score this far below that of rows and blocks is due to errors.
    const FAILED_DIFFERENCE: f64 = 0.1;
    let scores: Vec<(f64, Option<f64>)> = all.iter().map(|call| (call.share, call.score)).collect();
    let score = overall(&scores);
    let lost = |call: &ReplayedCall| call.share * (1.0 - call.score.unwrap_or(0.0));
    let worst = all.iter().max_by(|a, b| lost(a).total_cmp(&lost(b)));
    let reason = worst.filter(|_| score.is_some_and(|score| score < GOOD_SCORE)).map(|worst| {
        let Some((captured, replayed)) = worst.captured.zip(worst.replayed) else {
            return format!("{} was not replayed", worst.workload);
        };
        let alike = likeness(&captured, &replayed);
        let (figure_name, captured, replayed) = match alike.rows < alike.blocks {
            true => ("rows", captured.rows, replayed.rows),
            false => ("blocks", captured.blocks(), replayed.blocks()),
        };
        match alike.score > worst.score.unwrap_or(0.0) + FAILED_DIFFERENCE {
            true => format!("{} failed", worst.workload),
            false => format!("{} {figure_name} {} → {}", worst.workload, figure(captured), figure(replayed)),
        }
    });
    let judged = score.map(|_| 1.0);
    FidelityPart { part: "each call".to_owned(), captured: judged, replayed: score, score, reason }
}

#[cfg(test)]
mod tests {
    use bench_results::whole;

    use super::*;

    fn activity(transactions: i64, statements: i64) -> Activity {
        Activity {
            secs: 10.0,
            transactions,
            statements,
            rows: Some(3 * statements),
            blocks: Some(20 * statements),
            exec_ms: Some(0.1 * statements as f64),
            active_ms: Some(0.2 * statements as f64),
            wal_bytes: Some(300 * statements),
            wal_fpi: Some(statements / 50),
            wal_syncs: Some(transactions * 7 / 10),
            sessions: Some(4),
            idle_in_transaction: 5,
            waits: BTreeMap::from([(CPU.to_owned(), 300.0), ("IO:WALSync".to_owned(), 100.0)]),
            left_out: None,
        }
    }

    const ALL: ReplayShares = ReplayShares { kept: Some(1.0), without_error: Some(1.0), writes: true };

    fn score(parts: &[FidelityPart], part: &str) -> Option<f64> {
        parts.iter().find(|one| one.part == part).unwrap().score
    }

    #[test]
    fn a_replay_of_the_same_is_the_same() {
        let captured = activity(100, 1800);
        // Twice as long, and so twice of everything.
        let parts = parts(Some(&captured), &activity(200, 3600), ALL);
        assert!(parts.iter().all(|part| part.score.is_none_or(|score| score > 0.999)), "{parts:?}");
        let (score, reason) = whole(&parts).unwrap();
        assert!(score > 0.999 && reason.is_none());
    }

    #[test]
    fn statements_that_commit_by_themselves_are_another_benchmark() {
        let captured = activity(100, 1800);
        let replayed = Activity { wal_syncs: Some(1300), ..activity(1800, 1800) };
        let parts = parts(Some(&captured), &replayed, ALL);
        assert!((score(&parts, "statements").unwrap() - 1.0 / 18.0).abs() < 1e-9);
        let (lowest, reason) = whole(&parts).unwrap();
        let reason = reason.unwrap();
        assert!(
            lowest < 0.06 && reason.contains("transactions have 18.0 statements, those of the replay 1.0"),
            "{reason}"
        );
        assert_eq!(score(&parts, "rows"), Some(1.0));
        assert!(score(&parts, "WAL flushes").unwrap() < 0.1);
        assert_eq!(captured.several_statements(), Some(18.0));
        assert_eq!(activity(100, 110).several_statements(), None);
    }

    #[test]
    fn each_part_is_named_by_what_is_wrong() {
        let captured = activity(100, 100);
        let more = Activity { blocks: Some(3114), ..activity(100, 100) };
        let worse = parts(Some(&captured), &more, ALL);
        let reason = whole(&worse).unwrap().1.unwrap();
        assert!(reason.starts_with("blocks 20.0 → 31.1 (rows that writes add"), "{reason}");
        let waiting =
            Activity { waits: BTreeMap::from([("LWLock:WALWrite".to_owned(), 1.0)]), ..captured.clone() };
        let worse = parts(Some(&captured), &waiting, ALL);
        let reason = whole(&worse).unwrap().1.unwrap();
        assert_eq!(reason, "LWLock:WALWrite takes 0.0 % → 100.0 % of the time at work");
        let few = ReplayShares { kept: Some(0.334), ..ALL };
        let worse = parts(Some(&captured), &captured, few);
        let (score, reason) = whole(&worse).unwrap();
        assert!(score == 0.334 && reason.unwrap().starts_with("66.6 % of the captured"));
    }

    #[test]
    fn a_statement_that_is_not_replayed_is_named() {
        let counts = |rows, wal_bytes| Counts { calls: 10, rows, wal_bytes, ..Counts::default() };
        let statements = [
            ("COPY events FROM '/tmp/secret'", counts(900, 8e4), false),
            ("INSERT INTO items VALUES ($1)", counts(10, 2e4), true),
            ("SELECT 1", counts(90, 0.0), true),
        ];
        let left_out = LeftOut::of(statements.into_iter()).unwrap();
        assert_eq!((left_out.wal, left_out.rows), (0.8, 0.9));
        let captured = Activity { left_out: Some(left_out), ..activity(100, 100) };
        let replayed = Activity { wal_bytes: Some(6000), ..activity(100, 100) };
        let (score, reason) = whole(&parts(Some(&captured), &replayed, ALL)).unwrap();
        let reason = reason.unwrap();
        assert!(
            score < 0.67 && reason.contains("wrote 80.0 % of the WAL and have 90.0 % of the rows"),
            "{reason}"
        );
        assert!(reason.contains("COPY events FROM") && !reason.contains("secret"), "{reason}");
        assert!(!reason.contains("full-page images"), "{reason}");
        assert_eq!(LeftOut::of([("SELECT 1", counts(1, 0.0), false)].into_iter()), None);
    }

    #[test]
    fn what_cannot_be_known_is_not_judged() {
        let none = parts(None, &activity(100, 100), ALL);
        assert_eq!(none.last().unwrap().score, None);
        assert!(none.last().unwrap().reason.as_deref().unwrap().contains("secs"));
        assert_eq!(whole(&none), Some((1.0, None)));
        let captured = activity(100, 100);
        let read_only = ReplayShares { writes: false, ..ALL };
        let replayed = Activity { wal_bytes: Some(0), wal_syncs: Some(0), ..captured.clone() };
        let judged = parts(Some(&captured), &replayed, read_only);
        assert_eq!((score(&judged, "WAL bytes"), score(&judged, "WAL flushes")), (None, None));
        let rare = Activity { waits: BTreeMap::from([(CPU.to_owned(), 3.0)]), ..captured.clone() };
        assert_eq!(score(&parts(Some(&rare), &captured, ALL), "waits"), None);
        assert_eq!(whole(&[]), None);
    }

    #[test]
    fn idle_time_is_no_wait() {
        let mut idle = activity(100, 100);
        idle.waits.insert("Client:ClientRead".to_owned(), 1e6);
        idle.waits.insert("Runnable".to_owned(), 0.0);
        assert_eq!(score(&parts(Some(&activity(100, 100)), &idle, ALL), "waits"), Some(1.0));
    }
}
