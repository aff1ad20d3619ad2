//! The ranges that the recorder keeps: a document's values are held against them, for the views that add them up are
//! everybody's.

use bench_core::error::{UserError, sqlstate};
use bench_core::transaction_log::LoggedOutcome;

use super::columns::{Column, columns};
use super::{Imported, RUN_LOG};
use crate::server::spi::fetch;

/// More clients than sessions that a server can have (MAX_BACKENDS of postmaster/postmaster.h).
const MAX_CLIENTS: &str = "262143";

/// More processors than machines have.
const MAX_PROCESSORS: &str = "65536";

/// The longest duration of a run, in seconds and in milliseconds: a year.
const MAX_SECS: &str = "31622400";
const MAX_MS: &str = "31622400000";

/// Integers up to here are exact in JSON whoever reads it (RFC 8259, section 6), and sums of them stay far from the
/// limits of double precision.
const LARGEST: &str = "9007199254740991";
const LEAST: &str = "-9007199254740991";

/// What a value has to be.
struct Rule {
    field: String,
    /// A condition of SQL; NULL where there is no value.
    holds: String,
    /// As in "It must be …".
    range: String,
}

impl Rule {
    /// Of a column, or of an expression in its place, with both bounds included.
    fn between(field: &str, value: &str, least: &str, most: &str) -> Self {
        let holds = format!("{value} BETWEEN {least} AND {most}");
        Self { field: field.to_owned(), holds, range: format!("between {least} and {most}") }
    }

    fn above_zero(field: &str, most: &str) -> Self {
        let holds = format!("{field} > 0 AND {field} <= {most}");
        Self { field: field.to_owned(), holds, range: format!("above 0 and at most {most}") }
    }

    fn new(field: &str, holds: &str, range: &str) -> Self {
        Self { field: field.to_owned(), holds: holds.to_owned(), range: range.to_owned() }
    }
}

/// The rule of a column of the tables of results; `None` where every value will do.
fn rule(table: &str, Column { name, sql_type, .. }: &Column) -> Option<Rule> {
    let between = |least, most| Some(Rule::between(name, name, least, most));
    match (table, &**name) {
        (_, "run_id") | (RUN_LOG, "seed" | "segment" | "coordinator_pid" | "sweep_id") => None,
        (RUN_LOG, "clients") => between("1", MAX_CLIENTS),
        (RUN_LOG, "secs") => Some(Rule::above_zero(name, MAX_SECS)),
        (RUN_LOG, "transactions") => between("1", "9223372036854775807"),
        (RUN_LOG, "warmup" | "warmup_took") => between("0", MAX_SECS),
        (RUN_LOG, "rate") => between("0.000001", "1000000"),
        (RUN_LOG, "latency_limit") => between("0.000001", MAX_MS),
        (RUN_LOG, "log_rate") => between("0", "1"),
        (RUN_LOG, "jobs") => between("1", MAX_CLIENTS),
        ("transactions", "outcome") => Some(Rule::new(
            name,
            &format!(
                "outcome IN ({})",
                LoggedOutcome::ALL.map(|outcome| format!("'{}'", outcome.as_str())).join(", ")
            ),
            "processed, left open, failed, aborted, skipped or unknown",
        )),
        (RUN_LOG, "sample_interval") => between("0.1", "3600"),
        (RUN_LOG, "fixture_rows") => Some(Rule::new(name, "0 <= ALL (fixture_rows)", "rows, not below 0")),
        (RUN_LOG, "environment") => Some(Rule::between(
            "environment.processors",
            "CASE WHEN pg_catalog.jsonb_typeof(environment -> 'processors') = 'number' \
                  THEN (environment ->> 'processors')::pg_catalog.numeric END",
            "1",
            MAX_PROCESSORS,
        )),
        (RUN_LOG, "part_of") => Some(Rule::new(
            name,
            "CASE WHEN part_of IS NOT NULL THEN coalesce(part_of ->> 'run_id' ~ '^[0-9]{1,18}$', false) END",
            "an object with a run_id",
        )),
        ("node_log", "status") => Some(Rule::new(
            name,
            "status IN ('completed', 'incomplete', 'canceled', 'failed', 'crashed')",
            "completed, incomplete, canceled, failed or crashed",
        )),
        (_, "waits") => Some(Rule::new(
            name,
            "CASE WHEN pg_catalog.jsonb_typeof(waits) = 'object' THEN NOT EXISTS (SELECT FROM pg_catalog.jsonb_each(waits) AS w \
                 WHERE CASE WHEN pg_catalog.jsonb_typeof(w.value) = 'number' THEN w.value::pg_catalog.numeric NOT BETWEEN 0 AND 1 END) END",
            "shares between 0 and 1",
        )),
        (_, "latency_histogram") => Some(Rule::new(
            name,
            &format!(
                "CASE WHEN pg_catalog.jsonb_typeof(latency_histogram) = 'object' \
                      THEN NOT EXISTS (SELECT FROM pg_catalog.jsonb_each(latency_histogram) AS b \
                          WHERE b.key !~ '^[0-9]{{1,2}}$' OR CASE WHEN pg_catalog.jsonb_typeof(b.value) = 'number' \
                              THEN b.value::pg_catalog.numeric NOT BETWEEN 0 AND {LARGEST} ELSE true END) \
                      WHEN latency_histogram IS NOT NULL THEN false END"
            ),
            "an object with counts of buckets from 0 to 99",
        )),
        (_, "clients") => between("0", MAX_CLIENTS),
        (_, "processors") => between("1", MAX_PROCESSORS),
        (_, "secs" | "elapsed") => Some(Rule::above_zero(name, LARGEST)),
        (_, share) if share == "share" || share.starts_with("cpu_") => between("0", "1"),
        // What may be before, or below.
        ("event_log", "started" | "ended")
        | ("audit_log", "server")
        | (_, "start_offset_ms" | "clock_offset_ms") => between(LEAST, LARGEST),
        _ => match &**sql_type {
            "integer" => between("0", "2147483647"),
            "bigint" | "double precision" => between("0", LARGEST),
            "timestamp with time zone" => {
                Some(Rule::new(name, &format!("pg_catalog.isfinite({name})"), "finite"))
            }
            _ => None,
        },
    }
}

/// Refuses values of these runs that the recorder would not have written.
///
/// # Errors
/// 22003 with the run, the field and its range.
pub fn check_values(table: &str, runs: &[Imported]) -> Result<(), UserError> {
    check_some_values(table, runs, "true")
}

/// As [`check_values`], of the rows for which a condition holds.
///
/// # Errors
/// As [`check_values`].
pub fn check_some_values(table: &str, runs: &[Imported], condition: &str) -> Result<(), UserError> {
    let rules: Vec<Rule> = columns(table)?.iter().filter_map(|column| rule(table, column)).collect();
    let all: Vec<String> = rules.iter().map(|rule| format!("({})", rule.holds)).collect();
    let broken = |of: &dyn Fn(usize, &Rule) -> String| -> String {
        let whens = rules.iter().enumerate();
        whens.map(|(place, rule)| format!(" WHEN NOT ({}) THEN {}", rule.holds, of(place, rule))).collect()
    };
    let sql = format!(
        "SELECT ARRAY[run_id::pg_catalog.text, CASE{} END, CASE{} END] FROM bench.{table} \
         WHERE run_id = ANY ($1) AND {condition} AND NOT ({}) LIMIT 1",
        broken(&|place, _| format!("'{place}'")),
        broken(&|_, rule| format!("pg_catalog.left({}::pg_catalog.text, 100)", column_of(&rule.field))),
        all.join(" AND ")
    );
    let ids: Vec<i64> = runs.iter().map(|run| run.run_id).collect();
    let Some(found) = fetch::<Vec<Option<String>>>(&sql, &[ids.into()])? else { return Ok(()) };
    let mut found = found.into_iter().map(Option::unwrap_or_default);
    let mut next = || found.next().unwrap_or_default();
    let (run_id, place, value) = (next(), next(), next());
    let id = runs.iter().find(|run| run.run_id.to_string() == run_id).map_or(0, |run| run.id_in_document);
    let Some(rule) = place.parse::<usize>().ok().and_then(|place| rules.get(place)) else { return Ok(()) };
    let Rule { field, range, .. } = rule;
    Err(UserError::new(
        sqlstate::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("invalid \"{table}\" in the document: {field} of run {id} is out of range"),
    )
    .detail(format!("It is {value}, but must be {range}.")))
}

/// A field's column, or its member as `->>` has it.
fn column_of(field: &str) -> String {
    match field.split_once('.') {
        Some((column, member)) => format!("({column} ->> '{member}')"),
        None => field.to_owned(),
    }
}
