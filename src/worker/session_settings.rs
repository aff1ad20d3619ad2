//! The settings of a session that does this project's own work.

use std::ffi::CStr;

use bench_base::error::UserError;

use crate::server::guc;
use crate::server::own_settings::own_settings;
use crate::server::transaction::transaction;

/// Has pg_stat_statements, where it is loaded, not count the statements of this session: a worker's own ones.
pub fn leave_out_this_session() {
    if guc::current("pg_stat_statements.track").is_some() {
        guc::set_for_session(c"pg_stat_statements.track", c"none");
    }
}

/// Gives a coordinator's session, or a link's, settings of its own in place of the database's and the role's.
pub fn isolate_session(application_name: &CStr) -> Result<(), UserError> {
    transaction(|| {
        let own = [
            (c"search_path", guc::SAFE_PATH),
            // A lock on the results' tables must not hold up a stop or a shutdown.
            (c"lock_timeout", c"1s"),
            // What was committed survives a crash of the server; no standby is waited for.
            (c"synchronous_commit", c"local"),
            (c"row_security", c"off"),
            (c"application_name", application_name),
        ];
        own_settings().for_each(|(name, value)| guc::set_for_session(name, value));
        for (name, value) in own {
            guc::set_for_session(name, value);
        }
        Ok(())
    })
}
