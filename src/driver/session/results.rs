//! What becomes of the rows that a statement returns.
//!
//! 'serialize' uses the server's own printtup, which detoasts each value, calls its type's
//! output function and builds the protocol's message; only the last step, handing the bytes to a
//! socket, is replaced by dropping them. So it is exactly the work that a client's query costs
//! the server, up to the network. 'discard' uses the receiver that looks at nothing.
//!
//! What `\gset` and `\aset` keep is taken at the same place: the messages that would have gone to
//! the client are read here instead.

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

/// From now on what queries return is kept, or is not.
pub(super) fn capture(on: bool) {
    CAPTURING.set(on);
    if on {
        CAPTURED.with_borrow_mut(CapturedRows::clear);
    }
}

/// A query begins.
pub(super) fn begin_query() {
    if CAPTURING.get() {
        CAPTURED.with_borrow_mut(CapturedRows::next_query);
    }
}

/// What the queries of the last command returned.
pub(super) fn with_captured<T>(look: impl FnOnce(&CapturedRows) -> T) -> T {
    CAPTURED.with_borrow(look)
}

/// Makes receivers for one client's statements.
pub struct ReceiverFactory {
    results: Cell<Results>,
    /// printtup asks its portal for result formats: none are set, which means text.
    portal: pg_sys::Portal,
}

impl ReceiverFactory {
    /// For a process without a client of its own: its protocol output is replaced for good.
    pub fn new(results: Results) -> Self {
        // SAFETY: this is a background worker, so nothing else writes protocol messages here
        // (whereToSendOutput is DestNone), and the methods live as long as the library. A portal
        // of zeroes has no formats; printtup reads nothing else of it.
        unsafe {
            raw::PqCommMethods = &raw const DROP_EVERYTHING;
            let portal = pg_sys::MemoryContextAllocZero(
                pg_sys::TopMemoryContext,
                std::mem::size_of::<pg_sys::PortalData>(),
            );
            Self { results: Cell::new(results), portal: portal.cast() }
        }
    }

    /// What becomes of rows from here on.
    pub fn set(&self, results: Results) {
        self.results.set(results);
    }

    /// A receiver for one execution, allocated in the current memory context.
    ///
    /// # Safety
    /// Inside a trap.
    #[inline]
    pub unsafe fn receiver(&self) -> *mut pg_sys::DestReceiver {
        // SAFETY: by the caller; the portal lives in TopMemoryContext.
        unsafe {
            match self.results.get() {
                // With the description of the columns, which a prepared statement's client has asked for.
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

// What an execution stands for in the server's statistics: rows, and index scans.

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
