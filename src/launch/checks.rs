//! Checks before any worker starts, apart from those of arguments: the server, roles and their limits, locks, and scripts'
//! lengths.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Role, RunOptions, ScriptSpec};
use pgrx::{GucSetting, pg_sys};

use crate::guard::session_role;
use crate::server::roles::{self, current_role_oid, superuser};
use crate::server::spi::{self, quote_identifier};
use crate::server::{database, guc, relations};
use crate::store;

/// Checks that results can be written.
///
/// # Errors
/// 25006 on a standby and in a read-only transaction; those of [`check_encoding`].
pub fn check_server() -> Result<(), UserError> {
    check_encoding()?;
    let read_only = |message| UserError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, message);
    if database::is_standby() {
        return Err(read_only("cannot run a benchmark on a standby, where its results cannot be recorded")
            .hint("Run it on the primary, with the standby as its target: see bench.help('run')."));
    }
    if database::is_read_only() {
        return Err(read_only("cannot run a benchmark in a read-only transaction")
            .hint("Use SET TRANSACTION READ WRITE, and see default_transaction_read_only."));
    }
    Ok(())
}

/// Checks that the tables of schema bench can be written; `action` completes "cannot".
///
/// # Errors
/// 25006 on a standby.
pub fn check_writable(action: &str) -> Result<(), UserError> {
    if !database::is_standby() {
        return Ok(());
    }
    Err(UserError::new(sqlstate::READ_ONLY_SQL_TRANSACTION, format!("cannot {action} on a standby"))
        .hint("Do it on the primary, from which the standby receives it."))
}

/// Checks the database's encoding: scripts and messages are passed between processes as UTF-8.
///
/// # Errors
/// 0A000 for other encodings than UTF8 and SQL_ASCII.
pub fn check_encoding() -> Result<(), UserError> {
    if database::is_utf8() {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::FEATURE_NOT_SUPPORTED,
        "benchmarks run only in databases with encoding UTF8 or SQL_ASCII",
    ))
}

/// As [`check_session_of`], for the current role.
pub fn check_role() -> Result<(), UserError> {
    check_session_of(&roles::current())
}

/// Checks that a role can log in and connect to this database: workers are new sessions of it.
///
/// # Errors
/// 28000 for a role without LOGIN, 42501 without CONNECT.
pub fn check_session_of(role: &Role) -> Result<(), UserError> {
    let sql = "SELECT rolcanlogin FROM pg_roles WHERE oid = $1";
    let oid = pg_sys::Oid::from(role.oid);
    let name = &role.name;
    if spi::fetch::<bool>(sql, &[oid.into()])? != Some(true) {
        return Err(UserError::new(
            sqlstate::INVALID_AUTHORIZATION,
            format!("role \"{name}\" is not permitted to log in"),
        )
        .detail("Each client of a run is a new session of this role.")
        .hint(format!("Use ALTER ROLE {} LOGIN, or another role that may log in.", quote_identifier(name))));
    }
    let sql = "SELECT has_database_privilege($1, $2, 'CONNECT')";
    if spi::fetch::<bool>(sql, &[oid.into(), database::oid().into()])? == Some(true) {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::INSUFFICIENT_PRIVILEGE,
        format!("permission denied for database \"{}\"", database::name()?),
    )
    .detail(format!("Each client of a run is a new session of role \"{name}\", which needs CONNECT.")))
}

/// Checks the CONNECTION LIMIT of the current role and the database, which the server does not enforce for background workers.
///
/// # Errors
/// 53300 for more clients than that.
pub fn check_connection_limit(clients: u32) -> Result<(), UserError> {
    check_connection_limit_of(&roles::current(), clients)
}

/// As [`check_connection_limit`], for another role.
pub fn check_connection_limit_of(role: &Role, clients: u32) -> Result<(), UserError> {
    match connection_limit_of(role.oid.into())? {
        Some((limit, whose)) if clients > limit => {
            let name = if whose == "role" { role.name.clone() } else { database::name()? };
            let message = format!("too many clients for {whose} \"{name}\"");
            Err(UserError::new(sqlstate::TOO_MANY_CONNECTIONS, message)
                .detail(format!("Clients: {clients}; the {whose}'s CONNECTION LIMIT: {limit}.")))
        }
        _ => Ok(()),
    }
}

/// Returns the lower CONNECTION LIMIT of the current role and the database, if there is one.
pub fn connection_limit() -> Result<Option<u32>, UserError> {
    Ok(connection_limit_of(current_role_oid())?.map(|(limit, _)| limit))
}

/// Returns the lower of the limits, and whose it is: `role` or `database`. As in the server they do not apply to superusers.
/// They do not apply to the extension's own roles either, whose limit refuses connections but not workers.
fn connection_limit_of(role: pg_sys::Oid) -> Result<Option<(u32, String)>, UserError> {
    let sql = "SELECT l.value, l.whose FROM pg_roles r, pg_database d, \
                   LATERAL (VALUES (r.rolconnlimit, 'role'), (d.datconnlimit, 'database')) AS l (value, whose) \
               WHERE r.oid = $1 AND NOT r.rolsuper AND l.value >= 0 \
                 AND r.rolname <> ALL ($2::name[]) \
                 AND d.datname = current_database() \
               ORDER BY l.value, l.whose DESC LIMIT 1";
    let limits = spi::fetch_all(sql, &[role.into(), session_role::own_names().into()], |row| {
        Ok((row.get::<i32>(1)?, row.get::<String>(2)?))
    })?;
    let limit = limits.into_iter().next();
    Ok(limit.and_then(|(limit, whose)| Some((u32::try_from(limit?).ok()?, whose?))))
}

/// Checks that this session holds no lock on the tables that conflicts with lock mode `needed`.
///
/// # Errors
/// 55006 for such a lock.
pub fn check_own_locks(
    tables: &[pg_sys::Oid],
    needed: i32,
    who_waits: &str,
    hint: &str,
) -> Result<(), UserError> {
    let held = store::as_owner(|| {
        spi::fetch_all(
            "SELECT l.relation::regclass::text, l.mode FROM pg_locks l \
             WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted \
               AND l.database = (SELECT oid FROM pg_database \
                                 WHERE datname = current_database()) \
               AND (l.relation = ANY ($1) \
                    OR l.relation IN (SELECT indexrelid FROM pg_index WHERE indrelid = ANY ($1))) \
             ORDER BY l.relation = ANY ($1) DESC, l.relation",
            &[tables.to_vec().into()],
            |row| {
                let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
                Ok((text(1)?, text(2)?))
            },
        )
    })?;
    for (relation, mode) in held {
        if relations::do_conflict(relations::mode_of_name(&mode), needed) {
            return Err(UserError::new(
                sqlstate::OBJECT_IN_USE,
                format!("this session holds a lock on {relation} that {who_waits} would wait for"),
            )
            .detail(format!("The session holds {mode}. It would wait for the run, and the run for its lock."))
            .hint(hint));
        }
    }
    Ok(())
}

/// Returns the strongest lock mode that the scripts take on tables, judged by their text: ACCESS SHARE if each line is a SELECT,
/// otherwise ROW EXCLUSIVE.
pub fn lock_of(scripts: &[ScriptSpec]) -> i32 {
    let only_reads = |source: &str| {
        source
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.is_empty() && !line.starts_with('\\') && !line.starts_with("--"))
            .all(|line| line.get(..6).is_some_and(|word| word.eq_ignore_ascii_case("select")))
    };
    if scripts.iter().all(|script| only_reads(&script.source)) {
        pg_sys::AccessShareLock as i32
    } else {
        pg_sys::RowExclusiveLock as i32
    }
}

/// Checks that a workload with keying and think times is not combined with a rate.
///
/// # Errors
/// 22023 if it is.
pub fn check_terminals(scripts: &[ScriptSpec], options: &RunOptions) -> Result<(), UserError> {
    let Some(script) = scripts.iter().find(|script| script.terminal.is_some()) else { return Ok(()) };
    if options.rate.is_none() {
        return Ok(());
    }
    let message = format!("rate cannot be combined with workload \"{}\"", script.name);
    Err(UserError::invalid(message)
        .detail("Its clients have keying and think times of their own.")
        .hint("Leave rate out, and change the number of clients to change the load."))
}

/// Whether a script has transaction blocks, judged by its text.
pub fn has_blocks(scripts: &[ScriptSpec]) -> bool {
    let opens = |line: &str| {
        let word = line.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        word.eq_ignore_ascii_case("begin") || word.eq_ignore_ascii_case("start")
    };
    // Several statements may stand on a line.
    scripts.iter().flat_map(|script| script.source.split(['\n', ';'])).any(opens)
}

/// The longest script in bytes.
pub const MAX_SCRIPT: usize = 16 << 20;

/// Checks the total length of scripts: parsed ones take several times as much memory, in every client.
///
/// # Errors
/// 54000 for more than [`MAX_SCRIPT`].
pub fn check_length<'a>(scripts: impl IntoIterator<Item = &'a str>) -> Result<(), UserError> {
    let length: usize = scripts.into_iter().map(str::len).sum();
    if length <= MAX_SCRIPT {
        return Ok(());
    }
    let message = format!("scripts must not be longer than {MAX_SCRIPT} bytes in total, not {length}");
    Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message))
}

static MAX: GucSetting<i32> = GucSetting::<i32>::new(0);

/// Whether the server refused the value that this session began with when the library was loaded. The limit is unknown then: a
/// value in the connection's options hides those of the server, the database and the role.
static IS_HIDDEN: AtomicBool = AtomicBool::new(false);

/// Defines pgbench_ext.max_clients_per_role, which only superusers set, for the server, a database or a role.
pub fn define() {
    let is_refused = guc::define_limit(
        c"pgbench_ext.max_clients_per_role",
        c"Sets the maximum number of clients of a role in all of its active runs.",
        c"Workers of its loads and sweeps count as well. Superusers have no limit. 0: no limit.",
        &MAX,
    );
    IS_HIDDEN.store(is_refused, Relaxed);
}

/// Returns the current role's limit of clients; `None` without a limit.
///
/// # Errors
/// 42501 if the connection's options tried to set it.
pub fn limit() -> Result<Option<u64>, UserError> {
    if superuser() {
        return Ok(None);
    }
    if IS_HIDDEN.load(Relaxed) {
        let message = "permission denied to set parameter \"pgbench_ext.max_clients_per_role\"";
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail("This session began with a value that the server refused, so the role's limit is unknown here.")
            .hint(
                "Connect without this parameter in PGOPTIONS and in the connection string. If it is not there, a superuser \
                 has set an invalid value for the server, the database or the role.",
            ));
    }
    Ok(u64::try_from(MAX.get()).ok().filter(|&limit| limit > 0))
}

/// Checks that the current role may have this many more clients.
///
/// # Errors
/// 53300 if it may not; those of [`limit`].
pub fn check(clients: u64) -> Result<(), UserError> {
    limit()?.map_or(Ok(()), |limit| store::check_clients(current_role_oid(), clients, limit))
}

/// Returns how many more clients the current role may have; `None` without a limit.
///
/// # Errors
/// Those of [`limit`].
pub fn room() -> Result<Option<u64>, UserError> {
    let left = |limit: u64| Ok(limit.saturating_sub(store::clients_of(current_role_oid())?));
    limit()?.map(left).transpose()
}
