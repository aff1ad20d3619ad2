//! Storing what a log holds: workloads with their feeders and values, and the lines of the capture.

use std::collections::HashMap;

use bench_core::captured::{masked, weights};
use bench_core::error::UserError;
use bench_core::feeder::Feeder;
use bench_core::log_capture::{Captured, Figures, Options, Replayable, shared, with_cast};
use bench_core::script::{self, Action, Symbols, VariableId, Variables};
use pgrx::pg_sys;
use serde_json::{Map, Value};

use super::Arguments;
use super::source::Read;
use crate::catalog::{self, CaptureEnd, CapturedStatement};
use crate::engine::parameters::analyse;
use crate::error::{internal, notice};

use crate::server::process::current_timestamp;
use crate::server::transaction::rolled_back;
use crate::server::{guc, roles};

/// A line of bench.capture_log's result.
pub struct Line {
    pub statement: CapturedStatement,
    /// Mean time of a transaction in the server, in milliseconds.
    pub exec_ms_avg: Option<f64>,
    /// Rows of values that are kept.
    pub rows: i64,
}

/// Stores the capture.
pub fn keep(
    arguments: &Arguments,
    options: &Options,
    captured: Captured,
    read: &Read,
) -> Result<Vec<Line>, UserError> {
    let name = &arguments.name;
    let figures = captured.figures.clone();
    let limit = usize::try_from(arguments.shapes).unwrap_or(0);
    let role = roles::current_role();
    catalog::begin_capture(name, &role, "log", &arguments.options, figures.secs, current_timestamp())?;
    let mut lines = Vec::new();
    let (mut kept, mut others) = (0, (0, 0.0));
    for mut shape in captured.shapes {
        pgrx::check_for_interrupts!();
        let busy_ms = shape.busy_ms.map(|mean| mean * shape.transactions as f64);
        if kept == limit {
            others.0 += shape.transactions;
            others.1 += busy_ms.unwrap_or(0.0);
            continue;
        }
        let mut line = line(&lines, &figures, shape.transactions, busy_ms, Some(shape.shown.clone()));
        match check(&mut shape, options.writes) {
            Ok(text_columns) => {
                kept += 1;
                let workload = format!("{name}/{kept}");
                store(&workload, arguments, options, &shape, &text_columns)?;
                line.statement.workload = Some(workload);
                line.rows = i64::try_from(shape.rows.len()).unwrap_or(i64::MAX);
            }
            Err(reason) => line.statement.reason = Some(reason),
        }
        lines.push(line);
    }
    if others.0 > 0 {
        let mut line = line(&lines, &figures, others.0, Some(others.1), None);
        line.statement.reason = Some(format!("rarer than the {limit} shapes kept"));
        lines.push(line);
    }
    for (reason, skipped) in captured.skipped {
        let example = (!skipped.example.is_empty()).then_some(skipped.example);
        let mut line = line(&lines, &figures, skipped.transactions, Some(skipped.busy_ms), example);
        line.statement.reason = Some(reason);
        lines.push(line);
    }
    let is_kept = |line: &&mut Line| line.statement.workload.is_some();
    let calls: Vec<i64> = lines.iter_mut().filter(is_kept).map(|line| line.statement.calls).collect();
    for (line, weight) in lines.iter_mut().filter(is_kept).zip(weights(&calls)) {
        line.statement.weight = Some(weight);
    }
    for line in &lines {
        catalog::put_captured_statement(name, &line.statement)?;
    }
    let notes = notes(name, &figures, options, read, calls.iter().sum());
    catalog::end_capture(
        name,
        &CaptureEnd {
            status: "completed".to_owned(),
            calls: i64::try_from(figures.transactions).ok(),
            exec_ms: figures.is_timed.then_some(figures.busy_ms),
            notes: notes.clone(),
            ..CaptureEnd::default()
        },
    )?;
    notice(
        format!("capture {name}: {}", notes[0]),
        "It is not an exact replay, which pgreplay does: transactions are drawn at random, whatever session they were in.",
    );
    Ok(lines)
}

/// A line that is not kept yet.
fn line(
    before: &[Line],
    figures: &Figures,
    transactions: u64,
    busy_ms: Option<f64>,
    query: Option<String>,
) -> Line {
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
    Line {
        statement,
        exec_ms_avg: busy_ms.filter(|_| figures.is_timed).map(|sum| sum / transactions as f64),
        rows: 0,
    }
}

/// What to know of the capture: how to run it first.
fn notes(name: &str, figures: &Figures, options: &Options, read: &Read, kept: i64) -> Vec<String> {
    let Figures { transactions, secs, sessions, clients, .. } = figures;
    let part = kept as f64 / *transactions as f64;
    let rate = figures.rate.map(|rate| rate * part);
    let run = rate.map_or(String::new(), |rate| {
        format!("; as many a second as then: bench.run('{name}', clients => {clients}, rate => {rate:.3})")
    });
    let mut notes = vec![format!(
        "{transactions} transactions of {sessions} sessions in {secs:.1} s, {:.1} % of them kept{run}",
        part * 100.0
    )];
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

/// Whether the server takes the statements of a shape, with variables as parameters; for each variable its column in the
/// rows and whether it is a text. Statements that change data are refused unless `writes`.
///
/// # Errors
/// The reason why it does not.
fn check(shape: &mut Replayable, writes: bool) -> Result<Vec<bool>, String> {
    let mut symbols = Symbols::new();
    let parsed = script::parse("log", &shape.script, &mut symbols).map_err(|error| error.message)?;
    let path = guc::initial_search_path().map_err(|error| error.message)?;
    let columns: HashMap<String, usize> =
        shape.columns.iter().enumerate().map(|(place, column)| (column.name.clone(), place)).collect();
    let mut is_text = vec![false; shape.columns.len()];
    for command in &parsed.commands {
        let Action::Sql(sql) = &command.action else { continue };
        let statement = sql.parameterized(&Variables::new(symbols.len())).map_err(|error| error.message)?;
        let analyse = |text: &str| {
            rolled_back(|| guc::with_search_path(&path, || analyse(text))).map_err(|error| error.message)
        };
        let mut variables = statement.parameters.clone();
        let analysed = match (analyse(&statement.text), shared(&statement.text, &statement.parameters)) {
            // With one type for all places of a variable, as the log's statement had it.
            (Err(_), Some((text, distinct))) => {
                let analysed = analyse(&text)?;
                let mut places: HashMap<VariableId, usize> = HashMap::new();
                statement.parameters.iter().for_each(|id| *places.entry(*id).or_default() += 1);
                for (id, parameter) in distinct.iter().zip(&analysed.parameters) {
                    pgrx::check_for_interrupts!();
                    if places.get(id).is_some_and(|&places| places > 1) {
                        shape.script = with_cast(&shape.script, symbols.name(*id), &parameter.sql_type);
                    }
                }
                variables = distinct;
                analysed
            }
            (result, _) => result?,
        };
        if analysed.calls_us {
            return Err("calls functions of this extension".to_owned());
        }
        if analysed.administers {
            return Err("administers the server".to_owned());
        }
        // The server sees more than the words of a statement tell, such as what functions may do.
        if analysed.writes && !writes {
            return Err("changes data (option writes)".to_owned());
        }
        for (&id, parameter) in variables.iter().zip(&analysed.parameters) {
            if let Some(&column) = columns.get(symbols.name(id)) {
                let texts = [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID];
                is_text[column] |= texts.iter().any(|text| text.to_u32() == parameter.type_oid);
            }
        }
    }
    Ok(is_text)
}

/// Makes the workload of a shape.
fn store(
    workload: &str,
    arguments: &Arguments,
    options: &Options,
    shape: &Replayable,
    is_text: &[bool],
) -> Result<(), UserError> {
    if let Some(old) = catalog::workload(workload)? {
        let message = format!("workload \"{}\" already exists", old.name);
        return Err(UserError::new(bench_core::error::sqlstate::DUPLICATE_OBJECT, message)
            .hint("A capture makes workloads of its own name with a number: choose another name."));
    }
    let description = format!("A transaction of capture {}: {} statements", arguments.name, shape.statements);
    catalog::put_workload(workload, &roles::current_role(), None, &shape.script, Some(&description))?;
    // What is the same in all of the shape's transactions has stayed in the script.
    catalog::hide_workload(workload)?;
    if shape.columns.is_empty() {
        return Ok(());
    }
    let rows = shape.rows.iter().map(|row| {
        let cells = shape.columns.iter().zip(is_text).map(|(column, &is_text)| {
            let value = column.value(row).map_or(Value::Null, |value| {
                Value::String(if options.mask && is_text { masked(&value) } else { value })
            });
            (column.name.clone(), value)
        });
        (None, Value::Object(cells.collect::<Map<_, _>>()))
    });
    catalog::put_captured_rows(workload, "", rows.collect())?;
    let columns: Vec<(String, String)> = (shape.columns.iter())
        .map(|column| {
            let kind = if column.is_pause() { "pg_catalog.int8" } else { "pg_catalog.text" };
            (column.name.clone(), kind.to_owned())
        })
        .collect();
    let query = catalog::select_captured_rows(workload, "", &columns, false);
    let max_rows = i32::try_from(options.max_rows).unwrap_or(i32::MAX);
    let feeder = Feeder::new(String::new(), query, "random", false, max_rows)?;
    let stored = catalog::workload(workload)?.ok_or_else(|| internal("the workload has gone"))?;
    catalog::put_feeder(&stored, &feeder)
}
