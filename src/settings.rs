//! Configuration parameters: reading, checking and quoting them by the server's own functions.

use std::ffi::{CStr, CString};

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::Observation;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PgTryBuilder, PostgresGucEnum, pg_sys};

use crate::engine::unserved;
use crate::error::from_caught;
use crate::integration::citus;

/// The values of pgbench_ext.observation.
#[derive(Clone, Copy, PostgresGucEnum)]
enum ObservationSetting {
    #[name = c"on"]
    On,
    #[name = c"off"]
    Off,
    #[name = c"alternate"]
    Alternate,
}

static OBSERVATION: GucSetting<ObservationSetting> =
    GucSetting::<ObservationSetting>::new(ObservationSetting::On);

/// Defines this project's own parameters, once for each process that loads the library.
pub fn define() {
    GucRegistry::define_enum_guc(
        c"pgbench_ext.observation",
        c"Observes waits, WAL, checkpoints and processors during runs.",
        c"The value alternate observes every other interval, which shows what observation costs.",
        &OBSERVATION,
        GucContext::Userset,
        GucFlags::default(),
    );
}

/// Whether this session's runs are to observe the server.
pub fn observation() -> Observation {
    match OBSERVATION.get() {
        ObservationSetting::On => Observation::On,
        ObservationSetting::Off => Observation::Off,
        ObservationSetting::Alternate => Observation::Alternate,
    }
}

/// A parameter's value in this session; `None` for one that does not exist.
pub fn current(name: &str) -> Option<String> {
    let name = CString::new(name).ok()?;
    // SAFETY: a NUL-terminated name; missing_ok, not restricted to what the role may see, for
    // the names this project asks for are harmless.
    unsafe {
        let value = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        (!value.is_null()).then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
    }
}

/// An identifier, quoted where it needs to be.
pub fn quote_identifier(name: &str) -> String {
    pgrx::spi::quote_identifier(name)
}

/// A text as a literal.
pub fn quote_literal(text: &str) -> String {
    pgrx::spi::quote_literal(text)
}

/// The search_path that a new session of this role begins with: the caller's SET does not count, nor does the path of
/// the role that the caller has logged in as.
pub fn initial_search_path() -> Result<String, UserError> {
    let sql = "WITH given AS ( \
                   SELECT s.setrole, s.setdatabase, pg_catalog.substr(c.setting, 13) AS path \
                   FROM pg_catalog.pg_db_role_setting s CROSS JOIN pg_catalog.unnest(s.setconfig) AS c (setting) \
                   WHERE pg_catalog.starts_with(c.setting, 'search_path=') \
                     AND s.setdatabase OPERATOR(pg_catalog.=) ANY (ARRAY[0::pg_catalog.oid, \
                         (SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())])) \
               SELECT coalesce( \
                   (SELECT path FROM given WHERE setrole OPERATOR(pg_catalog.=) ANY (ARRAY[0::pg_catalog.oid, \
                           (SELECT oid FROM pg_catalog.pg_roles WHERE rolname OPERATOR(pg_catalog.=) current_user)]) \
                    ORDER BY setrole OPERATOR(pg_catalog.=) 0, setdatabase OPERATOR(pg_catalog.=) 0 LIMIT 1), \
                   (SELECT CASE WHEN EXISTS (SELECT FROM given JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) setrole \
                                             WHERE r.rolname OPERATOR(pg_catalog.=) session_user) \
                                THEN boot_val ELSE reset_val END \
                    FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'))";
    Ok(crate::catalog::fetch::<String>(sql, &[])?.unwrap_or_default())
}

/// A search_path with schemas put before it, each once.
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

/// Does something under another search_path.
pub fn with_search_path<T>(path: &str, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let path = CString::new(path).unwrap_or_default();
    // SAFETY: as functions with a SET clause do it (fmgr_security_definer in utils/fmgr/fmgr.c): an
    // error that leaves from here ends the transaction, and the nest level with it.
    unsafe {
        let level = pg_sys::NewGUCNestLevel();
        pg_sys::set_config_option(
            c"search_path".as_ptr(),
            path.as_ptr(),
            pg_sys::GucContext::PGC_USERSET,
            pg_sys::GucSource::PGC_S_SESSION,
            pg_sys::GucAction::GUC_ACTION_SAVE,
            true,
            0,
            false,
        );
        let result = work();
        pg_sys::AtEOXact_GUC(true, level);
        result
    }
}

/// Checks the settings of a run as the calling role's session would, without changing anything.
///
/// # Errors
/// 0A000 for what the engine does not do; the server's own errors for the rest.
pub fn check(settings: &[(String, String)]) -> Result<(), UserError> {
    for (name, value) in settings {
        pgrx::check_for_interrupts!();
        if let Some(unserved) = unserved::find(name) {
            return Err(UserError::new(
                sqlstate::FEATURE_NOT_SUPPORTED,
                format!(
                    "configuration parameter \"{}\" has no effect on the engine's sessions",
                    unserved.name
                ),
            )
            .hint(unserved.hint));
        }
        if let Some(gone) = citus::gone_parameter(name)? {
            return Err(gone);
        }
        // SAFETY: looks up the current role.
        let context = if unsafe { pg_sys::superuser() } {
            pg_sys::GucContext::PGC_SUSET
        } else {
            pg_sys::GucContext::PGC_USERSET
        };
        check_value(name, value, context, pg_sys::GucSource::PGC_S_SESSION)?;
    }
    Ok(())
}

/// Checks a parameter of the whole server as ALTER SYSTEM and a reload would, without changing anything.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that a reload does not change; the server's own errors for the rest.
pub fn check_of_system(name: &str, value: &str) -> Result<(), UserError> {
    let sql = "SELECT context FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) pg_catalog.lower($1)";
    match crate::catalog::fetch::<String>(sql, &[name.into()])?.as_deref() {
        None => Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
        Some("internal" | "postmaster") => Err(UserError::new(
            sqlstate::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{name}\" cannot be changed without restarting the server"),
        )
        .hint("Run a sweep before the restart and one after it, and compare them with bench.compare.")),
        Some(_) => check_value(name, value, pg_sys::GucContext::PGC_SIGHUP, pg_sys::GucSource::PGC_S_FILE),
    }
}

/// The elements of a value of a parameter that is a list of names, such as search_path; `None` for other parameters.
///
/// # Errors
/// 22023 for a malformed list.
pub fn list_elements(name: &str, value: &str) -> Result<Option<Vec<String>>, UserError> {
    let malformed = || {
        let message = format!("invalid list syntax in parameter \"{name}\"");
        UserError::new(sqlstate::INVALID_PARAMETER_VALUE, message)
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

fn check_value(
    name: &str,
    value: &str,
    context: pg_sys::GucContext::Type,
    source: pg_sys::GucSource::Type,
) -> Result<(), UserError> {
    let text = |text: &str| {
        CString::new(text).map_err(|_| {
            UserError::new(sqlstate::INVALID_PARAMETER_VALUE, "a setting must not contain a zero byte")
        })
    };
    let (name, value) = (text(name)?, text(value)?);
    PgTryBuilder::new(|| {
        // SAFETY: NUL-terminated strings. With change_val false nothing is assigned: this is
        // how ALTER ROLE SET checks a value (validate_option_array_item in utils/misc/guc.c).
        unsafe {
            pg_sys::set_config_option(
                name.as_ptr(),
                value.as_ptr(),
                context,
                source,
                pg_sys::GucAction::GUC_ACTION_SET,
                false,
                pgrx::PgLogLevel::ERROR as i32,
                false,
            );
        }
        Ok(())
    })
    // Nothing was written and nothing is held at this point, and the error is raised again
    // with its own SQLSTATE by the caller.
    .catch_others(|caught| Err(from_caught(caught)))
    .execute()
}

/// A client is a new session: what the caller has SET does not reach it. Says so, with the
/// `settings` to pass.
pub fn tell_what_does_not_apply(given: &[(String, String)]) -> Result<(), UserError> {
    const OF_THE_CLIENT: &str = "application_name,client_encoding,client_min_messages,extra_float_digits";
    let differing = crate::catalog::fetch::<pgrx::JsonB>(
        "SELECT pg_catalog.jsonb_object_agg(name, pg_catalog.current_setting(name)) FROM pg_catalog.pg_settings \
         WHERE source OPERATOR(pg_catalog.=) 'session' AND setting OPERATOR(pg_catalog.<>) reset_val \
           AND NOT name OPERATOR(pg_catalog.=) ANY (pg_catalog.string_to_array($1, ','))",
        &[OF_THE_CLIENT.into()],
    )?;
    let Some(pgrx::JsonB(serde_json::Value::Object(mut differing))) = differing else { return Ok(()) };
    differing.retain(|name, _| {
        // This project's own are the caller's.
        unserved::find(name).is_none()
            && !name.starts_with("pgbench_ext.")
            && !given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
    });
    if !differing.is_empty() {
        let names: Vec<&str> = differing.keys().map(String::as_str).collect();
        pgrx::notice!(
            "clients are new sessions, to which this session's SET of {} does not apply; to apply it, pass settings => '{}'",
            names.join(", "),
            serde_json::Value::Object(differing.clone())
        );
    }
    Ok(())
}
