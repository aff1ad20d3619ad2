//! What workers that do this project's own work have instead of what a role, a database or the server has set for its
//! users' sessions: no limit ends their work, and their transactions are of the usual kind.

use std::ffi::CStr;

use super::guc::current;

const OWN: [(&CStr, &CStr); 9] = [
    (c"transaction_timeout", c"0"),
    (c"statement_timeout", c"0"),
    (c"idle_in_transaction_session_timeout", c"0"),
    (c"idle_session_timeout", c"0"),
    // Loaders wait for each other when they extend a table.
    (c"lock_timeout", c"0"),
    (c"default_transaction_read_only", c"off"),
    (c"default_transaction_isolation", c"read committed"),
    (c"default_transaction_deferrable", c"off"),
    // It makes every ERROR the session's last, those that a worker expects as well.
    (c"exit_on_error", c"off"),
];

/// Names and values of those that the server has: transaction_timeout is there from PostgreSQL 17 on.
pub fn own_settings() -> impl Iterator<Item = (&'static CStr, &'static CStr)> {
    OWN.into_iter().filter(|(name, _)| name.to_str().is_ok_and(|name| current(name).is_some()))
}

/// Whether the parameter, in lower case, is one of these.
pub fn is_own(name: &str) -> bool {
    OWN.iter().any(|(own, _)| own.to_bytes() == name.as_bytes())
}
