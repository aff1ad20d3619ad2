//! Lists differences between the runs of two sides, beside what is compared, that could explain their results.

use std::collections::{BTreeMap, BTreeSet};

use bench_model::spec::plain;
use bench_results::{Document, Environment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that differs between the two sides beside what is being compared: a setting, a version, the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Name of the difference, such as `setting work_mem`, `server setting shared_buffers` or `processors`.
    pub what: String,
    /// Its values in the baseline's runs; null: not present; for a server setting, at its default.
    pub baseline: Option<String>,
    /// Its values in the candidate's runs, likewise.
    pub candidate: Option<String>,
}

/// Returns whether the runs used different scripts, so that their ratio does not show the effect of other changes.
pub fn scripts_differ(differences: &[Difference]) -> bool {
    differences.iter().any(|difference| difference.what == "script")
}

/// Server settings that identify a server and do not affect its work.
const ADDRESSES: [&str; 3] = ["cluster_name", "listen_addresses", "port"];

/// Prefixes of facts that are settings.
const SETTING_PREFIXES: [&str; 2] = ["setting ", "server setting "];

/// Costs measured before each run are noisy, those of a flush by several times. They count as different if each side has at
/// least so many readings, all of one side exceed all of the other, and the medians differ by more than the factor.
const MIN_COST_READINGS: usize = 3;
const MIN_COST_FACTOR: f64 = 2.0;

/// A run's facts: values by position in the list and name.
type Facts = BTreeMap<(usize, String), String>;

/// Returns all differences, in the order of the facts, also those between runs of one side: they may be spread unevenly
/// over the sides.
pub fn differences(baseline: &[Document], candidate: &[Document]) -> Vec<Difference> {
    let given: BTreeSet<String> = baseline
        .iter()
        .chain(candidate)
        .flat_map(|document| document.run.settings.keys())
        .map(|name| name.to_lowercase())
        .collect();
    let facts_by_run = |side: &[Document]| side.iter().map(|run| facts(run, &given)).collect::<Vec<_>>();
    let (baselines, candidates) = (facts_by_run(baseline), facts_by_run(candidate));
    let names: BTreeSet<_> = baselines.iter().chain(&candidates).flat_map(BTreeMap::keys).collect();
    let mut differences: Vec<Difference> =
        names.into_iter().filter_map(|key| fact_difference(key, &baselines, &candidates)).collect();
    differences.extend(cost_difference("clock reading", "ns", baseline, candidate, |env| env.clock_read_ns));
    differences.extend(cost_difference("flush of 8 kB", "µs", baseline, candidate, |env| env.fsync_us));
    differences
}

/// Returns the difference in one fact; `None` if it is the same in all runs.
fn fact_difference(key: &(usize, String), baselines: &[Facts], candidates: &[Facts]) -> Option<Difference> {
    let values = |side: &[Facts]| -> BTreeSet<Option<String>> {
        side.iter().map(|facts| facts.get(key).cloned()).collect()
    };
    let (baseline, candidate) = (values(baselines), values(candidates));
    let name = &key.1;
    // Runs record only settings that differ from the server's defaults.
    let is_setting = SETTING_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let joined_or_default =
        |side: &BTreeSet<Option<String>>| joined(side).or_else(|| is_setting.then(|| "default".to_owned()));
    (baseline.len() > 1 || baseline != candidate).then(|| Difference {
        what: name.clone(),
        baseline: joined_or_default(&baseline),
        candidate: joined_or_default(&candidate),
    })
}

/// Joins the values of a side, with "none" for runs without one; `None` if no run has one.
fn joined(values: &BTreeSet<Option<String>>) -> Option<String> {
    let values: Vec<&str> = match values.iter().flatten().count() {
        0 => return None,
        // The set has `None` first; "none" is shown last.
        _ => values
            .iter()
            .flatten()
            .map(String::as_str)
            .chain(values.contains(&None).then_some("none"))
            .collect(),
    };
    Some(values.join(", "))
}

/// Compares the medians of a cost; `None` if the difference may be noise.
fn cost_difference(
    what: &str,
    unit: &str,
    baseline: &[Document],
    candidate: &[Document],
    cost: fn(&Environment) -> Option<f64>,
) -> Option<Difference> {
    let sorted = |side: &[Document]| {
        let mut costs: Vec<f64> = side
            .iter()
            .filter_map(|document| cost(&document.environment))
            .filter(|cost| cost.is_finite() && *cost > 0.0)
            .collect();
        costs.sort_by(f64::total_cmp);
        (costs.len() >= MIN_COST_READINGS).then_some(costs)
    };
    let (baselines, candidates) = (sorted(baseline)?, sorted(candidate)?);
    let are_apart = |low: &[f64], high: &[f64]| low.last() < high.first();
    if !are_apart(&baselines, &candidates) && !are_apart(&candidates, &baselines) {
        return None;
    }
    let [baseline, candidate] = [baselines, candidates].map(|costs| costs[costs.len() / 2]);
    let with_unit = |cost: f64| Some(format!("{cost:.0} {unit}"));
    (baseline.max(candidate) > MIN_COST_FACTOR * baseline.min(candidate)).then(|| Difference {
        what: what.to_owned(),
        baseline: with_unit(baseline),
        candidate: with_unit(candidate),
    })
}

/// Returns all facts about a run except measurements and identifiers. `given` are the lower-case names of settings that any of
/// the runs was given; a run that was not given one has the server's value instead.
fn facts(document: &Document, given: &BTreeSet<String>) -> Facts {
    let (run, environment) = (&document.run, &document.environment);
    let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    let single = |name: &str, value: Option<String>| -> Vec<(String, String)> {
        value.map(|value| (name.to_owned(), value)).into_iter().collect()
    };
    let several = |kind: &str, values: Vec<(String, String)>| -> Vec<(String, String)> {
        values.into_iter().map(|(name, value)| (format!("{kind} {name}"), value)).collect()
    };
    let map = |values: &BTreeMap<String, String>| {
        values.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
    };
    let variables = run.variables.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
    let mut settings: BTreeMap<String, String> = environment
        .server_settings
        .iter()
        .map(|setting| (setting.name.clone(), setting.setting.clone()))
        .filter(|(name, _)| !ADDRESSES.contains(&name.as_str()))
        .collect();
    let run_settings: Vec<(String, String)> = given
        .iter()
        .filter_map(|name| {
            let server_value = remove(&mut settings, name);
            let given = run.settings.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
            Some((name.clone(), given.map(|(_, value)| plain(value)).or(server_value)?))
        })
        .collect();
    let groups = [
        single("workload", text(&run.workload)),
        single("script", text(&run.script_hash)),
        single("fixture", run.fixture.clone()),
        single("fixture rows", run.fixture_rows.as_deref().map(joined_rows)),
        single("clients", Some(run.clients.to_string())),
        single("nodes with clients", node_count(document)),
        single("secs", run.secs.map(|secs| secs.to_string())),
        single("transactions", run.transactions.map(|count| count.to_string())),
        single("warmup", Some(run.warmup.map_or("until steady".to_owned(), |secs| secs.to_string()))),
        single("rate", run.rate.map(|rate| rate.to_string())),
        single("rates", run.changing_rates().map(|rates| rates.text())),
        single("latency_limit", run.latency_limit.map(|limit| limit.to_string())),
        single("max_tries", Some(run.max_tries.to_string())),
        single("driver", text(&run.driver)),
        single("query_mode", text(&run.query_mode)),
        single("target", run.target.clone()),
        single("jobs", run.jobs.map(|jobs| jobs.to_string())),
        single("reconnect", run.reconnect.then(|| "true".to_owned())),
        single("on_disconnect", text(&run.on_disconnect)),
        single("results", text(&run.results)),
        several("variable", variables),
        several("setting", run_settings),
        single("applied", text(&run.applied.join("; "))),
        single("sample_interval", Some(run.sample_interval.to_string())),
        single("role", text(&run.role)),
        single("server_version", text(&run.server_version)),
        single("extension_version", text(&run.extension_version)),
        single("server build", environment.version.clone()),
        single(
            "data checksums",
            environment.data_checksums.map(|on| if on { "on" } else { "off" }.to_owned()),
        ),
        single("processors", environment.processors.map(|count| count.to_string())),
        single("processor model", environment.processor_model.clone()),
        single("quota", environment.quota_processors.map(|quota| format!("{quota} processors"))),
        single("memory", environment.memory_bytes.map(gigabytes)),
        single("swap", environment.swap_bytes.map(gigabytes)),
        single("kernel", environment.kernel.clone()),
        single("transparent huge pages", environment.transparent_huge_pages.clone()),
        several("kernel parameter", map(&environment.kernel_parameters)),
        several("limit", map(&environment.limits)),
        single("filesystem", environment.filesystem.clone()),
        single("mount options", environment.mount_options.clone()),
        several("server setting", settings.into_iter().collect()),
        single("xmin horizon", horizon(document)),
    ];
    groups
        .into_iter()
        .enumerate()
        .flat_map(|(position, group)| group.into_iter().map(move |(name, value)| ((position, name), value)))
        .collect()
}

/// Returns the number of cluster nodes with clients; `None` for a single node.
fn node_count(document: &Document) -> Option<String> {
    let count = document.nodes_with_clients().count();
    (count > 1).then(|| count.to_string())
}

fn joined_rows(rows: &[i64]) -> String {
    rows.iter().map(i64::to_string).collect::<Vec<_>>().join(" and ")
}

/// Removes a setting by its lower-case name and returns its value.
fn remove(settings: &mut BTreeMap<String, String>, name: &str) -> Option<String> {
    let key = settings.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned()?;
    settings.remove(&key)
}

/// Returns what kind of session held the xmin horizon back; the holder's name would differ between any two runs.
fn horizon(document: &Document) -> Option<String> {
    match (document.run.horizon_held, document.environment.horizon_holder.is_some()) {
        (true, _) => Some("held back by the waiting caller".to_owned()),
        (false, true) => Some("held back by another".to_owned()),
        (false, false) => None,
    }
}

/// Formats a memory size; finer digits would vary with what the kernel reserves.
fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / f64::from(1 << 30))
}
