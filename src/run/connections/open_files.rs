//! How many files a job may have open.

use bench_base::error::{UserError, sqlstate};

use crate::server::process::raise_open_files;

/// Files that a job has open beside its connections.
const OTHER_FILES: u64 = 64;

/// Raises the limit as far as it may be raised.
///
/// # Errors
/// 53000 where a process may not have so many connections.
pub fn check(connections: u64) -> Result<(), UserError> {
    let limit = raise_open_files();
    if connections + OTHER_FILES <= limit {
        return Ok(());
    }
    let message = format!("a job cannot have {connections} connections");
    Err(UserError::new(sqlstate::INSUFFICIENT_RESOURCES, message)
        .detail(format!("The server's processes may have {limit} files open (RLIMIT_NOFILE)."))
        .hint("Use more jobs, or raise the limit for the server (ulimit -Hn, LimitNOFILE of systemd)."))
}
