//! What a sweep is asked to do: the arguments of `bench.sweep`, validated once.

use std::collections::{BTreeMap, HashSet};

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::Nodes;
use bench_model::spec::{
    Before, DEFAULT_SECS, Extent, Observation, RunArguments, RunOptions, limits, object, required, workload,
};
use bench_results::experiment::{SweepSetup, Variant};
use bench_results::index_worth::IndexWorth;
use bench_results::screen::Screen;
use bench_stats::variation::WITHIN;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::variant;
use crate::capacity::CapacitySearch;

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
        RunArguments {
            workload: others.script.is_none().then(|| self.setup.workload.clone()),
            clients: Some(clients.cast_signed()),
            secs: self.setup.secs,
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
    limits::check_count("clients", clients.len(), MAX_RUNS, "rungs")?;
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
