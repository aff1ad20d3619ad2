//! The server's functions without pgrx's guard, which would turn an ERROR into a Rust panic at each call.
//!
//! An ERROR in one of them jumps to the surrounding [`trap`]. So they may be called only inside a trap, from frames that have
//! nothing to drop ("plain old frames" of Rust's RFC 2945), or when the process is about to end anyway.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};

use bench_base::error::SqlError;
use cee_scape::{SigJmpBufFields, call_with_sigsetjmp};
#[cfg(since_16)]
use pgrx::pg_sys::BufferManagerRelation;
#[cfg(not(since_16))]
use pgrx::pg_sys::SMgrRelation;
use pgrx::pg_sys::{
    self, AttrMap, Buffer, BufferAccessStrategy, BulkInsertState, CachedPlan, CachedPlanSource, CmdType,
    CommandDest, CommandTag, Datum, DestReceiver, EState, ErrorData, ExplainState, FunctionCallInfo,
    HeapTuple, List, MemoryContext, ModifyTableState, Node, Oid, ParamListInfo, ParserSetupHook,
    PartitionTupleRouting, PlanState, PlannedStmt, Portal, QueryCompletion, QueryDesc, QueryEnvironment,
    RangeVar, RawStmt, Relation, ResourceOwner, ResultRelInfo, ScanDirection, Snapshot, TupleDesc,
    TupleTableSlot, TupleTableSlotOps,
};

/// tree_walker_callback of nodes/nodeFuncs.h; true ends the walk.
pub type NodeWalker = unsafe extern "C-unwind" fn(*mut Node, *mut c_void) -> bool;
/// planstate_tree_walker_callback of the same; true ends the walk.
pub type PlanStateWalker = unsafe extern "C-unwind" fn(*mut PlanState, *mut c_void) -> bool;

/// The protocol's output methods, libpq/libpq.h.
#[repr(C)]
pub struct PQcommMethods {
    pub comm_reset: unsafe extern "C-unwind" fn(),
    pub flush: unsafe extern "C-unwind" fn() -> c_int,
    pub flush_if_writable: unsafe extern "C-unwind" fn() -> c_int,
    pub is_send_pending: unsafe extern "C-unwind" fn() -> bool,
    pub putmessage: unsafe extern "C-unwind" fn(c_char, *const c_char, usize) -> c_int,
    pub putmessage_noblock: unsafe extern "C-unwind" fn(c_char, *const c_char, usize),
}

unsafe extern "C-unwind" {
    pub static mut PqCommMethods: *const PQcommMethods;

    // transactions
    pub static mut XactLastCommitEnd: u64;
    pub fn XLogFlush(upto: u64);
    pub fn SetCurrentStatementStartTimestamp();
    pub fn StartTransactionCommand();
    pub fn CommitTransactionCommand();
    pub fn AbortOutOfAnyTransaction();
    pub fn AbortCurrentTransaction();
    pub fn IsSubTransaction() -> bool;
    pub fn IsTransactionBlock() -> bool;
    pub fn BeginImplicitTransactionBlock();
    pub fn EndImplicitTransactionBlock();
    pub fn CommandCounterIncrement();
    pub fn BeginInternalSubTransaction(name: *const c_char);
    pub fn RollbackAndReleaseCurrentSubTransaction();
    pub fn ReleaseCurrentSubTransaction();

    // statistics
    pub fn pgstat_report_activity(state: u32, command: *const c_char);
    pub fn pgstat_report_stat(force: bool) -> c_long;

    // snapshots
    pub fn GetTransactionSnapshot() -> Snapshot;
    pub fn GetActiveSnapshot() -> Snapshot;
    pub fn PushActiveSnapshot(snapshot: Snapshot);
    pub fn PopActiveSnapshot();

    // parsing and plans
    pub fn pg_parse_query(query_string: *const c_char) -> *mut List;
    pub fn CreateCommandTag(parsetree: *mut pgrx::pg_sys::Node) -> CommandTag::Type;
    pub fn analyze_requires_snapshot(parse_tree: *mut RawStmt) -> bool;
    pub fn pg_analyze_and_rewrite_varparams(
        parsetree: *mut RawStmt,
        query_string: *const c_char,
        param_types: *mut *mut Oid,
        num_params: *mut c_int,
        query_env: *mut QueryEnvironment,
    ) -> *mut List;
    pub fn pg_analyze_and_rewrite_fixedparams(
        parsetree: *mut RawStmt,
        query_string: *const c_char,
        param_types: *const Oid,
        num_params: c_int,
        query_env: *mut QueryEnvironment,
    ) -> *mut List;
    pub fn pg_plan_queries(
        querytrees: *mut List,
        query_string: *const c_char,
        cursor_options: c_int,
        bound_params: ParamListInfo,
    ) -> *mut List;
    pub fn CreateCachedPlan(
        #[cfg(not(since_19))] raw_parse_tree: *mut RawStmt,
        #[cfg(since_19)] raw_parse_tree: *const RawStmt,
        query_string: *const c_char,
        command_tag: CommandTag::Type,
    ) -> *mut CachedPlanSource;
    pub fn CompleteCachedPlan(
        plansource: *mut CachedPlanSource,
        querytree_list: *mut List,
        querytree_context: MemoryContext,
        param_types: *mut Oid,
        num_params: c_int,
        parser_setup: ParserSetupHook,
        parser_setup_arg: *mut c_void,
        cursor_options: c_int,
        fixed_result: bool,
    );
    pub fn SaveCachedPlan(plansource: *mut CachedPlanSource);
    pub fn GetCachedPlan(
        plansource: *mut CachedPlanSource,
        bound_params: ParamListInfo,
        owner: ResourceOwner,
        query_env: *mut QueryEnvironment,
    ) -> *mut CachedPlan;
    pub fn ReleaseCachedPlan(plan: *mut CachedPlan, owner: ResourceOwner);
    pub fn makeParamList(num_params: c_int) -> ParamListInfo;
    pub fn getTypeInputInfo(type_: Oid, typ_input: *mut Oid, typ_io_param: *mut Oid);
    pub fn OidInputFunctionCall(function: Oid, text: *mut c_char, typ_io_param: Oid, typmod: i32) -> Datum;

    // execution
    pub fn CreateQueryDesc(
        plannedstmt: *mut PlannedStmt,
        source_text: *const c_char,
        snapshot: Snapshot,
        crosscheck_snapshot: Snapshot,
        dest: *mut DestReceiver,
        params: ParamListInfo,
        query_env: *mut QueryEnvironment,
        instrument_options: c_int,
    ) -> *mut QueryDesc;
    pub fn FreeQueryDesc(desc: *mut QueryDesc);
    pub fn ExecutorStart(desc: *mut QueryDesc, eflags: c_int);
    #[cfg(not(since_18))]
    pub fn ExecutorRun(desc: *mut QueryDesc, direction: ScanDirection::Type, count: u64, execute_once: bool);
    #[cfg(since_18)]
    pub fn ExecutorRun(desc: *mut QueryDesc, direction: ScanDirection::Type, count: u64);
    pub fn ExecutorFinish(desc: *mut QueryDesc);
    pub fn ExecutorEnd(desc: *mut QueryDesc);
    pub fn standard_ExecutorStart(desc: *mut QueryDesc, eflags: c_int);
    pub fn standard_ExecutorEnd(desc: *mut QueryDesc);
    #[cfg(not(since_16))]
    #[link_name = "planstate_tree_walker"]
    pub fn walk_plan_states(state: *mut PlanState, walker: PlanStateWalker, context: *mut c_void) -> bool;
    #[cfg(since_16)]
    #[link_name = "planstate_tree_walker_impl"]
    pub fn walk_plan_states(state: *mut PlanState, walker: PlanStateWalker, context: *mut c_void) -> bool;

    // conditions
    #[cfg(not(since_16))]
    #[link_name = "expression_tree_walker"]
    pub fn walk_expression(node: *mut Node, walker: NodeWalker, context: *mut c_void) -> bool;
    #[cfg(since_16)]
    #[link_name = "expression_tree_walker_impl"]
    pub fn walk_expression(node: *mut Node, walker: NodeWalker, context: *mut c_void) -> bool;
    pub fn get_oprrest(operator: Oid) -> Oid;

    // explaining
    pub fn NewExplainState() -> *mut ExplainState;
    pub fn ExplainBeginOutput(state: *mut ExplainState);
    pub fn ExplainPrintPlan(state: *mut ExplainState, desc: *mut QueryDesc);
    pub fn ExplainEndOutput(state: *mut ExplainState);

    // portals
    pub fn CreatePortal(name: *const c_char, allow_dup: bool, dup_silent: bool) -> Portal;
    pub fn PortalDefineQuery(
        portal: Portal,
        prep_stmt_name: *const c_char,
        source_text: *const c_char,
        command_tag: CommandTag::Type,
        stmts: *mut List,
        cplan: *mut CachedPlan,
    );
    pub fn PortalStart(portal: Portal, params: ParamListInfo, eflags: c_int, snapshot: Snapshot);
    pub fn PortalSetResultFormat(portal: Portal, n_formats: c_int, formats: *mut i16);
    #[cfg(not(since_18))]
    pub fn PortalRun(
        portal: Portal,
        count: c_long,
        is_top_level: bool,
        run_once: bool,
        dest: *mut DestReceiver,
        altdest: *mut DestReceiver,
        qc: *mut QueryCompletion,
    ) -> bool;
    #[cfg(since_18)]
    pub fn PortalRun(
        portal: Portal,
        count: c_long,
        is_top_level: bool,
        dest: *mut DestReceiver,
        altdest: *mut DestReceiver,
        qc: *mut QueryCompletion,
    ) -> bool;
    pub fn PortalDrop(portal: Portal, is_top_commit: bool);
    pub fn CreateDestReceiver(dest: CommandDest::Type) -> *mut DestReceiver;
    pub fn SetRemoteDestReceiverParams(dest: *mut DestReceiver, portal: Portal);

    // bulk loading
    pub fn makeRangeVar(schema: *mut c_char, relation: *mut c_char, location: c_int) -> *mut RangeVar;
    pub fn table_openrv(relation: *const RangeVar, lock_mode: c_int) -> Relation;
    pub fn table_close(relation: Relation, lock_mode: c_int);
    pub fn exprType(expression: *const pgrx::pg_sys::Node) -> Oid;
    pub fn get_atttype(relation: Oid, attribute: i16) -> Oid;
    pub fn CreateTupleDescCopyConstr(desc: TupleDesc) -> TupleDesc;
    pub fn table_slot_callbacks(relation: Relation) -> *const TupleTableSlotOps;
    pub fn MakeSingleTupleTableSlot(desc: TupleDesc, ops: *const TupleTableSlotOps) -> *mut TupleTableSlot;
    pub fn ExecForceStoreHeapTuple(tuple: HeapTuple, slot: *mut TupleTableSlot, should_free: bool);
    pub fn ExecFetchSlotHeapTuple(
        slot: *mut TupleTableSlot,
        materialize: bool,
        should_free: *mut bool,
    ) -> HeapTuple;
    pub fn GetBulkInsertState() -> BulkInsertState;
    pub fn ReleaseBulkInsertStatePin(state: BulkInsertState);
    pub fn GetAccessStrategy(of_type: u32) -> BufferAccessStrategy;
    #[cfg(not(since_16))]
    pub fn LockRelationForExtension(relation: Relation, lock_mode: c_int);
    #[cfg(not(since_16))]
    pub fn UnlockRelationForExtension(relation: Relation, lock_mode: c_int);
    #[cfg(not(since_16))]
    pub fn ReadBufferExtended(
        relation: Relation,
        fork: i32,
        block: u32,
        mode: u32,
        strategy: BufferAccessStrategy,
    ) -> Buffer;
    #[cfg(not(since_16))]
    pub fn LockBuffer(buffer: Buffer, mode: c_int);
    pub fn ReleaseBuffer(buffer: Buffer);
    #[cfg(since_16)]
    pub fn ExtendBufferedRelBy(
        table: BufferManagerRelation,
        fork: i32,
        strategy: BufferAccessStrategy,
        flags: u32,
        extend_by: u32,
        buffers: *mut Buffer,
        extended_by: *mut u32,
    ) -> u32;
    #[cfg(not(since_16))]
    pub fn RelationGetNumberOfBlocksInFork(relation: Relation, fork: i32) -> u32;
    #[cfg(not(since_16))]
    pub fn smgrextend(file: SMgrRelation, fork: i32, block: u32, page: *mut c_char, skip_fsync: bool);
    #[cfg(not(since_16))]
    pub fn GetRelationPath(
        database: Oid,
        tablespace: Oid,
        relation: Oid,
        backend: c_int,
        fork: i32,
    ) -> *mut c_char;
    #[cfg(not(since_16))]
    pub fn psprintf(format: *const c_char, ...) -> *mut c_char;
    #[cfg(not(since_16))]
    pub fn OpenTransientFile(path: *const c_char, flags: c_int) -> c_int;
    #[cfg(not(since_16))]
    pub fn CloseTransientFile(fd: c_int) -> c_int;
    pub fn RecordPageWithFreeSpace(relation: Relation, block: u32, free_bytes: usize);
    pub fn FreeSpaceMapVacuumRange(relation: Relation, start: u32, end: u32);
    pub fn GetCurrentCommandId(used: bool) -> u32;
    pub fn GetCurrentTransactionStartTimestamp() -> i64;
    pub fn DirectFunctionCall1Coll(
        function: unsafe extern "C-unwind" fn(FunctionCallInfo) -> Datum,
        collation: Oid,
        argument: Datum,
    ) -> Datum;
    pub fn timestamptz_timestamp(call: FunctionCallInfo) -> Datum;
    pub fn timestamptz_out(call: FunctionCallInfo) -> Datum;
    pub fn ExecSetupPartitionTupleRouting(
        estate: *mut EState,
        relation: Relation,
    ) -> *mut PartitionTupleRouting;
    pub fn ExecFindPartition(
        state: *mut ModifyTableState,
        root: *mut ResultRelInfo,
        routing: *mut PartitionTupleRouting,
        row: *mut TupleTableSlot,
        estate: *mut EState,
    ) -> *mut ResultRelInfo;
    pub fn ExecCleanupTupleRouting(state: *mut ModifyTableState, routing: *mut PartitionTupleRouting);
    #[cfg(since_16)]
    pub fn ExecGetRootToChildMap(
        partition: *mut ResultRelInfo,
        estate: *mut EState,
    ) -> *mut pgrx::pg_sys::TupleConversionMap;
    pub fn execute_attr_map_slot(
        map: *mut AttrMap,
        from: *mut TupleTableSlot,
        to: *mut TupleTableSlot,
    ) -> *mut TupleTableSlot;
    pub fn CreateExecutorState() -> *mut EState;
    pub fn FreeExecutorState(estate: *mut EState);
    pub fn ExecResetTupleTable(tuple_table: *mut List, should_free: bool);
    pub fn InitResultRelInfo(
        info: *mut ResultRelInfo,
        relation: Relation,
        range_table_index: u32,
        partition_root: *mut ResultRelInfo,
        instrument_options: c_int,
    );
    pub fn ExecOpenIndices(info: *mut ResultRelInfo, speculative: bool);
    pub fn ExecCloseIndices(info: *mut ResultRelInfo);
    pub fn ExecConstraints(info: *mut ResultRelInfo, slot: *mut TupleTableSlot, estate: *mut EState);
    #[cfg(not(since_19))]
    pub fn ExecInsertIndexTuples(
        info: *mut ResultRelInfo,
        slot: *mut TupleTableSlot,
        estate: *mut EState,
        update: bool,
        no_duplicate_error: bool,
        speculative_conflict: *mut bool,
        arbiter_indexes: *mut List,
        #[cfg(since_16)] only_summarizing: bool,
    ) -> *mut List;
    #[cfg(since_19)]
    pub fn ExecInsertIndexTuples(
        info: *mut ResultRelInfo,
        estate: *mut EState,
        flags: u32,
        slot: *mut TupleTableSlot,
        arbiter_indexes: *mut List,
        speculative_conflict: *mut bool,
    ) -> *mut List;

    pub fn pg_client_to_server(text: *const c_char, length: c_int) -> *mut c_char;

    // interrupts and timeouts
    pub fn ProcessInterrupts();
    pub fn ProcessConfigFile(context: pgrx::pg_sys::GucContext::Type);
    pub fn process_session_preload_libraries();
    pub fn enable_timeout_after(id: u32, delay_ms: c_int);
    pub fn disable_timeout(id: u32, keep_indicator: bool);
    pub fn disable_all_timeouts(keep_indicators: bool);
    pub fn get_timeout_active(id: u32) -> bool;

    // settings
    pub fn set_config_option_ext(
        name: *const c_char,
        value: *const c_char,
        context: pgrx::pg_sys::GucContext::Type,
        source: pgrx::pg_sys::GucSource::Type,
        role: Oid,
        action: pgrx::pg_sys::GucAction::Type,
        change_val: bool,
        elevel: c_int,
        is_reload: bool,
    ) -> c_int;
    pub fn superuser_arg(role: Oid) -> bool;

    // errors
    pub fn EmitErrorReport();
    pub fn CopyErrorData() -> *mut ErrorData;
    pub fn FlushErrorState();
    pub fn FreeErrorData(edata: *mut ErrorData);
    pub fn ReThrowError(edata: *mut ErrorData) -> !;
    pub fn PortalErrorCleanup();
    pub fn jit_reset_after_error();

    // memory
    pub fn palloc0(size: usize) -> *mut c_void;
    pub fn AllocSetContextCreateInternal(
        parent: MemoryContext,
        name: *const c_char,
        min_context_size: usize,
        init_block_size: usize,
        max_block_size: usize,
    ) -> MemoryContext;
    pub fn MemoryContextReset(context: MemoryContext);
}

/// Returns whether the executor runs a command, rather than a utility.
pub fn is_plannable(command: CmdType::Type) -> bool {
    command == CmdType::CMD_SELECT
        || command == CmdType::CMD_INSERT
        || command == CmdType::CMD_UPDATE
        || command == CmdType::CMD_DELETE
        || command == CmdType::CMD_MERGE
}

// PG_TRY for the transaction loop.

/// Whether an error is written to the server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Errors,
    /// For attempts that are expected to fail.
    Nothing,
}

/// Runs `body`. Logs and returns an ERROR, and rolls its transaction back.
///
/// # Safety
/// As for [`trap_with`].
#[inline]
pub unsafe fn trap<F: FnOnce()>(body: F) -> Result<(), SqlError> {
    // SAFETY: by the caller.
    unsafe { trap_with(Log::Errors, body) }
}

/// Like [`trap`], but logs an ERROR only if `log` says so.
///
/// # Safety
/// Between `body`'s start and any call that can raise an ERROR there must be no live value with a
/// destructor in `body` or below it, no panic, and no call that sets a trap of its own around
/// Rust frames: the server's longjmp deallocates those frames without running anything.
#[inline]
pub unsafe fn trap_with<F: FnOnce()>(log: Log, body: F) -> Result<(), SqlError> {
    // SAFETY: the two globals are the server's own, and a backend has one thread. While `body`
    // runs, PG_exception_stack points into a frame that is alive; both are restored before that
    // frame ends, by return or by jump, as PG_END_TRY does (utils/elog.h).
    unsafe {
        let exception_stack = pg_sys::PG_exception_stack;
        let context_stack = pg_sys::error_context_stack;
        let jumped = call_with_sigsetjmp(false, |buffer: &SigJmpBufFields| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            body();
            0
        });
        pg_sys::PG_exception_stack = exception_stack;
        pg_sys::error_context_stack = context_stack;
        if jumped == 0 { Ok(()) } else { Err(recover(log)) }
    }
}

thread_local! {
    static STAYS_IN_TRANSACTION: Cell<bool> = const { Cell::new(false) };
}

/// Sets whether an error in a subtransaction aborts only that one, which the caller then rolls back, or all transactions, which
/// is the default.
pub fn stay_in_transaction(stays: bool) {
    STAYS_IN_TRANSACTION.set(stays);
}

/// Aborts the subtransaction or all transactions, as set by [`stay_in_transaction`].
///
/// # Safety
/// Inside a [`trap`].
pub unsafe fn abort() {
    // SAFETY: by the caller.
    unsafe {
        if STAYS_IN_TRANSACTION.get() && IsSubTransaction() {
            AbortCurrentTransaction();
        } else {
            AbortOutOfAnyTransaction();
        }
    }
}

/// Runs `body` in a subtransaction and rolls it back. The message of an ERROR is passed to `on_error`; a cancel goes on to the
/// surrounding trap, as it is meant for the whole statement. Rolling back after success too handles errors that `body` does not
/// see: when Citus shows that it got no plan from another node, the transaction there has failed and continues only from a
/// savepoint.
///
/// # Safety
/// Inside a [`trap`] and a transaction, outside of parallel mode; `body` as for [`trap_with`]; `on_error` must not raise an
/// ERROR.
#[cold]
pub unsafe fn in_subtransaction(body: impl FnOnce(), on_error: impl FnOnce(&std::ffi::CStr)) {
    // SAFETY: as in PL/pgSQL's blocks with exception handlers (exec_stmt_block in pl_exec.c). The two globals are restored before
    // this frame ends, as in `trap_with`; ReThrowError jumps over frames that have nothing to drop.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        BeginInternalSubTransaction(std::ptr::null());
        pg_sys::CurrentMemoryContext = context;
        let exception_stack = pg_sys::PG_exception_stack;
        let context_stack = pg_sys::error_context_stack;
        let jumped = call_with_sigsetjmp(false, |buffer: &SigJmpBufFields| {
            pg_sys::PG_exception_stack = std::ptr::from_ref(buffer).cast_mut().cast();
            body();
            0
        });
        pg_sys::PG_exception_stack = exception_stack;
        pg_sys::error_context_stack = context_stack;
        pg_sys::CurrentMemoryContext = context;
        let mut error = std::ptr::null_mut();
        if jumped != 0 {
            error = CopyErrorData();
            FlushErrorState();
            if (*error).sqlerrcode == pgrx::PgSqlErrorCode::ERRCODE_QUERY_CANCELED as i32 {
                ReThrowError(error);
            }
        }
        RollbackAndReleaseCurrentSubTransaction();
        pg_sys::CurrentMemoryContext = context;
        if !error.is_null() {
            if !(*error).message.is_null() {
                on_error(std::ffi::CStr::from_ptr((*error).message));
            }
            FreeErrorData(error);
        }
        pg_sys::CurrentResourceOwner = owner;
    }
}

/// Recovers like PostgresMain after its longjmp: reports the error, rolls back and clears the error state.
///
/// An error during recovery has no trap and ends the process: StartBackgroundWorker catches it, releases the backend's
/// resources and exits with 1.
///
/// # Safety
/// After an error's longjmp, with the globals as they were before its sigsetjmp, and the error still on the server's stack.
#[cold]
unsafe fn recover(log: Log) -> SqlError {
    // SAFETY: PostgresMain's order. The error's data is copied to a context that survives the abort, and Rust strings are made
    // only when nothing can fail any more. Unlike AbortCurrentTransaction, AbortOutOfAnyTransaction also leaves a transaction
    // block, so the next command does not run in an aborted one.
    unsafe {
        pg_sys::InterruptHoldoffCount += 1;
        disable_all_timeouts(false);
        pg_sys::QueryCancelPending = 0;
        if log == Log::Errors {
            EmitErrorReport();
        }
        // FreeErrorData does not free everything that CopyErrorData allocates, hence a separate context.
        let context = pg_sys::AllocSetContextCreateInternal(
            pg_sys::TopMemoryContext,
            c"pgbench_ext error".as_ptr(),
            pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
            pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
        );
        pg_sys::CurrentMemoryContext = context;
        let data = CopyErrorData();
        pg_sys::debug_query_string = std::ptr::null();
        abort();
        PortalErrorCleanup();
        jit_reset_after_error();
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
        FlushErrorState();
        let text = |text: *const std::ffi::c_char| {
            (!text.is_null()).then(|| std::ffi::CStr::from_ptr(text).to_string_lossy().into_owned())
        };
        let error = SqlError {
            sqlstate: (*data).sqlerrcode,
            message: text((*data).message).unwrap_or_default(),
            detail: text((*data).detail),
            hint: text((*data).hint),
            position: (*data).cursorpos.max(0).unsigned_abs(),
            context: text((*data).context),
            is_of_client: false,
        };
        pg_sys::MemoryContextDelete(context);
        pg_sys::InterruptHoldoffCount -= 1;
        error
    }
}
