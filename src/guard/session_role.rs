//! Whose session executes a text, in a call of somebody: of a role that could execute it by itself, and that neither the caller nor
//! the writer can use to come by rights that they do not have.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::pg_sys;

use super::client_role::{OWNER, client_role, is_client_role};
use super::rights::is_special;
use crate::server::roles::{self, is_superuser, may_become};

/// The role whose session executes what `writer` has written, in a call of `caller`: the caller, if the writer could become it
/// anyway; else the writer. Neither if it has special rights: a superuser's call then gets a session of whoever owns the fixture or
/// table that it is about, or of `bench_client`.
///
/// # Errors
/// 42501 where there is no such role; those of [`client_role`].
pub fn session_of(caller: &Role, writer: &Role, owner: Option<Role>) -> Result<Role, UserError> {
    let is_own = caller.oid == writer.oid;
    if !is_special(caller.oid.into())? && (is_own || may_become(writer.oid, caller)?) {
        return Ok(caller.clone());
    }
    session_of_writer(caller, writer, owner)
}

/// As [`session_of`], where the session is to be the writer's if it can be: what was captured is to find what it found.
///
/// # Errors
/// As [`session_of`].
pub fn session_of_writer(caller: &Role, writer: &Role, owner: Option<Role>) -> Result<Role, UserError> {
    if caller.oid != writer.oid && !may_become(caller.oid, writer)? {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!(
                "role \"{}\" wrote what is to be executed, and role \"{}\" cannot SET ROLE to it",
                writer.name, caller.name
            ),
        )
        .detail("A text is executed in sessions of a role that both its writer and the caller could become.")
        .hint("Read it, and store it as your own; or pass run_as with a role that both can become."));
    }
    if !is_special(writer.oid.into())? {
        return Ok(writer.clone());
    }
    if is_superuser(caller.oid.into()) {
        return of_superusers_call(owner);
    }
    Err(special(&writer.name))
}

/// The error for a role with special rights that nobody has named.
pub fn special(role: &str) -> UserError {
    UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("sessions of role \"{}\" would have special rights", role),
    )
    .detail(
        "Whoever owns or has TRIGGER on a table that they use, or may create functions that they find, could have those rights. \
         Special are superusers, CREATEROLE, REPLICATION, BYPASSRLS, predefined roles such as pg_read_all_data, GRANT SET ON \
         PARAMETER, and members of all of these.",
    )
    .hint("Pass a role without special rights as run_as; or name this very role, if nobody else can create objects that its statements use.")
}

/// The role of the sessions of a superuser's call that is about tables of this owner, or about none.
///
/// # Errors
/// Those of [`client_role`].
pub fn of_superusers_call(owner: Option<Role>) -> Result<Role, UserError> {
    match owner {
        Some(owner) if owner.name != OWNER && !is_special(owner.oid.into())? => Ok(owner),
        _ => client_role(),
    }
}

/// Whether sessions of a role may have special rights: the caller has named it in this very call, or a superuser has named it for
/// the calls of superusers.
pub fn may_be_special(role: &Role, run_as: Option<&str>) -> bool {
    run_as == Some(role.name.as_str()) || is_client_role(&role.name)
}

/// That the process is a session of this role and of no other, whatever ALTER ROLE … SET role or ALTER DATABASE has made of it, and
/// that it has special rights only if that was meant.
///
/// # Errors
/// 42501.
pub fn check_session(role: &Role, may_be_special: bool) -> Result<(), UserError> {
    // SAFETY: this backend's own state.
    let (authenticated, session, current) =
        unsafe { (pg_sys::GetAuthenticatedUserId(), pg_sys::GetSessionUserId(), pg_sys::GetUserId()) };
    let own = pg_sys::Oid::from(role.oid);
    if [authenticated, session, current].iter().any(|user| *user != own) {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("a session of role \"{}\" became one of another role as it began", role.name),
        )
        .detail("Parameter role or session_authorization is set for the role or the database.")
        .hint("ALTER ROLE … RESET role, and ALTER DATABASE … RESET role."));
    }
    if !may_be_special && is_special(own)? {
        return Err(became_special(&role.name));
    }
    Ok(())
}

/// The error for a role that has special rights, and had none when its sessions were asked for.
pub fn became_special(role: &str) -> UserError {
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, format!("role \"{role}\" has special rights now"))
        .detail("It had none when its sessions were asked for.")
}

/// That a role which is named by run_as in options that are stored has no special rights: who uses the options has not named it, and
/// what is executed may have been written since by others.
///
/// # Errors
/// 42704 where there is no such role; 42501.
pub fn check_stored_run_as(run_as: Option<&str>) -> Result<(), UserError> {
    let Some(name) = run_as else { return Ok(()) };
    if !is_special(roles::named(name)?.oid.into())? {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("stored run_as names role \"{name}\", which has special rights"),
    )
    .detail("Such a role must be named by the call that starts the runs."))
}
