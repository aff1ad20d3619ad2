//! What differs between the two sides and could explain their difference.

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

/// Whether the runs did not all run the same script: then a ratio says nothing about what else was changed.
pub fn scripts_differ(differences: &[Difference]) -> bool {
    differences.iter().any(|difference| difference.what == "script")
}

/// Server settings that say where a server is to be found, and nothing of how it works.
const ADDRESSES: [&str; 3] = ["cluster_name", "listen_addresses", "port"];

/// Kinds of facts that are settings.
const SETTINGS: [&str; 2] = ["setting ", "server setting "];

/// Costs measured before each run stray by themselves, that of a flush severalfold: so many readings a side, all of one
/// above all of the other, and one median so many times the other, make a difference.
const COST_READINGS: usize = 3;
const COST_FACTOR: f64 = 2.0;

/// A fact's place in the list, its name, and its value.
type Facts = BTreeMap<(usize, String), String>;

/// All that differs, in the order of the facts. Listed too is what differs among the runs of a side only: it may not
/// be spread alike over both.
pub fn differences(baseline: &[Document], candidate: &[Document]) -> Vec<Difference> {
    let given: BTreeSet<String> = baseline
        .iter()
        .chain(candidate)
        .flat_map(|document| document.run.settings.keys())
        .map(|name| name.to_lowercase())
        .collect();
    let of_side = |side: &[Document]| side.iter().map(|document| facts(document, &given)).collect::<Vec<_>>();
    let (baselines, candidates) = (of_side(baseline), of_side(candidate));
    let names: BTreeSet<_> = baselines.iter().chain(&candidates).flat_map(BTreeMap::keys).collect();
    let mut differences: Vec<Difference> = names
        .into_iter()
        .filter_map(|name| {
            let values = |side: &[Facts]| -> BTreeSet<Option<String>> {
                side.iter().map(|facts| facts.get(name).cloned()).collect()
            };
            let (baseline, candidate) = (values(&baselines), values(&candidates));
            // Only settings that are not the server's defaults are recorded.
            let shown = |side: &BTreeSet<Option<String>>| {
                let is_setting = SETTINGS.iter().any(|kind| name.1.starts_with(kind));
                joined(side).or_else(|| is_setting.then(|| "default".to_owned()))
            };
            (baseline.len() > 1 || baseline != candidate).then(|| Difference {
                what: name.1.clone(),
                baseline: shown(&baseline),
                candidate: shown(&candidate),
            })
        })
        .collect();
    differences.extend(cost("clock reading", "ns", baseline, candidate, |of| of.clock_read_ns));
    differences.extend(cost("flush of 8 kB", "µs", baseline, candidate, |of| of.fsync_us));
    differences
}

/// The values of a side, "none" for runs without one where others have one.
fn joined(values: &BTreeSet<Option<String>>) -> Option<String> {
    let values: Vec<&str> = match values.iter().flatten().count() {
        0 => return None,
        // A missing value comes before all others, and is to come last.
        _ => values
            .iter()
            .flatten()
            .map(String::as_str)
            .chain(values.contains(&None).then_some("none"))
            .collect(),
    };
    Some(values.join(", "))
}

/// A cost, by its median on each side, where its noise does not tell it.
fn cost(
    what: &str,
    unit: &str,
    baseline: &[Document],
    candidate: &[Document],
    of: fn(&Environment) -> Option<f64>,
) -> Option<Difference> {
    let sorted = |side: &[Document]| {
        let mut costs: Vec<f64> = side
            .iter()
            .filter_map(|document| of(&document.environment))
            .filter(|cost| cost.is_finite() && *cost > 0.0)
            .collect();
        costs.sort_by(f64::total_cmp);
        (costs.len() >= COST_READINGS).then_some(costs)
    };
    let (baselines, candidates) = (sorted(baseline)?, sorted(candidate)?);
    let are_apart = |low: &[f64], high: &[f64]| low.last() < high.first();
    if !are_apart(&baselines, &candidates) && !are_apart(&candidates, &baselines) {
        return None;
    }
    let [baseline, candidate] = [baselines, candidates].map(|costs| costs[costs.len() / 2]);
    let shown = |cost: f64| Some(format!("{cost:.0} {unit}"));
    (baseline.max(candidate) > COST_FACTOR * baseline.min(candidate)).then(|| Difference {
        what: what.to_owned(),
        baseline: shown(baseline),
        candidate: shown(candidate),
    })
}

/// All that is known of a run that is no measurement and no name of its own. `given` are the settings, in lower case,
/// that any of the runs was given: of those that this one was not given, the server's are in their place.
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
    let own: Vec<(String, String)> = given
        .iter()
        .filter_map(|name| {
            let servers = remove(&mut settings, name);
            let given = run.settings.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
            Some((name.clone(), given.map(|(_, value)| plain(value)).or(servers)?))
        })
        .collect();
    let groups = [
        single("workload", text(&run.workload)),
        single("script", text(&run.script_hash)),
        single("fixture", run.fixture.clone()),
        single("fixture rows", run.fixture_rows.as_deref().map(joined_rows)),
        single("clients", Some(run.clients.to_string())),
        single("nodes with clients", several_nodes(document)),
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
        several("setting", own),
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
    let placed = groups.into_iter().enumerate();
    placed
        .flat_map(|(place, group)| group.into_iter().map(move |(name, value)| ((place, name), value)))
        .collect()
}

/// How many nodes of a cluster clients ran on, where there are several.
fn several_nodes(document: &Document) -> Option<String> {
    let count = document.nodes_with_clients().count();
    (count > 1).then(|| count.to_string())
}

fn joined_rows(rows: &[i64]) -> String {
    rows.iter().map(i64::to_string).collect::<Vec<_>>().join(" and ")
}

/// Takes a setting out whose name is given in lower case.
fn remove(settings: &mut BTreeMap<String, String>, name: &str) -> Option<String> {
    let own = settings.keys().find(|own| own.eq_ignore_ascii_case(name)).cloned()?;
    settings.remove(&own)
}

/// Who held the horizon back; the holder's own name differs between any two runs.
fn horizon(document: &Document) -> Option<String> {
    match (document.run.horizon_held, document.environment.horizon_holder.is_some()) {
        (true, _) => Some("held back by the waiting caller".to_owned()),
        (false, true) => Some("held back by another".to_owned()),
        (false, false) => None,
    }
}

/// The kernel takes some megabytes of the same memory for itself, now more and now less.
fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / f64::from(1 << 30))
}
