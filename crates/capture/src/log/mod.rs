//! Transactions of an application, taken from the server's log: sessions and transactions as they were, and scripts by the
//! shape of the transactions.
//!
//! [`LogCapture::take`] gets the messages; those of one session in their order, sessions in any. [`LogCapture::finish`] returns the
//! scripts with how often each shape occurred, and what cannot be replayed with the reasons. It is a workload like the
//! logged one, not an exact replay: transactions are drawn at random, whatever session they were in.

mod entry;
mod event;
pub(crate) mod normalise;
mod script;
mod session;
mod shapes;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;

use std::collections::HashMap;

use bench_base::error::{UserError, sqlstate};
use bench_base::interrupts;
use serde::{Deserialize, Serialize};

use crate::constants::without_constants;
use crate::log::entry::LogZones;
use crate::log::session::LoggedSession;
use crate::log::shapes::{LoggedTransaction, Shapes};
use crate::options::LogOptions;

pub use entry::{
    CSV_COLUMNS, CsvLog, LogEntry, LogFormat, MARK_BYTES, OffsetOf, PrefixedLog, from_json, line_prefix,
};
pub use script::{FeederColumn, ScriptPauses};
pub use shapes::{ShapeRow, Skipped};
pub use tokens::{begins_transaction, is_utility};

/// A shape that can be replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Replayable {
    /// The role that executed its transactions.
    pub role: String,
    pub script: String,
    /// Statements without values, for people.
    pub shown: String,
    pub transactions: u64,
    /// Statements that it has.
    pub statements: usize,
    /// Of each of them that is a query or changes data: the identifiers by which pg_stat_statements knows it, 0 if that is not
    /// known, each with how many of the transactions had it.
    pub query_ids: Vec<Vec<(i64, u64)>>,
    /// What its replay leaves out.
    pub omits: Option<String>,
    pub writes: bool,
    /// Mean time in the server of those transactions whose durations are known, in milliseconds.
    pub busy_ms: Option<f64>,
    /// Mean of the client's pauses within a transaction, as far as the script has them, in milliseconds.
    pub pause_ms: f64,
    pub columns: Vec<FeederColumn>,
    pub rows: Vec<ShapeRow>,
}

/// What a log holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CapturedLog {
    /// The most frequent first.
    pub shapes: Vec<Replayable>,
    /// By reason, the most frequent first.
    pub skipped: Vec<(String, Skipped)>,
    pub figures: LogFigures,
}

impl CapturedLog {
    /// Puts the shapes in front of which `most` can be kept: those with the most time, in the order of their frequency; behind
    /// them the others, by their time.
    pub fn prefer(&mut self, most: usize) {
        let time = |shape: &Replayable| shape.busy_ms.unwrap_or(1.0) * shape.transactions as f64;
        let mut shapes: Vec<(usize, Replayable)> = self.shapes.drain(..).enumerate().collect();
        shapes.sort_by(|(_, a), (_, b)| time(b).total_cmp(&time(a)));
        let front = most.min(shapes.len());
        shapes[..front].sort_by_key(|(place, _)| *place);
        self.shapes.extend(shapes.into_iter().map(|(_, shape)| shape));
    }
}

/// Figures over all transactions, replayable or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogFigures {
    /// Messages of the database's sessions.
    pub entries: u64,
    pub sessions: u64,
    pub transactions: u64,
    /// From the first transaction's beginning to the last one's end, in seconds.
    pub secs: f64,
    /// Transactions per second, those included that were not logged for the sampling rate.
    pub rate: Option<f64>,
    /// The most sessions that worked within one second.
    pub clients: u64,
    /// Mean pause between two transactions of a session, in milliseconds.
    pub idle_ms: Option<f64>,
    /// Whether every statement that did not fail has a duration.
    pub is_timed: bool,
    /// Milliseconds in the server of all transactions.
    pub busy_ms: f64,
    /// Zones of the log's times that are unknown, where there are several.
    pub unknown_zones: Vec<String>,
    /// How often the time of a session's message is before that of the one before.
    pub steps_back: u64,
    /// Pauses within transactions that are so long that the clock may have been set forward instead.
    pub long_pauses: u64,
}

/// Collects the messages of a log.
#[derive(Debug)]
pub struct LogCapture {
    options: LogOptions,
    zones: LogZones,
    sessions: HashMap<String, LoggedSession>,
    shapes: Shapes,
    figures: LogFigures,
    finished: Vec<LoggedTransaction>,
    first_ms: f64,
    last_ms: f64,
    idle_sum_ms: f64,
    idle_count: u64,
    /// What the statements of open transactions take, in bytes.
    open_bytes: usize,
    /// How many sessions more worked in a second of the log than in the one before.
    active: HashMap<i64, i64>,
    /// The last second in which a session was counted.
    counted: HashMap<String, i64>,
}

/// The most seconds of a transaction in which its session counts as working.
const LONGEST_SECS: i64 = 86_400;

/// The most sessions of a log, the most seconds in which one of them began or ended to work, and the most bytes of statements
/// in transactions that are open at the same place of the log.
const MAX_SESSIONS: usize = 1_000_000;
const MAX_SECONDS: usize = 8_000_000;
const MAX_OPEN: usize = 256 << 20;

/// Messages of a session are at most this much out of order, in milliseconds, unless a clock was set back.
const STEP_BACK_MS: f64 = 1000.0;

/// A pause within a transaction that may be a clock that was set forward, in milliseconds.
const LONG_PAUSE_MS: f64 = 600_000.0;

/// The longest name of a session or a role, in bytes: servers write no longer ones.
const MAX_NAME: usize = 256;

impl LogCapture {
    /// Of a log whose times are in UTC, or have an offset.
    pub fn new(options: LogOptions) -> Self {
        let shapes = Shapes::new(options.max_rows);
        Self {
            options,
            zones: LogZones::new(|_, _| None),
            sessions: HashMap::new(),
            shapes,
            figures: LogFigures { is_timed: true, ..LogFigures::default() },
            finished: Vec::new(),
            first_ms: f64::INFINITY,
            last_ms: f64::NEG_INFINITY,
            idle_sum_ms: 0.0,
            idle_count: 0,
            open_bytes: 0,
            active: HashMap::new(),
            counted: HashMap::new(),
        }
    }

    /// With zones that `offset_of` knows.
    #[must_use]
    pub fn with_zones(self, offset_of: OffsetOf) -> Self {
        Self { zones: LogZones::new(offset_of), ..self }
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// 54000 for too many sessions, seconds, and bytes of statements and values.
    pub fn take(&mut self, mut entry: LogEntry) -> Result<(), UserError> {
        let other = |wanted: &Option<String>, is: &str| wanted.as_deref().is_some_and(|wanted| wanted != is);
        if entry.database != self.options.database
            || self.options.roles.as_ref().is_some_and(|roles| !roles.contains(&entry.user))
            || other(&self.options.application, &entry.application)
            || entry.session.len().max(entry.user.len()).max(entry.virtual_transaction.len()) > MAX_NAME
        {
            return Ok(());
        }
        self.figures.entries += 1;
        if !self.sessions.contains_key(&entry.session) {
            if self.sessions.len() >= MAX_SESSIONS {
                return Err(exceeded(format!("the log has more than {MAX_SESSIONS} sessions")));
            }
            let is_sampled = self.options.sample_rate < 1.0;
            self.sessions.insert(entry.session.clone(), LoggedSession::new(is_sampled));
        }
        if let Some(session) = self.sessions.get_mut(&entry.session) {
            let before = session.bytes();
            entry.at_ms -= self.zones.offset_ms(&entry.zone, entry.at_ms);
            match session.advance_ms(entry.at_ms) {
                back if back < -STEP_BACK_MS => self.figures.steps_back += 1,
                pause if pause > LONG_PAUSE_MS && session.is_in_transaction() => {
                    self.figures.long_pauses += 1
                }
                _ => {}
            }
            session.take(&entry, &mut self.finished);
            self.open_bytes = self.open_bytes + session.bytes() - before;
        }
        self.count_finished()?;
        if self.open_bytes > MAX_OPEN {
            let megabytes = MAX_OPEN >> 20;
            return Err(exceeded(format!(
                "the log's open transactions have more than {megabytes} MB of statements"
            )));
        }
        Ok(())
    }

    fn count_finished(&mut self) -> Result<(), UserError> {
        for transaction in std::mem::take(&mut self.finished) {
            interrupts::check_now_and_then();
            self.count(&transaction);
            if self.active.len() > MAX_SECONDS {
                return Err(exceeded(format!(
                    "the log's sessions worked in more than {MAX_SECONDS} seconds"
                )));
            }
            self.shapes.add(&transaction)?;
        }
        Ok(())
    }

    fn count(&mut self, transaction: &LoggedTransaction) {
        self.figures.transactions += 1;
        self.first_ms = self.first_ms.min(transaction.start_ms);
        self.last_ms = self.last_ms.max(transaction.end_ms);
        if let Some(idle_ms) = transaction.idle_ms {
            self.idle_sum_ms += idle_ms;
            self.idle_count += 1;
        }
        match transaction.busy_ms() {
            Some(busy_ms) => self.figures.busy_ms += busy_ms,
            // A statement that failed has none.
            None => self.figures.is_timed &= transaction.problem.is_some(),
        }
        let second = |ms: f64| (ms / 1e3).floor() as i64;
        let last = self.counted.get(&transaction.session).map_or(i64::MIN, |last| last.saturating_add(1));
        let (from, to) = (second(transaction.start_ms).max(last), second(transaction.end_ms));
        if !self.counted.contains_key(&transaction.session) {
            self.figures.sessions += 1;
        }
        let from = from.max(to.saturating_sub(LONGEST_SECS));
        if from <= to {
            *self.active.entry(from).or_default() += 1;
            *self.active.entry(to.saturating_add(1)).or_default() -= 1;
        }
        self.counted.insert(transaction.session.clone(), to.max(last.saturating_sub(1)));
    }

    /// The most sessions that worked in the same second.
    fn most_at_once(&self) -> u64 {
        let mut changes: Vec<(i64, i64)> =
            self.active.iter().map(|(second, change)| (*second, *change)).collect();
        changes.sort_unstable();
        let at_once = changes.iter().scan(0, |sum, (_, change)| {
            *sum += change;
            Some(*sum)
        });
        at_once.max().unwrap_or_default().unsigned_abs()
    }

    /// The scripts, when the log has ended.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn finish(mut self) -> Result<CapturedLog, UserError> {
        let end_ms = self.last_ms;
        for session in self.sessions.values_mut() {
            session.end(end_ms, &mut self.finished);
        }
        self.finished.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
        self.count_finished()?;
        self.figures.clients = self.most_at_once();
        let mut figures = self.figures;
        figures.unknown_zones = self.zones.unknown();
        figures.idle_ms = (self.idle_count > 0).then(|| self.idle_sum_ms / self.idle_count as f64);
        figures.secs = ((self.last_ms - self.first_ms) / 1e3).max(0.0);
        let logged = figures.transactions as f64 / figures.secs;
        figures.rate = (figures.secs > 0.0).then(|| logged / self.options.sample_rate);
        let Shapes { shapes, mut skipped, .. } = self.shapes;
        let mut kept: Vec<Replayable> = Vec::new();
        for shape in shapes.into_values() {
            interrupts::check_now_and_then();
            let replay = script::replay(&shape, self.options.think_times, self.options.mask);
            let shown = shape.shown();
            let reason = if shape.writes && !self.options.writes {
                Some("changes data (option writes)")
            } else if replay.has_constants {
                Some("has a constant that cannot be a variable (option mask)")
            } else {
                None
            };
            if let Some(reason) = reason {
                let shown = without_constants(&shown);
                let entry = skipped.entry(reason.to_owned()).or_default();
                // The most frequent one is shown, whatever the order.
                if (shape.transactions, &shown) > (entry.transactions, &entry.example) {
                    entry.example = shown;
                }
                entry.transactions += shape.transactions;
                entry.busy_ms += shape.busy_ms;
                continue;
            }
            let has_columns = !replay.columns.is_empty();
            kept.push(Replayable {
                role: shape.outline.role.clone(),
                script: replay.script,
                shown,
                transactions: shape.transactions,
                statements: shape.outline.statements.len(),
                query_ids: shape.query_ids(),
                omits: replay.omits,
                writes: shape.writes,
                busy_ms: (shape.timed > 0).then(|| shape.busy_ms / shape.timed as f64),
                pause_ms: replay.pause_us / 1e3,
                columns: replay.columns,
                rows: if has_columns { shape.rows } else { Vec::new() },
            });
        }
        kept.sort_by(|a, b| {
            b.transactions.cmp(&a.transactions).then_with(|| (&a.script, &a.role).cmp(&(&b.script, &b.role)))
        });
        let mut skipped: Vec<(String, Skipped)> = skipped.into_iter().collect();
        skipped.sort_by_key(|(_, of)| std::cmp::Reverse(of.transactions));
        Ok(CapturedLog { shapes: kept, skipped, figures })
    }
}

fn exceeded(message: String) -> UserError {
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
        .hint("Capture a shorter log, or with the options application and roles only a part of it.")
}
