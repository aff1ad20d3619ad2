//! Statements by the server programming interface: this project's own, which run under a search_path of pg_catalog alone, and
//! those [`in_session`], which find names as the session does.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int};

use bench_base::error::{UserError, sqlstate};
use pgrx::datum::{DatumWithOid, TimestampWithTimeZone};
use pgrx::prelude::*;
use pgrx::spi::{PreparedStatement, SpiClient, SpiHeapTupleData, SpiTupleTable};
use pgrx::{PgTrigger, Spi, pg_sys};

use crate::error::{OrRaise, internal};

/// Sees to something before a statement is executed.
pub type Inspection = fn() -> Result<(), UserError>;

thread_local! {
    /// What is called before each of this project's own statements is executed, while the relations that it names are locked.
    static INSPECTION: Cell<Option<Inspection>> = const { Cell::new(None) };
}

/// From here on, has each statement of [`fetch`], [`fetch_all`], [`run`], [`call`] and [`locked_rows`] be inspected, and those
/// that write fire no other triggers than those that are enabled always. Returns what there was before.
pub fn inspect(inspection: Option<Inspection>) -> Option<Inspection> {
    INSPECTION.replace(inspection)
}

/// An identifier, quoted where it needs to be.
pub fn quote_identifier(name: &str) -> String {
    pgrx::spi::quote_identifier(name)
}

/// A text as a literal.
pub fn quote_literal(text: &str) -> String {
    pgrx::spi::quote_literal(text)
}

/// An SPI failure that is not an ERROR of the server's: a bug of ours.
fn spi_error(error: pgrx::spi::Error) -> UserError {
    // Users' own statements: those of a fixture.
    if matches!(error, pgrx::spi::Error::SpiError(pgrx::spi::SpiErrorCodes::Transaction)) {
        let message = "cannot begin or end transactions in the statements of a fixture";
        return UserError::new(sqlstate::INVALID_TRANSACTION_TERMINATION, message);
    }
    internal(format!("unexpected SPI result: {error}"))
}

/// Runs this project's own statements, whatever the session has set.
fn own<T>(work: impl FnOnce() -> T) -> T {
    restricted(|| with_own_plans(work))
}

/// Reads with the latest snapshot, for what workers commit while this session's statement runs has
/// to be seen, whatever its isolation level. No transaction id is assigned: one would hold back the xmin horizon.
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

/// Executes a query of this project's own. Its analysis locks the relations that it names, and views lead to.
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

/// As [`select`], of a statement that writes.
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

/// Reads by several queries, with the latest snapshot.
pub fn read<T>(body: impl FnOnce(&SpiClient) -> pgrx::spi::Result<T>) -> Result<T, UserError> {
    own(|| latest(body))
}

/// Runs a query for its first value.
pub fn fetch<T: FromDatum + IntoDatum>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    own(|| latest(|client| first_value(select(client, sql, Some(1), arguments)?)))
}

/// Runs a statement for its effect; the number of rows.
pub fn run(sql: &str, arguments: &[DatumWithOid]) -> Result<usize, UserError> {
    let count = |client: &mut SpiClient| update(client, sql, arguments).map(|table| table.len());
    own(|| Spi::connect_mut(count).map_err(spi_error))
}

/// Runs a statement for its effect and its first value.
pub fn call<T: FromDatum + IntoDatum>(sql: &str, arguments: &[DatumWithOid]) -> Result<Option<T>, UserError> {
    let first = |client: &mut SpiClient| update(client, sql, arguments)?.first().get(1);
    own(|| Spi::connect_mut(first).map_err(spi_error))
}

/// Runs a statement that makes or drops an object. Event triggers fire as in an ordinary session, whatever else has been written:
/// they belong to superusers, and extensions such as Citus need theirs.
pub fn define(sql: &str) -> Result<(), UserError> {
    own(|| as_origin(|| in_session::run(sql, &[]).map(drop)))
}

/// All rows of a query, each as `row` has it.
pub fn fetch_all<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    row: impl Fn(&SpiHeapTupleData) -> pgrx::spi::Result<T>,
) -> Result<Vec<T>, UserError> {
    fetch_table(sql, arguments, |found| found.map(|found| row(&found)).collect())
}

/// What `body` makes of all rows of a query.
pub(super) fn fetch_table<T>(
    sql: &str,
    arguments: &[DatumWithOid],
    body: impl FnOnce(SpiTupleTable) -> pgrx::spi::Result<T>,
) -> Result<T, UserError> {
    own(|| latest(|client| body(select(client, sql, None, arguments)?)))
}

/// All rows of a query that locks the rows it finds, which is no reading.
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

/// Statements under the session's search_path: users' own text, names that users have given, and what fires users' code, which
/// may lean on that path. Names of the server's in these are written with their schema.
pub mod in_session {
    use super::*;

    /// Runs a query of this project's own. What [`run`] and [`call`] are given may be users' text.
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

/// All rows of a query on the transition tables of a trigger that is firing.
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

/// The text that a query of some ids finds with the snapshot of the statement under way, which sees the rows that it
/// has itself deleted.
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

/// A TimestampTz, microseconds since 2000-01-01, as an argument of a statement.
pub fn timestamp(at: i64) -> Option<TimestampWithTimeZone> {
    // SAFETY: every i64 is a TimestampTz.
    unsafe { TimestampWithTimeZone::from_datum(pg_sys::Datum::from(at), false) }
}

// Plans of this project's own queries, which neither jit compiles nor parallel workers execute: compiling a query over the
// catalog takes many times as long as its execution, and a run needs the worker slots for its clients.
//
// The parameters `jit` and `max_parallel_workers_per_gather` stay as they are: runs record them, and users' statements are
// planned under them.

/// What a plan may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// What the session's parameters allow.
    All,
    /// No jit.
    Interpreted,
    /// Neither jit nor parallel workers.
    Plain,
}

thread_local! {
    /// What the plans may have that are made now.
    static ALLOWED: Cell<Allowed> = const { Cell::new(Allowed::All) };
    static IS_INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<pg_sys::planner_hook_type> = const { Cell::new(None) };
}

/// Runs `work`, whose statements are this project's own.
fn with_own_plans<T>(work: impl FnOnce() -> T) -> T {
    allowing(Allowed::Plain, work)
}

/// Runs `work`, which executes users' statements for their rows and blocks, not for their time: jit changes only that.
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

/// Without a guard around it, whose work each statement's planning would pay.
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

// Configuration parameters that are set for a while: up to the end of a transaction, or of a piece of work.

/// Sets a configuration parameter until the transaction, or the settings' nest level, ends. Outside of
/// both it does nothing.
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

/// Does something under another search_path.
pub fn with_search_path<T>(path: &str, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    with_setting(c"search_path", &CString::new(path).unwrap_or_default(), work)
}

/// Does something with another value of a parameter.
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

/// The search_path of this project's own SQL.
pub const SAFE_PATH: &CStr = c"pg_catalog, pg_temp";

/// Runs this project's own SQL: names and operators in it are the server's, whatever other roles have created, and texts are
/// read and written as by default, whatever the session, its role or its database has set. As TimescaleDB's
/// RestrictSearchPath and pg_dump do it.
fn restricted<T>(work: impl FnOnce() -> T) -> T {
    if has_own_syntax() && has_safe_path() {
        return work();
    }
    in_nest_level(|| {
        restrict();
        work()
    })
}

/// Sets what [`restricted`] sets, up to the end of the nest level.
pub fn restrict() {
    set_local(c"search_path", SAFE_PATH);
    set_own_syntax();
}

/// Has only those triggers and rules fire that are enabled always, up to the end of the nest level: those of a role that may make
/// triggers on a table are not, for only the table's owner enables them so.
fn as_replica() {
    set_replication_role(pg_sys::SESSION_REPLICATION_ROLE_REPLICA, c"replica");
}

/// Does something in which triggers fire as in an ordinary session.
fn as_origin<T>(work: impl FnOnce() -> T) -> T {
    in_nest_level(|| {
        set_replication_role(pg_sys::SESSION_REPLICATION_ROLE_ORIGIN, c"origin");
        work()
    })
}

/// Changes nothing where it is so already, as each change has the session's plans made anew.
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

/// Does something with texts that are read and written as by default, whatever the session, its role or its database has set.
pub fn with_own_syntax<T>(work: impl FnOnce() -> T) -> T {
    if has_own_syntax() {
        return work();
    }
    in_nest_level(|| {
        set_own_syntax();
        work()
    })
}

/// Does something at whose end all parameters that it has set are as before.
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

/// What [`with_own_syntax`] sets, up to the end of the nest level.
fn set_own_syntax() {
    if has_own_syntax() {
        return;
    }
    set_local(c"standard_conforming_strings", c"on");
    set_local(c"quote_all_identifiers", c"off");
}
