//! Runs commands like postgres.c: the steps before and after a statement, and the loop over the statements of a text.

use std::ffi::c_char;
use std::sync::atomic::Ordering::Relaxed;

use pgrx::pg_sys;

use super::Session;
use crate::driver::session::analysis::{ExecutionPlan, refuse_client_copy};
use crate::driver::session::plans::{self, PlanExecution, StatementStats};
use crate::driver::session::raw;
use crate::driver::session::results::{self, count_rows, index_scans};
use crate::driver::session::statement::{start_timeout, stop_timeout};
use crate::driver::session::watch;
use crate::server::query::list_length;
use crate::shm::CommandCounters;

impl Session {
    /// Starts a command and its transaction, like start_xact_command and the steps before it.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub unsafe fn begin(&self, source: *const c_char) {
        // SAFETY: the sequence of exec_bind_message, exec_execute_message and exec_simple_query (tcop/postgres.c); after an
        // ERROR the trap rolls everything back.
        unsafe {
            raw::MemoryContextReset(self.message_context);
            raw::SetCurrentStatementStartTimestamp();
            raw::pgstat_report_activity(pg_sys::BackendState::STATE_RUNNING, source);
            pg_sys::debug_query_string = source;
            self.start_command();
        }
    }

    /// Starts a transaction command, like start_xact_command.
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

    /// Finishes a transaction command, like finish_xact_command.
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

    /// Ends a command and, outside a block, its transaction.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub unsafe fn end(&self, counters: &CommandCounters) {
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

    /// Runs a plan without a portal if possible. `convert` puts its parameters in place, as in exec_bind_message under the
    /// planner's snapshot.
    ///
    /// # Safety
    /// Inside a trap and a transaction.
    #[inline]
    pub(super) unsafe fn run_plan(
        &self,
        plan: ExecutionPlan,
        source: *const c_char,
        statistics: StatementStats,
        convert: impl FnOnce(),
    ) {
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
            if !(plan.is_plannable && self.run_directly(plan, source, statistics)) {
                if plan.needs_snapshot {
                    raw::PopActiveSnapshot();
                }
                self.run_portal(plan, source, statistics.counters);
            }
        }
    }

    /// Runs a plan by the executor, without a portal. Does nothing and returns false if rules have replaced the statement by
    /// several.
    ///
    /// # Safety
    /// Inside a trap and a transaction, with an active snapshot, which is popped on success.
    #[inline]
    pub(super) unsafe fn run_directly(
        &self,
        statement: ExecutionPlan,
        source: *const c_char,
        statistics: StatementStats,
    ) -> bool {
        let counters = statistics.counters;
        // SAFETY: as in SPI (_SPI_pquery); the plan is held by the current resource owner or the statement's memory context.
        unsafe {
            let is_saved = (*statement.plan_source).is_saved;
            let owner = if is_saved { pg_sys::CurrentResourceOwner } else { std::ptr::null_mut() };
            let plan =
                raw::GetCachedPlan(statement.plan_source, statement.params, owner, std::ptr::null_mut());
            // A new rule may have replaced the statement by several, or by none.
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
                statement.params,
                std::ptr::null_mut(),
                0,
            );
            raw::ExecutorStart(desc, 0);
            watch::expect((*statement.plan_source).query_list, desc);
            run(desc);
            watch::record_end((*desc).planstate);
            count_rows(counters, planned, (*(*desc).estate).es_processed);
            let scans = index_scans((*desc).planstate);
            if (*planned).parallelModeNeeded {
                plans::count_workers(counters, (*desc).planstate);
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
            let (plan_source, params) = (statement.plan_source, statement.params);
            plans::record_execution(statistics, PlanExecution { plan_source, plan, planned, params, source });
            raw::ReleaseCachedPlan(plan, owner);
            raw::PopActiveSnapshot();
            true
        }
    }

    /// Runs a plan by a portal, as utility commands need it.
    ///
    /// # Safety
    /// Inside a trap and a transaction.
    pub(super) unsafe fn run_portal(
        &self,
        statement: ExecutionPlan,
        source: *const c_char,
        counters: &CommandCounters,
    ) {
        // SAFETY: as in exec_bind_message; the portal holds the plan and is dropped before the transaction command ends.
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
                source,
                (*statement.plan_source).commandTag,
                (*plan).stmt_list,
                plan,
            );
            if statement.needs_snapshot {
                raw::PopActiveSnapshot();
            }
            let rows =
                self.run_to_the_end(portal, statement.params, (*statement.plan_source).query_list, counters);
            counters.rows.add(rows);
            if !statement.touches_no_table {
                counters.index_scans_unknown.store(1, Relaxed);
            }
        }
    }

    /// Starts, runs and drops a portal. Returns the number of processed rows.
    ///
    /// # Safety
    /// Inside a trap and a transaction, with a defined portal and its queries.
    pub(super) unsafe fn run_to_the_end(
        &self,
        portal: pg_sys::Portal,
        params: pg_sys::ParamListInfo,
        queries: *mut pg_sys::List,
        counters: &CommandCounters,
    ) -> u64 {
        // SAFETY: by the caller; as in exec_simple_query and exec_execute_message.
        unsafe {
            raw::PortalStart(portal, params, 0, std::ptr::null_mut());
            if !(*portal).queryDesc.is_null() {
                watch::expect(queries, (*portal).queryDesc);
            }
            raw::PortalSetResultFormat(portal, 0, std::ptr::null_mut());
            let receiver = self.receivers.receiver();
            let mut completion: pg_sys::QueryCompletion = std::mem::zeroed();
            let all = std::ffi::c_long::MAX;
            #[cfg(not(since_18))]
            raw::PortalRun(portal, all, true, true, receiver, receiver, &raw mut completion);
            #[cfg(since_18)]
            raw::PortalRun(portal, all, true, receiver, receiver, &raw mut completion);
            if let Some(destroy) = (*receiver).rDestroy {
                destroy(receiver);
            }
            // Only queries have parallel plans; their queryDesc lasts until the portal is dropped.
            if let Some(desc) = (*portal).queryDesc.as_ref()
                && (*desc.plannedstmt).parallelModeNeeded
            {
                plans::count_workers(counters, desc.planstate);
            }
            raw::PortalDrop(portal, false);
            completion.nprocessed
        }
    }

    /// Executes the statements of a text, like exec_simple_query.
    ///
    /// # Safety
    /// Inside a trap and a transaction; `text` stays valid throughout.
    pub(super) unsafe fn run_query(&self, text: *const c_char, statistics: StatementStats) {
        let counters = statistics.counters;
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
                refuse_client_copy((*statement).stmt);
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
                let rows = self.run_to_the_end(portal, std::ptr::null_mut(), queries, counters);
                let planned = plans::only_plannable(planned);
                match planned {
                    Some(planned) => count_rows(counters, planned, rows),
                    None => counters.rows.add(rows),
                }
                if let Some(planned) = planned.filter(|_| count == 1) {
                    raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
                    let execution = PlanExecution {
                        plan_source: std::ptr::null_mut(),
                        plan: std::ptr::null_mut(),
                        planned,
                        params: std::ptr::null_mut(),
                        source: text,
                    };
                    plans::record_execution(statistics, execution);
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
                    // statement_timeout applies to each statement separately.
                    stop_timeout();
                    start_timeout();
                }
            }
            counters.index_scans_unknown.store(1, Relaxed);
        }
    }
}

/// Starts, runs and finishes an execution; the caller ends it.
///
/// # Safety
/// Inside a trap and a transaction.
#[inline]
pub unsafe fn drive(desc: *mut pg_sys::QueryDesc) {
    // SAFETY: by the caller.
    unsafe {
        raw::ExecutorStart(desc, 0);
        run(desc);
    }
}

/// Runs and finishes a started execution.
///
/// # Safety
/// Inside a trap and a transaction.
#[inline]
unsafe fn run(desc: *mut pg_sys::QueryDesc) {
    // SAFETY: by the caller.
    unsafe {
        let forward = pg_sys::ScanDirection::ForwardScanDirection;
        #[cfg(not(since_18))]
        raw::ExecutorRun(desc, forward, 0, true);
        #[cfg(since_18)]
        raw::ExecutorRun(desc, forward, 0);
        raw::ExecutorFinish(desc);
    }
}
