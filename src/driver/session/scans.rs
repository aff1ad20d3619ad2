//! What an execution stands for in the server's statistics: rows, and index scans.

use pgrx::pg_sys;

#[cfg(any(not(since_18), since_19))]
use crate::server::query::list_length;
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
                // In 18 the node counts, for a scan may skip; from 19 on where it is instrumented only.
                #[cfg(all(since_18, not(since_19)))]
                return Some((*scan).iss_Instrument.nsearches);
                #[cfg(any(not(since_18), since_19))]
                scans_of_keys(
                    (*plan.cast::<pg_sys::IndexScan>()).indexqual,
                    (*scan).iss_ScanKeys,
                    (*scan).iss_NumScanKeys,
                )
            }
            pg_sys::NodeTag::T_IndexOnlyScan => {
                let scan = state.cast::<pg_sys::IndexOnlyScanState>();
                #[cfg(all(since_18, not(since_19)))]
                return Some((*scan).ioss_Instrument.nsearches);
                #[cfg(any(not(since_18), since_19))]
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
            && changes_partition_key(planned, &*plan.cast())
    }
}

/// # Safety
/// An UPDATE's plan and its uppermost node.
#[cfg(not(since_19))]
unsafe fn changes_partition_key(_: *mut pg_sys::PlannedStmt, node: &pg_sys::ModifyTable) -> bool {
    node.partColsUpdated
}

/// A table whose partitions are partitioned themselves is said to: they number their columns in ways of their own.
///
/// # Safety
/// An UPDATE's plan and its uppermost node, in the transaction in which it was executed: its tables are locked.
#[cfg(since_19)]
unsafe fn changes_partition_key(planned: *mut pg_sys::PlannedStmt, node: &pg_sys::ModifyTable) -> bool {
    if node.rootRelation == 0 {
        return false;
    }
    // SAFETY: by the caller; places in both lists are counted from 1.
    unsafe {
        let entry = |place: u32| -> &pg_sys::RangeTblEntry {
            &*(*(*(*planned).rtable).elements.add(place as usize - 1)).ptr_value.cast()
        };
        let root = entry(node.rootRelation);
        let is_other_table = |place| {
            let entry = entry(place);
            entry.relkind == pg_sys::RELKIND_PARTITIONED_TABLE as std::ffi::c_char
                && entry.relid != root.relid
        };
        if (1..=list_length((*planned).rtable) as u32).any(is_other_table) {
            return true;
        }
        let rights: *mut pg_sys::RTEPermissionInfo =
            (*(*(*planned).permInfos).elements.add(root.perminfoindex as usize - 1)).ptr_value.cast();
        let table = pg_sys::RelationIdGetRelation(root.relid);
        let changes = table.is_null()
            || pg_sys::has_partition_attrs(table, (*rights).updatedCols, std::ptr::null_mut());
        if !table.is_null() {
            pg_sys::RelationClose(table);
        }
        changes
    }
}

/// One for a condition of operators. An array in it is a scan for each element; whether NULL is
/// one depends on the server's version and the index's kind.
///
/// # Safety
/// The condition and the keys of an index scan that has run.
#[cfg(any(not(since_18), since_19))]
unsafe fn scans_of_keys(condition: *mut pg_sys::List, keys: pg_sys::ScanKey, count: i32) -> Option<u64> {
    // SAFETY: by the caller.
    unsafe {
        let keys = if count == 0 { &[] } else { std::slice::from_raw_parts(keys, count as usize) };
        let null = |key: &pg_sys::ScanKeyData| key.sk_flags & pg_sys::SK_ISNULL as i32 != 0;
        (only_operators(condition) && !keys.iter().any(null) && !may_skip(keys)).then_some(1)
    }
}

/// Whether a scan may skip from value to value of a column, with a search for each (_bt_preprocess_array_keys of
/// nbtpreprocesskeys.c): there is no equality for a column before the last one that has a key.
#[cfg(any(not(since_18), since_19))]
fn may_skip(keys: &[pg_sys::ScanKeyData]) -> bool {
    let last = keys.iter().map(|key| key.sk_attno).max().unwrap_or(0);
    let is_equality = |key: &pg_sys::ScanKeyData| u32::from(key.sk_strategy) == pg_sys::BTEqualStrategyNumber;
    cfg!(since_19)
        && (1..last).any(|column| !keys.iter().any(|key| key.sk_attno == column && is_equality(key)))
}

/// # Safety
/// A live list of nodes, or NULL.
#[cfg(any(not(since_18), since_19))]
unsafe fn only_operators(list: *mut pg_sys::List) -> bool {
    // SAFETY: by the caller.
    unsafe {
        (0..list_length(list) as usize).all(|index| {
            let node: *mut pg_sys::Node = (*(*list).elements.add(index)).ptr_value.cast();
            (*node).type_ == pg_sys::NodeTag::T_OpExpr
        })
    }
}
