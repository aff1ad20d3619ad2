//! From the arguments of bench.capture to its end.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::{Activity, Counts, LeftOut};
use bench_capture::log::{CapturedLog, begins_transaction};
use bench_capture::options::{LogOptions, Roles};

use super::activity::with_statements;
use super::log::{self, Read, StatementCounts};
use super::spec::{self, CaptureSpec};
use super::statements;
use crate::error::warn;
use crate::observe::counters::{self, StatementCalls};
use crate::server::process::{current_timestamp, nap};
use crate::store::{self, CaptureEnd, CapturedStatement};

/// Removes a capture.
///
/// # Errors
/// 42704 where there is none, and as [`spec::check_owner`].
pub fn drop(name: &str) -> Result<(), UserError> {
    if spec::check_owner(name)? {
        return store::delete_capture(name);
    }
    Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("capture \"{name}\" does not exist")))
}

/// The counters at the beginning.
pub struct FirstReading {
    /// A TimestampTz.
    pub at: i64,
    counts: HashMap<(u32, i64), Counts>,
    deallocations: Option<i64>,
}

impl FirstReading {
    /// Reads them; none where everything that the view has is to be taken.
    pub fn read(spec: &CaptureSpec) -> Result<Self, UserError> {
        let mut counts = HashMap::new();
        if spec.secs > 0.0 {
            for StatementCalls { user, query_id, counts: found, .. } in counters::snapshot(false)? {
                if let Some(id) = query_id {
                    counts.insert((user, id), found);
                }
            }
        }
        Ok(Self { at: current_timestamp(), counts, deallocations: counters::deallocations()? })
    }

    /// What has been executed since.
    pub fn executions(&self) -> Result<Executions, UserError> {
        let mut seen = Executions { executions: 0, blocks: 0 };
        // Of others' without their identifiers, it is not known what has come since.
        for entry in self.entries_since()?.into_iter().filter(|entry| entry.query_id.is_some()) {
            seen.executions += entry.counts.calls;
            if entry.query.as_deref().is_some_and(begins_transaction) {
                seen.blocks += entry.counts.calls;
            }
        }
        Ok(seen)
    }

    /// What has been counted since.
    pub fn entries_since(&self) -> Result<Vec<StatementCalls>, UserError> {
        let mut entries = counters::snapshot(true)?;
        for entry in &mut entries {
            if let Some(before) = entry.query_id.and_then(|id| self.counts.get(&(entry.user, id))) {
                entry.counts = entry.counts.since(before);
            }
        }
        entries.retain(|entry| entry.counts.calls > 0);
        Ok(entries)
    }
}

/// What was executed, as far as a share of it tells.
pub struct Executions {
    /// Of all statements.
    pub executions: i64,
    /// Of those that begin a transaction.
    pub blocks: i64,
}

/// What was seen between the two readings.
pub struct Window {
    /// What was counted of each statement.
    pub entries: Vec<StatementCalls>,
    /// `None` where there is no time between them.
    pub activity: Option<Activity>,
    /// What the server has logged; else why it has not, if that needs a word.
    pub logged: Result<(CapturedLog, Read, LogOptions), Option<String>>,
    /// Sessions at work.
    pub clients: u64,
    /// Whether it ended before its time, with enough in the log.
    pub is_early: bool,
}

impl Default for Window {
    fn default() -> Self {
        Self { entries: Vec::new(), activity: None, logged: Err(None), clients: 0, is_early: false }
    }
}

/// What a capture says of itself to whoever has called it.
pub fn tell(spec: &CaptureSpec) -> Result<Vec<CapturedStatement>, UserError> {
    let options = spec.checked_options()?;
    let statements = store::captured_statements(&spec.name)?;
    for note in store::notes_of_capture(&spec.name)? {
        pgrx::notice!("{note}");
    }
    if options.writes && statements.iter().any(|s| s.workload.is_some()) {
        warn(
            format!(
                "runs of capture \"{}\" change the data of the tables that its statements write to",
                spec.name
            ),
            "Run it on a copy of the database.",
        );
    }
    Ok(statements)
}

/// Takes the second reading and keeps what was captured, in the row that has been begun.
pub fn keep(spec: &CaptureSpec, beginning: &FirstReading, window: Window) -> Result<(), UserError> {
    let options = spec.checked_options()?;
    let entries = window.entries;
    let dropped = match (beginning.deallocations, counters::deallocations()?) {
        (Some(before), Some(now)) if spec.secs > 0.0 => Some((now - before).max(0)),
        (_, now) => now,
    };
    let mut sum = Counts::default();
    let begins = |entry: &&StatementCalls| entry.query.as_deref().is_some_and(begins_transaction);
    let blocks: i64 = entries.iter().filter(begins).map(|entry| entry.counts.calls).sum();
    entries.iter().filter(|entry| !entry.is_utility()).for_each(|entry| sum.add(&entry.counts));
    let activity = window.activity.map(|activity| with_statements(activity, &sum));
    let (mut end, replayed) = match window.logged {
        Ok((captured, read, log_options)) if captured.figures.transactions > 0 => {
            let counts =
                entries.iter().filter_map(|entry| Some(((entry.user, entry.query_id?), entry.counts)));
            let counted = StatementCounts {
                counts: &counts.collect(),
                // The whole application's, where the capture is of all of it.
                rate: (activity.as_ref().filter(|activity| activity.transactions > 0))
                    .filter(|_| options.roles == Roles::Any)
                    .map(|activity| activity.transactions as f64 / activity.secs),
                clients: window.clients,
            };
            let analysed = log::analyse(spec.statements, &log_options, captured, &read)?;
            store::set_source_of_capture(&spec.name, "log")?;
            let kept = log::keep(&spec.name, spec.statements, &log_options, analysed, &read, Some(&counted))?;
            let (mut end, replayed) = (kept.end, kept.replayed);
            let share = 100.0 * log_options.sample_rate;
            end.notes.insert(
                1,
                format!("the server logged {share:.3} % of the transactions for it; {}", log::NO_REPLAY),
            );
            (end, replayed)
        }
        Ok((_, read, _)) if options.transactions == Some(true) => {
            let message = "the server has logged no transaction while the capture lasted";
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .detail(format!("Messages read: {}, unreadable ones: {}.", read.messages, read.unreadable))
                .hint("Capture while the application is at work, and for longer."));
        }
        logged => {
            let why_not = logged.map_or_else(|why_not| why_not, |_| Some("none was logged".to_owned()));
            let taken = statements::take(spec, &options, entries.clone())?;
            store::put_captured_statements(&spec.name, &taken.statements)?;
            let mut notes: Vec<String> = alone(&activity, blocks, sum.calls, why_not).into_iter().collect();
            notes.extend(taken.notes);
            let missing: f64 =
                taken.statements.iter().filter(|s| s.workload.is_none()).map(|s| s.share).sum();
            if missing > 0.0 {
                notes.push(format!(
                    "statements that were not kept took {:.1} % of the execution time",
                    100.0 * missing
                ));
            }
            let end = CaptureEnd {
                status: "completed".to_owned(),
                calls: Some(taken.calls),
                exec_ms: Some(taken.exec_ms),
                notes,
                ..CaptureEnd::default()
            };
            (end, taken.replayed)
        }
    };
    // Where the log does not say which statements it has, it is not known which are left out.
    let is_known = replayed.iter().all(|(_, id)| *id != 0);
    let left_out = is_known.then(|| left_out(&entries, &replayed)).flatten();
    // Of a capture without writes it is clear.
    end.notes.extend(left_out.as_ref().filter(|_| options.writes).and_then(LeftOut::describe));
    let activity = activity.map(|activity| Activity { left_out, ..activity });
    end.notes.extend(activity.as_ref().and_then(Activity::describe));
    if window.is_early {
        end.notes.push("the capture ended early: enough was logged".to_owned());
    }
    if let Some(dropped) = dropped.filter(|&dropped| dropped > 0) {
        end.notes.push(format!(
            "pg_stat_statements dropped entries {dropped} times meanwhile: their calls are missing; raise pg_stat_statements.max"
        ));
    }
    store::end_capture(&spec.name, &CaptureEnd { dealloc: dropped, activity, ..end })
}

/// Sums up the statements that are not replayed.
fn left_out(entries: &[StatementCalls], replayed: &HashSet<(u32, i64)>) -> Option<LeftOut> {
    LeftOut::of(entries.iter().map(|entry| {
        let is_replayed = entry.query_id.is_some_and(|id| replayed.contains(&(entry.user, id)));
        (entry.query.as_deref().unwrap_or("a statement without a text"), entry.counts, is_replayed)
    }))
}

/// What is wrong with a replay of single statements, where the application has transactions of several.
fn alone(
    activity: &Option<Activity>,
    blocks: i64,
    statements: i64,
    why_not: Option<String>,
) -> Option<String> {
    let why_not =
        why_not.map_or(String::new(), |why_not| format!(" Transactions were not captured: {why_not}."));
    let several = match activity {
        Some(activity) => format!("{:.1} statements", activity.several_statements()?),
        // How many are within the blocks is not known.
        None if blocks * 100 > statements => "several statements, at least sometimes".to_owned(),
        None => return None,
    };
    Some(format!(
        "each statement of the capture is a transaction, but the application's have {several}: a run commits and flushes WAL \
         more often than the application.{why_not}"
    ))
}

fn missing(name: &str) -> UserError {
    UserError::new(sqlstate::UNDEFINED_OBJECT, format!("capture \"{name}\" does not exist"))
}

/// Waits until a capture has ended, or until then, and says how it is.
///
/// # Errors
/// 42704, also for what bench.captures does not show.
pub fn wait(name: &str, until: Option<Instant>) -> Result<String, UserError> {
    loop {
        let handle = store::capture(name)?.filter(|capture| store::may_see(capture.owner_oid));
        let status = handle.ok_or_else(|| missing(name))?.status;
        if status != "capturing" || until.is_some_and(|until| Instant::now() >= until) {
            return Ok(status);
        }
        nap(50);
    }
}

/// Stops a capture under way; false where there is none.
///
/// # Errors
/// 42704 for an unknown one, 42501 without the privileges of its role or of pg_signal_backend.
pub fn stop(name: &str) -> Result<bool, UserError> {
    let handle = store::capture(name)?.ok_or_else(|| missing(name))?;
    if !store::may_stop(handle.owner_oid) {
        let message = format!("capture \"{name}\" belongs to role \"{}\"", handle.role);
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .hint("Only roles with the privileges of its role or of pg_signal_backend may stop it."));
    }
    if handle.status != "capturing" || !crate::server::process::cancel(handle.pid) {
        return Ok(false);
    }
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(10)
        && store::capture(name)?.is_some_and(|now| now.status == "capturing")
    {
        nap(20);
    }
    Ok(true)
}
