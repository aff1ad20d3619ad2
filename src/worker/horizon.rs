//! Waiting without holding back the xmin horizon.
//!
//! A session that waits inside `SELECT f()` keeps its snapshot, and with it every row version
//! that died since: an update workload bloats and slows because of the one that measures it. So
//! while waiting, the caller withdraws its xmin, where nothing of the same session can read with
//! an older snapshot afterwards.

use pgrx::pg_sys;

/// Why the horizon cannot be released; `Ok` when it can.
///
/// Released only where the call stands in a top-level SELECT that reads no relation, in READ
/// COMMITTED, with no other snapshot registered and no transaction id assigned.
pub fn can_release() -> Result<(), &'static str> {
    // SAFETY: reads of this backend's own state. ActivePortal, if any, is the portal that is
    // executing this very call; its statements and range table live as long as it.
    unsafe {
        if pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 {
            return Err("the transaction is REPEATABLE READ or SERIALIZABLE");
        }
        if pg_sys::GetTopTransactionIdIfAny() != pg_sys::InvalidTransactionId {
            return Err("the transaction has written");
        }
        if !at_top_level() {
            return Err("the call stands inside a function or procedure");
        }
        // One registered snapshot is the statement's own; the catalogs' is taken again on demand.
        pg_sys::InvalidateCatalogSnapshot();
        if !pg_sys::ThereAreNoPriorRegisteredSnapshots() {
            return Err(
                "the session holds an older snapshot: an open cursor's, an exported one or a large object's",
            );
        }
        let portal = pg_sys::ActivePortal;
        if portal.is_null() || !selects_from_no_relation((*portal).stmts) {
            return Err("the statement is not a plain SELECT without tables");
        }
    }
    Ok(())
}

/// Whether the executor was entered by the session's own statement. SPI, SQL functions and every
/// procedural language push an error context; a top-level statement has none, or the one that
/// would show its parameters (exec_execute_message in tcop/postgres.c).
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

/// # Safety
/// The list of statements of a live portal.
unsafe fn selects_from_no_relation(statements: *mut pg_sys::List) -> bool {
    // SAFETY: by the caller; node tags say what each element is.
    unsafe {
        let mut planned = std::ptr::null_mut::<pg_sys::PlannedStmt>();
        each(statements, |node| planned = node.cast());
        if statements.is_null()
            || (*statements).length != 1
            || (*planned).commandType != pg_sys::CmdType::CMD_SELECT
            || (*planned).hasModifyingCTE
        {
            return false;
        }
        let mut reads = false;
        each((*planned).rtable, |entry| {
            let kind = (*entry.cast::<pg_sys::RangeTblEntry>()).rtekind;
            reads |= kind == pg_sys::RTEKind::RTE_RELATION;
        });
        !reads
    }
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

/// Withdraws this backend's xmin until the next snapshot is taken. Call it again before each
/// wait: a look into the catalogs sets it again.
///
/// # Safety
/// Only where [`can_release`] has said so: nothing may read with an older snapshot afterwards.
pub unsafe fn release() {
    // SAFETY: by the caller. A backend may write its own PGPROC's xmin without a lock, as
    // SnapshotResetXmin does (utils/time/snapmgr.c).
    unsafe {
        pg_sys::InvalidateCatalogSnapshot();
        (&raw mut (*pg_sys::MyProc).xmin).write_volatile(pg_sys::InvalidTransactionId);
    }
}

/// Takes a fresh snapshot after the wait, so that the rest of the statement is protected again.
pub fn resume() {
    // SAFETY: inside a transaction; GetSnapshotData sets the xmin that `release` withdrew.
    unsafe {
        pg_sys::GetTransactionSnapshot();
    }
}
