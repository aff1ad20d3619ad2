//! What pg_stat_statements has counted: of a run's statements, whose identifiers the roles of its sessions see, and of all statements of
//! this database, for captures.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Counts;
use bench_capture::log::is_utility;
use bench_model::spec::RunSpec;
use pgrx::pg_sys;

use crate::guard::switch_role::as_run_role;
use crate::server::database;
use crate::server::guc::current;
use crate::server::set_function::{ResultValue, SetFunction, bigint_of_row};

/// The extension and its function.
const PG_STAT_STATEMENTS: &str = "pg_stat_statements";

/// Columns that are read, by their names: their places differ by version. Before 1.9 there is no toplevel.
const COLUMNS: [&CStr; 10] = [
    c"userid",
    c"dbid",
    c"toplevel",
    c"queryid",
    c"query",
    c"calls",
    c"rows",
    c"shared_blks_hit",
    c"shared_blks_read",
    c"total_exec_time",
];

/// How a statement begins that is this project's own and not a client's, in the session of a client.
pub const OWN: &str = "SELECT /* pgbench_ext */ ";

/// A line of the view: what one role has had executed of a statement.
pub struct StatementCalls {
    pub user: u32,
    /// `None` where this role may not see it.
    pub query_id: Option<i64>,
    /// `None` where it was not asked for, or has been lost.
    pub query: Option<String>,
    pub counts: Counts,
}

impl StatementCalls {
    /// Whether it is a utility command, as far as its text is known.
    pub fn is_utility(&self) -> bool {
        self.query.as_deref().is_some_and(is_utility)
    }
}

/// The function, where statements are counted.
fn function() -> Result<Option<SetFunction>, UserError> {
    // The parameter is there where the library is loaded.
    if current("pg_stat_statements.max").is_none() {
        return Ok(None);
    }
    SetFunction::find(PG_STAT_STATEMENTS)
}

/// The lines of a database's top-level statements, with their texts where asked for and then without [`OWN`] ones, as this role sees them; `None` where the
/// view has not the columns.
fn lines(
    function: &SetFunction,
    database: u32,
    texts: bool,
) -> Result<Option<Vec<StatementCalls>>, UserError> {
    let mut found = Vec::new();
    let is_read = function.for_each_row(COLUMNS, texts, |row| {
        let [user, of, toplevel, id, query, calls, rows, hit, read, exec_ms] = row;
        if of.integer() != i64::from(database) || toplevel.integer() == 0 {
            return;
        }
        let query = if let ResultValue::Text(text) = query { Some(text) } else { None };
        if query.as_ref().is_some_and(|text| text.starts_with(OWN)) {
            return;
        }
        found.push(StatementCalls {
            user: user.integer() as u32,
            query_id: (id != ResultValue::Null).then(|| id.integer()),
            query,
            counts: Counts {
                calls: calls.integer(),
                rows: rows.integer(),
                hit: hit.integer(),
                read: read.integer(),
                exec_ms: exec_ms.float(),
            },
        });
    })?;
    Ok(is_read.then_some(found))
}

/// The lines of the roles of a run's sessions, with their identifiers; `None` where nobody counts.
fn lines_of_roles(spec: &RunSpec, texts: bool) -> Result<Option<Vec<(i64, StatementCalls)>>, UserError> {
    let Some(function) = function()? else { return Ok(None) };
    let mut all = Vec::new();
    for role in spec.roles() {
        let found = as_run_role(pg_sys::Oid::from(role.oid), || lines(&function, spec.database_oid, texts))?;
        let Some(found) = found else { return Ok(None) };
        let of_role = found.into_iter().filter(|line| line.user == role.oid);
        // Another role's identifier is NULL.
        all.extend(of_role.filter_map(|line| Some((line.query_id?, line))));
    }
    Ok(Some(all))
}

/// What was counted of the run's statements by its role, in all of its sessions and before the run as well, by their
/// identifiers; `None` where nobody counts.
///
/// # Errors
/// What pg_stat_statements says, as when its library is not loaded.
pub fn of_run(spec: &RunSpec, query_ids: &[i64]) -> Result<Option<HashMap<i64, Counts>>, UserError> {
    if query_ids.is_empty() {
        return Ok(None);
    }
    let Some(lines) = lines_of_roles(spec, false)? else { return Ok(None) };
    let mut counts: HashMap<i64, Counts> = HashMap::new();
    for (id, line) in lines.iter().filter(|(id, _)| query_ids.binary_search(id).is_ok()) {
        counts.entry(*id).or_default().add(&line.counts);
    }
    Ok(Some(counts))
}

/// Calls, also before the run, of statements that have role and text of one of the `known` ones, and another identifier: one
/// changes with the types and the OIDs of what its statement names. Reads the texts of all statements.
///
/// # Errors
/// As [`of_run`].
pub fn of_other_identifiers(spec: &RunSpec, known: &HashMap<i64, Counts>) -> Result<i64, UserError> {
    let lines = lines_of_roles(spec, true)?.unwrap_or_default();
    let (known, others): (Vec<_>, Vec<_>) = lines.iter().partition(|(id, _)| known.contains_key(id));
    let role_and_text = |line: &StatementCalls| Some((line.user, line.query.clone()?));
    let texts: HashSet<_> = known.into_iter().filter_map(|(_, line)| role_and_text(line)).collect();
    let has_text = |line: &StatementCalls| role_and_text(line).is_some_and(|text| texts.contains(&text));
    Ok(others.into_iter().filter(|(_, line)| has_text(line)).map(|(_, line)| line.counts.calls).sum())
}

/// All lines of this database's top-level statements, as this role sees them.
///
/// # Errors
/// 55000 where nobody counts, or an older version of the extension does.
pub fn snapshot(texts: bool) -> Result<Vec<StatementCalls>, UserError> {
    let missing =
        |message: &str, hint: &str| UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint(hint);
    if current("pg_stat_statements.max").is_none() {
        return Err(missing(
            "pg_stat_statements is not loaded",
            "Add it to shared_preload_libraries, restart the server, and CREATE EXTENSION pg_stat_statements.",
        ));
    }
    let Some(function) = function()? else {
        let message = "extension \"pg_stat_statements\" is not installed in this database";
        return Err(missing(message, "CREATE EXTENSION pg_stat_statements."));
    };
    lines(&function, database::oid().to_u32(), texts)?.ok_or_else(|| {
        missing("pg_stat_statements is older than version 1.9", "ALTER EXTENSION pg_stat_statements UPDATE.")
    })
}

/// How often pg_stat_statements has dropped its least-executed entries.
pub fn deallocations() -> Result<Option<i64>, UserError> {
    bigint_of_row(PG_STAT_STATEMENTS, "pg_stat_statements_info", c"dealloc")
}
