//! The roles of a superuser's calls: `bench_client`, whose sessions are the clients of a superuser's runs, and `bench_owner`, which
//! owns what a superuser's loads make.
//!
//! A superuser's session must not execute users' text or touch users' tables, for whoever wrote the one or may put a trigger on the
//! other would have all of its rights. These two have no rights but those on what they are given. They log in nowhere, for their
//! CONNECTION LIMIT is 0, which does not bind background workers.

use std::ffi::CString;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::pg_sys;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting};

use crate::server::guc::set_as_session;
use crate::server::roles::{self, superuser};
use crate::server::spi::{fetch, quote_identifier, run};

/// Whose sessions the clients of a superuser's runs are.
pub const CLIENT: &str = "bench_client";

/// Who owns what a superuser's loads make.
pub const OWNER: &str = "bench_owner";

static CLIENT_ROLE: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"bench_client"));

/// Defines the parameter.
pub fn define() {
    GucRegistry::define_string_guc(
        c"pgbench_ext.client_role",
        c"Sets the role whose sessions the clients of superusers' runs are.",
        c"Unless run_as names another one, or the workload's tables belong to a role without special rights, which they are then \
          sessions of.",
        &CLIENT_ROLE,
        GucContext::Suset,
        GucFlags::default(),
    );
}

fn client_role_name() -> String {
    CLIENT_ROLE.get().map_or_else(|| CLIENT.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Whether this is the name of the role whose sessions the clients of superusers' runs are.
pub fn is_client_role(name: &str) -> bool {
    client_role_name() == name
}

/// The role whose sessions the clients of superusers' runs are, where it is in order.
///
/// # Errors
/// 42704 where it does not exist; 55000 where somebody has changed what one of the extension's own roles may do.
pub fn client_role() -> Result<Role, UserError> {
    let name = client_role_name();
    // A call that has gone on as another role has looked before.
    if name == CLIENT && superuser() {
        check_own_roles()?;
    }
    roles::named(&name).map_err(|error| match name.as_str() {
        CLIENT => error.hint("Create it: SELECT bench_internal.make_own_roles()."),
        _ => error.hint("Set pgbench_ext.client_role to a role that exists."),
    })
}

/// The role that owns what superusers' loads make: the client role itself, unless that is the extension's own, which must not own
/// the tables that it writes to.
///
/// # Errors
/// As [`client_role`].
pub fn owner_role() -> Result<Role, UserError> {
    let client = client_role()?;
    if client.name == CLIENT { roles::named(OWNER) } else { Ok(client) }
}

/// Whether a role is one of the extension's own.
pub fn is_own(role: &str) -> bool {
    [CLIENT, OWNER].contains(&role)
}

/// The names of the extension's own roles.
pub fn own_names() -> Vec<String> {
    vec![CLIENT.to_owned(), OWNER.to_owned()]
}

/// What keeps a role that has one of these names from being the extension's: the first thing that it has beside the right to log in
/// that a background worker needs, and the name of the role.
const SPOILT: &str = "\
    SELECT format('Role %I %s.', r.rolname, v.what) \
    FROM pg_authid r CROSS JOIN LATERAL (VALUES \
        (1, r.rolsuper, 'is a superuser'), \
        (2, r.rolcreaterole, 'has the attribute CREATEROLE'), \
        (3, r.rolcreatedb, 'has the attribute CREATEDB'), \
        (4, r.rolreplication, 'has the attribute REPLICATION'), \
        (5, r.rolbypassrls, 'has the attribute BYPASSRLS'), \
        (6, NOT r.rolcanlogin, 'has the attribute NOLOGIN'), \
        (7, r.rolconnlimit <> 0, 'has a CONNECTION LIMIT other than 0'), \
        (8, r.rolpassword IS NOT NULL, 'has a password'), \
        (9, EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid), 'is a member of another role'), \
        (10, EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid), 'has members'), \
        (11, EXISTS (SELECT FROM pg_db_role_setting s WHERE s.setrole = r.oid), 'has settings') \
    ) AS v (place, is_so, what) \
    WHERE r.rolname IN ('bench_client', 'bench_owner') AND v.is_so ORDER BY r.rolname, v.place LIMIT 1";

/// # Errors
/// 55000 where one of the extension's own roles has rights, members, settings or a password.
fn check_own_roles() -> Result<(), UserError> {
    match fetch::<String>(SPOILT, &[])? {
        None => Ok(()),
        Some(what) => Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            "the roles of pgbench_ext have been changed",
        )
        .detail(what)
        .hint(format!(
            "Take that back: both were made by CREATE ROLE … LOGIN CONNECTION LIMIT 0. Or have superusers' clients be sessions of \
             another role: pgbench_ext.client_role, or run_as. To have them made anew, DROP OWNED BY {CLIENT}, {OWNER}; DROP ROLE \
             {CLIENT}, {OWNER}; and SELECT bench_internal.make_own_roles()."
        ))),
    }
}

/// Makes the extension's own roles where they are not there.
///
/// # Errors
/// Those of [`check_own_roles`].
pub fn make_own_roles() -> Result<(), UserError> {
    for (name, what) in [(CLIENT, "clients of superusers'' runs"), (OWNER, "owner of what superusers load")] {
        if roles::oid_of(name)?.is_none() {
            let name = quote_identifier(name);
            run(&format!("CREATE ROLE {name} LOGIN CONNECTION LIMIT 0"), &[])?;
            run(&format!("COMMENT ON ROLE {name} IS 'pgbench_ext: {what}'"), &[])?;
        }
    }
    check_own_roles()
}

/// Has the rest of a superuser's client's transaction raise an error where a policy would leave it only some of a table's rows, of
/// which nobody would be told.
///
/// # Errors
/// The server's are raised.
pub fn refuse_policies() -> Result<(), UserError> {
    if roles::current_role() == CLIENT { set_as_session("row_security", "off") } else { Ok(()) }
}

/// # Errors
/// 42501 for the extension's own role of clients, which may call no function of the extension: what runs in its sessions is what
/// others have written.
pub fn check_is_no_client() -> Result<(), UserError> {
    // SAFETY: this backend's own state.
    let session = unsafe { pg_sys::GetSessionUserId() };
    if roles::name_of(session).as_deref() != Some(CLIENT) {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("permission denied to call functions of pgbench_ext as role \"{CLIENT}\""),
    ))
}

/// The role that loads, vacuums and changes the tables that sessions of a role work on: of [`CLIENT`] it is [`OWNER`].
///
/// # Errors
/// 42704.
pub fn keeper_of(role: &Role) -> Result<Role, UserError> {
    if role.name == CLIENT { roles::named(OWNER) } else { Ok(role.clone()) }
}
