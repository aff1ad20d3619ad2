//! Indexes that this process's planner does not see. They are there all the same: maintained, and their constraints enforced;
//! no lock is taken, and no other session notices.

use std::cell::{Cell, RefCell};

use pgrx::{pg_guard, pg_sys};

thread_local! {
    static HIDDEN: RefCell<Vec<pg_sys::Oid>> = const { RefCell::new(Vec::new()) };
    static INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<Hook> = const { Cell::new(None) };
}

/// The planner's hook for what it has found out of a relation; 19 has another one in its place.
#[cfg(not(since_19))]
type Hook = pg_sys::get_relation_info_hook_type;
#[cfg(since_19)]
type Hook = pg_sys::build_simple_rel_hook_type;

/// From here on, the planner sees all indexes but these. Plans that are there already stay as they are.
pub fn hide(indexes: &[pg_sys::Oid]) {
    HIDDEN.with_borrow_mut(|hidden| {
        hidden.clear();
        hidden.extend_from_slice(indexes);
    });
    if indexes.is_empty() || INSTALLED.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    #[cfg(not(since_19))]
    unsafe {
        PREVIOUS.set(pg_sys::get_relation_info_hook);
        pg_sys::get_relation_info_hook = Some(leave_out);
    }
    // SAFETY: as above.
    #[cfg(since_19)]
    unsafe {
        PREVIOUS.set(pg_sys::build_simple_rel_hook);
        pg_sys::build_simple_rel_hook = Some(leave_out);
    }
}

/// Called by the planner for each relation, when it has collected what it knows of it.
#[cfg(not(since_19))]
#[pg_guard]
unsafe extern "C-unwind" fn leave_out(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    found: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: by the planner, with live nodes.
    unsafe {
        if let Some(previous) = PREVIOUS.get() {
            previous(root, relation, is_parent, found);
        }
        filter(found);
    }
}

/// As before 19.
#[cfg(since_19)]
#[pg_guard]
unsafe extern "C-unwind" fn leave_out(
    root: *mut pg_sys::PlannerInfo,
    found: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: by the planner, with live nodes.
    unsafe {
        if let Some(previous) = PREVIOUS.get() {
            previous(root, found, entry);
        }
        filter(found);
    }
}

/// Takes hidden indexes off the list of a relation's.
///
/// # Safety
/// A live node whose list of indexes is the planner's own, made of nodes IndexOptInfo in its memory.
unsafe fn filter(found: *mut pg_sys::RelOptInfo) {
    // SAFETY: by the caller. Elements are moved within the list, and it only becomes shorter; an empty list is NULL.
    unsafe {
        let list = (*found).indexlist;
        if list.is_null() {
            return;
        }
        let kept = HIDDEN.with_borrow(|hidden| {
            let mut kept = 0;
            for place in 0..(*list).length {
                let cell = *(*list).elements.add(place as usize);
                let index: *const pg_sys::IndexOptInfo = cell.ptr_value.cast();
                if !hidden.contains(&(*index).indexoid) {
                    *(*list).elements.add(kept as usize) = cell;
                    kept += 1;
                }
            }
            kept
        });
        (*list).length = kept;
        if kept == 0 {
            (*found).indexlist = std::ptr::null_mut();
        }
    }
}
