//! One client's session: the transaction loop's way of executing a statement, as postgres.c
//! executes one for a client that sends Bind, Execute and Sync, or Parse before them, or Query.

use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering::Relaxed;

use bench_core::script::Variables;
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::analysis::{Plan, refuse_what_needs_a_client};
use super::lists::list_length;
use super::plans::{self, Book, Execution};
use super::raw;
use super::results::{self, CapturedQuery, ReceiverFactory};
use super::scans::{count_rows, index_scans};
use super::statement::{Statement, Unprepared};
use super::trap::{SqlError, trap};
use crate::shm::CommandCounters;

/// The session of a background worker that is connected to its database.
pub struct Session {
    receivers: ReceiverFactory,
    /// What MessageContext is to a client's backend: emptied before each command.
    pub(super) message_context: pg_sys::MemoryContext,
}

impl Session {
    /// Takes over the process: its protocol output is dropped from now on.
    pub fn new(results: Results) -> Self {
        // SAFETY: the context is a child of one that lasts; the name is static.
        let message_context = unsafe {
            pg_sys::AllocSetContextCreateInternal(
                pg_sys::TopMemoryContext,
                c"pgbench_ext message".as_ptr(),
                pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
            )
        };
        Self { receivers: ReceiverFactory::new(results), message_context }
    }

    /// Sets a configuration parameter as a client's connection options do: RESET comes back to it.
    pub fn set(&self, name: &CStr, value: &CStr) -> Result<(), SqlError> {
        // SAFETY: plain pointers into the caller's strings, which outlive the trap.
        unsafe {
            let (name, value) = (name.as_ptr(), value.as_ptr());
            trap(|| {
                raw::StartTransactionCommand();
                let context = if raw::superuser() {
                    pg_sys::GucContext::PGC_SUSET
                } else {
                    pg_sys::GucContext::PGC_USERSET
                };
                raw::set_config_option(
                    name,
                    value,
                    context,
                    pg_sys::GucSource::PGC_S_CLIENT,
                    pg_sys::GucAction::GUC_ACTION_SET,
                    true,
                    0,
                    false,
                );
                raw::CommitTransactionCommand();
            })
        }
    }

    /// Loads session_preload_libraries and local_preload_libraries, as a client's backend does.
    pub fn preload_libraries(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe { trap(|| raw::process_session_preload_libraries()) }
    }

    /// Serves what has come in since: a cancel, a termination, another backend's barrier, a
    /// reload of the configuration. Called outside a transaction.
    #[inline]
    pub fn serve_interrupts(&self) -> Result<(), SqlError> {
        // SAFETY: two flags of the server's, set by signal handlers, hence volatile.
        unsafe {
            if (&raw const pg_sys::InterruptPending).read_volatile() != 0 {
                trap(|| raw::ProcessInterrupts())?;
            }
            if (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0 {
                (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
                trap(|| raw::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP))?;
            }
        }
        Ok(())
    }

    /// The same in a session that waits for its next command: as a client's, it has nothing to cancel.
    pub fn serve_interrupts_of_idle(&self) -> Result<(), SqlError> {
        // SAFETY: a flag of the server's, set by a signal handler, hence volatile.
        unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
        self.serve_interrupts()
    }

    /// Whether a BEGIN is open.
    pub fn in_block(&self) -> bool {
        // SAFETY: reads the transaction state.
        unsafe { raw::IsTransactionBlock() }
    }

    /// Leaves whatever transaction is open.
    pub fn abort(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe { trap(|| raw::AbortOutOfAnyTransaction()) }
    }

    /// Flushes this session's statistics to the shared ones.
    pub fn flush_statistics(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop.
        unsafe {
            trap(|| {
                raw::pgstat_report_stat(true);
            })
        }
    }

    /// Writes out the WAL of the last commit, which may have been an asynchronous one.
    pub fn flush_wal(&self) -> Result<(), SqlError> {
        // SAFETY: nothing to drop; the position is this backend's own.
        unsafe { trap(|| raw::XLogFlush(raw::XactLastCommitEnd)) }
    }

    /// Shows in pg_stat_activity that the session waits for its next command.
    pub fn report_idle(&self) {
        let state = if self.in_block() {
            pg_sys::BackendState::STATE_IDLEINTRANSACTION
        } else {
            pg_sys::BackendState::STATE_IDLE
        };
        // SAFETY: writes this backend's own status entry.
        unsafe { pg_sys::pgstat_report_activity(state, std::ptr::null()) }
    }

    /// Executes a prepared statement: outside a block a transaction of its own, inside one a part
    /// of it. After an error every transaction is rolled back and the session is usable again.
    #[inline]
    pub fn execute(
        &mut self,
        statement: &mut Statement,
        variables: &Variables,
        book: Book,
    ) -> Result<(), SqlError> {
        statement.bind(variables);
        let (statement, source) = (&*statement, statement.source().as_ptr());
        // SAFETY: only plain data lives in the trap; what it borrows outlives it.
        unsafe {
            self.command(source, book.counters, || {
                self.run_plan(statement.plan, source, book, || statement.convert_texts());
            })
        }
    }

    /// The same with a statement that is parsed and planned each time.
    pub fn execute_unprepared(
        &mut self,
        statement: &mut Unprepared,
        variables: &Variables,
        book: Book,
    ) -> Result<(), SqlError> {
        statement.bind(variables);
        let (statement, source) = (&*statement, statement.source().as_ptr());
        // SAFETY: as in `execute`.
        unsafe {
            self.command(source, book.counters, || {
                let plan = statement.analyse();
                self.run_plan(plan, source, book, || statement.convert_texts(plan));
            })
        }
    }

    /// Executes a text of one or more statements as the simple protocol's Query message does:
    /// several are one transaction unless they say otherwise.
    pub fn execute_simple(&mut self, text: &CStr, book: Book) -> Result<(), SqlError> {
        let text = text.as_ptr();
        // SAFETY: as in `execute`.
        unsafe { self.command(text, book.counters, || self.run_query(text, book)) }
    }

    /// Does the work of a command inside a trap, with what comes before and after it.
    ///
    /// # Safety
    /// As for [`trap`]; `source` stays valid throughout.
    #[inline]
    pub(super) unsafe fn command(
        &self,
        source: *const c_char,
        counters: &CommandCounters,
        work: impl FnOnce(),
    ) -> Result<(), SqlError> {
        // SAFETY: by the caller.
        let result = unsafe {
            trap(|| {
                self.begin(source);
                work();
                self.end(counters);
            })
        };
        if result.is_err() {
            counters.errors.add(1);
        }
        result
    }

    /// What the next command's queries return is to be kept, or no longer.
    pub fn capture(&self, on: bool) {
        results::capture(on);
    }

    /// What the last command's queries returned.
    pub fn with_captured<T>(&self, look: impl FnOnce(&[CapturedQuery]) -> T) -> T {
        results::with_captured(look)
    }

    /// A text in the client's encoding, as results are, in the server's.
    pub fn to_server_encoding(&self, text: &[u8]) -> Result<String, SqlError> {
        let mut converted: *const c_char = std::ptr::null();
        // SAFETY: plain pointers; the text has the length that is given, and what is converted lives in
        // the message context until the next command.
        let bytes = unsafe {
            let out = &raw mut converted;
            let (start, length) = (text.as_ptr().cast::<c_char>(), text.len());
            trap(|| {
                pg_sys::CurrentMemoryContext = self.message_context;
                *out = raw::pg_client_to_server(start, length as std::ffi::c_int);
            })?;
            // Unconverted it is the argument itself, without a zero byte at its end.
            if std::ptr::eq(converted, start) { text } else { CStr::from_ptr(converted).to_bytes() }
        };
        String::from_utf8(bytes.to_vec()).map_err(|_| {
            // Only a database in SQL_ASCII lets such a text in.
            SqlError::new(
                pgrx::PgSqlErrorCode::ERRCODE_CHARACTER_NOT_IN_REPERTOIRE,
                "a script's variable cannot hold text that is not valid UTF-8",
            )
        })
    }

    /// Starts a command: start_xact_command and what comes before it.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub(super) unsafe fn begin(&self, source: *const c_char) {
        // SAFETY: the calls and their order are those of exec_bind_message, exec_execute_message
        // and exec_simple_query (tcop/postgres.c); an ERROR leaves through the trap, which rolls
        // everything back.
        unsafe {
            raw::MemoryContextReset(self.message_context);
            raw::SetCurrentStatementStartTimestamp();
            raw::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, source);
            pg_sys::debug_query_string = source;
            self.start_command();
        }
    }

    /// start_xact_command.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    unsafe fn start_command(&self) {
        // SAFETY: as in `begin`.
        unsafe {
            raw::StartTransactionCommand();
            start_timeout();
            pg_sys::CurrentMemoryContext = self.message_context;
        }
    }

    /// finish_xact_command.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    unsafe fn finish_command(&self) {
        // SAFETY: as in `begin`.
        unsafe {
            stop_timeout();
            raw::CommitTransactionCommand();
            pg_sys::CurrentMemoryContext = self.message_context;
        }
    }

    /// Ends a command: its transaction, unless it is part of a block, and what comes after it.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub(super) unsafe fn end(&self, counters: &CommandCounters) {
        // SAFETY: as in `begin`.
        unsafe {
            self.finish_command();
            pg_sys::debug_query_string = std::ptr::null();
            if !raw::IsTransactionBlock() {
                raw::pgstat_report_stat(false);
            }
            counters.executions.add(1);
        }
    }

    /// Runs a plan in the way that suits it, when `convert` has put its parameters in place: as
    /// exec_bind_message has it, under the snapshot that the planner uses.
    ///
    /// # Safety
    /// Inside a trap and a transaction.
    #[inline]
    unsafe fn run_plan(&self, plan: Plan, source: *const c_char, book: Book, convert: impl FnOnce()) {
        // SAFETY: by the caller.
        unsafe {
            results::begin_query();
            if plan.plan_source.is_null() {
                return;
            }
            if plan.needs_snapshot {
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            }
            convert();
            if !(plan.is_plannable && self.run_directly(plan, source, book)) {
                if plan.needs_snapshot {
                    raw::PopActiveSnapshot();
                }
                self.run_portal(plan, source, book.counters);
            }
        }
    }

    /// Drives the executor without a portal around it. False, with nothing done, when rules have
    /// made several statements of the one.
    ///
    /// # Safety
    /// Inside a trap and a transaction, with an active snapshot, which is popped on success.
    #[inline]
    unsafe fn run_directly(&self, of: Plan, source: *const c_char, book: Book) -> bool {
        let counters = book.counters;
        // SAFETY: as SPI does it (_SPI_pquery), with a plan held by the current resource owner, or by
        // the memory context that the whole statement lives in.
        unsafe {
            let is_saved = (*of.plan_source).is_saved;
            let owner = if is_saved { pg_sys::CurrentResourceOwner } else { std::ptr::null_mut() };
            let plan = raw::GetCachedPlan(of.plan_source, of.params, owner, std::ptr::null_mut());
            // A rule made meanwhile may have left several statements, or none.
            let Some(planned) = plans::only_plannable((*plan).stmt_list) else {
                raw::ReleaseCachedPlan(plan, owner);
                return false;
            };
            let receiver = self.receivers.receiver();
            let desc = raw::CreateQueryDesc(
                planned,
                source,
                raw::GetActiveSnapshot(),
                std::ptr::null_mut(),
                receiver,
                of.params,
                std::ptr::null_mut(),
                0,
            );
            drive(desc);
            count_rows(counters, planned, (*(*desc).estate).es_processed);
            let scans = index_scans((*desc).planstate);
            if (*planned).parallelModeNeeded {
                plans::note_workers(counters, (*desc).planstate);
            }
            raw::ExecutorEnd(desc);
            raw::FreeQueryDesc(desc);
            if let Some(destroy) = (*receiver).rDestroy {
                destroy(receiver);
            }
            match scans.filter(|_| (*planned).subplans.is_null()) {
                Some(scans) => counters.index_scans.add(scans),
                None => counters.index_scans_unknown.store(1, Relaxed),
            }
            let (plan_source, params) = (of.plan_source, of.params);
            plans::note(book, Execution { plan_source, plan, planned, params, source });
            raw::ReleaseCachedPlan(plan, owner);
            raw::PopActiveSnapshot();
            true
        }
    }

    /// Runs anything else, utility commands and transaction control among it, by a portal.
    ///
    /// # Safety
    /// Inside a trap and a transaction.
    unsafe fn run_portal(&self, of: Plan, source: *const c_char, counters: &CommandCounters) {
        // SAFETY: exec_bind_message: the portal holds the plan and is dropped before the
        // transaction command ends.
        unsafe {
            let portal = raw::CreatePortal(c"".as_ptr(), true, true);
            (*portal).visible = false;
            if of.needs_snapshot {
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            }
            let plan =
                raw::GetCachedPlan(of.plan_source, of.params, std::ptr::null_mut(), std::ptr::null_mut());
            raw::PortalDefineQuery(
                portal,
                std::ptr::null(),
                source,
                (*of.plan_source).commandTag,
                (*plan).stmt_list,
                plan,
            );
            if of.needs_snapshot {
                raw::PopActiveSnapshot();
            }
            let rows = self.run_to_the_end(portal, of.params, counters);
            counters.rows.add(rows);
            if !of.touches_no_table {
                counters.index_scans_unknown.store(1, Relaxed);
            }
        }
    }

    /// Starts, runs and drops a portal; the number of rows it processed.
    ///
    /// # Safety
    /// Inside a trap and a transaction, with a portal that has been defined.
    unsafe fn run_to_the_end(
        &self,
        portal: pg_sys::Portal,
        params: pg_sys::ParamListInfo,
        counters: &CommandCounters,
    ) -> u64 {
        // SAFETY: by the caller; exec_simple_query and exec_execute_message.
        unsafe {
            raw::PortalStart(portal, params, 0, std::ptr::null_mut());
            raw::PortalSetResultFormat(portal, 0, std::ptr::null_mut());
            let receiver = self.receivers.receiver();
            let mut completion: pg_sys::QueryCompletion = std::mem::zeroed();
            let all = std::ffi::c_long::MAX;
            #[cfg(not(feature = "pg18"))]
            raw::PortalRun(portal, all, true, true, receiver, receiver, &raw mut completion);
            #[cfg(feature = "pg18")]
            raw::PortalRun(portal, all, true, receiver, receiver, &raw mut completion);
            if let Some(destroy) = (*receiver).rDestroy {
                destroy(receiver);
            }
            // Of a query, which is what a parallel plan is of, it is there until the portal is dropped.
            if let Some(desc) = (*portal).queryDesc.as_ref()
                && (*desc.plannedstmt).parallelModeNeeded
            {
                plans::note_workers(counters, desc.planstate);
            }
            raw::PortalDrop(portal, false);
            completion.nprocessed
        }
    }

    /// The loop of exec_simple_query.
    ///
    /// # Safety
    /// Inside a trap and a transaction; `text` stays valid throughout.
    unsafe fn run_query(&self, text: *const c_char, book: Book) {
        let counters = book.counters;
        // SAFETY: by the caller; the sequence is exec_simple_query's.
        unsafe {
            let statements = raw::pg_parse_query(text);
            let count = list_length(statements);
            if count == 0 {
                results::begin_query();
            }
            let mut started = true;
            for index in 0..count {
                if !started {
                    self.start_command();
                    started = true;
                }
                if count > 1 {
                    raw::BeginImplicitTransactionBlock();
                }
                let statement: *mut pg_sys::RawStmt =
                    (*(*statements).elements.add(index as usize)).ptr_value.cast();
                refuse_what_needs_a_client((*statement).stmt);
                let tag = raw::CreateCommandTag((*statement).stmt);
                let needs_snapshot = raw::analyze_requires_snapshot(statement);
                if needs_snapshot {
                    raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
                }
                let queries = raw::pg_analyze_and_rewrite_fixedparams(
                    statement,
                    text,
                    std::ptr::null(),
                    0,
                    std::ptr::null_mut(),
                );
                let planned = raw::pg_plan_queries(
                    queries,
                    text,
                    pg_sys::CURSOR_OPT_PARALLEL_OK as i32,
                    std::ptr::null_mut(),
                );
                if needs_snapshot {
                    raw::PopActiveSnapshot();
                }
                results::begin_query();
                let portal = raw::CreatePortal(c"".as_ptr(), true, true);
                (*portal).visible = false;
                raw::PortalDefineQuery(portal, std::ptr::null(), text, tag, planned, std::ptr::null_mut());
                let rows = self.run_to_the_end(portal, std::ptr::null_mut(), counters);
                let planned = plans::only_plannable(planned);
                match planned {
                    Some(planned) => count_rows(counters, planned, rows),
                    None => counters.rows.add(rows),
                }
                if let Some(planned) = planned.filter(|_| count == 1) {
                    raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
                    let nothing: *mut u8 = std::ptr::null_mut();
                    let (plan_source, plan, params) = (nothing.cast(), nothing.cast(), nothing.cast());
                    plans::note(book, Execution { plan_source, plan, planned, params, source: text });
                    raw::PopActiveSnapshot();
                }
                let is_last = index + 1 == count;
                if is_last && count > 1 {
                    raw::EndImplicitTransactionBlock();
                } else if !is_last && (*(*statement).stmt).type_ == pg_sys::NodeTag::T_TransactionStmt {
                    self.finish_command();
                    started = false;
                } else if !is_last {
                    raw::CommandCounterIncrement();
                    // It applies to each statement by itself.
                    stop_timeout();
                    start_timeout();
                }
            }
            counters.index_scans_unknown.store(1, Relaxed);
        }
    }
}

/// Starts, runs and finishes an execution; its end is the caller's.
///
/// # Safety
/// Inside a trap and a transaction.
#[inline]
pub(super) unsafe fn drive(desc: *mut pg_sys::QueryDesc) {
    // SAFETY: by the caller.
    unsafe {
        raw::ExecutorStart(desc, 0);
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        #[cfg(not(feature = "pg18"))]
        raw::ExecutorRun(desc, forward, 0, true);
        #[cfg(feature = "pg18")]
        raw::ExecutorRun(desc, forward, 0);
        raw::ExecutorFinish(desc);
    }
}

/// Arms statement_timeout.
///
/// # Safety
/// Inside a trap.
#[inline]
pub(super) unsafe fn start_timeout() {
    // SAFETY: by the caller; enable_statement_timeout (tcop/postgres.c).
    unsafe {
        if pg_sys::StatementTimeout > 0 {
            raw::enable_timeout_after(raw::STATEMENT_TIMEOUT, pg_sys::StatementTimeout);
        }
    }
}

/// Disarms statement_timeout.
///
/// # Safety
/// Inside a trap.
#[inline]
pub(super) unsafe fn stop_timeout() {
    // SAFETY: by the caller; disable_statement_timeout (tcop/postgres.c).
    unsafe {
        if raw::get_timeout_active(raw::STATEMENT_TIMEOUT) {
            raw::disable_timeout(raw::STATEMENT_TIMEOUT, false);
        }
    }
}
