//! Statements through the server programming interface: the extension's own, with pg_catalog as the only schema of the search_path,
//! and those of [`in_session`], with the session's search_path.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};

use bench_base::error::{UserError, sqlstate};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone};
use pgrx::prelude::*;
use pgrx::spi::{PreparedStatement, SpiClient, SpiHeapTupleData, SpiTupleTable};
use pgrx::{PgTrigger, Spi, pg_sys};

use crate::error::{OrRaise, internal};

/// A check before a statement is executed.
pub type Inspection = fn() -> Result<(), UserError>;

thread_local! {
    /// The check before each of the extension's own statements, made while the relations that it names are locked.
    static INSPECTION: Cell<Option<Inspection>> = const { Cell::new(None) };
}

/// Sets the check before each statement of [`fetch`], [`fetch_all`], [`run`], [`call`] and [`locked_rows`]. While there is one,
/// writing statements fire only triggers that are enabled ALWAYS. Returns the previous check.
pub fn inspect(inspection: Option<Inspection>) -> Option<Inspection> {
    INSPECTION.replace(inspection)
}

/// Quotes an identifier if necessary.
pub fn quote_identifier(name: &str) -> String {
    pgrx::spi::quote_identifier(name)
}

/// Quotes a text as a literal.
pub fn quote_literal(text: &str) -> String {
    pgrx::spi::quote_literal(text)
}

/// Converts a failure of SPI that is no ERROR of the server, and so a bug of the extension.
fn spi_error(error: pgrx::spi::Error) -> UserError {
    // Only users' statements, those of a fixture, can cause this one.
    if matches!(error, pgrx::spi::Error::SpiError(pgrx::spi::SpiErrorCodes::Transaction)) {
        let message = "cannot begin or end transactions in the statements of a fixture";
        return UserError::new(sqlstate::INVALID_TRANSACTION_TERMINATION, message);
    }
    internal(format!("unexpected SPI result: {error}"))
}

/// Runs the extension's own statements, independent of the session's settings.
fn own<T>(work: impl FnOnce() -> T) -> T {
    restricted(|| with_own_plans(work))
}

/// Reads with the latest snapshot, which at any isolation level includes what workers commit during this session's statement. Assigns
/// no transaction id, which would hold back the xmin horizon.
fn latest<T>(body: impl FnOnce(&SpiClient) -> pgrx::spi::Result<T>) -> Result<T, UserError> {
    // SAFETY: inside a transaction; popped below, or by the abort after an error.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let result = Spi::connect(body).map_err(spi_error);
    // SAFETY: the one that was pushed above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

fn first_value<T: FromDatum + IntoDatum>(table: SpiTupleTable) -> pgrx::spi::Result<Option<T>> {
    if table.is_empty() { Ok(None) } else { table.first().get(1) }
}

fn types_of(arguments: &[DatumWithOid]) -> Vec<pg_sys::PgOid> {
    arguments.iter().map(|argument| argument.oid().into()).collect()
}

/// Executes a query of the extension's own. Its analysis locks the relations that it names, and those behind views.
fn select<'a>(
    client: &SpiClient<'a>,
    sql: &str,
    limit: Option<i64>,
    arguments: &[DatumWithOid],
) -> pgrx::spi::Result<SpiTupleTable<'a>> {
    let Some(inspect) = INSPECTION.get() else { return client.select(sql, limit, arguments) };
    let statement: PreparedStatement = client.prepare(sql, &types_of(arguments))?;
    inspect().or_raise();
    client.select(&statement, limit, arguments)
}

/// As [`select`], for a statement that writes.
fn update<'a>(
    client: &mut SpiClient<'a>,
    sql: &str,
    arguments: &[DatumWithOid],
) -> pgrx::spi::Result<SpiTupleTable<'a>> {
    let Some(inspect) = INSPECTION.get() else { return client.update(sql, None, arguments) };
    as_replica();
    let statement: PreparedStatement = client.prepare_mut(sql, &types_of(arguments))?;
    inspect().or_raise();
    client.update(&statement, None, arguments)
}

/// Reads with several queries under the latest snapshot.
pub fn read<T>(body: impl FnOnce(&SpiClient) -> pgrx::spi::Result<T>) -> Result<T, UserError> {
    own(|| latest(body))
}

/// Runs a query, and returns the first column of its first row.
pub fn fetch<T: FromDatum + IntoDatum>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    own(|| latest(|client| first_value(select(client, sql, Some(1), arguments)?)))
}

/// Runs a statement, and returns the number of rows.
pub fn run(sql: &str, arguments: &[DatumWithOid]) -> Result<usize, UserError> {
    let count = |client: &mut SpiClient| update(client, sql, arguments).map(|table| table.len());
    own(|| Spi::connect_mut(count).map_err(spi_error))
}

/// Runs a statement that writes, and returns the first column of its first row.
pub fn call<T: FromDatum + IntoDatum>(sql: &str, arguments: &[DatumWithOid]) -> Result<Option<T>, UserError> {
    let first = |client: &mut SpiClient| update(client, sql, arguments)?.first().get(1);
    own(|| Spi::connect_mut(first).map_err(spi_error))
}

/// Runs a statement that creates or drops an object. Event triggers fire as in an ordinary session: they belong to superusers, and
/// extensions such as Citus need theirs.
pub fn define(sql: &str) -> Result<(), UserError> {
    own(|| as_origin(|| in_session::run(sql, &[]).map(drop)))
}

/// Runs a query, and returns its rows as converted by `row`.
pub fn fetch_all<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
) -> Result<Vec<T>, UserError> {
    fetch_table(sql, arguments, |found| found.map(|found| row(&found)).collect())
}

/// Runs a query, and returns the result of `body` for its rows.
pub(super) fn fetch_table<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    body: impl FnOnce(SpiTupleTable) -> pgrx::spi::Result<T>,
) -> Result<T, UserError> {
    own(|| latest(|client| body(select(client, sql, None, arguments)?)))
}

/// As [`fetch_all`], for a query that locks rows, which is not read-only.
pub fn locked_rows<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
) -> Result<Vec<T>, UserError> {
    let all = |client: &mut SpiClient| -> pgrx::spi::Result<Vec<T>> {
        update(client, sql, arguments)?.map(|found| row(&found)).collect()
    };
    own(|| Spi::connect_mut(all).map_err(spi_error))
}

/// Statements under the session's search_path: users' texts, names given by users, and statements that fire users' code, which may
/// depend on it. The server's names in these statements are qualified.
pub mod in_session {
    use super::*;

    /// Runs a query of the extension's own. The statements of [`run`] and [`call`] may be users' texts.
    fn own<T>(work: impl FnOnce() -> T) -> T {
        with_own_syntax(|| with_own_plans(work))
    }

    /// As [`super::fetch`].
    pub fn fetch<T: FromDatum + IntoDatum>(
        sql: &str,
        arguments: &[DatumWithOid],
    ) -> Result<Option<T>, UserError> {
        own(|| latest(|client| first_value(client.select(sql, Some(1), arguments)?)))
    }

    /// As [`super::fetch_all`].
    pub fn fetch_all<T>(
        sql: &str,
        arguments: &[DatumWithOid],
        row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
    ) -> Result<Vec<T>, UserError> {
        own(|| latest(|client| client.select(sql, None, arguments)?.map(|found| row(&found)).collect()))
    }

    /// As [`super::run`].
    pub fn run(sql: &str, arguments: &[DatumWithOid]) -> Result<usize, UserError> {
        let update = |client: &mut SpiClient| client.update(sql, None, arguments).map(|table| table.len());
        Spi::connect_mut(update).map_err(spi_error)
    }

    /// As [`super::call`].
    pub fn call<T: FromDatum + IntoDatum>(
        sql: &str,
        arguments: &[DatumWithOid],
    ) -> Result<Option<T>, UserError> {
        let update = |client: &mut SpiClient| client.update(sql, None, arguments)?.first().get(1);
        Spi::connect_mut(update).map_err(spi_error)
    }
}

/// As [`fetch_all`], for a query on the transition tables of a firing trigger.
pub fn fetch_in_trigger<T>(
    trigger: &PgTrigger,
    sql: &str,
    row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
) -> Result<Vec<T>, UserError> {
    let rows = |client: &SpiClient| {
        // SAFETY: inside an SPI connection, to whose queries it makes the transition table known; nothing is changed.
        unsafe { pg_sys::SPI_register_trigger_data(std::ptr::from_ref(trigger.trigger_data()).cast_mut()) };
        client.select(sql, None, &[])?.map(|found| row(&found)).collect::<pgrx::spi::Result<Vec<T>>>()
    };
    own(|| Spi::connect(rows).map_err(spi_error))
}

/// Runs a query with an array of ids under the snapshot of the current statement, which still sees the rows that this has deleted, and
/// returns the text in its first column.
pub fn fetch_as_of_statement(sql: &str, ids: &[i64]) -> Result<Option<String>, UserError> {
    let sql = CString::new(sql).map_err(|e| internal(e.to_string()))?;
    let mut types = [pg_sys::INT8ARRAYOID];
    let mut values = [ids.to_vec().into_datum().unwrap_or(pg_sys::Datum::null())];
    let found = |_: &SpiClient| {
        // SAFETY: inside an SPI connection, with one argument, which is not NULL. Being read-only it takes the active
        // snapshot as it is, and there is one while triggers fire. The result is a text or NULL, and copied.
        let found = unsafe {
            let code = pg_sys::SPI_execute_with_args(
                sql.as_ptr(),
                1,
                types.as_mut_ptr(),
                values.as_mut_ptr(),
                std::ptr::null(),
                true,
                1,
            );
            if code != pg_sys::SPI_OK_SELECT as i32 || pg_sys::SPI_processed != 1 {
                return Err(internal(format!("unexpected SPI result: {code}")));
            }
            let table = pg_sys::SPI_tuptable;
            let text = pg_sys::SPI_getvalue(*(*table).vals, (*table).tupdesc, 1);
            (!text.is_null()).then(|| std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        Ok(found)
    };
    own(|| Spi::connect(found))
}

/// Converts a TimestampTz, in microseconds since 2000-01-01, to an argument of a statement.
pub fn timestamp(at: i64) -> Option<TimestampWithTimeZone> {
    // SAFETY: every i64 is a TimestampTz.
    unsafe { TimestampWithTimeZone::from_datum(pg_sys::Datum::from(at), false) }
}

// Plans of the extension's own queries, without jit and parallel workers: compiling a query on the catalog takes many times as
// long as its execution, and a run needs the worker slots for its clients.
//
// The parameters `jit` and `max_parallel_workers_per_gather` are not changed: runs record them, and users' statements are planned
// with them.

/// The features allowed in a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// Those that the session's parameters allow.
    All,
    /// No jit.
    Interpreted,
    /// Neither jit nor parallel workers.
    Plain,
}

thread_local! {
    /// The features allowed in plans made now.
    static ALLOWED: Cell<Allowed> = const { Cell::new(Allowed::All) };
    static IS_INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<pg_sys::planner_hook_type> = const { Cell::new(None) };
}

/// Runs `work`, whose statements are the extension's own, with plain plans.
fn with_own_plans<T>(work: impl FnOnce() -> T) -> T {
    allowing(Allowed::Plain, work)
}

/// Runs `work`, which executes users' statements for their rows and blocks and not for their time, without jit.
pub fn without_jit<T>(work: impl FnOnce() -> T) -> T {
    allowing(Allowed::Interpreted, work)
}

fn allowing<T>(allowed: Allowed, work: impl FnOnce() -> T) -> T {
    struct Restore(Allowed);
    impl Drop for Restore {
        fn drop(&mut self) {
            ALLOWED.set(self.0);
        }
    }
    install();
    let _restore = Restore(ALLOWED.replace(allowed));
    work()
}

fn install() {
    if IS_INSTALLED.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    unsafe {
        PREVIOUS.set(pg_sys::planner_hook);
        pg_sys::planner_hook = Some(plan);
    }
}

/// Called by the server for each statement that is planned; an ERROR of the server's leaves through it, and nothing in it has to
/// be dropped.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
    #[cfg(since_19)] explain: *mut pg_sys::ExplainState,
) -> *mut pg_sys::PlannedStmt {
    let allowed = ALLOWED.get();
    let options = match allowed {
        Allowed::Plain => options & !(pg_sys::CURSOR_OPT_PARALLEL_OK as c_int),
        Allowed::All | Allowed::Interpreted => options,
    };
    // SAFETY: by the server, with live arguments, which the hook before or the standard planner gets as they are; the plan is live
    // and this process's own.
    unsafe {
        let planned = PREVIOUS.get().unwrap_or(raw::standard_planner)(
            query,
            text,
            options,
            parameters,
            #[cfg(since_19)]
            explain,
        );
        if allowed != Allowed::All {
            (*planned).jitFlags = pg_sys::PGJIT_NONE as c_int;
        }
        planned
    }
}

/// Functions called without a guard, which would slow down the planning of each statement.
mod raw {
    use super::*;

    unsafe extern "C-unwind" {
        pub fn standard_planner(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            parameters: pg_sys::ParamListInfo,
            #[cfg(since_19)] explain: *mut pg_sys::ExplainState,
        ) -> *mut pg_sys::PlannedStmt;
    }
}

// Configuration parameters that are set until the end of a transaction or of a function.

/// Sets a configuration parameter until the end of the transaction or the nest level; does nothing outside of both.
pub fn set_local(name: &CStr, value: &CStr) {
    // SAFETY: NUL-terminated strings; what is to be restored is remembered by the nest level, if there is one.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

/// Runs `work` with another search_path.
pub fn with_search_path<T>(path: &str, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    with_setting(c"search_path", &CString::new(path).unwrap_or_default(), work)
}

/// Runs `work` with another value of a parameter.
pub fn with_setting<T>(
    name: &CStr,
    value: &CStr,
    work: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    in_nest_level(|| {
        set_local(name, value);
        work()
    })
}

/// The search_path of the extension's own SQL.
pub const SAFE_PATH: &CStr = c"pg_catalog, pg_temp";

/// Runs the extension's own SQL so that names and operators are the server's, and texts have the default syntax, independent of
/// objects of other roles and of the session's settings, as TimescaleDB's RestrictSearchPath and pg_dump do.
fn restricted<T>(work: impl FnOnce() -> T) -> T {
    if has_own_syntax() && has_safe_path() {
        return work();
    }
    in_nest_level(|| {
        restrict();
        work()
    })
}

/// Makes the settings of [`restricted`], until the end of the nest level.
pub fn restrict() {
    set_local(c"search_path", SAFE_PATH);
    set_own_syntax();
}

/// Makes only triggers and rules fire that are enabled ALWAYS, until the end of the nest level. Only a table's owner can enable them
/// so, and not a role with the privilege to create triggers.
fn as_replica() {
    set_replication_role(pg_sys::SESSION_REPLICATION_ROLE_REPLICA, c"replica");
}

/// Runs `work`, in which triggers fire as in an ordinary session.
fn as_origin<T>(work: impl FnOnce() -> T) -> T {
    in_nest_level(|| {
        set_replication_role(pg_sys::SESSION_REPLICATION_ROLE_ORIGIN, c"origin");
        work()
    })
}

/// Sets session_replication_role if it has another value: each change invalidates the session's plans.
fn set_replication_role(role: u32, value: &CStr) {
    // SAFETY: a variable of the process's; otherwise as `set_local`, with the rights that the parameter takes.
    unsafe {
        if pg_sys::SessionReplicationRole == role as i32 {
            return;
        }
        pg_sys::set_config_option(
            c"session_replication_role".as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

fn has_safe_path() -> bool {
    // SAFETY: a variable of the process's: the value of a parameter, which is never NULL.
    unsafe { CStr::from_ptr(pg_sys::namespace_search_path) == SAFE_PATH }
}

/// Runs `work`, in which texts have the default syntax, independent of the session's settings.
pub fn with_own_syntax<T>(work: impl FnOnce() -> T) -> T {
    if has_own_syntax() {
        return work();
    }
    in_nest_level(|| {
        set_own_syntax();
        work()
    })
}

/// Runs `work`, and restores the parameters that it has set with [`set_local`].
pub fn in_nest_level<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: as functions with a SET clause do it (fmgr_security_definer in utils/fmgr/fmgr.c): an
    // error that leaves from here ends the transaction, and the nest level with it.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        let result = work();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}

fn has_own_syntax() -> bool {
    // SAFETY: variables of the process's.
    unsafe {
        // Always on from 19 on.
        #[cfg(not(since_19))]
        if !pg_sys::standard_conforming_strings {
            return false;
        }
        !pg_sys::quote_all_identifiers
    }
}

/// Makes the settings of [`with_own_syntax`], until the end of the nest level.
fn set_own_syntax() {
    if has_own_syntax() {
        return;
    }
    set_local(c"standard_conforming_strings", c"on");
    set_local(c"quote_all_identifiers", c"off");
}
