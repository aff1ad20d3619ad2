//! One client's session: the transaction loop's way of executing a statement, as postgres.c
//! executes a prepared one for a client that sends Bind, Execute and Sync.

use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

use bench_core::script::{Sql, Variables};
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::raw;
use super::results::ReceiverFactory;
use super::statement::{Statement, list_first, list_length};
use super::trap::{SqlError, trap};
use crate::shm::CommandCounters;

/// The session of a background worker that is connected to its database.
pub struct Session {
    receivers: ReceiverFactory,
    /// What MessageContext is to a client's backend: emptied after each statement.
    message_context: pg_sys::MemoryContext,
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

    /// Sets a configuration parameter as SET does.
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
                    pg_sys::GucSource::PGC_S_SESSION,
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

    /// Shows what the session is doing in pg_stat_activity; `None`: idle.
    pub fn report_idle(&self) {
        // SAFETY: writes this backend's own status entry.
        unsafe { pg_sys::pgstat_report_activity(pg_sys::BackendState::STATE_IDLE, std::ptr::null()) }
    }

    /// Prepares and executes one statement without variables.
    pub fn run(&mut self, sql: &str) -> Result<(), SqlError> {
        let sql = Sql { line: 1, source: sql.to_owned(), text: sql.to_owned(), parameters: Vec::new() };
        let mut statement = Statement::prepare(&sql)?;
        let counters = CommandCounters::default();
        self.execute(&mut statement, &Variables::default(), &counters)
    }

    /// Executes a statement: outside a block a transaction of its own, inside one a part of it.
    /// After an error every transaction is rolled back and the session is usable again.
    #[inline]
    pub fn execute(
        &mut self,
        statement: &mut Statement,
        variables: &Variables,
        counters: &CommandCounters,
    ) -> Result<(), SqlError> {
        statement.bind(variables);
        let statement = &*statement;
        // SAFETY: `execute_in_trap` holds only plain data; what it borrows outlives the trap.
        let result = unsafe { trap(|| self.execute_in_trap(statement, counters)) };
        if result.is_err() {
            counters.errors.add(1);
        }
        result
    }

    /// # Safety
    /// Inside a trap, with the statement's parameters bound.
    #[inline]
    unsafe fn execute_in_trap(&self, statement: &Statement, counters: &CommandCounters) {
        // SAFETY: the calls and their order are those of exec_bind_message, exec_execute_message
        // and the Sync after them (tcop/postgres.c); an ERROR leaves through the trap, which rolls
        // everything back.
        unsafe {
            let source = statement.source().as_ptr();
            raw::SetCurrentStatementStartTimestamp();
            raw::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, source);
            pg_sys::debug_query_string = source;
            raw::StartTransactionCommand();
            if pg_sys::StatementTimeout > 0 {
                raw::enable_timeout_after(raw::STATEMENT_TIMEOUT, pg_sys::StatementTimeout);
            }
            pg_sys::CurrentMemoryContext = self.message_context;
            if statement.needs_snapshot {
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            }
            statement.convert_texts();
            if !(statement.is_plannable() && self.run_directly(statement, counters)) {
                if statement.needs_snapshot {
                    raw::PopActiveSnapshot();
                }
                self.run_portal(statement, counters);
            }
            if raw::get_timeout_active(raw::STATEMENT_TIMEOUT) {
                raw::disable_timeout(raw::STATEMENT_TIMEOUT, false);
            }
            raw::CommitTransactionCommand();
            pg_sys::CurrentMemoryContext = self.message_context;
            raw::MemoryContextReset(self.message_context);
            pg_sys::debug_query_string = std::ptr::null();
            if !raw::IsTransactionBlock() {
                raw::pgstat_report_stat(false);
            }
            counters.executions.add(1);
        }
    }

    /// Drives the executor without a portal around it. False, with nothing done, when rules have
    /// made several statements of the one.
    ///
    /// # Safety
    /// Inside a trap and a transaction, with an active snapshot, which is popped on success.
    #[inline]
    unsafe fn run_directly(&self, statement: &Statement, counters: &CommandCounters) -> bool {
        // SAFETY: as SPI does it (_SPI_pquery), with a plan held by the current resource owner.
        unsafe {
            let owner = pg_sys::CurrentResourceOwner;
            let plan =
                raw::GetCachedPlan(statement.plan_source, statement.params, owner, std::ptr::null_mut());
            // A rule made meanwhile may have left several statements, or none.
            if list_length((*plan).stmt_list) != 1 {
                raw::ReleaseCachedPlan(plan, owner);
                return false;
            }
            let planned: *mut pg_sys::PlannedStmt = list_first((*plan).stmt_list).cast();
            if !raw::is_plannable((*planned).commandType) {
                raw::ReleaseCachedPlan(plan, owner);
                return false;
            }
            let receiver = self.receivers.receiver();
            let desc = raw::CreateQueryDesc(
                planned,
                statement.source().as_ptr(),
                raw::GetActiveSnapshot(),
                std::ptr::null_mut(),
                receiver,
                statement.params,
                std::ptr::null_mut(),
                0,
            );
            raw::ExecutorStart(desc, 0);
            let forward = pg_sys::ScanDirection::ForwardScanDirection;
            #[cfg(not(feature = "pg18"))]
            raw::ExecutorRun(desc, forward, 0, true);
            #[cfg(feature = "pg18")]
            raw::ExecutorRun(desc, forward, 0);
            raw::ExecutorFinish(desc);
            counters.rows.add((*(*desc).estate).es_processed);
            let scans = index_scans((*desc).planstate);
            raw::ExecutorEnd(desc);
            raw::FreeQueryDesc(desc);
            if let Some(destroy) = (*receiver).rDestroy {
                destroy(receiver);
            }
            match scans.filter(|_| (*planned).subplans.is_null()) {
                Some(scans) => counters.index_scans.add(scans),
                None => counters.index_scans_unknown.store(1, Relaxed),
            }
            raw::ReleaseCachedPlan(plan, owner);
            raw::PopActiveSnapshot();
            true
        }
    }

    /// Runs anything else, utility commands and transaction control among it, by a portal.
    ///
    /// # Safety
    /// Inside a trap and a transaction.
    unsafe fn run_portal(&self, statement: &Statement, counters: &CommandCounters) {
        // SAFETY: exec_bind_message and exec_simple_query: the portal holds the plan and is
        // dropped before the transaction command ends.
        unsafe {
            let portal = raw::CreatePortal(c"".as_ptr(), true, true);
            (*portal).visible = false;
            if statement.needs_snapshot {
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
            }
            let plan = raw::GetCachedPlan(
                statement.plan_source,
                statement.params,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            );
            raw::PortalDefineQuery(
                portal,
                std::ptr::null(),
                statement.source().as_ptr(),
                (*statement.plan_source).commandTag,
                (*plan).stmt_list,
                plan,
            );
            if statement.needs_snapshot {
                raw::PopActiveSnapshot();
            }
            raw::PortalStart(portal, statement.params, 0, std::ptr::null_mut());
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
            counters.rows.add(completion.nprocessed);
            if !statement.touches_no_table {
                counters.index_scans_unknown.store(1, Relaxed);
            }
            raw::PortalDrop(portal, false);
        }
    }
}

/// How many index scans an execution stands for in the server's statistics; `None` where the plan
/// is not simple enough to tell.
///
/// # Safety
/// The state of a plan that has run, or NULL.
unsafe fn index_scans(state: *mut pg_sys::PlanState) -> Option<u64> {
    if state.is_null() {
        return Some(0);
    }
    // SAFETY: by the caller; the plan's tag says what the state's node is.
    unsafe {
        let plan = (*state).plan;
        match (*plan).type_ {
            // The arbiter index is probed in ways of its own.
            pg_sys::NodeTag::T_ModifyTable
                if (*plan.cast::<pg_sys::ModifyTable>()).onConflictAction
                    != pg_sys::OnConflictAction::ONCONFLICT_NONE =>
            {
                None
            }
            // A one-time filter may keep the rest from running.
            pg_sys::NodeTag::T_Result if !(*plan.cast::<pg_sys::Result>()).resconstantqual.is_null() => None,
            pg_sys::NodeTag::T_ModifyTable | pg_sys::NodeTag::T_LockRows | pg_sys::NodeTag::T_Result => {
                index_scans((*state).lefttree)
            }
            pg_sys::NodeTag::T_SeqScan | pg_sys::NodeTag::T_ValuesScan | pg_sys::NodeTag::T_FunctionScan => {
                Some(0)
            }
            pg_sys::NodeTag::T_IndexScan => {
                let scan = state.cast::<pg_sys::IndexScanState>();
                // From 18 on the node counts, for a scan may skip.
                #[cfg(feature = "pg18")]
                return Some((*scan).iss_Instrument.nsearches);
                #[cfg(not(feature = "pg18"))]
                scans_of_keys(
                    (*plan.cast::<pg_sys::IndexScan>()).indexqual,
                    (*scan).iss_ScanKeys,
                    (*scan).iss_NumScanKeys,
                )
            }
            pg_sys::NodeTag::T_IndexOnlyScan => {
                let scan = state.cast::<pg_sys::IndexOnlyScanState>();
                #[cfg(feature = "pg18")]
                return Some((*scan).ioss_Instrument.nsearches);
                #[cfg(not(feature = "pg18"))]
                scans_of_keys(
                    (*plan.cast::<pg_sys::IndexOnlyScan>()).indexqual,
                    (*scan).ioss_ScanKeys,
                    (*scan).ioss_NumScanKeys,
                )
            }
            _ => None,
        }
    }
}

/// One for a condition of operators. An array in it is a scan for each element; whether NULL is
/// one depends on the server's version and the index's kind.
///
/// # Safety
/// The condition and the keys of an index scan that has run.
#[cfg(not(feature = "pg18"))]
unsafe fn scans_of_keys(condition: *mut pg_sys::List, keys: pg_sys::ScanKey, count: i32) -> Option<u64> {
    // SAFETY: by the caller.
    unsafe {
        let null = |key: usize| (*keys.add(key)).sk_flags & pg_sys::SK_ISNULL as i32 != 0;
        (only_operators(condition) && !(0..count as usize).any(null)).then_some(1)
    }
}

/// # Safety
/// A live list of nodes, or NULL.
#[cfg(not(feature = "pg18"))]
unsafe fn only_operators(list: *mut pg_sys::List) -> bool {
    // SAFETY: by the caller.
    unsafe {
        (0..list_length(list) as usize).all(|index| {
            let node: *mut pg_sys::Node = (*(*list).elements.add(index)).ptr_value.cast();
            (*node).type_ == pg_sys::NodeTag::T_OpExpr
        })
    }
}
