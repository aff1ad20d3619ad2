//! The server that the connections of a run lead to: a foreign server of the wrapper bench_wire and the caller's mapping on
//! it, and what has to be known of it before the run.

mod reached;

use bench_base::error::{UserError, sqlstate};
use bench_base::untrusted;
use bench_model::spec::TargetSpec;
use bench_model::views::{SETTINGS_QUERY, SettingsAnswer, Views};
use bench_protocol::foreign_server::{Secrets, Target};
use bench_results::ServerSetting;
use pgrx::pg_sys;
use serde::Deserialize;

use crate::driver::connection::BlockingSession;
use crate::error::notice;
use crate::server::roles::{self, current_role_oid};
use crate::server::spi::{self, quote_identifier};
use crate::store;

pub use reached::{Examined, PlanOfCommand, Reached};

/// The foreign server whose mappings have the passwords for this server.
const LOCAL: &str = "bench_local";

/// Options of a foreign server or a user mapping, by name.
type Options = Vec<(String, String)>;

/// A foreign server of the wrapper, and what its options are.
pub struct ForeignServer {
    oid: pg_sys::Oid,
    /// The current role has USAGE on it.
    pub may_use: bool,
    /// Its owner, and whether that is a superuser.
    owner: String,
    pub is_superusers: bool,
    pub options: Options,
}

fn options_of(column: Option<pgrx::JsonB>) -> Options {
    let Some(pgrx::JsonB(serde_json::Value::Object(map))) = column else { return Vec::new() };
    map.into_iter().map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).collect()
}

/// A foreign server, if there is one of this name; [`LOCAL`] only if it is a superuser's.
///
/// # Errors
/// 42809 for one of another wrapper.
pub fn foreign_server(name: &str) -> Result<Option<ForeignServer>, UserError> {
    let found = spi::fetch_all(
        "SELECT s.oid, w.fdwname = 'bench_wire', \
                    has_server_privilege(s.oid, 'USAGE'), \
                    (SELECT jsonb_object_agg(option_name, coalesce(option_value, '')) \
                     FROM pg_options_to_table(s.srvoptions)), \
                    r.rolname::text, r.rolsuper \
             FROM pg_foreign_server s \
             JOIN pg_roles r ON r.oid = s.srvowner \
             JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw \
             WHERE s.srvname = $1::text",
        &[name.into()],
        |row| {
            let is = |column| row.get::<bool>(column).map(Option::unwrap_or_default);
            let oid = row.get::<pg_sys::Oid>(1)?.unwrap_or(pg_sys::InvalidOid);
            let (options, owner) = (options_of(row.get(4)?), row.get::<String>(5)?.unwrap_or_default());
            Ok((ForeignServer { oid, may_use: is(3)?, owner, is_superusers: is(6)?, options }, is(2)?))
        },
    )?;
    let Some((server, is_ours)) = found.into_iter().next() else { return Ok(None) };
    // Whoever may create servers may take the name: what stands for this server itself, a superuser has put there.
    if name == LOCAL && !server.is_superusers {
        return Ok(None);
    }
    if !is_ours {
        let message = format!("server \"{name}\" is not one of foreign-data wrapper bench_wire");
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, message)
            .hint("Create a target with CREATE SERVER … FOREIGN DATA WRAPPER bench_wire OPTIONS (host …)."));
    }
    Ok(Some(server))
}

/// Files are read by the server's operating-system user, for whoever owns the server that names them.
///
/// # Errors
/// 42501.
pub fn check_files(name: &str, server: &ForeignServer, options: &Target) -> Result<(), UserError> {
    if server.is_superusers || !options.tls.names_files() {
        return Ok(());
    }
    let message =
        format!("permission denied to read the files that server \"{name}\" and its user mapping name");
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .detail(format!("The server belongs to role \"{}\", which is not a superuser.", server.owner))
        .hint(format!(
            "Drop its option sslrootcert, or set it to \"system\"; or a superuser can take it over: ALTER SERVER {} OWNER TO CURRENT_USER.",
            quote_identifier(name)
        )))
}

pub fn may_not_use(name: &str) -> UserError {
    let message = format!("permission denied for foreign server {name}");
    UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).hint(format!(
        "Its owner can GRANT USAGE ON FOREIGN SERVER {} TO {}.",
        quote_identifier(name),
        quote_identifier(&roles::current_role())
    ))
}

/// Adds to the error about a superuser's missing password why it needs one: a server's owner chooses the host and writes PUBLIC's
/// mapping, so that role could have a superuser connect to this very server as anybody whom it trusts.
pub fn of_another_owner(error: UserError, name: &str, server: &ForeignServer) -> UserError {
    error.detail(format!("The server belongs to role \"{}\", which is not a superuser.", server.owner)).hint(format!(
        "Set option password of the user mapping. Or read the server's options and mappings, and ALTER SERVER {} OWNER TO \
         CURRENT_USER.",
        quote_identifier(name)
    ))
}

/// The options of the current role's mapping on a server, or of PUBLIC's. They are for its role to use, whether or not it
/// may see them.
pub fn mapping(server: &ForeignServer) -> Result<Option<Options>, UserError> {
    let role = current_role_oid();
    let found = store::as_owner(|| {
        spi::fetch_all(
            "SELECT (SELECT jsonb_object_agg(option_name, coalesce(option_value, '')) \
                         FROM pg_options_to_table(m.umoptions)) FROM pg_user_mapping m \
                 WHERE m.umserver = $1 \
                   AND m.umuser = ANY (ARRAY[0::oid, $2]) ORDER BY m.umuser DESC LIMIT 1",
            &[server.oid.into(), role.into()],
            |row| Ok(options_of(row.get(1)?)),
        )
    })?;
    Ok(found.into_iter().next())
}

/// The password of the current role for this server: that of its mapping on the server [`LOCAL`], if there is one that it
/// may use.
///
/// # Errors
/// 28000 for a mapping to another role.
pub fn local_password() -> Result<Secrets, UserError> {
    let none = Secrets::default();
    let Some(server) = foreign_server(LOCAL)?.filter(|server| server.may_use) else { return Ok(none) };
    let Some(options) = mapping(&server)? else { return Ok(none) };
    let (target, secrets) = Target::new(&server.options, &options, &roles::current_role())?;
    if target.user != roles::current_role() {
        return Err(UserError::new(
            sqlstate::INVALID_AUTHORIZATION,
            format!("the user mapping on server \"{LOCAL}\" is for role \"{}\"", target.user),
        )
        .detail(format!("The clients of this run connect as role \"{}\".", roles::current_role()))
        .hint("Leave out its option user."));
    }
    Ok(secrets)
}

/// What is asked of a target.
#[derive(Deserialize)]
pub struct Description {
    pub pid: i32,
    pub version: String,
    version_num: i32,
    pub is_standby: bool,
    pub is_read_only: bool,
    pub has_fixtures: bool,
    #[serde(skip)]
    pub search_path: String,
    /// The view pg_stat_statements with its schema, quoted, where the role may read it.
    pub statements: Option<String>,
    #[serde(skip)]
    pub settings: Option<Vec<ServerSetting>>,
    /// Views that it has and the role may not read.
    unreadable: Option<Vec<String>>,
    /// WAL senders of which the role may see nothing but that they are there.
    hides_standbys: bool,
}

const DESCRIPTION: &str = "SELECT json_build_object( \
     'pid', pg_backend_pid(), \
     'version', version(), \
     'version_num', current_setting('server_version_num')::int4, \
     'unreadable', (SELECT json_agg(v.name) FROM unnest(ARRAY['pg_stat_wal', 'pg_stat_bgwriter', \
             'pg_stat_checkpointer', 'pg_stat_io', 'pg_stat_activity', 'pg_stat_replication']) AS v (name) \
         WHERE NOT has_table_privilege( \
             to_regclass(concat('pg_catalog.', v.name))::oid, 'SELECT')), \
     'hides_standbys', CASE WHEN has_table_privilege('pg_stat_replication', 'SELECT') \
         THEN EXISTS (SELECT FROM pg_stat_get_wal_senders() s WHERE s.state IS NULL) ELSE false END, \
     'is_standby', pg_is_in_recovery(), \
     'is_read_only', current_setting('transaction_read_only') = 'on', \
     'has_fixtures', coalesce(has_schema_privilege(to_regnamespace('bench')::oid, 'USAGE') \
         AND has_table_privilege(to_regclass('bench.fixtures')::oid, 'SELECT'), false), \
     'statements', (SELECT concat(quote_ident(n.nspname), '.pg_stat_statements') \
         FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
         JOIN pg_attribute a ON a.attname = 'toplevel' AND a.attrelid = to_regclass( \
             concat(quote_ident(n.nspname), '.pg_stat_statements'))::oid \
         WHERE e.extname = 'pg_stat_statements' \
           AND current_setting('pg_stat_statements.max', true) IS NOT NULL))";

impl Description {
    /// Asks for it.
    ///
    /// # Errors
    /// The server's; 54000 for an answer beyond all measure; 08P01 for another answer.
    pub fn ask(session: &mut BlockingSession) -> Result<Self, UserError> {
        let description = session.own_value(DESCRIPTION)?.unwrap_or_default();
        let settings = session.value(SETTINGS_QUERY)?.unwrap_or_default();
        let read = || -> serde_json::Result<Self> {
            let asked: SettingsAnswer = serde_json::from_str(&settings)?;
            let description: Self = serde_json::from_str(&description)?;
            Ok(Self { search_path: asked.search_path, settings: asked.settings, ..description })
        };
        read().map_err(|error| unexpected(&error))
    }

    /// What of its statistics the role can read.
    pub fn views(&self) -> Views {
        Views { version: self.version_num, unreadable: self.unreadable.clone().unwrap_or_default() }
    }

    /// Says which figures of the target the run will not have.
    pub fn tell_what_is_missing(&self, spec: &TargetSpec) {
        let user = quote_identifier(&spec.options.user);
        let unreadable = self.unreadable.iter().flatten();
        let mut missing: Vec<String> = unreadable.map(|view| format!("what {view} shows")).collect();
        if self.hides_standbys {
            missing.push("the lag of its standbys".to_owned());
        }
        if !missing.is_empty() {
            notice(
                format!("role {user} cannot observe {} on target \"{}\"", missing.join(", "), spec.name),
                format!("These figures will be NULL. On the target: GRANT pg_monitor TO {user}."),
            );
        }
    }
}

/// The error for an answer that is not what was asked for.
pub fn unexpected(error: &serde_json::Error) -> UserError {
    UserError::new(sqlstate::PROTOCOL_VIOLATION, "the target's answer is not what was asked for")
        .detail(format!("{}.", untrusted::text(error.to_string().as_bytes(), 0)))
}
