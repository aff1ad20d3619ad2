//! Whose session executes a text, in a call of somebody: of a role that could execute it by itself, and that neither the caller nor
//! the writer can use to come by rights that they do not have.

use std::ffi::CString;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, pg_sys};

use crate::server::guc::{may_set, set_as_session};
use crate::server::roles::{self, current_role, current_role_oid, is_superuser, may_become, superuser};
use crate::server::spi::{fetch, quote_identifier, run};

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
fn of_superusers_call(owner: Option<Role>) -> Result<Role, UserError> {
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

// The roles of a superuser's calls: `bench_client`, whose sessions are the clients of a superuser's runs, and `bench_owner`, which
// owns what a superuser's loads make.
//
// A superuser's session must not execute users' text or touch users' tables, for whoever wrote the one or may put a trigger on the
// other would have all of its rights. These two have no rights but those on what they are given. They log in nowhere, for their
// CONNECTION LIMIT is 0, which does not bind background workers.

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

// Special rights: those that a session which executes users' text, or touches users' tables, must not be able to come by.

/// Predefined roles without special rights, by OID (pg_authid.dat). Those that a later version brings are special until they are
/// listed here.
const HARMLESS: [u32; 9] = [
    3373, // pg_monitor
    3374, // pg_read_all_settings
    3375, // pg_read_all_stats
    3377, // pg_stat_scan_tables
    4200, // pg_signal_backend
    4544, // pg_checkpoint
    4550, // pg_use_reserved_connections, from 16 on
    6171, // pg_database_owner
    6392, // pg_signal_autovacuum_worker, from 18 on
];

/// Whether a role has special rights, or a chain of memberships to a role that has them, which SET ROLE in a script would use:
/// superuser, an attribute that lets it past checks, a predefined role that is not harmless, or the privilege to set a
/// superusers' parameter. A membership with the ADMIN option alone counts, for it can grant itself the others.
///
/// # Errors
/// The server's.
pub fn is_special(role: pg_sys::Oid) -> Result<bool, UserError> {
    if roles::is_superuser(role) {
        return Ok(true);
    }
    let sql = "SELECT /* pgbench_ext */ (WITH RECURSIVE reached (oid) AS ( \
                   SELECT $1 UNION SELECT m.roleid FROM reached r JOIN pg_auth_members m ON m.member = r.oid) \
               SELECT bool_or(r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls \
                       OR r.oid < '16384'::oid AND r.oid <> ALL ($2)) \
                   OR EXISTS (SELECT FROM pg_parameter_acl p CROSS JOIN LATERAL aclexplode(p.paracl) AS a \
                              WHERE a.grantee = 0 OR a.grantee IN (SELECT oid FROM reached)) \
               FROM reached JOIN pg_roles r USING (oid))";
    let harmless: Vec<pg_sys::Oid> = HARMLESS.into_iter().map(pg_sys::Oid::from).collect();
    // A role that has gone has no rights to lose, and whatever is done as it fails.
    Ok(fetch::<bool>(sql, &[role.into(), harmless.into()])?.unwrap_or(true))
}

// With whose rights a run's parameters are set in sessions that are not the caller's.
//
// The sessions of a superuser's run are those of a role without special rights. That role may not set parameters such as
// wal_compression, and the caller may: the server then sets them with the caller's rights, in sessions of the other role.

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
