//! Plans of this project's own queries, which neither jit compiles nor parallel workers execute: compiling a query over the
//! catalog takes many times as long as its execution, and a run needs the worker slots for its clients.
//!
//! The parameters `jit` and `max_parallel_workers_per_gather` stay as they are: runs record them, and users' statements are
//! planned under them.

use std::cell::Cell;
use std::ffi::{c_char, c_int};

use pgrx::pg_sys;

/// What a plan may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// What the session's parameters allow.
    All,
    /// No jit.
    Interpreted,
    /// Neither jit nor parallel workers.
    Plain,
}

thread_local! {
    /// What the plans may have that are made now.
    static ALLOWED: Cell<Allowed> = const { Cell::new(Allowed::All) };
    static IS_INSTALLED: Cell<bool> = const { Cell::new(false) };
    static PREVIOUS: Cell<pg_sys::planner_hook_type> = const { Cell::new(None) };
}

/// Runs `work`, whose statements are this project's own.
pub fn with_own_plans<T>(work: impl FnOnce() -> T) -> T {
    allowing(Allowed::Plain, work)
}

/// Runs `work`, which executes users' statements for their rows and blocks, not for their time: jit changes only that.
pub fn without_jit<T>(work: impl FnOnce() -> T) -> T {
    allowing(Allowed::Interpreted, work)
}

fn allowing<T>(allowed: Allowed, work: impl FnOnce() -> T) -> T {
    struct Restore(Allowed);
    impl Drop for Restore {
        fn drop(&mut self) {
            ALLOWED.set(self.0);
        }
    }
    install();
    let _restore = Restore(ALLOWED.replace(allowed));
    work()
}

fn install() {
    if IS_INSTALLED.replace(true) {
        return;
    }
    // SAFETY: the hook is set and called on the process's only thread; this library stays loaded.
    unsafe {
        PREVIOUS.set(pg_sys::planner_hook);
        pg_sys::planner_hook = Some(plan);
    }
}

/// Called by the server for each statement that is planned; an ERROR of the server's leaves through it, and nothing in it has to
/// be dropped.
unsafe extern "C-unwind" fn plan(
    query: *mut pg_sys::Query,
    text: *const c_char,
    options: c_int,
    parameters: pg_sys::ParamListInfo,
    #[cfg(since_19)] explain: *mut pg_sys::ExplainState,
) -> *mut pg_sys::PlannedStmt {
    let allowed = ALLOWED.get();
    let options = match allowed {
        Allowed::Plain => options & !(pg_sys::CURSOR_OPT_PARALLEL_OK as c_int),
        Allowed::All | Allowed::Interpreted => options,
    };
    // SAFETY: by the server, with live arguments, which the hook before or the standard planner gets as they are; the plan is live
    // and this process's own.
    unsafe {
        let planned = PREVIOUS.get().unwrap_or(raw::standard_planner)(
            query,
            text,
            options,
            parameters,
            #[cfg(since_19)]
            explain,
        );
        if allowed != Allowed::All {
            (*planned).jitFlags = pg_sys::PGJIT_NONE as c_int;
        }
        planned
    }
}

/// Without a guard around it, whose work each statement's planning would pay.
mod raw {
    use super::*;

    unsafe extern "C-unwind" {
        pub fn standard_planner(
            query: *mut pg_sys::Query,
            text: *const c_char,
            options: c_int,
            parameters: pg_sys::ParamListInfo,
            #[cfg(since_19)] explain: *mut pg_sys::ExplainState,
        ) -> *mut pg_sys::PlannedStmt;
    }
}
