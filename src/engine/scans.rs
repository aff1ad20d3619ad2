//! What an execution stands for in the server's statistics: rows, and index scans.

use pgrx::pg_sys;

#[cfg(not(feature = "pg18"))]
use super::lists::list_length;
use crate::shm::{CommandCounters, unclear};

/// How many index scans an execution stands for in the server's statistics; `None` where the plan
/// is not simple enough to tell.
///
/// # Safety
/// The state of a plan that has run, or NULL.
pub(super) unsafe fn index_scans(state: *mut pg_sys::PlanState) -> Option<u64> {
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

/// Counts the rows that an execution has processed.
///
/// # Safety
/// A live plan.
#[inline]
pub(super) unsafe fn count_rows(counters: &CommandCounters, planned: *mut pg_sys::PlannedStmt, rows: u64) {
    use pg_sys::CmdType::{CMD_DELETE, CMD_INSERT, CMD_MERGE, CMD_UPDATE};
    counters.rows.add(rows);
    // SAFETY: by the caller.
    unsafe {
        if [CMD_INSERT, CMD_UPDATE, CMD_DELETE, CMD_MERGE].contains(&(*planned).commandType) {
            counters.writes.add(1);
            counters.empty_writes.add(u64::from(rows == 0));
            if may_move_rows(planned) {
                counters.add_unclear(unclear::MOVES);
            }
        }
    }
}

/// Whether an UPDATE may move a row to another partition, which counts as a row deleted and one inserted.
///
/// # Safety
/// A live plan.
#[inline]
unsafe fn may_move_rows(planned: *mut pg_sys::PlannedStmt) -> bool {
    // SAFETY: by the caller; an UPDATE's plan is a ModifyTable.
    unsafe {
        let plan = (*planned).planTree;
        (*planned).commandType == pg_sys::CmdType::CMD_UPDATE
            && !plan.is_null()
            && (*plan).type_ == pg_sys::NodeTag::T_ModifyTable
            && (*plan.cast::<pg_sys::ModifyTable>()).partColsUpdated
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
