//! Receivers of the rows that a statement returns.
//!
//! 'serialize' uses the server's printtup, which detoasts values, calls output functions and builds protocol messages, but
//! drops the messages instead of sending them: the server does all the work of a client's query up to the network. 'discard'
//! uses the receiver that ignores rows.
//!
//! `\gset` and `\aset` read their values from the dropped messages.

use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int};

use bench_model::spec::Results;
use bench_script::CapturedRows;
use pgrx::pg_sys;

use super::{raw, watch};
#[cfg(any(not(since_18), since_19))]
use crate::server::query::list_length;
use crate::shm::{CommandCounters, unclear};

unsafe extern "C-unwind" fn nothing() {}
unsafe extern "C-unwind" fn nothing_to_flush() -> c_int {
    0
}
unsafe extern "C-unwind" fn nothing_pending() -> bool {
    false
}
unsafe extern "C-unwind" fn drop_message(kind: c_char, body: *const c_char, length: usize) -> c_int {
    if CAPTURING.get() || watch::is_on() {
        // SAFETY: the server passes a message's body and its length.
        let body = unsafe { std::slice::from_raw_parts(body.cast::<u8>(), length) };
        watch::take(kind as u8, body);
        if CAPTURING.get() {
            CAPTURED.with_borrow_mut(|captured| captured.take(kind as u8, body));
        }
    }
    0
}
unsafe extern "C-unwind" fn drop_message_noblock(_: c_char, _: *const c_char, _: usize) {}

static DROP_EVERYTHING: raw::PQcommMethods = raw::PQcommMethods {
    comm_reset: nothing,
    flush: nothing_to_flush,
    flush_if_writable: nothing_to_flush,
    is_send_pending: nothing_pending,
    putmessage: drop_message,
    putmessage_noblock: drop_message_noblock,
};

thread_local! {
    static CAPTURING: Cell<bool> = const { Cell::new(false) };
    static CAPTURED: RefCell<CapturedRows> = const { RefCell::new(CapturedRows::own()) };
}

/// Starts or stops keeping the rows that queries return.
pub(super) fn capture(on: bool) {
    CAPTURING.set(on);
    if on {
        CAPTURED.with_borrow_mut(CapturedRows::clear);
    }
}

/// Starts a new query among the captured rows.
pub(super) fn begin_query() {
    if CAPTURING.get() {
        CAPTURED.with_borrow_mut(CapturedRows::next_query);
    }
}

/// Passes the rows of the last command's queries to `read`.
pub(super) fn with_captured<T>(read: impl FnOnce(&CapturedRows) -> T) -> T {
    CAPTURED.with_borrow(read)
}

/// Creates receivers for one client's statements.
pub struct ReceiverFactory {
    results: Cell<Results>,
    /// printtup reads result formats from its portal; none are set, which means text.
    portal: pg_sys::Portal,
}

impl ReceiverFactory {
    /// Creates a factory and permanently drops the process's protocol output.
    pub fn new(results: Results) -> Self {
        // SAFETY: a background worker sends no other protocol messages (whereToSendOutput is DestNone), and the methods live
        // as long as the library. printtup reads only the formats of the portal, which a zeroed one has none of.
        unsafe {
            raw::PqCommMethods = &raw const DROP_EVERYTHING;
            let portal = pg_sys::MemoryContextAllocZero(
                pg_sys::TopMemoryContext,
                std::mem::size_of::<pg_sys::PortalData>(),
            );
            Self { results: Cell::new(results), portal: portal.cast() }
        }
    }

    /// Sets whether rows of later executions are serialised or discarded.
    pub fn set(&self, results: Results) {
        self.results.set(results);
    }

    /// Allocates a receiver for one execution in the current memory context.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub unsafe fn receiver(&self) -> *mut pg_sys::DestReceiver {
        // SAFETY: by the caller; the portal lives in TopMemoryContext.
        unsafe {
            match self.results.get() {
                // Includes the description of columns, which a client of a prepared statement asks for.
                _ if CAPTURING.get() || watch::is_on() => {
                    let receiver = raw::CreateDestReceiver(pg_sys::CommandDest::DestRemote);
                    raw::SetRemoteDestReceiverParams(receiver, self.portal);
                    receiver
                }
                Results::Discard => raw::CreateDestReceiver(pg_sys::CommandDest::DestNone),
                Results::Serialize => {
                    let receiver = raw::CreateDestReceiver(pg_sys::CommandDest::DestRemoteExecute);
                    raw::SetRemoteDestReceiverParams(receiver, self.portal);
                    receiver
                }
            }
        }
    }
}

// The rows and index scans that the server's statistics count for an execution.

/// Returns how many index scans the server's statistics count for an execution; `None` for plans that are not simple.
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
            // The number of probes of the arbiter index is not known.
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
                // In 18 the node counts searches, as a scan may skip; since 19 only when instrumented.
                #[cfg(all(since_18, not(since_19)))]
                return Some((*scan).iss_Instrument.nsearches);
                #[cfg(any(not(since_18), since_19))]
                scan_count(
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
                scan_count(
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

/// Returns whether an UPDATE may move rows to other partitions, which counts as a deletion and an insertion.
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

/// Returns whether an UPDATE changes a partition key; true for tables with subpartitions, whose columns may be numbered
/// differently.
///
/// # Safety
/// An UPDATE's plan and its uppermost node, in the transaction in which it was executed: its tables are locked.
#[cfg(since_19)]
unsafe fn changes_partition_key(planned: *mut pg_sys::PlannedStmt, node: &pg_sys::ModifyTable) -> bool {
    if node.rootRelation == 0 {
        return false;
    }
    // SAFETY: by the caller; positions in both lists count from 1.
    unsafe {
        let entry = |position: u32| -> &pg_sys::RangeTblEntry {
            &*(*(*(*planned).rtable).elements.add(position as usize - 1)).ptr_value.cast()
        };
        let root = entry(node.rootRelation);
        let is_subpartitioned = |position| {
            let entry = entry(position);
            entry.relkind == pg_sys::RELKIND_PARTITIONED_TABLE as std::ffi::c_char
                && entry.relid != root.relid
        };
        if (1..=list_length((*planned).rtable) as u32).any(is_subpartitioned) {
            return true;
        }
        let permissions: *mut pg_sys::RTEPermissionInfo =
            (*(*(*planned).permInfos).elements.add(root.perminfoindex as usize - 1)).ptr_value.cast();
        let table = pg_sys::RelationIdGetRelation(root.relid);
        let changes = table.is_null()
            || pg_sys::has_partition_attrs(table, (*permissions).updatedCols, std::ptr::null_mut());
        if !table.is_null() {
            pg_sys::RelationClose(table);
        }
        changes
    }
}

/// Returns 1 for a condition of operators only; `None` for arrays, which cause a scan per element, and for NULL, which the
/// server's versions and index types count differently.
///
/// # Safety
/// The condition and the keys of an index scan that has run.
#[cfg(any(not(since_18), since_19))]
unsafe fn scan_count(condition: *mut pg_sys::List, keys: pg_sys::ScanKey, count: i32) -> Option<u64> {
    // SAFETY: by the caller.
    unsafe {
        let keys = if count == 0 { &[] } else { std::slice::from_raw_parts(keys, count as usize) };
        let is_null = |key: &pg_sys::ScanKeyData| key.sk_flags & pg_sys::SK_ISNULL as i32 != 0;
        (has_only_operators(condition) && !keys.iter().any(is_null) && !may_skip(keys)).then_some(1)
    }
}

/// Returns whether a scan may search once per value of a column (skip scan; _bt_preprocess_array_keys in nbtpreprocesskeys.c):
/// a column before the last one with a key has no equality condition.
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
unsafe fn has_only_operators(list: *mut pg_sys::List) -> bool {
    // SAFETY: by the caller.
    unsafe {
        (0..list_length(list) as usize).all(|index| {
            let node: *mut pg_sys::Node = (*(*list).elements.add(index)).ptr_value.cast();
            (*node).type_ == pg_sys::NodeTag::T_OpExpr
        })
    }
}
