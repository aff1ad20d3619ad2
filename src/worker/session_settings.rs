//! The settings of a session that does this project's own work.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::server::guc::{self, own_settings};
use crate::server::roles::{current_role, is_session_of};
use crate::server::transaction::transaction;

/// Has pg_stat_statements, where it is loaded, not count the statements of this session: a worker's own ones.
pub fn leave_out_this_session() {
    if guc::current("pg_stat_statements.track").is_some() {
        guc::set_for_session(c"pg_stat_statements.track", c"none");
    }
}

/// Has this worker's session be one of the role that the worker was started as: ALTER DATABASE … SET role, which a database's
/// owner may do, applies to background workers as well.
///
/// # Errors
/// 42501 where it is another role's all the same.
pub fn remain(role: pg_sys::Oid) -> Result<(), UserError> {
    transaction(|| {
        guc::set_for_session(c"role", c"none");
        if is_session_of(role) {
            return Ok(());
        }
        let message = format!("a background worker has got a session of role \"{}\"", current_role());
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail("It must be of the role that the worker was started as.")
            .hint("RESET session_authorization by ALTER DATABASE and ALTER ROLE."))
    })
}

/// Has this project's own statements find the server's objects only, all rows, and no triggers but those that are always enabled,
/// whatever the database or the role has set.
pub fn isolate_statements() {
    own_settings().for_each(|(name, value)| guc::set_for_session(name, value));
    guc::set_for_session(c"search_path", guc::SAFE_PATH);
    guc::set_for_session(c"row_security", c"off");
    // Once for the whole session, as each change of it has all plans made anew.
    guc::set_for_session(c"session_replication_role", c"replica");
}

/// Gives a coordinator's session, or a link's, settings of its own in place of the database's and the role's.
pub fn isolate_session(application_name: &CStr) -> Result<(), UserError> {
    transaction(|| {
        isolate_statements();
        let own = [
            // A lock on the results' tables must not hold up a stop or a shutdown.
            (c"lock_timeout", c"1s"),
            // What was committed survives a crash of the server; no standby is waited for.
            (c"synchronous_commit", c"local"),
            (c"application_name", application_name),
        ];
        for (name, value) in own {
            guc::set_for_session(name, value);
        }
        Ok(())
    })
}
