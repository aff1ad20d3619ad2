//! Settings of runs, and the extension's own parameters.

use bench_base::error::{UserError, sqlstate};
use bench_base::words;
use bench_model::cluster::Nodes;
use bench_model::spec::{Driver, Observation, PLAN_ADVICE, Role, RunOptions};
use bench_protocol::is_startup_word;
use pgrx::{GucContext, GucFlags, GucRegistry, GucSetting, PostgresGucEnum};
use serde_json::{Map, Value};

use crate::cluster::citus;
use crate::driver::session::unsupported_settings::{self, UnsupportedSetting};
use crate::error::{notice, warn};
use crate::guard::session_role::{self, setter};
use crate::launch::checks;
use crate::server::guc;
use crate::server::roles::{current_role, current_role_oid};
use crate::server::spi::in_session::fetch;
use crate::server::spi::quote_identifier;

/// The library of [`PLAN_ADVICE`].
const PLAN_ADVICE_MODULE: &str = "pg_plan_advice";

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

static CHECK_CONNECTIONS: GucSetting<bool> = GucSetting::<bool>::new(true);

/// Defines the extension's parameters, once for each process that loads the library.
pub fn define() {
    GucRegistry::define_enum_guc(
        c"pgbench_ext.observation",
        c"Observes waits, WAL, checkpoints and processors during runs.",
        c"The value alternate observes every other interval, to measure the cost of observation.",
        &OBSERVATION,
        GucContext::Userset,
        GucFlags::default(),
    );
    GucRegistry::define_bool_guc(
        c"pgbench_ext.check_connections",
        c"Refuses runs if the nodes of a Citus cluster have too few connections for their clients.",
        c"The check assumes that each client needs a connection to every other node. Turn it off for workloads \
          whose clients use one node.",
        &CHECK_CONNECTIONS,
        GucContext::Userset,
        GucFlags::default(),
    );
    checks::define();
    session_role::define();
}

/// Turns an error of the check of the nodes' connections into a WARNING if pgbench_ext.check_connections is off.
///
/// # Errors
/// That of the check, if it is on.
pub fn judge_connections(checked: Result<(), UserError>) -> Result<(), UserError> {
    match checked {
        Err(error) if !CHECK_CONNECTIONS.get() => {
            let hint = format!(
                "pgbench_ext.check_connections is off, so the run starts. {}",
                error.detail.unwrap_or_default()
            );
            warn(error.message, hint);
            Ok(())
        }
        checked => checked,
    }
}

/// Returns how this session's runs observe the server.
pub fn observation() -> Observation {
    match OBSERVATION.get() {
        ObservationSetting::On => Observation::On,
        ObservationSetting::Off => Observation::Off,
        ObservationSetting::Alternate => Observation::Alternate,
    }
}

/// Checks settings of a run, whose sessions belong to the current role, as these would, without changing anything. `caller` is
/// the role that called for the run, if that is another one.
///
/// # Errors
/// 0A000 for parameters without effect on the driver's sessions; 42501 for those that the caller may not set; the server's own
/// errors for the rest.
pub fn check(
    settings: &[(String, String)],
    driver: Driver,
    nodes: Nodes,
    caller: Option<&Role>,
) -> Result<(), UserError> {
    for (name, value) in settings {
        pgrx::check_for_interrupts!();
        if let Some(unsupported) = unsupported_by(driver, name) {
            let whose = match driver {
                Driver::Engine => "the engine's sessions",
                Driver::Wire => "a run's sessions",
            };
            let message =
                format!("configuration parameter \"{}\" has no effect on {whose}", unsupported.name);
            return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint(unsupported.hint));
        }
        if let Some(removed) = citus::removed_parameter(name)? {
            return Err(removed);
        }
        if driver == Driver::Engine
            && name.eq_ignore_ascii_case(PLAN_ADVICE)
            && !is_preloaded(PLAN_ADVICE_MODULE)
        {
            let message = format!("{PLAN_ADVICE_MODULE} is not loaded in the run's sessions");
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .detail("Advice without it has no effect, and tells nobody.")
                .hint(format!(
                    "PostgreSQL 19 has it: ALTER ROLE … SET session_preload_libraries = '{PLAN_ADVICE_MODULE}', and connect anew."
                )));
        }
        let setter = setter(name, caller)?;
        if setter != current_role_oid() {
            check_set_by_caller(name, driver, nodes)?;
        }
        guc::check_for_session(name, value, setter).map_err(|error| with_hint(name, error))?;
    }
    Ok(())
}

/// Checks that the sessions can get a parameter that the caller may set and their role may not. Sessions over connections set
/// their parameters themselves, with their own role's rights.
///
/// # Errors
/// 42501 for sessions over connections.
fn check_set_by_caller(name: &str, driver: Driver, nodes: Nodes) -> Result<(), UserError> {
    let what = match (driver, nodes) {
        (Driver::Wire, _) => "driver => 'wire'".to_owned(),
        (_, Nodes::Local) => return Ok(()),
        _ => format!("nodes => '{}'", nodes.as_str()),
    };
    let role = current_role();
    let message = format!("permission denied to set parameter \"{name}\" in sessions of role \"{role}\"");
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
        .detail(format!("With {what}, the sessions set their parameters themselves."))
        .hint(format!(
            "Use driver => 'engine' on this node; or GRANT SET ON PARAMETER {} TO {}, and pass run_as => '{role}'.",
            quote_identifier(name),
            quote_identifier(&role)
        )))
}

/// Whether each new session of this role loads the library, by the parameters of this session.
fn is_preloaded(library: &str) -> bool {
    ["shared_preload_libraries", "session_preload_libraries", "local_preload_libraries"]
        .iter()
        .any(|list| guc::lists_library(list, library))
}

/// Checks that no setting has a name with another meaning in a startup message, which sends a connection's settings.
///
/// # Errors
/// 22023 for such a name.
pub fn check_startup(settings: &[(String, String)]) -> Result<(), UserError> {
    let Some((name, _)) = settings.iter().find(|(name, _)| is_startup_word(name)) else { return Ok(()) };
    let message = format!("settings must not have \"{name}\"");
    Err(UserError::invalid(message)
        .detail("In a connection's startup message, this name has another meaning.")
        .hint("Set option user of the user mapping, or options dbname and options of the foreign server."))
}

/// Returns the parameter's entry if it has no effect on the driver's sessions.
fn unsupported_by(driver: Driver, name: &str) -> Option<&'static UnsupportedSetting> {
    unsupported_settings::find(name)
        .filter(|u| driver == Driver::Engine || u.is_unsupported_over_connections())
}

/// Adds a hint to a server's error without one: the name that was probably meant, or how to set a server-wide parameter.
fn with_hint(name: &str, error: UserError) -> UserError {
    if error.hint.is_some() {
        return error;
    }
    let hint = match error.sqlstate.as_str() {
        sqlstate::UNDEFINED_OBJECT => {
            let names = guc::names().unwrap_or_default();
            words::perhaps(name, names.iter().map(String::as_str))
        }
        sqlstate::CANT_CHANGE_RUNTIME_PARAM => {
            let group = match guc::setting_context(name).as_deref() {
                Some("sighup") => Some("system"),
                Some("postmaster") => Some("restart"),
                _ => None,
            };
            group.map(|group| format!(
                "It belongs to the whole server: a superuser's sweep can set it, with variants => '{{\"…\": {{\"{group}\": {{\"{name}\": …}}}}}}'."
            ))
        }
        _ => None,
    };
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Returns the parameters that this session has SET, with their values, without those that do not matter to workers.
fn session_settings(driver: Driver) -> Result<Map<String, Value>, UserError> {
    // The extension itself sets the last two for its own SQL.
    const IRRELEVANT: &str = "application_name,client_encoding,client_min_messages,extra_float_digits,\
                                 standard_conforming_strings,quote_all_identifiers";
    let differing = fetch::<pgrx::JsonB>(
        "SELECT pg_catalog.jsonb_object_agg(name, pg_catalog.current_setting(name)) FROM pg_catalog.pg_settings \
         WHERE source OPERATOR(pg_catalog.=) 'session' AND setting OPERATOR(pg_catalog.<>) reset_val \
           AND NOT name OPERATOR(pg_catalog.=) ANY (pg_catalog.string_to_array($1, ','))",
        &[IRRELEVANT.into()],
    )?;
    let Some(pgrx::JsonB(Value::Object(mut differing))) = differing else { return Ok(Map::new()) };
    // The extension's own parameters take effect in the caller's session.
    differing.retain(|name, _| unsupported_by(driver, name).is_none() && !name.starts_with("pgbench_ext."));
    Ok(differing)
}

fn listed(settings: &Map<String, Value>) -> String {
    settings.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Raises a NOTICE with the `settings` to pass if this session has SET parameters: clients are new sessions.
pub fn tell_what_does_not_apply(options: &RunOptions) -> Result<(), UserError> {
    let mut differing = session_settings(options.driver)?;
    differing.retain(|name, _| !options.settings.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)));
    if !differing.is_empty() {
        pgrx::notice!(
            "clients are new sessions, to which this session's SET of {} does not apply; to apply it, pass settings => '{}'",
            listed(&differing),
            Value::Object(differing.clone())
        );
    }
    Ok(())
}

/// Parameters that bench.load has an option for, with that option.
const LOAD_OPTIONS: [(&str, &str); 4] = [
    ("citus.shard_count", "shard_count"),
    ("citus.shard_replication_factor", "shard_replication_factor"),
    ("default_tablespace", "tablespace"),
    ("search_path", "schema"),
];

/// As [`tell_what_does_not_apply`], for a load with these options.
pub fn tell_what_loads_ignore(options: &Map<String, Value>) -> Result<(), UserError> {
    let mut differing = session_settings(Driver::Engine)?;
    let option_for =
        |name: &str| LOAD_OPTIONS.iter().find(|(parameter, _)| *parameter == name).map(|(_, option)| *option);
    differing.retain(|name, _| option_for(name).is_none_or(|option| !options.contains_key(option)));
    if differing.is_empty() {
        return Ok(());
    }
    let load_options: Vec<&str> = differing.keys().filter_map(|name| option_for(name)).collect();
    let hint = if load_options.is_empty() {
        "To apply it, use ALTER ROLE … SET.".to_owned()
    } else {
        format!(
            "See load option \"{}\"; for other parameters use ALTER ROLE … SET.",
            load_options.join("\", \"")
        )
    };
    let message = format!(
        "a load runs in new sessions, to which this session's SET of {} does not apply",
        listed(&differing)
    );
    notice(message, hint);
    Ok(())
}
