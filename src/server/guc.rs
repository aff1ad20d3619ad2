//! Configuration parameters: reading, setting and checking them by the server's own functions.

use std::ffi::{CStr, CString};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use bench_base::error::UserError;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgTryBuilder, pg_sys};

use super::roles::{is_superuser, superuser};
use super::spi::{fetch, quote_identifier};
use crate::error::from_caught;

pub use super::spi::{SAFE_PATH, in_nest_level, restrict, set_local, with_search_path, with_setting};

/// Returns a parameter's value in this session; `None` if it does not exist.
pub fn current(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: a NUL-terminated name; missing_ok, not restricted to what the role may see, for
    // the names this project asks for are harmless.
    unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
    }
}

/// Returns the value that a parameter had when this session began; `None` if it does not exist.
pub fn initial(name: &str) -> Option<String> {
    current(name)?;
    let name = CString::new(name).ok()?;
    // SAFETY: a NUL-terminated name of a parameter that exists. An error is raised only for parameters that only superusers may
    // read, for which this is not called.
    unsafe {
        let value = pg_sys::GetConfigOptionResetString(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
    }
}

/// Whether the server has accepted another value than the default for a parameter of [`define_limit`].
static IS_ACCEPTED: AtomicBool = AtomicBool::new(false);

/// Check hook of such a parameter: the server calls it for values by roles that may set it, and for the default.
extern "C-unwind" fn note_accepted(
    _value: *mut i32,
    _extra: *mut *mut std::ffi::c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    IS_ACCEPTED.fetch_or(source != pg_sys::GucSource::PGC_S_DEFAULT, Relaxed);
    true
}

/// Defines a non-negative parameter that only superusers set. Returns whether the server refused the value that this session
/// began with, so that the parameter has its default.
pub fn define_limit(
    name: &'static CStr,
    summary: &'static CStr,
    details: &'static CStr,
    value: &'static GucSetting<i32>,
) -> bool {
    let placeholder = name.to_str().ok().and_then(initial);
    IS_ACCEPTED.store(false, Relaxed);
    let (context, flags) = (GucContext::Suset, GucFlags::default());
    let hook = Some(note_accepted as _);
    // SAFETY: the hook only stores a flag; it neither panics nor raises an error.
    unsafe {
        GucRegistry::define_int_guc_with_hooks(
            name,
            summary,
            details,
            value,
            0,
            i32::MAX,
            context,
            flags,
            hook,
            None,
            None,
        );
    }
    placeholder.is_some() && !IS_ACCEPTED.load(Relaxed)
}

/// Sets a parameter as the current role's SET LOCAL would, until the end of the (sub)transaction.
///
/// # Errors
/// The server's are raised.
pub fn set_as_session(name: &str, value: &str) -> Result<(), UserError> {
    let (name, value) = (c_text(name)?, c_text(value)?);
    let context = if superuser() { pg_sys::GucContext::PGC_SUSET } else { pg_sys::GucContext::PGC_USERSET };
    // SAFETY: NUL-terminated strings; as SET LOCAL does it (ExecSetVariableStmt in utils/misc/guc.c).
    unsafe {
        pg_sys::set_config_option(
            name.as_ptr(),
            value.as_ptr(),
            context,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_LOCAL,
            true,
            0,
            false,
        );
    }
    Ok(())
}

fn c_text(text: &str) -> Result<CString, UserError> {
    CString::new(text).map_err(|_| UserError::invalid("a setting must not contain a zero byte"))
}

/// Returns the search_path that a new session of the current role begins with, regardless of the caller's SET and of its session
/// user's settings.
pub fn initial_search_path() -> Result<String, UserError> {
    let sql = "WITH given AS ( \
                   SELECT s.setrole, s.setdatabase, substr(c.setting, 13) AS path \
                   FROM pg_db_role_setting s CROSS JOIN unnest(s.setconfig) AS c (setting) \
                   WHERE starts_with(c.setting, 'search_path=') \
                     AND s.setdatabase = ANY (ARRAY[0::oid, \
                         (SELECT oid FROM pg_database WHERE datname = current_database())])) \
               SELECT coalesce( \
                   (SELECT path FROM given WHERE setrole = ANY (ARRAY[0::oid, \
                           (SELECT oid FROM pg_roles WHERE rolname = current_user)]) \
                    ORDER BY setrole = 0, setdatabase = 0 LIMIT 1), \
                   (SELECT CASE WHEN EXISTS (SELECT FROM given JOIN pg_roles r ON r.oid = setrole \
                                             WHERE r.rolname = session_user) \
                                THEN boot_val ELSE reset_val END \
                    FROM pg_settings WHERE name = 'search_path'))";
    Ok(fetch::<String>(sql, &[])?.unwrap_or_default())
}

/// Puts schemas before a search_path, each once.
pub fn search_path_with(schemas: &[&str], own: &str) -> String {
    let mut path: Vec<String> = Vec::new();
    for schema in schemas {
        let schema = quote_identifier(schema);
        if !path.contains(&schema) {
            path.push(schema);
        }
    }
    if !own.trim().is_empty() {
        path.push(own.to_owned());
    }
    path.join(", ")
}

/// Splits the value of a parameter that is a list of names, such as search_path; `None` for other parameters.
///
/// # Errors
/// 22023 for a malformed list.
pub fn list_elements(name: &str, value: &str) -> Result<Option<Vec<String>>, UserError> {
    let malformed = || {
        let message = format!("invalid list syntax in parameter \"{name}\"");
        UserError::invalid(message)
    };
    let parameter = CString::new(name).map_err(|_| malformed())?;
    let value = CString::new(value).map_err(|_| malformed())?;
    // SAFETY: a NUL-terminated name, with missing_ok; SplitGUCList takes apart a copy of its own, palloc'd as it wants it,
    // and gives back a list of pointers into that.
    unsafe {
        if pg_sys::GetConfigOptionFlags(parameter.as_ptr(), true) as u32 & pg_sys::GUC_LIST_QUOTE == 0 {
            return Ok(None);
        }
        let copy = pg_sys::pstrdup(value.as_ptr());
        let mut list = std::ptr::null_mut();
        if !pg_sys::SplitGUCList(copy, b',' as std::ffi::c_char, &raw mut list) {
            return Err(malformed());
        }
        let length = if list.is_null() { 0 } else { (*list).length as usize };
        let element =
            |place| CStr::from_ptr((*(*list).elements.add(place)).ptr_value.cast()).to_string_lossy();
        Ok(Some((0..length).map(|place| element(place).into_owned()).collect()))
    }
}

/// Whether a parameter that lists libraries, such as shared_preload_libraries, contains one, in any directory.
pub fn lists_library(list: &str, library: &str) -> bool {
    let value = current(list).unwrap_or_default();
    let elements = list_elements(list, &value).ok().flatten().unwrap_or_default();
    elements.iter().any(|path| path.rsplit('/').next() == Some(library))
}

/// Checks a value as SET with the rights of a role would, without changing anything.
///
/// # Errors
/// The server's own.
pub fn check_for_session(name: &str, value: &str, setter: pg_sys::Oid) -> Result<(), UserError> {
    let context =
        if is_superuser(setter) { pg_sys::GucContext::PGC_SUSET } else { pg_sys::GucContext::PGC_USERSET };
    check_value(name, value, context, pg_sys::GucSource::PGC_S_SESSION, setter)
}

/// Whether a role may set a parameter in its sessions as well as any other role. Also true for parameters that no session can
/// set, and for those not defined yet.
///
/// # Errors
/// The server's.
pub fn may_set(role: pg_sys::Oid, name: &str) -> Result<bool, UserError> {
    let sql = "SELECT context <> 'superuser' OR has_parameter_privilege($2, name, 'SET') \
               FROM pg_settings WHERE lower(name) = lower($1)";
    Ok(fetch::<bool>(sql, &[name.into(), role.into()])? != Some(false))
}

/// The names of all parameters that the caller may see.
pub fn names() -> Result<Vec<String>, UserError> {
    let sql = "SELECT array_agg(name) FROM pg_settings";
    Ok(fetch::<Vec<String>>(sql, &[])?.unwrap_or_default())
}

/// Returns when a parameter can be set, as in pg_settings; `None` of an unknown one.
pub fn setting_context(name: &str) -> Option<String> {
    fetch::<String>("SELECT context FROM pg_settings WHERE lower(name) = lower($1)", &[name.into()])
        .ok()
        .flatten()
}

/// Checks a value as a reload of the configuration files would, without changing anything.
///
/// # Errors
/// The server's own.
pub fn check_for_reload(name: &str, value: &str) -> Result<(), UserError> {
    check_value(name, value, pg_sys::GucContext::PGC_SIGHUP, pg_sys::GucSource::PGC_S_FILE, BOOTSTRAP)
}

/// Checks a value as a start of the server would, without changing anything.
///
/// # Errors
/// The server's own.
pub fn check_for_start(name: &str, value: &str) -> Result<(), UserError> {
    check_value(name, value, pg_sys::GucContext::PGC_POSTMASTER, pg_sys::GucSource::PGC_S_FILE, BOOTSTRAP)
}

/// The role with whose rights configuration files are read.
const BOOTSTRAP: pg_sys::Oid = pg_sys::Oid::from_u32(pg_sys::BOOTSTRAP_SUPERUSERID);

fn check_value(
    name: &str,
    value: &str,
    context: pg_sys::GucContext::Type,
    source: pg_sys::GucSource::Type,
    setter: pg_sys::Oid,
) -> Result<(), UserError> {
    let (name, value) = (c_text(name)?, c_text(value)?);
    PgTryBuilder::new(|| {
        // SAFETY: NUL-terminated strings. With change_val false nothing is assigned: this is
        // how ALTER ROLE SET checks a value (validate_option_array_item in utils/misc/guc.c).
        unsafe {
            pg_sys::set_config_option_ext(
                name.as_ptr(),
                value.as_ptr(),
                context,
                source,
                setter,
                pg_sys::GucAction::GUC_ACTION_SET,
                false,
                pgrx::PgLogLevel::ERROR as i32,
                false,
            );
        }
        Ok(())
    })
    // Nothing has been changed at this point, and the caller raises the error again.
    .catch_others(|caught| Err(from_caught(caught)))
    .execute()
}

/// Sets a parameter for the rest of this process's session, with a superuser's rights.
pub fn set_for_session(name: &CStr, value: &CStr) {
    // SAFETY: NUL-terminated strings.
    unsafe {
        pg_sys::SetConfigOption(
            name.as_ptr(),
            value.as_ptr(),
            pg_sys::GucContext::PGC_SUSET,
            pg_sys::GucSource::PGC_S_SESSION,
        );
    }
}

/// Whether only superusers may read the parameter.
pub fn is_for_superusers(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return true };
    flags(&name) & pg_sys::GUC_SUPERUSER_ONLY as i32 != 0
}

/// Whether plans may depend on the parameter: those that EXPLAIN (SETTINGS) shows, and those of extensions.
pub fn concerns_plans(name: &CStr) -> bool {
    flags(name) & pg_sys::GUC_EXPLAIN as i32 != 0 || name.to_bytes().contains(&b'.')
}

/// Returns a parameter's GUC_* flags; 0 if it does not exist.
fn flags(name: &CStr) -> i32 {
    // SAFETY: a NUL-terminated name.
    unsafe { pg_sys::GetConfigOptionFlags(name.as_ptr(), true) }
}

/// maintenance_work_mem of this session, in kB.
pub fn maintenance_work_mem_kb() -> i64 {
    // SAFETY: a configuration variable of the server's.
    i64::from(unsafe { pg_sys::maintenance_work_mem })
}

/// Makes the postmaster, and through it all processes, read the configuration files.
pub fn reload() {
    // SAFETY: a signal to this process's own postmaster, as pg_reload_conf sends it.
    unsafe { libc::kill(pg_sys::PostmasterPid, libc::SIGHUP) };
}

/// Whether a reload of the configuration files is pending in this process; resets that.
pub fn take_pending_reload() -> bool {
    // SAFETY: a flag of this process, which its signal handler sets.
    unsafe {
        let is_pending = (&raw const pg_sys::ConfigReloadPending).read_volatile() != 0;
        if is_pending {
            (&raw mut pg_sys::ConfigReloadPending).write_volatile(0);
        }
        is_pending
    }
}

/// Reads the configuration files if a reload is pending, and returns whether it was. Call it in a transaction.
pub fn read_pending_reload() -> bool {
    let is_pending = take_pending_reload();
    if is_pending {
        // SAFETY: what the loops of the server's own processes do (HandleMainLoopInterrupts in postmaster/interrupt.c).
        unsafe { pg_sys::ProcessConfigFile(pg_sys::GucContext::PGC_SIGHUP) };
    }
    is_pending
}

/// Parameters of workers that do the extension's own work, regardless of the role's, the database's and the server's settings for
/// users' sessions: no timeouts, and ordinary transactions.
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
    // With it, every ERROR would end the worker, including those that it expects.
    (c"exit_on_error", c"off"),
];

/// Returns those of [`OWN`] that the server has: transaction_timeout exists from PostgreSQL 17 on.
pub fn own_settings() -> impl Iterator<Item = (&'static CStr, &'static CStr)> {
    OWN.into_iter().filter(|(name, _)| name.to_str().is_ok_and(|name| current(name).is_some()))
}

/// Whether the parameter, in lower case, is one of [`OWN`].
pub fn is_own(name: &str) -> bool {
    OWN.iter().any(|(own, _)| own.to_bytes() == name.as_bytes())
}
