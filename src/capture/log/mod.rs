//! bench.capture_log: transactions of the server's log become a mix of workloads.

mod other_roles;
pub mod sampling;
mod source;
mod table;

use std::collections::{HashMap, HashSet};

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::{Call, Counts};
use bench_capture::log::{CapturedLog, LogFigures, LogFormat, Replayable, Skipped};
use bench_capture::options::LogOptions;
use bench_capture::statements::{masked, masked_json, weights};
use bench_capture::without_constants;
use bench_model::feeder::Feeder;
use bench_model::spec::Role;
use bench_stats::clients_for;
use serde_json::{Map, Value};

use super::sessions::{Replayer, SessionNotes, Sessions, ask_by_role};
use super::spec;
use crate::driver::parameters::TextMask;
use crate::error::{internal, notice};
use crate::launch::checks::check_server;
use crate::server::process::current_timestamp;
use crate::server::spi::fetch_all;
use crate::server::transaction::rolled_back;
use crate::server::{database, guc, roles};
use crate::store::{self, CaptureEnd, CapturedStatement};
use other_roles::Checked;

pub use source::{LogPosition, LogSource, obstacle_of_stderr};
pub use table::Read;

/// A line of bench.capture_log's result.
pub struct CaptureLine {
    pub statement: CapturedStatement,
    /// Whether a workload was made of it.
    pub kept: bool,
    /// Mean time of a transaction in the server, in milliseconds.
    pub exec_ms_avg: Option<f64>,
    /// Rows of values that are kept.
    pub value_rows: i64,
}

/// What became of the transactions of a log.
pub struct KeptTransactions {
    pub lines: Vec<CaptureLine>,
    /// The statements of the workloads, by the role's OID and the query identifier, 0 where that is not known.
    pub replayed: HashSet<(u32, i64)>,
    /// How the capture ended.
    pub end: CaptureEnd,
}

/// Said of each capture of transactions.
pub const NO_REPLAY: &str = "This is not an exact replay (see pgreplay): transactions are drawn at random, regardless of their session.";

/// What is known beside the log of the time that it covers.
pub struct StatementCounts<'a> {
    /// What pg_stat_statements counted, by the role's OID and the query identifier.
    pub counts: &'a HashMap<(u32, i64), Counts>,
    /// Transactions per second of the whole application.
    pub rate: Option<f64>,
    /// Sessions that were at work.
    pub clients: u64,
}

/// A log, and what the server says of its shapes, in their order.
pub struct AnalysedLog {
    captured: CapturedLog,
    replayers: Vec<Result<Replayer, String>>,
    checked: Vec<Option<Result<Checked, String>>>,
}

/// Analyses the shapes of a log. Only of the server's own log it is believed who executed what; another one is what the caller has
/// written. Nothing is written before, so that no transaction id holds back the horizon meanwhile.
///
/// # Errors
/// Those of [`ask_by_role`].
pub fn analyse(
    limit: usize,
    options: &LogOptions,
    mut captured: CapturedLog,
    read: &Read,
) -> Result<AnalysedLog, UserError> {
    captured.prefer(limit);
    let sessions = Sessions::new(options.run_as.as_deref())?;
    let mut users: HashMap<&str, Result<Replayer, String>> = HashMap::new();
    for shape in &captured.shapes {
        users.entry(&shape.role).or_insert_with(|| match read.is_servers {
            true => sessions.replayer(roles::named(&shape.role)),
            false => sessions.caller_replayer(),
        });
    }
    let replayers: Vec<Result<Replayer, String>> =
        captured.shapes.iter().map(|shape| users[shape.role.as_str()].clone()).collect();
    let checked = ask_by_role(&replayers, limit, |replayer, some, watch| {
        let shapes = some.iter().map(|&at| &captured.shapes[at]);
        other_roles::checked(&sessions, replayer, shapes, options, watch)
    })?;
    Ok(AnalysedLog { captured, replayers, checked })
}

/// Stores the workloads of a capture that has begun, and its lines.
pub fn keep(
    name: &str,
    limit: usize,
    options: &LogOptions,
    AnalysedLog { captured, replayers, checked }: AnalysedLog,
    read: &Read,
    counted: Option<&StatementCounts>,
) -> Result<KeptTransactions, UserError> {
    let mut figures = captured.figures.clone();
    if let Some(counted) = counted {
        figures.rate = counted.rate.or(figures.rate);
        figures.clients = figures.clients.max(counted.clients);
    }
    let mut session_notes = SessionNotes::default();
    let (mut lines, mut replayed_ids) = (Vec::new(), HashSet::new());
    let (mut count, mut others, mut kept_ms) = (0, (0, 0.0), 0.0);
    for ((shape, replayer), checked) in captured.shapes.iter().zip(&replayers).zip(checked) {
        pgrx::check_for_interrupts!();
        let busy_ms = shape.busy_ms.map(|mean| mean * shape.transactions as f64);
        let Some(checked) = checked.filter(|_| count < limit) else {
            others.0 += shape.transactions;
            others.1 += busy_ms.unwrap_or(0.0);
            continue;
        };
        let mut line = line(&lines, &figures, shape.transactions, busy_ms, Some(shape.shown.clone()));
        line.statement.role = Some(shape.role.clone());
        let replayed = checked.and_then(|checked| {
            let intervals = read_intervals(shape, &checked).map_err(|error| error.message)?;
            replayer.clone().map(|replayer| (checked, replayer, intervals))
        });
        match replayed {
            Ok((checked, replayer, intervals)) => {
                count += 1;
                kept_ms += busy_ms.unwrap_or(0.0) + shape.pause_ms * shape.transactions as f64;
                session_notes.add(&replayer);
                let workload = format!("{name}/{count}");
                store(&workload, name, &replayer.owner, options, shape, &checked, &intervals)?;
                line.statement.workload = Some(workload);
                line.kept = true;
                line.statement.reason = shape.omits.clone();
                line.statement.statements = i32::try_from(shape.query_ids.len()).ok();
                if let Some(counted) = counted {
                    put_counts(&mut line.statement, counted.counts, replayer.writer.oid, shape);
                }
                line.value_rows = i64::try_from(shape.rows.len()).unwrap_or(i64::MAX);
                let ids = shape.query_ids.iter().flatten();
                replayed_ids.extend(ids.map(|(id, _)| (replayer.writer.oid, *id)));
            }
            Err(reason) => {
                line.statement.query = Some(without_constants(&shape.shown));
                line.statement.reason = Some(reason);
            }
        }
        lines.push(line);
    }
    not_kept(&mut lines, &figures, limit, others, captured.skipped);
    let is_kept = |line: &&mut CaptureLine| line.kept;
    let calls: Vec<i64> = lines.iter_mut().filter(is_kept).map(|line| line.statement.calls).collect();
    for (line, weight) in lines.iter_mut().filter(is_kept).zip(weights(&calls)) {
        line.statement.weight = Some(weight);
    }
    let statements: Vec<CapturedStatement> = lines.iter().map(|line| line.statement.clone()).collect();
    store::put_captured_statements(name, &statements)?;
    if let Some(rate) = figures.rate.filter(|_| figures.is_timed) {
        let rate = rate * calls.iter().sum::<i64>() as f64 / figures.transactions as f64;
        figures.clients = clients_for(rate, kept_ms / (calls.iter().sum::<i64>() as f64).max(1.0));
    }
    let mut notes = notes(name, &figures, options, read, calls.iter().sum());
    notes.extend(session_notes.notes(&roles::current()));
    let end = CaptureEnd {
        status: "completed".to_owned(),
        calls: i64::try_from(figures.transactions).ok(),
        exec_ms: figures.is_timed.then_some(figures.busy_ms),
        notes,
        ..CaptureEnd::default()
    };
    Ok(KeptTransactions { lines, replayed: replayed_ids, end })
}

/// Lines of what is not replayed: shapes beyond the limit, and by reason.
fn not_kept(
    lines: &mut Vec<CaptureLine>,
    figures: &LogFigures,
    limit: usize,
    others: (u64, f64),
    skipped: Vec<(String, Skipped)>,
) {
    let mut push = |transactions, busy_ms, query, reason: String| {
        let mut line = line(lines, figures, transactions, Some(busy_ms), query);
        line.statement.reason = Some(reason);
        lines.push(line);
    };
    if others.0 > 0 {
        push(others.0, others.1, None, format!("takes less time than the {limit} shapes kept"));
    }
    for (reason, skipped) in skipped {
        let example = (!skipped.example.is_empty()).then_some(skipped.example);
        push(skipped.transactions, skipped.busy_ms, example, reason);
    }
}

/// What the transactions of a shape took, by what pg_stat_statements counted of their statements; nothing where that does not
/// know one of them. The time is without commits, as that of a run's.
fn put_counts(
    line: &mut CapturedStatement,
    counts: &HashMap<(u32, i64), Counts>,
    role: u32,
    shape: &Replayable,
) {
    let mut sum = Call::default();
    for (id, transactions) in shape.query_ids.iter().flatten() {
        let Some(call) =
            counts.get(&(role, *id)).and_then(|of| Call::of(of.calls, of.rows, of.hit, of.read, of.exec_ms))
        else {
            return;
        };
        sum.add(&call, *transactions as f64 / shape.transactions as f64);
    }
    let total = |each: f64| each * shape.transactions as f64;
    line.rows = Some(total(sum.rows).round() as i64);
    line.shared_blks_hit = Some(total(sum.hit).round() as i64);
    line.shared_blks_read = Some(total(sum.read).round() as i64);
    line.exec_ms = Some(total(sum.ms));
}

/// A line that is not kept yet.
fn line(
    before: &[CaptureLine],
    figures: &LogFigures,
    transactions: u64,
    busy_ms: Option<f64>,
    query: Option<String>,
) -> CaptureLine {
    let share = match busy_ms {
        Some(busy_ms) if figures.is_timed && figures.busy_ms > 0.0 => busy_ms / figures.busy_ms,
        _ => transactions as f64 / figures.transactions as f64,
    };
    let statement = CapturedStatement {
        number: i32::try_from(before.len() + 1).unwrap_or(i32::MAX),
        query,
        calls: i64::try_from(transactions).unwrap_or(i64::MAX),
        exec_ms: busy_ms.filter(|_| figures.is_timed),
        share,
        ..CapturedStatement::default()
    };
    CaptureLine {
        statement,
        exec_ms_avg: busy_ms.filter(|_| figures.is_timed).map(|sum| sum / transactions as f64),
        kept: false,
        value_rows: 0,
    }
}

/// What to know of the capture: how to run it first.
fn notes(name: &str, figures: &LogFigures, options: &LogOptions, read: &Read, kept: i64) -> Vec<String> {
    let LogFigures { transactions, secs, sessions, clients, .. } = figures;
    let part = kept as f64 / *transactions as f64;
    // What is kept comes as often as it did, not as often as all together.
    let run = figures.rate.filter(|_| kept > 0).map_or(String::new(), |rate| {
        format!(
            "; to run at the same rate: bench.run('{name}', clients => {clients}, rate => {:.3})",
            rate * part
        )
    });
    let mut notes = vec![format!(
        "{transactions} transactions of {sessions} sessions in {secs:.1} s, {:.1} % of them kept{run}",
        part * 100.0
    )];
    if !figures.unknown_zones.is_empty() {
        let zones = figures.unknown_zones.join(", ");
        notes.push(format!("the log has times in several time zones, of which this server does not know: {zones}; pauses and the rate may be wrong"));
    }
    if figures.steps_back > 0 {
        notes.push(format!(
            "the log's clock was set back {} times while sessions were at work: pauses and the rate may be wrong",
            figures.steps_back
        ));
    }
    if figures.long_pauses > 0 {
        notes.push(format!(
            "{} pauses within transactions are longer than ten minutes: the clock was set forward, or sessions were idle",
            figures.long_pauses
        ));
    }
    if let Some(idle_ms) = figures.idle_ms {
        notes.push(format!(
            "sessions paused for {idle_ms:.1} ms on average between two transactions, which a rate replaces"
        ));
    }
    if !figures.is_timed {
        notes.push(
            "durations are not in the log (log_min_duration_statement, log_duration): shares are of transactions, and there are no pauses"
                .to_owned(),
        );
    }
    if read.unreadable > 0 {
        notes.push(format!("{} lines of the log could not be read", read.unreadable));
    }
    if options.writes {
        notes.push("transactions that change data are kept: a run changes the data".to_owned());
    }
    notes
}

/// The values of those columns that a statement takes for an interval with fields, by the column's place. A constant is read by these
/// fields, `INTERVAL '7' DAY`, and a parameter is not: as the server writes what it has read, both are the same.
///
/// # Errors
/// The server's for a text that is no interval.
fn read_intervals(
    shape: &Replayable,
    checked: &Checked,
) -> Result<HashMap<usize, Vec<Option<String>>>, UserError> {
    const AS_CONSTANTS: &str = "pg_catalog.interval_in(v.text::pg_catalog.cstring, 0, $2)";
    const AS_PARAMETERS: &str = "pg_catalog.\"interval\"(v.text::pg_catalog.interval, $2)";
    let mut intervals = HashMap::new();
    for (place, column) in shape.columns.iter().enumerate() {
        let Some(fields) = checked.columns[place].interval_fields else { continue };
        let read = if column.is_constant() { AS_CONSTANTS } else { AS_PARAMETERS };
        let sql = format!(
            "SELECT ({read})::pg_catalog.text FROM ROWS FROM (pg_catalog.unnest($1)) WITH ORDINALITY AS v (text, place) ORDER BY v.place"
        );
        let values: Vec<Option<String>> = shape.rows.iter().map(|row| column.value(row)).collect();
        let found = rolled_back(|| {
            guc::set_as_session("IntervalStyle", "postgres")?;
            fetch_all(&sql, &[values.into(), fields.into()], |row| row.get::<String>(1))
        })?;
        intervals.insert(place, found);
    }
    Ok(intervals)
}

/// Makes the workload of a shape.
fn store(
    workload: &str,
    capture: &str,
    role: &Role,
    options: &LogOptions,
    shape: &Replayable,
    checked: &Checked,
    intervals: &HashMap<usize, Vec<Option<String>>>,
) -> Result<(), UserError> {
    if let Some(old) = store::workload(workload)? {
        let message = format!("workload \"{}\" already exists", old.name);
        return Err(UserError::new(bench_base::error::sqlstate::DUPLICATE_OBJECT, message)
            .hint("A capture makes workloads of its own name with a number: choose another name."));
    }
    let description = format!("A transaction of capture {capture}: {} statements", shape.statements);
    store::put_workload(workload, role.oid.into(), None, &checked.script, Some(&description))?;
    // What is the same in all of the shape's transactions has stayed in the script.
    store::hide_workload(workload)?;
    if shape.columns.is_empty() {
        return Ok(());
    }
    let rows = shape.rows.iter().enumerate().map(|(at, row)| {
        let cells = shape.columns.iter().enumerate().map(|(place, column)| {
            let value = match intervals.get(&place) {
                Some(intervals) => intervals[at].clone(),
                None => column.value(row),
            };
            let hidden = |value: String| match checked.columns[place].mask {
                _ if !options.mask || column.is_setting() => value,
                TextMask::Keep => value,
                TextMask::Text => masked(&value),
                TextMask::Json => masked_json(&value),
            };
            (column.name.clone(), value.map_or(Value::Null, |value| Value::String(hidden(value))))
        });
        (None, Value::Object(cells.collect::<Map<_, _>>()))
    });
    store::put_captured_rows(workload, "", rows.collect())?;
    let columns: Vec<(String, String)> = (shape.columns.iter())
        .map(|column| {
            let kind = if column.is_number() { "pg_catalog.int8" } else { "pg_catalog.text" };
            (column.name.clone(), kind.to_owned())
        })
        .collect();
    let query = store::select_captured_rows(workload, "", &columns, false);
    let max_rows = i32::try_from(options.max_rows).unwrap_or(i32::MAX);
    let feeder = Feeder::new(String::new(), query, "random", false, max_rows)?;
    let stored = store::workload(workload)?.ok_or_else(|| internal("the workload no longer exists"))?;
    store::put_feeder(&stored, &feeder)
}

/// As many workloads as a mix may have.
const MAX_SHAPES: i32 = 128;

/// The arguments of bench.capture_log.
pub struct Arguments {
    pub name: String,
    pub source: LogSource,
    /// How many shapes are kept at most.
    pub shapes: i32,
    /// As given.
    pub options: Value,
}

/// Reads the log and stores the capture; the lines of bench.capture_statements.
///
/// # Errors
/// 22023 for values that do not fit, 42710 for a name that is a workload's, 42501 for another role's capture and for files
/// that the role may not read, 55000 for a log without transactions, and those of reading.
pub fn capture(arguments: &Arguments) -> Result<Vec<CaptureLine>, UserError> {
    if !(1..=MAX_SHAPES).contains(&arguments.shapes) {
        return Err(UserError::invalid(format!(
            "shapes must be between 1 and {MAX_SHAPES}, not {}",
            arguments.shapes
        )));
    }
    check_server()?;
    let mut options = LogOptions::new(database::name()?, &arguments.options)?;
    options.take_roles(&roles::current_role());
    spec::check(&arguments.name)?;
    Sessions::new(options.run_as.as_deref())?;
    let (captured, read) = arguments.source.read(&options)?;
    if captured.figures.transactions == 0 {
        return Err(nothing(&read, &options, captured.figures.entries));
    }
    let name = &arguments.name;
    let role = roles::current_role_oid();
    let secs = captured.figures.secs;
    let shapes = arguments.shapes.unsigned_abs() as usize;
    let began = current_timestamp();
    let analysed = analyse(shapes, &options, captured, &read)?;
    store::begin_capture(name, role, "log", &arguments.options, secs, began)?;
    let kept = keep(name, shapes, &options, analysed, &read, None)?;
    store::end_capture(name, &kept.end)?;
    notice(format!("capture {name}: {}", kept.end.notes[0]), NO_REPLAY);
    Ok(kept.lines)
}

/// The error for a log in which nothing was found.
fn nothing(read: &table::Read, options: &LogOptions, entries: u64) -> UserError {
    let detail = format!(
        "It has {} messages, {entries} of them from sessions that the options select in database \"{}\", and {} \
         lines that are not messages.",
        read.messages, options.database, read.unreadable
    );
    UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, "there is no transaction in the log")
        .detail(detail)
        .hint(
            "Statements are logged with log_min_duration_statement = 0, log_statement = 'all' or \
         log_transaction_sample_rate, and can be read if lc_messages is English.",
        )
}

/// A format by its name.
///
/// # Errors
/// 22023 for another word.
pub fn format(word: &str) -> Result<LogFormat, UserError> {
    match word {
        "csv" => Ok(LogFormat::Csv),
        "json" => Ok(LogFormat::Json),
        _ => {
            let message = format!("unrecognized format: \"{word}\"");
            Err(UserError::invalid(message).hint("Available formats: \"csv\" and \"json\"."))
        }
    }
}
