//! With whose rights a run's parameters are set in sessions that are not the caller's.
//!
//! The sessions of a superuser's run are those of a role without special rights. That role may not set parameters such as
//! wal_compression, and the caller may: the server then sets them with the caller's rights, in sessions of the other role.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::pg_sys;

use crate::server::guc::may_set;
use crate::server::roles::{current_role, current_role_oid};

/// Parameters that say who a session is, which code it loads, or what it may touch: the caller's rights would be the session's.
const NEVER: [&str; 9] = [
    "role",
    "session_authorization",
    "lo_compat_privileges",
    "allow_system_table_mods",
    "dynamic_library_path",
    "extension_control_path",
    "session_preload_libraries",
    "local_preload_libraries",
    "shared_preload_libraries",
];

/// The role with whose rights a parameter is set in sessions of the current role: the current one, or `caller`, who has called for
/// them where that is another one, and who alone may set it.
///
/// # Errors
/// 42501 for a parameter that no caller sets in another role's sessions.
pub fn setter(name: &str, caller: Option<&Role>) -> Result<pg_sys::Oid, UserError> {
    let own = current_role_oid();
    let Some(caller) = caller else { return Ok(own) };
    if NEVER.iter().any(|never| name.eq_ignore_ascii_case(never)) {
        let message = format!(
            "permission denied to set parameter \"{name}\" in sessions of role \"{}\"",
            current_role()
        );
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail(format!(
                "Statements in these sessions could make use of the rights of role \"{}\".",
                caller.name
            ))
            .hint(format!("Leave it out; or pass run_as => '{}' for sessions of your own.", caller.name)));
    }
    if !may_set(own, name)? && may_set(caller.oid.into(), name)? { Ok(caller.oid.into()) } else { Ok(own) }
}

/// Those of a run's settings that sessions of a role set by themselves.
///
/// # Errors
/// Those of the catalog.
pub fn own_settings_of(
    role: pg_sys::Oid,
    settings: &[(String, String)],
) -> Result<Vec<(String, String)>, UserError> {
    let mut own = Vec::with_capacity(settings.len());
    for (name, value) in settings {
        if may_set(role, name)? {
            own.push((name.clone(), value.clone()));
        }
    }
    Ok(own)
}
