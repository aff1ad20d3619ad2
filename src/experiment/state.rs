//! What is loaded before each run of a sweep. The other steps are in [`crate::run::before`].

use std::collections::BTreeMap;

use bench_base::error::UserError;
use bench_model::spec::{Before, RunArguments, RunOptions};
use bench_questions::sweep::{LoadDescription, SweepOptions, Variant};
use serde_json::{Map, Value};

use crate::launch::handle::LaunchHandle;
use crate::load::prepare;
use crate::run::prepare::workload;
use crate::server::transaction::transaction;

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
