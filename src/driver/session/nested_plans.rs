//! Plans of the statements in functions, triggers and foreign keys. The server keeps them for the session, whatever the parameters
//! were when they were made: the arms of a duel would share them.

use std::cell::Cell;
use std::ffi::c_int;

use pgrx::pg_sys;

use super::raw;

thread_local! {
    /// Whether a statement has executed another one since the plans were dropped.
    static WAS_NESTED: Cell<bool> = const { Cell::new(false) };
    static IS_INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<pg_sys::ExecutorStart_hook_type> = const { Cell::new(None) };
}

/// From here on, statements that others execute are noticed.
pub fn watch() {
    if IS_INSTALLED.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    unsafe {
        PREVIOUS.set(pg_sys::ExecutorStart_hook);
        pg_sys::ExecutorStart_hook = Some(notice);
    }
}

/// Called by the executor for each statement; an ERROR of the server's leaves through it, and nothing in it has to be dropped.
unsafe extern "C-unwind" fn notice(query: *mut pg_sys::QueryDesc, flags: c_int) {
    // SAFETY: by the server, with a live description. A session's own command has the text that it shows.
    unsafe {
        if !std::ptr::eq((*query).sourceText, pg_sys::debug_query_string) {
            WAS_NESTED.set(true);
        }
        match PREVIOUS.get() {
            Some(previous) => previous(query, flags),
            None => raw::standard_ExecutorStart(query, flags),
        }
    }
}

/// Drops all plans of the session but those of these statements, which each arm has for itself, if statements have executed
/// others since the last time; whether they have.
pub fn drop_shared(own: impl Iterator<Item = *mut pg_sys::CachedPlanSource>) -> bool {
    if !WAS_NESTED.replace(false) {
        return false;
    }
    // SAFETY: the statements' own plans last as long as these do. Nothing but ResetPlanCache, which raises no error, comes
    // between reading whether they are valid and saying so again.
    unsafe {
        let valid: Vec<_> = own.filter(|source| !source.is_null() && (**source).is_valid).collect();
        let is_valid_plan = |plan: &*mut pg_sys::CachedPlan| !plan.is_null() && (**plan).is_valid;
        let plans: Vec<_> = valid.iter().map(|source| (**source).gplan).filter(is_valid_plan).collect();
        pg_sys::ResetPlanCache();
        valid.into_iter().for_each(|source| (*source).is_valid = true);
        plans.into_iter().for_each(|plan| (*plan).is_valid = true);
    }
    true
}
