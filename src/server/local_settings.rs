//! Configuration parameters that are set for a while: up to the end of a transaction, or of a piece of work.

use std::ffi::{CStr, CString};

use bench_base::error::UserError;
use pgrx::pg_sys;

/// Sets a configuration parameter until the transaction, or the settings' nest level, ends. Outside of
/// both it does nothing.
pub fn set_local(name: &CStr, value: &CStr) {
    // SAFETY: NUL-terminated strings; what is to be restored is remembered by the nest level, if there is one.
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

/// Does something under another search_path.
pub fn with_search_path<T>(path: &str, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    with_setting(c"search_path", &CString::new(path).unwrap_or_default(), work)
}

/// Does something with another value of a parameter.
pub fn with_setting<T>(
    name: &CStr,
    value: &CStr,
    work: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    in_nest_level(|| {
        set_local(name, value);
        work()
    })
}

/// The search_path of this project's own SQL.
pub const SAFE_PATH: &CStr = c"pg_catalog, pg_temp";

/// Runs this project's own SQL: names and operators in it are the server's, whatever other roles have created, and texts are
/// read and written as by default, whatever the session, its role or its database has set. As TimescaleDB's
/// RestrictSearchPath and pg_dump do it.
pub fn restricted<T>(work: impl FnOnce() -> T) -> T {
    if has_own_syntax() && has_safe_path() {
        return work();
    }
    in_nest_level(|| {
        restrict();
        work()
    })
}

/// Sets what [`restricted`] sets, up to the end of the nest level.
pub fn restrict() {
    set_local(c"search_path", SAFE_PATH);
    set_own_syntax();
}

/// Has only those triggers and rules fire that are enabled always, up to the end of the nest level: those of a role that may make
/// triggers on a table are not, for only the table's owner enables them so.
pub fn as_replica() {
    set_replication_role(pg_sys::SESSION_REPLICATION_ROLE_REPLICA, c"replica");
}

/// Does something in which triggers fire as in an ordinary session.
pub fn as_origin<T>(work: impl FnOnce() -> T) -> T {
    in_nest_level(|| {
        set_replication_role(pg_sys::SESSION_REPLICATION_ROLE_ORIGIN, c"origin");
        work()
    })
}

/// Changes nothing where it is so already, as each change has the session's plans made anew.
fn set_replication_role(role: u32, value: &CStr) {
    // SAFETY: a variable of the process's; otherwise as `set_local`, with the rights that the parameter takes.
    unsafe {
        if pg_sys::SessionReplicationRole == role as i32 {
            return;
        }
        pg_sys::set_config_option(
            c"session_replication_role".as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
    }
}

fn has_safe_path() -> bool {
    // SAFETY: a variable of the process's: the value of a parameter, which is never NULL.
    unsafe { CStr::from_ptr(pg_sys::namespace_search_path) == SAFE_PATH }
}

/// Does something with texts that are read and written as by default, whatever the session, its role or its database has set.
pub fn with_own_syntax<T>(work: impl FnOnce() -> T) -> T {
    if has_own_syntax() {
        return work();
    }
    in_nest_level(|| {
        set_own_syntax();
        work()
    })
}

/// Does something at whose end all parameters that it has set are as before.
pub fn in_nest_level<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: as functions with a SET clause do it (fmgr_security_definer in utils/fmgr/fmgr.c): an
    // error that leaves from here ends the transaction, and the nest level with it.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        let result = work();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}

fn has_own_syntax() -> bool {
    // SAFETY: variables of the process's.
    unsafe {
        // Always on from 19 on.
        #[cfg(not(since_19))]
        if !pg_sys::standard_conforming_strings {
            return false;
        }
        !pg_sys::quote_all_identifiers
    }
}

/// What [`with_own_syntax`] sets, up to the end of the nest level.
fn set_own_syntax() {
    if has_own_syntax() {
        return;
    }
    set_local(c"standard_conforming_strings", c"on");
    set_local(c"quote_all_identifiers", c"off");
}
