//! Jobs of pg_cron 1.4 or newer (<https://github.com/citusdata/pg_cron>), as the current role.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::guard::extension::check_extension_trusted;
use crate::server::guc::{current, lists_library};
use crate::server::spi::{self, quote_identifier, quote_literal};
use crate::server::{database, roles};

/// The longest name of a job in bytes, which pg_cron stores as type name.
const MAX_NAME_BYTES: usize = pg_sys::NAMEDATALEN as usize - 1;

/// Checks the name of a job.
///
/// # Errors
/// 22023 for an empty name, and for one that pg_cron would truncate.
pub fn check_name(name: &str) -> Result<(), UserError> {
    if (1..=MAX_NAME_BYTES).contains(&name.len()) {
        return Ok(());
    }
    Err(UserError::invalid(format!(
        "the name of a job must have 1 to {MAX_NAME_BYTES} bytes, not {}",
        name.len()
    )))
}

/// Returns the database with pg_cron's jobs; `None` if the server has not loaded pg_cron.
fn home() -> Option<String> {
    // The parameter alone proves nothing: any name with a dot can be set.
    lists_library("shared_preload_libraries", "pg_cron").then(|| current("cron.database_name")).flatten()
}

/// Checks that this session can create and drop jobs. `remote_call` returns the call to make in pg_cron's own database instead.
///
/// # Errors
/// 55000 if pg_cron is not loaded, not created, or in another database; 42501 without USAGE on its schema, and if others than
/// superusers could have replaced its functions.
pub fn check_usable(remote_call: impl FnOnce(&str) -> String) -> Result<(), UserError> {
    let database = database::name()?;
    let Some(home) = home() else {
        let libraries = current("shared_preload_libraries").filter(|list| !list.is_empty());
        let libraries = libraries.map_or("pg_cron".to_owned(), |list| format!("{list}, pg_cron"));
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, "pg_cron is not loaded").hint(format!(
            "Install it, set shared_preload_libraries = {} and cron.database_name = {}, restart the server, and CREATE EXTENSION pg_cron.",
            quote_literal(&libraries),
            quote_literal(&database)
        )));
    };
    if home != database {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("pg_cron is in database \"{home}\", not in this one"),
        )
        .hint(format!("Run there, as a superuser: {}", remote_call(&database))));
    }
    let sql = "SELECT true FROM pg_extension WHERE extname = 'pg_cron'::name";
    if spi::fetch::<bool>(sql, &[])?.is_none() {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            "extension \"pg_cron\" is not installed",
        )
        .hint("Run as a superuser: CREATE EXTENSION pg_cron."));
    }
    check_extension_trusted("pg_cron")?;
    if spi::fetch::<bool>("SELECT has_schema_privilege('cron', 'USAGE')", &[])? == Some(true) {
        return Ok(());
    }
    let role = quote_identifier(&roles::current_role());
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, "permission denied for schema cron")
        .hint(format!("Run as a superuser: GRANT USAGE ON SCHEMA cron TO {role}.")))
}

/// Creates a job of the current role, or changes the one of this name, and returns its id.
///
/// # Errors
/// pg_cron's for the schedule.
pub fn schedule(name: &str, schedule: &str, command: &str) -> Result<i64, UserError> {
    let sql = "SELECT cron.schedule($1, $2, $3)";
    let id = spi::call::<i64>(sql, &[name.into(), schedule.into(), command.into()])?;
    Ok(id.unwrap_or_default())
}

/// Returns the call that creates a job for another database.
pub fn schedule_in_database(name: &str, schedule: &str, command: &str, database: &str) -> String {
    let arguments = [name, schedule, command, database, &roles::current_role()].map(quote_literal);
    format!("SELECT cron.schedule_in_database({});", arguments.join(", "))
}

/// Returns the call that drops the current role's job; any role may make it, while cron.unschedule of a name drops the caller's.
pub fn unschedule_in_database(name: &str) -> String {
    let [name, role] = [name, &roles::current_role()].map(quote_literal);
    format!("SELECT cron.unschedule(jobid) FROM cron.job WHERE jobname = {name} AND username = {role};")
}

/// Drops the current role's job of this name; returns false if there is none.
pub fn unschedule(name: &str) -> Result<bool, UserError> {
    // By its id: superusers see all roles' jobs, and cron.unschedule fails for a name that does not exist.
    let sql = "SELECT jobid FROM cron.job WHERE jobname::text = $1 \
               AND username = current_user::text";
    match spi::fetch::<i64>(sql, &[name.into()])? {
        None => Ok(false),
        Some(id) => {
            let dropped = spi::call::<bool>("SELECT cron.unschedule($1)", &[id.into()])?;
            Ok(dropped.unwrap_or_default())
        }
    }
}
