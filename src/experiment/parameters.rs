//! The server that a sweep's variants ask for: parameters of the whole server, restarts that these need, and loads before runs.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Before, RunArguments, RunOptions, plain};
use bench_questions::sweep::{LoadDescription, Resumption, SweepOptions, Variant};
use serde_json::{Map, Value};

use crate::driver::session::Session;
use crate::launch::handle::LaunchHandle;
use crate::load::prepare;
use crate::run::prepare::workload;
use crate::run::server_parameters::{put_back_own, write_for_restart};
use crate::server::guc;
use crate::server::roles::superuser;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::store::{self, Changer, Wait};

/// A variant's parameters, as ALTER SYSTEM takes them.
pub fn wanted(variant: &Variant) -> BTreeMap<String, String> {
    texts(&variant.system)
}

/// Those of a variant that need a restart.
fn wanted_at_start(variant: &Variant) -> BTreeMap<String, String> {
    texts(&variant.restart)
}

fn texts(group: &Map<String, Value>) -> BTreeMap<String, String> {
    group.iter().map(|(name, value)| (name.to_ascii_lowercase(), plain(value))).collect()
}

/// The names of those that any variant sets.
pub fn names(options: &SweepOptions) -> Vec<String> {
    options.setup.variants.iter().flat_map(|variant| wanted(variant).into_keys()).collect()
}

/// # Errors
/// 0A000 for several nodes, 42501 for others than superusers, 42704 for an unknown parameter, 55P02 for one that needs a restart, and what the
/// server says of the value.
pub fn check(options: &SweepOptions) -> Result<(), UserError> {
    if options.changes_system() && !superuser() {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            "must be superuser to set server parameters",
        )
        .hint("Put parameters of the clients' sessions beside \"system\", not into it."));
    }
    if options.changes_system() && options.nodes != "local" {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("a sweep with nodes => '{}' cannot set server parameters", options.nodes),
        )
        .hint("They would be set on this node only. Set them on each node with ALTER SYSTEM, and run one sweep per value."));
    }
    for (name, value) in options.setup.variants.iter().flat_map(wanted) {
        check_of_system(&name, &value)?;
    }
    for (name, value) in options.setup.variants.iter().flat_map(wanted_at_start) {
        check_of_start(&name, &value)?;
    }
    Ok(())
}

/// Checks a parameter of the whole server as ALTER SYSTEM and a reload would, without changing anything.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that a reload does not change; the server's own errors for the rest.
fn check_of_system(name: &str, value: &str) -> Result<(), UserError> {
    let unchangeable = || {
        let message = format!("parameter \"{name}\" cannot be changed without restarting the server");
        UserError::new(sqlstate::CANT_CHANGE_RUNTIME_PARAM, message)
    };
    match context(name)?.as_str() {
        "postmaster" => Err(unchangeable().hint("Put it into the group \"restart\" of a sweep's variant.")),
        "internal" => Err(unchangeable()),
        _ => guc::check_for_reload(name, value),
    }
}

/// Checks a parameter as a start of the server would. What the machine cannot give, such as memory, shows only then.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that cannot be set, 22023 for one that needs no restart; the server's own errors
/// for the rest.
fn check_of_start(name: &str, value: &str) -> Result<(), UserError> {
    match context(name)?.as_str() {
        "postmaster" => guc::check_for_start(name, value),
        "internal" => Err(UserError::new(
            sqlstate::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{name}\" cannot be changed"),
        )),
        _ => Err(UserError::invalid(format!("parameter \"{name}\" needs no restart"))
            .hint("Put it into \"settings\", or into \"system\" if it is the whole server's.")),
    }
}

/// When a parameter can be set, as pg_settings has it.
///
/// # Errors
/// 42704 for an unknown one.
pub fn context(name: &str) -> Result<String, UserError> {
    let sql = "SELECT context FROM pg_settings WHERE lower(name) = lower($1)";
    fetch::<String>(sql, &[name.into()])?.ok_or_else(|| {
        let message = format!("unrecognized configuration parameter \"{name}\"");
        UserError::new(sqlstate::UNDEFINED_OBJECT, message)
    })
}

// Variants that need a restart of the server, which a sweep cannot make itself.
//
// The leader writes a variant's parameters into postgresql.auto.conf and ends. What resumes the sweep after the restart writes
// them again: where none of them asks for a restart any more, the server has them, and the file gets back what it had. So an
// end of the server that nobody asked for brings its own settings back.

/// What the server was started with, as far as a sweep's variants say it.
pub(super) struct Restarts {
    changer: Changer,
    names: Vec<String>,
    /// The variant that it was found to be started for.
    in_force: Option<String>,
    /// What an earlier leader waited for, and variants that it found not to start.
    waited: Option<Wait>,
    /// What is waited for now.
    pub waits: Option<Wait>,
}

impl Restarts {
    /// # Errors
    /// Those of the catalog.
    pub fn new(sweep_id: i64, options: &SweepOptions, resumption: &Resumption) -> Result<Self, UserError> {
        let mut names: Vec<String> =
            options.setup.variants.iter().flat_map(|variant| wanted_at_start(variant).into_keys()).collect();
        names.sort();
        names.dedup();
        let waited = if names.is_empty() { None } else { transaction(|| store::end_wait(sweep_id))? };
        let mut this = Self { changer: Changer::Sweep(sweep_id), names, in_force: None, waited, waits: None };
        if let (Some(wait), Resumption::DoesNotStart(reason)) = (&mut this.waited, resumption) {
            wait.failed.push((wait.variant.clone(), reason.clone()));
        }
        Ok(this)
    }

    /// The run from which on those planned are to be made: earlier ones were tried before the restart.
    pub fn first_place(&self) -> i32 {
        self.waited.as_ref().map_or(0, |wait| wait.place)
    }

    /// Whether the server is known to have a variant's parameters.
    pub fn is_in_force(&self, variant: &Variant) -> bool {
        self.names.is_empty() || self.in_force.as_ref() == Some(&variant.name)
    }

    /// Whether the server has a variant's parameters. If not, they are in the file when this returns, and are to be waited for.
    ///
    /// # Errors
    /// Why it cannot have them.
    pub fn are_done(
        &mut self,
        session: &mut Session,
        place: i32,
        variant: &Variant,
    ) -> Result<bool, UserError> {
        if self.is_in_force(variant) {
            return Ok(true);
        }
        let failed = self.waited.iter().flat_map(|wait| &wait.failed).find(|(name, _)| *name == variant.name);
        if let Some((name, reason)) = failed {
            return Err(does_not_start(name, reason));
        }
        self.in_force = None;
        let wanted = wanted_at_start(variant);
        let Some(missing) = write_for_restart(session, &self.changer, &self.names, wanted)? else {
            self.in_force = Some(variant.name.clone());
            return Ok(true);
        };
        let failed = self.waited.as_ref().map(|wait| wait.failed.clone()).unwrap_or_default();
        let wait = Wait { place, variant: variant.name.clone(), missing, failed, ..transaction(this_start)? };
        let is_restarted =
            |earlier: &Wait| earlier.place == place && earlier.server_start != wait.server_start;
        if self.waited.as_ref().is_some_and(is_restarted) {
            put_back_own(session, &self.changer, &wait.missing.saved)?;
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!(
                    "the restarted server does not have \"{}\" as the variant wants it",
                    wait.missing.pending.join("\", \"")
                ),
            )
            .hint("The server's command line takes precedence over its configuration files."));
        }
        self.waits = Some(wait);
        Ok(false)
    }
}

fn does_not_start(variant: &str, reason: &str) -> UserError {
    let message = format!("the server does not start with variant \"{variant}\": {reason}");
    UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
}

/// The start of this server, and what restarts it.
fn this_start() -> Result<Wait, UserError> {
    let start = fetch::<String>("SELECT pg_postmaster_start_time()::text", &[])?;
    let sql = "SELECT format('%s/pg_ctl restart -D ''%s''', \
                   (SELECT setting FROM pg_config() WHERE name = 'BINDIR'), \
                   replace(current_setting('data_directory'), '''', '''\\'''''))";
    let command = fetch::<String>(sql, &[])?.unwrap_or_default();
    Ok(Wait { command, server_start: start.unwrap_or_default(), ..Wait::default() })
}

/// A load as a sweep makes it.
pub struct SweepLoad {
    pub fixture: String,
    pub rows: Option<i64>,
    pub jobs: Option<i32>,
    pub options: Map<String, Value>,
}

/// The fixtures that a run is to find, by name; each once.
pub(super) fn fixtures_of(arguments: RunArguments) -> Result<Vec<String>, UserError> {
    let mut names = Vec::new();
    let run = RunOptions::new(arguments)?;
    // A script that stands in the call has none.
    let mix = if run.script.is_some() { Vec::new() } else { workload::resolve(&run.mix)? };
    for (workload, _) in mix {
        if let Some(name) = workload.fixture
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// The load that a variant asks for, over what the fixture was loaded with.
///
/// # Errors
/// 22023 where there is not one fixture to be loaded, and for rows and jobs that are no numbers.
pub fn load_of(options: &SweepOptions, variant: &Variant) -> Result<SweepLoad, UserError> {
    let names = fixtures_of(options.run_of(variant))?;
    let [name] = &names[..] else {
        return Err(UserError::invalid(format!(
            "variant \"{}\" loads a fixture, but workload \"{}\" has {}",
            variant.name,
            options.setup.workload,
            names.len()
        ))
        .hint("Load the fixtures before the sweep."));
    };
    let mut load = reload_of(options, name);
    let mut changes = variant.load.clone();
    let mut number = |key: &str| match changes.remove(key) {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            UserError::invalid(format!(
                "{key} of variant \"{}\" must be a whole number, not {value}",
                variant.name
            ))
        }),
    };
    let rows = number("rows")?;
    let jobs = number("jobs")?;
    // Out of range for certain where it does not fit.
    load.jobs = jobs.map(|jobs| i32::try_from(jobs).unwrap_or(-1));
    // It says how many rows there are, as rows does.
    const SCALES: [&str; 2] = ["scale", "warehouses"];
    if rows.is_some() || SCALES.iter().any(|scale| changes.contains_key(*scale)) {
        SCALES.iter().for_each(|scale| drop(load.options.remove(*scale)));
        load.rows = rows;
    }
    load.options.extend(changes);
    Ok(load)
}

/// How the fixtures of a sweep's runs are loaded at this moment; those that are not are left out.
pub fn loaded(options: &SweepOptions) -> Result<BTreeMap<String, LoadDescription>, UserError> {
    let mut all = BTreeMap::new();
    for name in fixtures_of(options.run_of(&options.setup.variants[0]))? {
        if let Some(loaded) = prepare::loaded_as(&name)? {
            all.insert(name, loaded);
        }
    }
    Ok(all)
}

/// A fixture's load as it was at the sweep's begin; with its defaults where it was not loaded.
fn reload_of(options: &SweepOptions, name: &str) -> SweepLoad {
    let loaded = options.loaded.get(name);
    SweepLoad {
        fixture: name.to_owned(),
        rows: loaded.map(|loaded| loaded.rows),
        jobs: None,
        options: loaded.map(|loaded| loaded.options.clone()).unwrap_or_default(),
    }
}

/// The loads before a run.
pub struct State {
    options: SweepOptions,
    /// The round and the variant whose fixture is loaded.
    loaded: Option<(u32, String)>,
}

impl State {
    /// Nothing is loaded yet.
    pub fn new(options: &SweepOptions) -> Self {
        Self { options: options.clone(), loaded: None }
    }

    /// Loads what the variant, or the sweep, wants loaded. `wait` waits for a load's end.
    pub fn load(
        &mut self,
        variant: &Variant,
        round: u32,
        wait: &dyn Fn(&LaunchHandle) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let anew = self.options.before.contains(&Before::Reload);
        // Once in each round: all rounds begin alike.
        let place = (round, variant.name.clone());
        let options = std::panic::AssertUnwindSafe(&self.options);
        let loads = if !variant.load.is_empty() && (anew || self.loaded.as_ref() != Some(&place)) {
            vec![transaction(|| load_of(&options, variant))?]
        } else if anew {
            let arguments = self.options.run_of(variant);
            let names = transaction(|| fixtures_of(arguments.clone()))?;
            names.iter().map(|name| reload_of(&options, name)).collect()
        } else {
            return Ok(());
        };
        self.loaded = None;
        for load in &loads {
            let launched = transaction(|| {
                let (launched, _) = prepare::begin(&load.fixture, &load.options, load.rows, load.jobs)?;
                launched.segment.pin();
                Ok(launched)
            })?;
            let result = wait(&launched);
            launched.leave();
            result?;
        }
        self.loaded = Some(place);
        Ok(())
    }
}
