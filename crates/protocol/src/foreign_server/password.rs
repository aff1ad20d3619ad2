//! Who needs a password.

use bench_base::error::{UserError, sqlstate};

use super::target::{Secrets, Target};

/// Checks before a connection that a role has a password in its mapping, unless it `needs_none`, as a superuser on a
/// superuser's foreign server; as postgres_fdw's check_conn_params. Without one the connection would stand on what the
/// server's operating-system user may do.
///
/// # Errors
/// 2F003.
pub fn check_password_given(needs_none: bool, target: &Target, secrets: &Secrets) -> Result<(), UserError> {
    let is_given = secrets.password.as_ref().is_some_and(|password| !password.is_empty());
    if needs_none || !target.password_required || is_given {
        return Ok(());
    }
    Err(required()
        .detail("Non-superusers must provide a password in the user mapping.")
        .hint("Set option password of the user mapping."))
}

/// Checks after authentication that the server has asked for the password (`used`: see
/// `wire::Session::used_password`), as postgres_fdw's pgfdw_security_check: a server that
/// trusts this machine or its user would else let in anyone.
///
/// # Errors
/// 2F003.
pub fn check_password_used(needs_none: bool, target: &Target, used: bool) -> Result<(), UserError> {
    if needs_none || !target.password_required || used {
        return Ok(());
    }
    Err(not_asked())
}

/// The error for a server that has let somebody in without asking for the password that is needed.
pub fn not_asked() -> UserError {
    required()
        .detail("Non-superuser cannot connect if the server does not request a password.")
        .hint("Target server's authentication method must be changed or password_required=false set in the user mapping attributes.")
}

fn required() -> UserError {
    UserError::new(sqlstate::PASSWORD_REQUIRED, "password is required")
}
