//! Waiting without holding back the xmin horizon.
//!
//! A session that waits inside `SELECT f()` keeps its snapshot, and with it every row version that has died since: an update
//! workload bloats and slows down because of the session that measures it. Therefore the waiting session withdraws its xmin,
//! if nothing in it can read with the older snapshot afterwards.

use pgrx::pg_sys;

/// The permission to release the xmin horizon during a wait: nothing reads with an older snapshot afterwards.
#[derive(Clone, Copy)]
pub struct Releasable(());

/// The reason for the transaction's isolation level, which may be the session's default.
pub const ISOLATION: &str = "the transaction is REPEATABLE READ or SERIALIZABLE";

/// Checks whether the horizon can be released, and otherwise returns the reason.
///
/// The call must be in a top-level SELECT that reads nothing else, at READ COMMITTED, without other registered snapshots and without
/// an assigned transaction id.
pub fn can_release() -> Result<Releasable, &'static str> {
    // SAFETY: reads of this backend's own state. ActivePortal, if any, is the portal that is
    // executing this very call; its statements and range table live as long as it.
    unsafe {
        if pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 {
            return Err(ISOLATION);
        }
        if pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId {
            return Err("the transaction has written data");
        }
        if !at_top_level() {
            return Err("the call is inside a function or procedure");
        }
        let portal = pg_sys::ActivePortal;
        if !portal.is_null() && explains((*portal).stmts) {
            return Err("EXPLAIN ANALYZE keeps a snapshot of its own");
        }
        // One registered snapshot is the statement's own; the catalogs' is taken again on demand.
        pg_sys::InvalidateCatalogSnapshot();
        if !pg_sys::ThereAreNoPriorRegisteredSnapshots() {
            return Err(
                "the session holds an older snapshot: an open cursor's, an exported one or a large object's",
            );
        }
        if portal.is_null() || !computes_values_only((*portal).stmts) {
            return Err("the statement is not a plain SELECT of this call alone");
        }
    }
    Ok(Releasable(()))
}

/// Whether the executor was entered by the session's own statement. SPI, SQL functions and every procedural language push an error
/// context; a top-level statement has none, or only the one for its parameters (exec_execute_message in tcop/postgres.c).
///
/// # Safety
/// Inside a statement.
unsafe fn at_top_level() -> bool {
    unsafe extern "C-unwind" {
        fn ParamsErrorCallback(argument: *mut std::ffi::c_void);
    }
    let of_parameters = ParamsErrorCallback as *const () as usize;
    // SAFETY: the stack is a linked list of frames that are alive while they are linked.
    unsafe {
        let mut context = pg_sys::error_context_stack;
        while !context.is_null() {
            if (*context).callback.map(|callback| callback as usize) != Some(of_parameters) {
                return false;
            }
            context = (*context).previous;
        }
    }
    true
}

/// Whether a portal's statement is EXPLAIN.
///
/// # Safety
/// The list of statements of a live portal.
unsafe fn explains(statements: *mut pg_sys::List) -> bool {
    let mut found = false;
    // SAFETY: by the caller; a portal's statements are PlannedStmts, and node tags say what a utility statement is.
    unsafe {
        each(statements, |node| {
            let utility = (*node.cast::<pg_sys::PlannedStmt>()).utilityStmt;
            found |= !utility.is_null() && (*utility).type_ == pg_sys::NodeTag::T_ExplainStmt;
        });
    }
    found
}

/// Whether a portal's statement computes only values, without tables, subqueries, and functions that could read with the statement's
/// initial snapshot: only this extension's functions, which take new snapshots, and immutable ones are allowed.
///
/// # Safety
/// The list of statements of a live portal.
unsafe fn computes_values_only(statements: *mut pg_sys::List) -> bool {
    // SAFETY: by the caller; node tags say what each element is.
    unsafe {
        if statements.is_null() || (*statements).length != 1 {
            return false;
        }
        let mut planned = std::ptr::null_mut::<pg_sys::PlannedStmt>();
        each(statements, |node| planned = node.cast());
        if (*planned).commandType != pg_sys::CmdType::CMD_SELECT
            || (*planned).hasModifyingCTE
            || !(*planned).subplans.is_null()
        {
            return false;
        }
        let plan = (*planned).planTree;
        let source_is_harmless = match (*plan).type_ {
            pg_sys::NodeTag::T_Result => is_single_row(plan),
            // SELECT bench.ab(…), whose rows come from one call
            pg_sys::NodeTag::T_ProjectSet => is_single_row((*plan).lefttree),
            // SELECT … FROM bench.run(…), all of whose rows are there before a WHERE looks at the first of them
            pg_sys::NodeTag::T_FunctionScan => {
                (*plan).lefttree.is_null()
                    && is_harmless((*plan.cast::<pg_sys::FunctionScan>()).functions.cast())
                    && is_harmless((*plan).qual.cast())
            }
            _ => false,
        };
        let mut computes = true;
        each((*planned).rtable, |entry| {
            let kind = (*entry.cast::<pg_sys::RangeTblEntry>()).rtekind;
            computes &= kind == pg_sys::RTEKind::RTE_RESULT || kind == pg_sys::RTEKind::RTE_FUNCTION;
        });
        source_is_harmless && computes && is_harmless((*plan).targetlist.cast())
    }
}

/// Whether a node returns one row of values without reading.
///
/// # Safety
/// A live plan node, or NULL.
unsafe fn is_single_row(plan: *mut pg_sys::Plan) -> bool {
    // SAFETY: by the caller; the node tag says what it is.
    unsafe {
        !plan.is_null()
            && (*plan).type_ == pg_sys::NodeTag::T_Result
            && (*plan).lefttree.is_null()
            && (*plan).qual.is_null()
            && (*plan.cast::<pg_sys::Result>()).resconstantqual.is_null()
            && is_harmless((*plan).targetlist.cast())
    }
}

/// # Safety
/// A live expression or a list of them, or NULL.
unsafe fn is_harmless(expression: *mut pg_sys::Node) -> bool {
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn reads(node: *mut pg_sys::Node, _context: *mut std::ffi::c_void) -> bool {
        // SAFETY: called by the walker with live nodes.
        unsafe {
            if node.is_null() {
                return false;
            }
            let known = matches!(
                (*node).type_,
                pg_sys::NodeTag::T_List
                    | pg_sys::NodeTag::T_TargetEntry
                    | pg_sys::NodeTag::T_RangeTblFunction
                    | pg_sys::NodeTag::T_Var
                    | pg_sys::NodeTag::T_Const
                    | pg_sys::NodeTag::T_Param
                    // current_user and the like.
                    | pg_sys::NodeTag::T_SQLValueFunction
                    | pg_sys::NodeTag::T_RelabelType
                    | pg_sys::NodeTag::T_CoerceViaIO
                    | pg_sys::NodeTag::T_FuncExpr
                    | pg_sys::NodeTag::T_OpExpr
                    | pg_sys::NodeTag::T_ScalarArrayOpExpr
                    | pg_sys::NodeTag::T_CoalesceExpr
                    | pg_sys::NodeTag::T_ArrayExpr
                    | pg_sys::NodeTag::T_NullTest
                    | pg_sys::NodeTag::T_BoolExpr
            );
            !known
                || pg_sys::check_functions_in_node(node, Some(may_read), std::ptr::null_mut())
                || pg_sys::expression_tree_walker(node, Some(reads), std::ptr::null_mut())
        }
    }
    #[pgrx::pg_guard]
    unsafe extern "C-unwind" fn may_read(function: pg_sys::Oid, _context: *mut std::ffi::c_void) -> bool {
        // SAFETY: catalog look-ups inside a transaction.
        unsafe {
            let extension = pg_sys::get_extension_oid(c"pgbench_ext".as_ptr(), true);
            let is_ours = extension != pg_sys::InvalidOid
                && pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function) == extension;
            let is_builtin = function.to_u32() < pg_sys::FirstNormalObjectId;
            let is_pure = std::ffi::c_char::from_ne_bytes([pg_sys::PROVOLATILE_IMMUTABLE]);
            !(is_ours || is_builtin && pg_sys::func_volatile(function) == is_pure)
        }
    }
    // SAFETY: by the caller.
    unsafe { !reads(expression, std::ptr::null_mut()) }
}

/// # Safety
/// A live list of pointers, or NULL.
unsafe fn each(list: *mut pg_sys::List, mut visit: impl FnMut(*mut std::ffi::c_void)) {
    // SAFETY: by the caller.
    unsafe {
        if !list.is_null() {
            for index in 0..(*list).length as usize {
                visit((*(*list).elements.add(index)).ptr_value);
            }
        }
    }
}

/// Drops the snapshot for catalogs, which otherwise holds back the horizon until the statement ends.
pub fn forget_catalog_snapshot() {
    // SAFETY: inside a transaction; the next read takes another one.
    unsafe { pg_sys::InvalidateCatalogSnapshot() };
}

impl Releasable {
    /// Withdraws this backend's xmin until the next snapshot is taken. Call it again before each wait: catalog lookups set it again.
    pub fn release(self) {
        forget_catalog_snapshot();
        // SAFETY: nothing reads with an older snapshot afterwards, as `can_release` has found. A backend may write its own
        // PGPROC's xmin without a lock, as SnapshotResetXmin does (utils/time/snapmgr.c).
        unsafe {
            (&raw mut (*pg_sys::MyProc).xmin).write_volatile(pg_sys::InvalidTransactionId);
        }
    }

    /// Takes a fresh snapshot after the wait, so that the rest of the statement is protected again.
    pub fn resume(self) {
        // SAFETY: inside a transaction; GetSnapshotData sets the xmin that `release` withdrew.
        unsafe {
            pg_sys::GetTransactionSnapshot();
        }
    }
}
