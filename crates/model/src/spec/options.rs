//! The arguments of `bench.run`, validated once.

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments::RunArguments;
use super::duel::Duel;
use super::script::{ScriptSpec, Share, mix};
use super::values::{
    Before, Driver, OnDisconnect, QueryMode, Results, check_text, object, required, settings, unsupported,
    variables, word,
};
use crate::cluster::Nodes;
use crate::schedule::{MAX_RATE, Rates};

/// The longest duration accepted anywhere, in seconds: a year.
const MAX_SECS: f64 = 366.0 * 86_400.0;

/// Measured seconds where nothing else is said.
pub const DEFAULT_SECS: f64 = 10.0;

/// The longest samples that a warm-up until throughput is steady is judged by, in seconds.
const JUDGED_SECS: f64 = 0.25;

/// How long a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// Measured seconds, after the warm-up.
    Secs(f64),
    /// Transactions of each client.
    Transactions(u64),
}

impl Default for Extent {
    fn default() -> Self {
        Self::Secs(DEFAULT_SECS)
    }
}

impl Extent {
    /// The default length of a sample, in seconds. Runs of 15 seconds and more have at least 60 samples, so that dips are
    /// visible. Backends report their counters once a second, which each length divides.
    pub fn sample_interval_secs(self) -> f64 {
        match self {
            Self::Secs(secs) if secs < 30.0 => 0.25,
            Self::Secs(secs) if secs < 60.0 => 0.5,
            _ => 1.0,
        }
    }
}

/// The name of a script that is given instead of a workload, in results and messages.
pub const SCRIPT: &str = "script";

/// The validated options of a run, apart from what has to be looked up in the server. As JSON they are the arguments that make
/// them, by their names, which are those of the columns of bench_internal.run_log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// A workload's name or a weighted mix, as given; [`SCRIPT`] for a script that is given instead.
    pub workload: String,
    /// The script that is given instead of a workload.
    pub script: Option<String>,
    /// The workloads of the mix, at least one, whose weights do not add up to zero.
    pub mix: Vec<Share>,
    /// Concurrent sessions, at least one.
    pub clients: u32,
    #[serde(flatten)]
    pub extent: Extent,
    /// Transactions per second of all clients that are to be started: an open loop.
    pub rate: Option<f64>,
    /// Where it changes over the measured time; then `rate` is its mean.
    pub rates: Option<Rates>,
    /// Milliseconds above which a transaction is late.
    #[serde(rename = "latency_limit")]
    pub latency_limit_ms: Option<f64>,
    pub driver: Driver,
    pub query_mode: QueryMode,
    /// Seconds run but not counted; `None`: until throughput is steady, [`LONGEST_SECS`](bench_stats::until_steady::LONGEST_SECS) at most.
    #[serde(rename = "warmup")]
    pub warmup_secs: Option<f64>,
    /// Tries per transaction at a serialization failure or deadlock; 0: no limit.
    pub max_tries: u32,
    /// `None`: a random one is to be drawn and recorded.
    pub seed: Option<i64>,
    /// Script variables, by name.
    pub variables: Map<String, Value>,
    /// Configuration parameters of every client's session: name and value as text.
    #[serde(with = "by_name")]
    pub settings: Vec<(String, String)>,
    /// Length of a sample.
    #[serde(rename = "sample_interval")]
    pub sample_interval_secs: f64,
    pub results: Results,
    pub nodes: Nodes,
    /// The user's own labels, kept with the run.
    pub tags: Map<String, Value>,
    /// What is done before the run.
    #[serde(with = "as_text")]
    pub before: Vec<Before>,
    /// Share of the transactions that are kept one by one; 0: none.
    pub log_rate: f64,
    /// Whether the run ends as soon as an error ends a client.
    pub exit_on_abort: bool,
    /// Whether clients go on after errors of statements.
    pub continue_on_error: bool,
    /// The foreign server that [`Driver::Wire`] connects to; `None`: this server and database.
    pub target: Option<String>,
    /// Workers that share the connections of [`Driver::Wire`], where a number is given.
    pub jobs: Option<u32>,
    /// Whether each transaction has a connection of its own.
    pub reconnect: bool,
    pub on_disconnect: OnDisconnect,
    /// The role whose sessions the clients are; `None`: the caller's, or those of the roles that were captured.
    pub run_as: Option<String>,
    /// The arms of a duel.
    pub duel: Option<Duel>,
}

/// Steps as the text that [`Before::parse`] takes.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::spec::values::Before;

    pub fn serialize<S: Serializer>(steps: &[Before], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Before::text(steps))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Before>, D::Error> {
        Before::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// Settings as a JSON object.
mod by_name {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(all: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(all.iter().map(|(name, value)| (name, value)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, String)>, D::Error> {
        Ok(BTreeMap::deserialize(from)?.into_iter().collect())
    }
}

impl RunOptions {
    /// Validates the arguments of `bench.run` and `bench.start`.
    ///
    /// # Errors
    /// 22004 for a NULL where none may be, 22023 for a value out of range, 54000 for one that is too long, 0A000
    /// for what the contract names and this version lacks.
    pub fn new(arguments: RunArguments) -> Result<Self, UserError> {
        let a = arguments;
        let workload = workload(a.workload, a.script.as_ref())?;
        check_text("workload", &workload)?;
        let clients = required("clients", a.clients)?;
        if clients < 1 {
            return Err(UserError::invalid(format!("clients must be at least 1, not {clients}")));
        }
        let extent = extent(a.secs, a.transactions)?;
        let sample_interval_secs = a.sample_interval.unwrap_or_else(|| extent.sample_interval_secs());
        if !(0.1..=3600.0).contains(&sample_interval_secs) {
            return Err(UserError::invalid(format!(
                "sample_interval must be between 0.1 and 3600 seconds, not {sample_interval_secs}"
            )));
        }
        let max_tries = required("max_tries", a.max_tries)?;
        if max_tries < 0 {
            return Err(UserError::invalid(format!("max_tries must not be negative: {max_tries}"))
                .hint("Use 0 for no limit."));
        }
        let (rate, rates) = rates(a.rate, a.rates, extent, a.warmup)?;
        let most = MAX_SECS * 1e3;
        let latency_limit_ms = between("latency_limit", a.latency_limit, 1e-6, most, "milliseconds")?;
        if max_tries == 0 && latency_limit_ms.is_none() && matches!(extent, Extent::Transactions(_)) {
            return Err(UserError::invalid("unlimited tries require a time limit")
                .hint("Set secs instead of transactions, or latency_limit, or max_tries above 0."));
        }
        let nodes: Nodes = word("nodes", a.nodes)?;
        let exit_on_abort = required("exit_on_abort", a.exit_on_abort)?;
        if exit_on_abort && nodes != Nodes::Local {
            return Err(unsupported(&format!("exit_on_abort with nodes => '{}'", nodes.as_str())));
        }
        let warmup_secs = warmup(a.warmup, nodes)?;
        if let Some(jobs) = a.jobs.filter(|&jobs| jobs < 1) {
            return Err(UserError::invalid(format!("jobs must be at least 1, not {jobs}")));
        }
        let log_rate = required("log_rate", a.log_rate)?;
        if !(0.0..=1.0).contains(&log_rate) {
            return Err(UserError::invalid(format!("log_rate must be between 0 and 1, not {log_rate}"))
                .hint("It is the share of the transactions to log: 0.01 for one in a hundred."));
        }
        let options = Self {
            mix: mix(&workload)?,
            workload,
            script: a.script,
            exit_on_abort,
            continue_on_error: required("continue_on_error", a.continue_on_error)?,
            target: a.target,
            jobs: a.jobs.map(i32::unsigned_abs),
            reconnect: required("reconnect", a.reconnect)?,
            on_disconnect: word("on_disconnect", a.on_disconnect)?,
            run_as: a.run_as,
            rate,
            rates,
            latency_limit_ms,
            driver: word("driver", a.driver)?,
            query_mode: word("query_mode", a.query_mode)?,
            clients: clients.unsigned_abs(),
            extent,
            warmup_secs,
            max_tries: max_tries.unsigned_abs(),
            seed: a.seed,
            variables: with_arms(variables(required("variables", a.variables)?)?, a.duel.as_ref()),
            duel: a.duel,
            settings: settings(required("settings", a.settings)?)?,
            sample_interval_secs,
            results: word("results", a.results)?,
            nodes,
            tags: object("tags", required("tags", a.tags)?)?,
            before: Before::parse(&required("before", a.before)?)?,
            log_rate,
        };
        check_driver(&options)?;
        check_run_as(&options)?;
        options.duel.as_ref().map_or(Ok(()), |duel| duel.check(&options))?;
        Ok(options)
    }

    /// How the statements of a script reach the server.
    pub fn query_mode_of(&self, script: &ScriptSpec) -> QueryMode {
        let arm = self.duel.as_ref().zip(script.arm).map(|(duel, arm)| &duel.arms[arm]);
        arm.and_then(|arm| arm.query_mode).unwrap_or(self.query_mode)
    }

    /// The length of the warm-up's samples, in seconds. Where its end is not given, throughput is judged by them.
    pub fn warmup_interval_secs(&self) -> f64 {
        match self.warmup_secs {
            Some(_) => self.sample_interval_secs,
            None => self.sample_interval_secs.min(JUDGED_SECS),
        }
    }

    /// The arguments that make these options.
    ///
    /// # Errors
    /// 22023 for numbers that no argument can have.
    pub fn arguments(&self) -> Result<RunArguments, UserError> {
        let arguments = serde_json::to_value(self).and_then(serde_json::from_value::<RunArguments>);
        let mut arguments = arguments.map_err(|error| UserError::invalid(error.to_string()))?;
        if self.script.is_some() {
            arguments.workload = None;
        }
        if self.rates.is_some() {
            arguments.rate = None;
        }
        Ok(arguments)
    }
}

impl Duel {
    /// # Errors
    /// 0A000 for what the run's other options make impossible.
    fn check(&self, options: &RunOptions) -> Result<(), UserError> {
        let refused = |what: &str| {
            UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, format!("a duel with {what} is not supported"))
        };
        let compare = "Compare whole runs with bench.ab.";
        if options.nodes != Nodes::Local {
            return Err(refused(&format!("nodes => '{}'", options.nodes.as_str())).hint(compare));
        }
        if let Extent::Transactions(_) = options.extent {
            return Err(refused("transactions").hint("Its batches are parts of the time: set secs."));
        }
        if self.other_target().is_some() {
            if !options.clients.is_multiple_of(2) {
                return Err(UserError::invalid(format!(
                    "a duel of two targets needs an even number of clients, not {}",
                    options.clients
                ))
                .hint("Half of them connect to the target of each arm."));
            }
            if !options.before.is_empty() {
                return Err(refused("before and two targets").hint("Prepare both servers before the call."));
            }
        }
        if options.driver == Driver::Engine {
            return Ok(());
        }
        if options.reconnect || options.on_disconnect == OnDisconnect::Reconnect {
            return Err(refused("connections that change").hint("What an arm sets would be lost with them."));
        }
        // They stand in statements as they are.
        let is_plain = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        };
        let mut names = self.arms.iter().flat_map(|arm| &arm.settings).map(|(name, _)| name);
        if let Some(name) = names.find(|name| !is_plain(name)) {
            return Err(UserError::invalid(format!("invalid name of a configuration parameter: \"{name}\"")));
        }
        if self.arms.iter().any(|arm| arm.role_settings.is_some()) {
            return Err(refused("role_settings over connections"));
        }
        if self.arms.iter().any(|arm| arm.results.is_some()) {
            return Err(refused("results over connections"));
        }
        if self.arms.iter().any(|arm| !arm.hide_indexes.is_empty()) {
            return Err(refused("hide_indexes over connections")
                .hint("Only sessions of driver => 'engine' can be without an index."));
        }
        Ok(())
    }
}

/// The rate, and those that change, of which it is the mean over the measured time.
///
/// # Errors
/// 22023 for both, for what is out of range, and where it is not known when which rate is due, or that is never any.
fn rates(
    rate: Option<f64>,
    rates: Option<Value>,
    extent: Extent,
    warmup: Option<f64>,
) -> Result<(Option<f64>, Option<Rates>), UserError> {
    let rate = between("rate", rate, 1e-6, MAX_RATE, "transactions per second")?;
    let Some(rates) = rates else { return Ok((rate, None)) };
    let rates = Rates::parse(&rates)?;
    if rate.is_some() {
        return Err(UserError::invalid("rate and rates are mutually exclusive"));
    }
    let Extent::Secs(secs) = extent else {
        return Err(UserError::invalid("rates and transactions are mutually exclusive").hint("Set secs."));
    };
    if warmup.is_none() {
        return Err(UserError::invalid("rates need a warmup of a known length").hint(
            "Throughput is never steady while the rate changes. During the warm-up it is that of second 0.",
        ));
    }
    let mean = rates.expected(0.0, secs) / secs;
    if mean < 1e-6 {
        return Err(UserError::invalid("the rate is 0 all the time"));
    }
    Ok((Some(mean), Some(rates)))
}

/// The seconds given; `None`: until throughput is steady.
///
/// # Errors
/// 22023 for a value out of range; 0A000 where steady throughput cannot be waited for.
fn warmup(warmup: Option<f64>, nodes: Nodes) -> Result<Option<f64>, UserError> {
    match warmup {
        Some(secs) if !(0.0..=MAX_SECS).contains(&secs) => {
            Err(UserError::invalid(format!("warmup must be between 0 and {MAX_SECS} seconds, not {secs}")))
        }
        None if nodes != Nodes::Local => Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("warmup => NULL with nodes => '{}' is not supported", nodes.as_str()),
        )
        .hint("Set warmup to a number of seconds. bench.runs.warmup_took of a run with nodes => 'local' shows one.")),
        warmup => Ok(warmup),
    }
}

/// Variables with those of a duel's first arm; each transaction has those of its own.
fn with_arms(mut given: Map<String, Value>, duel: Option<&Duel>) -> Map<String, Value> {
    given.extend(duel.iter().flat_map(|duel| duel.arms[0].variables.clone()));
    given
}

/// Checks what depends on the driver.
///
/// # Errors
/// 22023 for options that the driver has not, 0A000 for what it does without, and 54000 for a target's name that is too long.
fn check_driver(options: &RunOptions) -> Result<(), UserError> {
    let RunOptions { driver, results, nodes, target, jobs, reconnect, on_disconnect, .. } = options;
    if let Some(target) = target {
        check_text("target", target)?;
        if target.is_empty() {
            return Err(
                UserError::invalid("target must not be empty").hint("Use NULL for this server and database.")
            );
        }
    }
    if *driver == Driver::Engine {
        let given = [
            ("target", target.is_some()),
            ("jobs", jobs.is_some()),
            ("reconnect => true", *reconnect),
            ("on_disconnect => 'reconnect'", *on_disconnect == OnDisconnect::Reconnect),
        ];
        let Some((name, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
        return Err(UserError::invalid(format!("{name} requires driver => 'wire'")).hint(
            "With driver => 'engine', each client is a background worker of its own, without a connection.",
        ));
    }
    let refused = |what: String| {
        let message = format!("{what} is not supported with driver => 'wire'");
        UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
    };
    if *results != Results::Serialize {
        return Err(refused(format!("results => '{}'", results.as_str()))
            .hint("Over a connection, the server always sends the rows."));
    }
    if *nodes != Nodes::Local {
        return Err(refused(format!("nodes => '{}'", nodes.as_str())));
    }
    Ok(())
}

/// # Errors
/// 22023 beside a target, 0A000 on several nodes.
fn check_run_as(options: &RunOptions) -> Result<(), UserError> {
    let RunOptions { run_as: Some(role), target, nodes, .. } = options else { return Ok(()) };
    check_text("run_as", role)?;
    if target.is_some() {
        return Err(UserError::invalid("run_as and target are mutually exclusive")
            .hint("The user mapping of the target says whose sessions its connections are."));
    }
    if *nodes != Nodes::Local {
        return Err(unsupported(&format!("run_as with nodes => '{}'", nodes.as_str())));
    }
    Ok(())
}

/// The workload as given, or the name of a script in its place.
pub fn workload(workload: Option<String>, script: Option<&String>) -> Result<String, UserError> {
    match (workload, script) {
        (Some(_), Some(_)) => Err(UserError::invalid("workload and script are mutually exclusive")
            .hint("Set one of them and leave the other NULL.")),
        (None, Some(_)) => Ok(SCRIPT.to_owned()),
        (workload, None) => required("workload", workload),
    }
}

/// A number within bounds, if there is one.
fn between(
    argument: &str,
    value: Option<f64>,
    least: f64,
    most: f64,
    unit: &str,
) -> Result<Option<f64>, UserError> {
    match value {
        Some(number) if !(least..=most).contains(&number) => {
            let message = format!("{argument} must be between {least} and {most} {unit}, not {number:?}");
            Err(UserError::invalid(message))
        }
        value => Ok(value),
    }
}

fn extent(secs: Option<f64>, transactions: Option<i64>) -> Result<Extent, UserError> {
    match (secs, transactions) {
        (Some(_), Some(_)) => Err(UserError::invalid("secs and transactions are mutually exclusive")
            .hint("Set one of them and leave the other NULL.")),
        (None, Some(n)) if n < 1 => {
            Err(UserError::invalid(format!("transactions must be at least 1, not {n}")))
        }
        (None, Some(n)) => Ok(Extent::Transactions(n.unsigned_abs())),
        (secs, None) => {
            let secs = secs.unwrap_or(DEFAULT_SECS);
            if secs > 0.0 && secs <= MAX_SECS {
                Ok(Extent::Secs(secs))
            } else {
                Err(UserError::invalid(format!("secs must be above 0 and at most {MAX_SECS}, not {secs}")))
            }
        }
    }
}
