//! Watches a statement: records its rows, with sort keys that a client does not receive, and its indexes in an [`Answer`].

use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use bench_questions::answers::{Answer, Shape};
use pgrx::pg_sys;

use super::raw;
use crate::server::query::{list_first, list_length};

thread_local! {
    static IS_WATCHING: Cell<bool> = const { Cell::new(false) };
    static WATCHED: RefCell<Option<Answer>> = const { RefCell::new(None) };
}

/// Starts to record the answers of statements.
pub fn begin() {
    WATCHED.set(Some(Answer::new()));
    IS_WATCHING.set(true);
}

/// Stops recording and returns the answer recorded since [`begin`].
pub fn end() -> Answer {
    IS_WATCHING.set(false);
    WATCHED.take().unwrap_or_default()
}

#[inline]
pub(super) fn is_on() -> bool {
    IS_WATCHING.get()
}

/// Records a protocol message.
#[inline]
pub(super) fn take(kind: u8, body: &[u8]) {
    if is_on() {
        with_answer(|answer| answer.take(kind, body));
    }
}

/// Calls `work`, which must not raise an ERROR, with the answer being recorded.
fn with_answer(work: impl FnOnce(&mut Answer)) {
    WATCHED.with_borrow_mut(|watched| {
        if let Some(answer) = watched {
            work(answer);
        }
    });
}

/// Records the shape of a started query's answer, and lets hidden sort keys through to the receiver.
///
/// # Safety
/// Inside a trap, with a list of live queries and the execution of the only one, which has not run yet.
#[inline]
pub(super) unsafe fn expect(queries: *mut pg_sys::List, desc: *mut pg_sys::QueryDesc) {
    if is_on() {
        // SAFETY: by the caller.
        unsafe { expect_rows(queries, desc) }
    }
}

/// # Safety
/// As for [`expect`].
#[cold]
unsafe fn expect_rows(queries: *mut pg_sys::List, desc: *mut pg_sys::QueryDesc) {
    // SAFETY: by the caller; the top plan node has the query's targets, numbered as its clauses refer to them
    // (apply_tlist_labeling in optimizer/util/tlist.c).
    unsafe {
        if list_length(queries) != 1 || (*desc).operation != pg_sys::CmdType::CMD_SELECT {
            return;
        }
        let query: *mut pg_sys::Query = list_first(queries).cast();
        let targets = (*(*(*desc).plannedstmt).planTree).targetlist;
        let target =
            |index: usize| -> *mut pg_sys::TargetEntry { (*(*targets).elements.add(index)).ptr_value.cast() };
        let count = list_length(targets) as usize;
        let width = (0..count).filter(|&index| !(*target(index)).resjunk).count();
        let clauses = list_length((*query).sortClause) as usize;
        let mut keys = Vec::with_capacity(clauses);
        for clause in 0..clauses {
            let clause: *mut pg_sys::SortGroupClause =
                (*(*(*query).sortClause).elements.add(clause)).ptr_value.cast();
            let is_key = |&index: &usize| (*target(index)).ressortgroupref == (*clause).tleSortGroupRef;
            keys.extend((0..count).find(is_key));
        }
        let has_order = clauses > 0 && keys.len() == clauses;
        let with_ties = (*query).limitOption == pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES;
        let has_limit = !(*query).limitCount.is_null() && !with_ties;
        let has_offset = !(*query).limitOffset.is_null();
        let estate = (*desc).estate;
        if keys.iter().any(|&index| index >= width) && !(*estate).es_junkFilter.is_null() {
            // The junk filter would remove the sort keys. Its slot belongs to the execution, which drops it.
            (*estate).es_junkFilter = std::ptr::null_mut();
            (*desc).tupDesc = (*(*desc).planstate).ps_ResultTupleDesc;
        }
        let shape = Shape {
            keys: has_order.then_some(keys),
            is_cut: [has_offset, has_limit],
            takes_one_of_several: (*query).hasDistinctOn,
            width: Some(width),
        };
        with_answer(|answer| answer.expect(shape));
    }
}

/// Records the indexes and the limit of an execution.
///
/// # Safety
/// The state of a plan that has run and has not been ended.
#[inline]
pub(super) unsafe fn record_end(state: *mut pg_sys::PlanState) {
    if is_on() {
        // SAFETY: by the caller; the plan's tag says what the state's node is.
        unsafe {
            if (*(*state).plan).type_ == pg_sys::NodeTag::T_Limit {
                let limit = &*state.cast::<pg_sys::LimitState>();
                let count = if limit.noCount { None } else { u64::try_from(limit.count).ok() };
                with_answer(|answer| answer.limited_to(count));
            }
            record_indexes(state, std::ptr::null_mut());
        }
    }
}

/// # Safety
/// As for [`record_end`]; the walker calls back with states of the same plan.
unsafe extern "C-unwind" fn record_indexes(state: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
    if state.is_null() {
        return false;
    }
    // SAFETY: by the caller; the plan's tag says what it is.
    unsafe {
        let plan = (*state).plan;
        let index = match (*plan).type_ {
            pg_sys::NodeTag::T_IndexScan => Some((*plan.cast::<pg_sys::IndexScan>()).indexid),
            pg_sys::NodeTag::T_IndexOnlyScan => Some((*plan.cast::<pg_sys::IndexOnlyScan>()).indexid),
            pg_sys::NodeTag::T_BitmapIndexScan => Some((*plan.cast::<pg_sys::BitmapIndexScan>()).indexid),
            _ => None,
        };
        with_answer(|answer| answer.indexes.extend(index.map(pg_sys::Oid::to_u32)));
        raw::walk_plan_states(state, record_indexes, context)
    }
}
