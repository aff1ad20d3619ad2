//! A statement that is watched: its rows go to an [`Answer`], with the sort keys that a client does not get, and the indexes
//! that its plan uses.

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

/// From now on takes what statements return.
pub fn begin() {
    WATCHED.set(Some(Answer::new()));
    IS_WATCHING.set(true);
}

/// What has been taken since [`begin`].
pub fn end() -> Answer {
    IS_WATCHING.set(false);
    WATCHED.take().unwrap_or_default()
}

#[inline]
pub(super) fn is_on() -> bool {
    IS_WATCHING.get()
}

/// Takes a message of the protocol's.
#[inline]
pub(super) fn take(kind: u8, body: &[u8]) {
    if is_on() {
        with(|answer| answer.take(kind, body));
    }
}

/// Nothing in `work` raises an ERROR.
fn with(work: impl FnOnce(&mut Answer)) {
    WATCHED.with_borrow_mut(|watched| {
        if let Some(answer) = watched {
            work(answer);
        }
    });
}

/// Looks at the ORDER BY of a query whose execution has been started, and lets its sort keys through to the receiver.
///
/// # Safety
/// Inside a trap; a list of live queries, and the execution of the only one of them, which has not run yet.
#[inline]
pub(super) unsafe fn expect(queries: *mut pg_sys::List, desc: *mut pg_sys::QueryDesc) {
    if is_on() {
        // SAFETY: by the caller.
        unsafe { expect_rows(queries, desc) }
    }
}

/// # Safety
/// As of [`expect`].
#[cold]
unsafe fn expect_rows(queries: *mut pg_sys::List, desc: *mut pg_sys::QueryDesc) {
    // SAFETY: by the caller; the upper plan node's targets are the query's, with the numbers that its clauses refer to
    // (apply_tlist_labeling in optimizer/util/tlist.c).
    unsafe {
        if list_length(queries) != 1 || (*desc).operation != pg_sys::CmdType::CMD_SELECT {
            return;
        }
        let query: *mut pg_sys::Query = list_first(queries).cast();
        let targets = (*(*(*desc).plannedstmt).planTree).targetlist;
        let target =
            |place: usize| -> *mut pg_sys::TargetEntry { (*(*targets).elements.add(place)).ptr_value.cast() };
        let count = list_length(targets) as usize;
        let width = (0..count).filter(|&place| !(*target(place)).resjunk).count();
        let clauses = list_length((*query).sortClause) as usize;
        let mut keys = Vec::with_capacity(clauses);
        for clause in 0..clauses {
            let clause: *mut pg_sys::SortGroupClause =
                (*(*(*query).sortClause).elements.add(clause)).ptr_value.cast();
            let is_key = |&place: &usize| (*target(place)).ressortgroupref == (*clause).tleSortGroupRef;
            keys.extend((0..count).find(is_key));
        }
        let has_order = clauses > 0 && keys.len() == clauses;
        let with_ties = (*query).limitOption == pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES;
        let has_limit = !(*query).limitCount.is_null() && !with_ties;
        let has_offset = !(*query).limitOffset.is_null();
        let estate = (*desc).estate;
        if keys.iter().any(|&place| place >= width) && !(*estate).es_junkFilter.is_null() {
            // The filter leaves out what a client does not get. Its slot belongs to the execution, which drops it.
            (*estate).es_junkFilter = std::ptr::null_mut();
            (*desc).tupDesc = (*(*desc).planstate).ps_ResultTupleDesc;
        }
        let shape = Shape {
            keys: has_order.then_some(keys),
            is_cut: [has_offset, has_limit],
            takes_one_of_several: (*query).hasDistinctOn,
            width: Some(width),
        };
        with(|answer| answer.expect(shape));
    }
}

/// Notes the indexes that an execution has used, and its limit.
///
/// # Safety
/// The state of a plan that has run and has not been ended.
#[inline]
pub(super) unsafe fn note_end(state: *mut pg_sys::PlanState) {
    if is_on() {
        // SAFETY: by the caller; the plan's tag says what the state's node is.
        unsafe {
            if (*(*state).plan).type_ == pg_sys::NodeTag::T_Limit {
                let limit = &*state.cast::<pg_sys::LimitState>();
                let count = if limit.noCount { None } else { u64::try_from(limit.count).ok() };
                with(|answer| answer.limited_to(count));
            }
            note_index(state, std::ptr::null_mut());
        }
    }
}

/// # Safety
/// As of [`note_end`]; the walker calls back with states of the same plan.
unsafe extern "C-unwind" fn note_index(state: *mut pg_sys::PlanState, context: *mut c_void) -> bool {
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
        with(|answer| answer.indexes.extend(index.map(pg_sys::Oid::to_u32)));
        raw::walk_plan_states(state, note_index, context)
    }
}
