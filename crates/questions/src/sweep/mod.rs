//! What a sweep is asked to do, and the order of its runs.

#[cfg(test)]
mod tests;
mod variant;

use std::collections::{BTreeMap, HashMap, HashSet};

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::Nodes;
use bench_model::spec::{
    Before, DEFAULT_SECS, Extent, Observation, RunArguments, RunOptions, check_count, object, required,
    workload,
};
use bench_results::experiment::{IndexWorth, Screen, SweepSetup};
use bench_results::rehearsal::RehearsalPlan;
use bench_stats::variation;
use bench_stats::variation::{WITHIN, values_needed};
use rand::Rng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use bench_results::experiment::Variant;

pub use variant::one as variant_of;

use crate::capacity::{CapacitySearch, NextTrial, Purpose};

/// More runs than this in one sweep are taken for a mistake.
pub const MAX_RUNS: usize = 10_000;

/// Where no number of rounds is given: the first part of them, by which their number is found; and the most there are.
/// Student's quantile of fewer degrees of freedom would ask for many more.
const FIRST_ROUNDS: i32 = 5;
const MOST_ROUNDS: u32 = 50;

/// Arguments of bench.run that a sweep has places of its own for.
const OWN: [&str; 12] = [
    "workload",
    "clients",
    "secs",
    "warmup",
    "rate",
    "seed",
    "variables",
    "settings",
    "query_mode",
    "nodes",
    "tags",
    "before",
];

/// What SQL handed over. `None` is SQL's NULL.
#[derive(Clone, Debug, Default)]
pub struct SweepArguments {
    pub clients: Option<Vec<Option<i32>>>,
    pub rounds: Option<i32>,
    pub variants: Option<Value>,
    /// Of each run; the number of its clients is a rung's.
    pub run: RunArguments,
    /// The runs are trials of a search, in place of rungs and variants.
    pub search: Option<CapacitySearch>,
    /// Two variants are compared within their rounds.
    pub paired: bool,
    /// Variants that another function than bench.sweep has made, in place of others.
    pub asked: Option<Asked>,
    /// bench.calibrate makes it.
    pub calibrates: bool,
}

impl SweepArguments {
    /// Runs with these clients that are to answer a question.
    pub fn of_asked(asked: Asked, clients: Option<i32>, rounds: i32, run: RunArguments) -> Self {
        Self {
            clients: Some(vec![clients]),
            rounds: Some(rounds),
            run,
            asked: Some(asked),
            ..Self::default()
        }
    }
}

/// Variants that are to answer a question.
#[derive(Clone, Debug)]
pub struct Asked {
    pub question: Question,
    pub variants: Vec<Variant>,
}

/// What a sweep's variants are to tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Which settings matter.
    Screen(Screen),
    /// What indexes are worth.
    IndexWorth(IndexWorth),
    /// What a change does to the load in the middle of which it is made.
    Rehearsal(RehearsalPlan),
}

/// What becomes of a sweep that is taken up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Resumption {
    /// Its missing runs are made.
    #[default]
    GoesOn,
    /// The server did not start as the variant wants it that the sweep waits for: why. Its runs fail, others are made.
    DoesNotStart(String),
    /// No run is made: what it has changed is undone.
    GivesUp,
}

/// Everything a sweep's leader needs to know; travels as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSpec {
    pub options: SweepOptions,
    /// A sweep that ended early and is to be taken up.
    pub resumes: Option<i64>,
    /// What of that sweep is known besides.
    #[serde(default)]
    pub resumption: Resumption,
    pub observation: Observation,
    /// The caller's wait could not release the xmin horizon.
    pub horizon_held: bool,
    /// Name of the role that called, which the leader and all clients connect as.
    pub role: String,
    pub role_oid: u32,
    pub database_oid: u32,
}

/// The validated options of a sweep; travels as JSON and is kept with the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepOptions {
    /// In its `run` are the arguments of bench.run that are not at their defaults and that it has no other place for. A single
    /// variant has no name where none were asked for.
    #[serde(flatten)]
    pub setup: SweepSetup,
    pub before: Vec<Before>,
    pub nodes: String,
    /// How the fixtures were loaded at the begin, by name: what is loaded anew starts from that.
    #[serde(default)]
    pub loaded: BTreeMap<String, LoadDescription>,
    /// The runs are trials of this search, each of which decides on the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<CapacitySearch>,
    /// What its variants are to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The rounds are a first part, which says how many there are to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// Whether bench.calibrate has made it: its runs then show how much equal runs vary.
    #[serde(default)]
    pub calibrates: bool,
}

/// How sure means are to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// The 95 % interval of each rung's mean tps is at most this share to either side.
    pub within: f64,
    /// Rounds at most.
    pub most: u32,
    /// Not the mean of each of the two variants is meant, but that of their ratio.
    pub paired: bool,
}

/// How a fixture was loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadDescription {
    pub rows: i64,
    /// The options of bench.load, with the schema that it is in.
    pub options: Map<String, Value>,
}

impl SweepOptions {
    /// Validates the arguments of `bench.sweep` and `bench.start_sweep`; `random_seed` is taken where none is given.
    /// Calls `pulse` between variants.
    ///
    /// # Errors
    /// 22004 for a NULL where none may be, 22023 for a value out of range or an unknown word, and what
    /// [`RunOptions::new`] says of any of the runs.
    pub fn new(
        arguments: SweepArguments,
        random_seed: i64,
        pulse: &mut dyn FnMut(),
    ) -> Result<Self, UserError> {
        let SweepArguments { clients, rounds, variants, run, search, paired, asked, calibrates } = arguments;
        let rounds_are_open = rounds.is_none();
        let rounds = rounds.unwrap_or(FIRST_ROUNDS);
        if rounds < 1 {
            return Err(UserError::invalid(format!("rounds must be at least 1, not {rounds}"))
                .hint("NULL: as many as each mean needs to be precise."));
        }
        // Those of a search are searches, and have a number.
        let is_open = rounds_are_open && search.is_none();
        let (question, made) = match asked {
            Some(asked) => (Some(asked.question), asked.variants),
            None => (None, variant::parse(required("variants", variants)?)?),
        };
        let others = others(&run);
        let a = run;
        let setup = SweepSetup {
            workload: workload(a.workload, a.script.as_ref())?,
            clients: rungs(required("clients", clients)?)?,
            secs: if a.transactions.is_some() { a.secs } else { Some(a.secs.unwrap_or(DEFAULT_SECS)) },
            rounds: rounds.unsigned_abs(),
            variants: made,
            warmup: a.warmup,
            rate: a.rate,
            variables: bench_model::spec::variables(required("variables", a.variables)?)?,
            settings: object("settings", required("settings", a.settings)?)?,
            seed: a.seed.unwrap_or(random_seed),
            query_mode: required("query_mode", a.query_mode)?,
            tags: object("tags", required("tags", a.tags)?)?,
            run: others,
        };
        let options = Self {
            setup,
            before: Before::parse(&required("before", a.before)?)?,
            nodes: required("nodes", a.nodes)?,
            loaded: BTreeMap::new(),
            search,
            question,
            until: is_open.then_some(Until { within: WITHIN, most: MOST_ROUNDS, paired }),
            calibrates,
        };
        if paired && options.needs_restarts() {
            let message = "a comparison across a restart is no single call";
            return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint(
                "Give both variants to bench.sweep, with rounds; restart the server as it asks for; compare the runs with \
                 bench.compare.",
            ));
        }
        let runs = options.setup.clients.len() * options.setup.variants.len() * options.setup.rounds as usize;
        if runs > MAX_RUNS {
            return Err(UserError::new(
                sqlstate::PROGRAM_LIMIT_EXCEEDED,
                format!("a sweep of {runs} runs is more than {MAX_RUNS}"),
            )
            .detail(format!(
                "Rungs: {}; variants: {}; rounds: {}.",
                options.setup.clients.len(),
                options.setup.variants.len(),
                options.setup.rounds
            )));
        }
        for variant in &options.setup.variants {
            pulse();
            RunOptions::new(options.run_of(variant))?;
        }
        Ok(options)
    }

    /// The arguments of bench.run for one of the runs: a variant's settings and variables go before the sweep's own.
    pub fn run_arguments(&self, variant: &Variant, clients: u32, seed: Option<i64>) -> RunArguments {
        let over = |base: &Map<String, Value>, own: &Map<String, Value>| {
            let mut all = base.clone();
            all.extend(own.clone());
            Some(Value::Object(all))
        };
        // The sweep itself loads fixtures anew. A call of bench.run takes no steps for several nodes; the sweep adds them later.
        let mut before = if self.nodes == Nodes::Local.as_str() { self.before.clone() } else { Vec::new() };
        before.retain(|step| *step != Before::Reload);
        // A variant with another driver has nothing to do with the connections of the sweep's.
        let inherits =
            variant.run.get("driver").is_none_or(|driver| Some(driver) == self.setup.run.get("driver"));
        let mut others = self.setup.run.clone();
        if !inherits {
            others.retain(|name, _| !variant::OF_DRIVERS.contains(&name.as_str()));
        }
        others.extend(variant.run.clone());
        let mut all = RunArguments::with_defaults().to_map();
        all.insert("query_mode".to_owned(), self.setup.query_mode.clone().into());
        all.extend(others);
        // Of the types that they have, as they were written or checked.
        let others: RunArguments = serde_json::from_value(Value::Object(all)).unwrap_or_default();
        let rehearsed = self.rehearsal().filter(|_| variant.sql.is_some());
        RunArguments {
            workload: others.script.is_none().then(|| self.setup.workload.clone()),
            clients: Some(clients.cast_signed()),
            // Its leader ends the run.
            secs: rehearsed.map(RehearsalPlan::max_secs).or(self.setup.secs),
            warmup: self.setup.warmup,
            rate: self.setup.rate,
            seed,
            variables: over(&self.setup.variables, &variant.variables),
            settings: over(&self.setup.settings, &variant.settings),
            sample_interval: others.sample_interval.or_else(|| self.sample_interval_secs()),
            nodes: Some(self.nodes.clone()),
            tags: Some(Value::Object(self.setup.tags.clone())),
            before: Some(Before::text(&before)),
            duel: variant.duel.clone(),
            ..others
        }
    }

    /// The arguments of bench.run for any of a variant's runs.
    pub fn run_of(&self, variant: &Variant) -> RunArguments {
        self.run_arguments(variant, self.setup.clients[0], None)
    }

    /// The plan of `bench.rehearse`.
    pub fn rehearsal(&self) -> Option<&RehearsalPlan> {
        match &self.question {
            Some(Question::Rehearsal(plan)) => Some(plan),
            _ => None,
        }
    }

    /// As of a run by default, but so that a short one has a few samples as well.
    fn sample_interval_secs(&self) -> Option<f64> {
        self.setup.secs.map(|secs| Extent::Secs(secs).sample_interval_secs().min((secs / 5.0).max(0.1)))
    }

    /// Whether any variant changes the database by statements.
    pub fn applies_sql(&self) -> bool {
        self.setup.variants.iter().any(|variant| variant.sql.is_some())
    }

    /// Whether any variant sets parameters of the whole server.
    pub fn changes_system(&self) -> bool {
        self.setup.variants.iter().any(|variant| !variant.system.is_empty()) || self.needs_restarts()
    }

    /// Whether any variant sets parameters that need a restart.
    pub fn needs_restarts(&self) -> bool {
        self.setup.variants.iter().any(|variant| !variant.restart.is_empty())
    }
}

/// The arguments of bench.run that are not at their defaults and that a sweep has no place of its own for.
fn others(run: &RunArguments) -> Map<String, Value> {
    let defaults = RunArguments::with_defaults().to_map();
    let mut others = run.to_map();
    // What is NULL is kept, too, for the runs to refuse it.
    for name in defaults.keys() {
        others.entry(name).or_insert(Value::Null);
    }
    others.retain(|name, value| !OWN.contains(&name.as_str()) && defaults.get(name) != Some(value));
    others
}

fn rungs(clients: Vec<Option<i32>>) -> Result<Vec<u32>, UserError> {
    if clients.is_empty() {
        return Err(UserError::invalid("clients must name at least one rung")
            .hint("For example: clients => '{1,2,4,8}'."));
    }
    check_count("clients", clients.len(), MAX_RUNS, "rungs")?;
    let mut rungs = Vec::with_capacity(clients.len());
    let mut seen = HashSet::new();
    for clients in clients {
        let clients = required("a rung of clients", clients)?;
        if clients < 1 {
            return Err(UserError::invalid(format!("clients must be at least 1, not {clients}")));
        }
        let clients = clients.unsigned_abs();
        if !seen.insert(clients) {
            return Err(UserError::invalid(format!("clients names the rung {clients} twice"))
                .hint("Use rounds to repeat every rung."));
        }
        rungs.push(clients);
    }
    Ok(rungs)
}

// The order of a sweep's runs is random within each round, so that what drifts meanwhile (a machine that grows warm, a
// table that grows) does not fall upon one variant.

/// A run of a sweep: a rung of a variant in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepCell {
    /// From 1.
    pub round: u32,
    /// Index in [`SweepSetup::variants`](bench_results::experiment::SweepSetup::variants).
    pub variant: usize,
    pub clients: u32,
}

impl SweepOptions {
    /// The sweep's runs, in their order; none where they are a search's.
    pub fn plan(&self) -> Vec<SweepCell> {
        if self.search.is_some() { Vec::new() } else { plan(self) }
    }

    /// The runs after those of [`plan`](Self::plan), by the tps of these, where no number of rounds was given.
    pub fn further(&self, done: &[(SweepCell, f64)]) -> Vec<SweepCell> {
        further(self, done)
    }

    /// How sure the least sure mean is by the tps of all runs, as [`Until::within`] has it; `None` where a number of rounds was
    /// given, or runs are missing.
    pub fn reached(&self, done: &[(SweepCell, f64)]) -> Option<f64> {
        reached(self, done)
    }

    /// The seed of the random numbers of a round's runs: the same for all rungs and variants of a round, so that they
    /// differ in nothing else, and another one in each round, so that rounds are samples and not repetitions.
    pub fn seed_of_round(&self, round: u32) -> i64 {
        generator(self.setup.seed, u64::from(round)).next_u64().cast_signed()
    }
}

/// A generator whose numbers stay the same from version to version, for the seed is kept with the sweep.
fn generator(seed: i64, stream: u64) -> Pcg64 {
    Pcg64::new(u128::from(seed.cast_unsigned()), u128::from(stream))
}

/// All runs. Where variants load tables of their own, change the database or need a restart, the runs of one follow each other within a round:
/// that is dear.
fn plan(options: &SweepOptions) -> Vec<SweepCell> {
    (1..=options.setup.rounds).flat_map(|round| of_round(options, round)).collect()
}

/// The runs of a round.
fn of_round(options: &SweepOptions, round: u32) -> Vec<SweepCell> {
    if options.rehearsal().is_some() {
        // The first variant finds the rate of the others.
        let clients = options.setup.clients[0];
        return (0..options.setup.variants.len())
            .map(|variant| SweepCell { round, variant, clients })
            .collect();
    }
    let is_dear = options.needs_restarts()
        || options.setup.variants.iter().any(|variant| !variant.load.is_empty() || variant.sql.is_some());
    let mut random = generator(options.setup.seed, u64::from(round));
    let of =
        |variant| options.setup.clients.iter().map(move |&clients| SweepCell { round, variant, clients });
    let mut variants: Vec<usize> = (0..options.setup.variants.len()).collect();
    if is_dear {
        variants.shuffle(&mut random);
        variants
            .into_iter()
            .flat_map(|variant| {
                let mut rungs: Vec<SweepCell> = of(variant).collect();
                rungs.shuffle(&mut random);
                rungs
            })
            .collect()
    } else {
        let mut all: Vec<SweepCell> = variants.into_iter().flat_map(of).collect();
        all.shuffle(&mut random);
        all
    }
}

/// The rounds after the first ones, where those say how many there are to be: of each rung and variant as many as its tps
/// take; where variants are compared, as many as the ratio of each rung's takes. `done` has the tps of the first rounds' runs.
/// Empty where these are enough, or one of them is missing.
fn further(options: &SweepOptions, done: &[(SweepCell, f64)]) -> Vec<SweepCell> {
    let Some(until) = &options.until else { return Vec::new() };
    let needed = |variant: usize, clients: u32| {
        let first: Option<Vec<f64>> = (1..=options.setup.rounds)
            .map(|round| value(until, done, SweepCell { round, variant, clients }))
            .collect();
        values_needed(&first?, until.within).map(|rounds| rounds.min(until.most))
    };
    let mut rounds = HashMap::new();
    for variant in 0..options.setup.variants.len() {
        for &clients in &options.setup.clients {
            let Some(needed) = needed(variant, clients) else { return Vec::new() };
            rounds.insert((variant, clients), needed);
        }
    }
    let last = rounds.values().copied().max().unwrap_or_default();
    let is_needed = |cell: &SweepCell| cell.round <= rounds[&(cell.variant, cell.clients)];
    let mut further = Vec::new();
    for round in options.setup.rounds + 1..=last {
        let cells: Vec<SweepCell> = of_round(options, round).into_iter().filter(is_needed).collect();
        // Whole rounds, or some rungs would have more of them than others that vary as much.
        if done.len() + further.len() + cells.len() > MAX_RUNS {
            break;
        }
        further.extend(cells);
    }
    further
}

/// What of a rung's round is to be sure: its tps, or the ratio of the two variants.
fn value(until: &Until, done: &[(SweepCell, f64)], cell: SweepCell) -> Option<f64> {
    let tps = |wanted: SweepCell| done.iter().find(|(cell, _)| *cell == wanted).map(|(_, tps)| *tps);
    match until.paired {
        true => Some(tps(SweepCell { variant: 1, ..cell })? / tps(SweepCell { variant: 0, ..cell })?),
        false => tps(cell),
    }
}

/// How far to either side, as a share, the 95 % interval of the least sure mean reaches after all rounds, where their number
/// was not given; `None` where it was, or where runs are missing.
fn reached(options: &SweepOptions, done: &[(SweepCell, f64)]) -> Option<f64> {
    let until = options.until.as_ref()?;
    let mut widest: f64 = 0.0;
    for variant in 0..options.setup.variants.len() {
        for &clients in &options.setup.clients {
            let of = |round| value(until, done, SweepCell { round, variant, clients });
            let first: Vec<f64> = (1..=options.setup.rounds).map(of).collect::<Option<_>>()?;
            let rounds = (1..=until.most).filter(|&round| of(round).is_some()).count();
            widest = widest.max(variation::reached(&first, u32::try_from(rounds).ok()?)?);
        }
    }
    Some(widest)
}

/// So much longer than a trial is the run at an operating rate, which a checkpoint falls into.
const OPERATING_LENGTH: f64 = 3.0;

/// Samples that a trial is to have: the trend of its lag takes 20 of them ([`bench_stats::trend::slope`]), of which some may
/// be without a transaction. None is shorter than so many seconds.
const LEAST_SAMPLES: f64 = 40.0;
const LEAST_INTERVAL_SECS: f64 = 0.1;

/// The first run of a search.
const FIRST: NextTrial = NextTrial { round: 1, purpose: Purpose::Estimate, rate: None };

/// Seconds of a trial from which on the first run of a search warms up until its throughput is steady, which takes as long.
const STEADY_FROM_SECS: f64 = 5.0;

impl SweepOptions {
    /// Measured seconds of a trial.
    fn trial_secs(&self) -> f64 {
        self.setup.secs.unwrap_or(DEFAULT_SECS)
    }

    /// The arguments of bench.run for a trial of the sweep's search, at its place among the runs.
    pub fn trial_arguments(&self, step: &NextTrial, place: u32) -> RunArguments {
        let is_long = step.purpose == Purpose::Operating;
        let secs = if is_long { OPERATING_LENGTH * self.trial_secs() } else { self.trial_secs() };
        let of_run = self.run_arguments(
            &self.setup.variants[0],
            self.setup.clients[0],
            Some(self.seed_of_round(place)),
        );
        let sample_interval = if self.setup.run.contains_key("sample_interval") {
            of_run.sample_interval
        } else {
            let least = (secs / LEAST_SAMPLES).max(LEAST_INTERVAL_SECS);
            Some(Extent::Secs(secs).sample_interval_secs().min(least))
        };
        RunArguments {
            rate: step.rate,
            secs: Some(secs),
            warmup: if *step == FIRST { self.first_warmup_secs() } else { self.setup.warmup },
            sample_interval,
            ..of_run
        }
    }

    /// The warm-up of a search's first run where its runs have none: what a cold server does in its first trials would bound
    /// the answer for good. Short trials are no measure that a warm-up until throughput is steady would be worth.
    fn first_warmup_secs(&self) -> Option<f64> {
        match self.setup.warmup {
            Some(0.0) if self.trial_secs() < STEADY_FROM_SECS => Some(self.trial_secs()),
            Some(0.0) if self.nodes == Nodes::Local.as_str() => None,
            Some(0.0) => Some(self.trial_secs()),
            given => given,
        }
    }
}
