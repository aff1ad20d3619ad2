//! The server-wide parameters of a sweep's variants, the restarts that they need, and the loads before runs.

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

/// Returns a variant's parameters that a reload changes, as ALTER SYSTEM takes them.
pub fn wanted(variant: &Variant) -> BTreeMap<String, String> {
    texts(&variant.system)
}

/// Returns a variant's parameters that need a restart.
fn wanted_at_start(variant: &Variant) -> BTreeMap<String, String> {
    texts(&variant.restart)
}

fn texts(group: &Map<String, Value>) -> BTreeMap<String, String> {
    group.iter().map(|(name, value)| (name.to_ascii_lowercase(), plain(value))).collect()
}

/// Returns the names of all variants' parameters that a reload changes.
pub fn names(options: &SweepOptions) -> Vec<String> {
    options.setup.variants.iter().flat_map(|variant| wanted(variant).into_keys()).collect()
}

/// Checks the variants' server-wide parameters.
///
/// # Errors
/// 0A000 for several nodes, 42501 for others than superusers; those of [`check_for_reload`] and [`check_for_restart`].
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
        check_for_reload(&name, &value)?;
    }
    for (name, value) in options.setup.variants.iter().flat_map(wanted_at_start) {
        check_for_restart(&name, &value)?;
    }
    Ok(())
}

/// Checks a server-wide parameter as ALTER SYSTEM and a reload would, without changing anything.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that a reload does not change; the server's own errors for the rest.
fn check_for_reload(name: &str, value: &str) -> Result<(), UserError> {
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

/// Checks a parameter as a start of the server would, except for resources such as memory.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that cannot be set, 22023 for one that needs no restart; the server's own errors
/// for the rest.
fn check_for_restart(name: &str, value: &str) -> Result<(), UserError> {
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

/// Returns a parameter's context in pg_settings.
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

// Variants that need a restart of the server, which a sweep cannot do itself.
//
// The leader writes a variant's parameters into postgresql.auto.conf and ends. After the restart, the resumed leader writes
// them again. If none needs a restart any more, the server has them, and the file gets its old contents back, so that later
// restarts start the server with its own settings.

/// The parameters that the server was started with, compared with those of a sweep's variants.
pub(super) struct Restarts {
    changer: Changer,
    /// All variants' parameters that need a restart.
    names: Vec<String>,
    /// The variant whose parameters the server is known to have.
    in_force: Option<String>,
    /// The restart that an earlier leader waited for, with variants that the server did not start with.
    waited: Option<Wait>,
    /// The restart to wait for now.
    pub waits: Option<Wait>,
}

impl Restarts {
    /// Takes up the wait of an earlier leader, if there was one.
    ///
    /// # Errors
    /// Those of queries.
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

    /// Returns the place of the first run to make: earlier ones were tried before the restart.
    pub fn first_place(&self) -> i32 {
        self.waited.as_ref().map_or(0, |wait| wait.place)
    }

    /// Whether the server is known to have a variant's parameters.
    pub fn is_in_force(&self, variant: &Variant) -> bool {
        self.names.is_empty() || self.in_force.as_ref() == Some(&variant.name)
    }

    /// Makes sure that the server has a variant's parameters. Returns false if it needs a restart for them, before which they are
    /// written into the file, and sets `waits`.
    ///
    /// # Errors
    /// 55000 if the server does not start with them, or has others after its restart.
    pub fn ensure_in_force(
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

/// Returns a wait with this server's start, and the command that restarts it.
fn this_start() -> Result<Wait, UserError> {
    let start = fetch::<String>("SELECT pg_postmaster_start_time()::text", &[])?;
    let sql = "SELECT format('%s/pg_ctl restart -D ''%s''', \
                   (SELECT setting FROM pg_config() WHERE name = 'BINDIR'), \
                   replace(current_setting('data_directory'), '''', '''\\'''''))";
    let command = fetch::<String>(sql, &[])?.unwrap_or_default();
    Ok(Wait { command, server_start: start.unwrap_or_default(), ..Wait::default() })
}

/// A load before a run of a sweep.
pub struct SweepLoad {
    pub fixture: String,
    pub rows: Option<i64>,
    pub jobs: Option<i32>,
    pub options: Map<String, Value>,
}

/// Returns the names of the fixtures of a run, each once.
pub(super) fn fixtures_of(arguments: RunArguments) -> Result<Vec<String>, UserError> {
    let mut names = Vec::new();
    let run = RunOptions::new(arguments)?;
    // A script passed in the call has no fixture.
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

/// Returns a variant's load: its options over those of the fixture's load at the sweep's begin.
///
/// # Errors
/// 22023 unless the workload has exactly one fixture, and for rows and jobs that are no whole numbers.
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
    // -1 is out of range as well, and so is reported.
    load.jobs = jobs.map(|jobs| i32::try_from(jobs).unwrap_or(-1));
    // Options that determine the number of rows, as rows does.
    const SCALES: [&str; 2] = ["scale", "warehouses"];
    if rows.is_some() || SCALES.iter().any(|scale| changes.contains_key(*scale)) {
        SCALES.iter().for_each(|scale| drop(load.options.remove(*scale)));
        load.rows = rows;
    }
    load.options.extend(changes);
    Ok(load)
}

/// Returns how the loaded fixtures of a sweep's runs were loaded.
pub fn loaded(options: &SweepOptions) -> Result<BTreeMap<String, LoadDescription>, UserError> {
    let mut all = BTreeMap::new();
    for name in fixtures_of(options.run_of(&options.setup.variants[0]))? {
        if let Some(loaded) = prepare::loaded_as(&name)? {
            all.insert(name, loaded);
        }
    }
    Ok(all)
}

/// Returns a load like that of the fixture at the sweep's begin, or one with defaults if it was not loaded.
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
    /// Starts without a load.
    pub fn new(options: &SweepOptions) -> Self {
        Self { options: options.clone(), loaded: None }
    }

    /// Makes the loads of the variant, or of the sweep's step 'reload'. `wait` waits for a load's end.
    pub fn load(
        &mut self,
        variant: &Variant,
        round: u32,
        wait: &dyn Fn(&LaunchHandle) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let reloads = self.options.before.contains(&Before::Reload);
        // A variant's load is made once in each round, so that all rounds begin alike.
        let place = (round, variant.name.clone());
        let options = std::panic::AssertUnwindSafe(&self.options);
        if !variant.load.is_empty() && (reloads || self.loaded.as_ref() != Some(&place)) {
            self.make_loads(&[transaction(|| load_of(&options, variant))?], wait)?;
        } else if reloads {
            self.reload(variant, wait)?;
        } else {
            return Ok(());
        }
        self.loaded = Some(place);
        Ok(())
    }

    /// Loads the fixtures of a variant's runs anew.
    ///
    /// # Errors
    /// Those of loads.
    pub fn reload(
        &mut self,
        variant: &Variant,
        wait: &dyn Fn(&LaunchHandle) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let arguments = self.options.run_of(variant);
        let names = transaction(|| fixtures_of(arguments.clone()))?;
        let loads: Vec<SweepLoad> = names.iter().map(|name| reload_of(&self.options, name)).collect();
        self.make_loads(&loads, wait)
    }

    fn make_loads(
        &mut self,
        loads: &[SweepLoad],
        wait: &dyn Fn(&LaunchHandle) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        self.loaded = None;
        for load in loads {
            let launched = transaction(|| {
                let (launched, _) = prepare::begin(&load.fixture, &load.options, load.rows, load.jobs)?;
                launched.segment.pin();
                Ok(launched)
            })?;
            let result = wait(&launched);
            launched.leave();
            result?;
        }
        Ok(())
    }
}
