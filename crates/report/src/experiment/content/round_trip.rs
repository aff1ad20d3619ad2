//! What it costs to send a transaction over a connection, of an experiment whose variants differ in nothing but the driver.

use bench_base::number::{finite, fixed, mean, ms, us};
use bench_base::sentence::counted;
use bench_questions::comparison::{Difference, scripts_differ};
use bench_results::experiment::{ExperimentRun, Variant};

use crate::experiment::results::{Experiment, RungResult, rungs};
use crate::experiment::sides::{BASELINE, CANDIDATE};

/// A sentence on the fewest clients of a pair of variants of which both have figures, those without a queue in front of the
/// server: there the difference is nearest to a round trip.
pub fn sentence(experiment: &Experiment) -> Option<String> {
    let [engine, wire] = match &experiment.comparison {
        Some(sides) => of_sides(&sides.differences)?,
        None => of_variants(&experiment.document.sweep.variants)?,
    };
    let of = |variant: &str, clients: u32| {
        let is_it = |result: &&RungResult| result.variant == variant && result.clients == clients;
        experiment.results.iter().find(is_it).filter(|result| result.latency_avg_ms.is_some())
    };
    let pairs =
        experiment.results.iter().filter_map(|r| Some((of(engine, r.clients)?, of(wire, r.clients)?)));
    let (engine, wire) = pairs.min_by_key(|(engine, _)| engine.clients)?;
    let which = match rungs(&experiment.document).len() {
        1 => String::new(),
        _ => format!("With {}: ", counted(engine.clients as u64, "client")),
    };
    Some(format!("{which}{}{}", costs(engine, wire)?, switches(experiment, engine, wire)))
}

/// The names of the variants that run inside the server and over connections to it, of two sides where nothing else differs.
fn of_sides(differences: &[Difference]) -> Option<[&'static str; 2]> {
    let of = |what: &str| differences.iter().find(|difference| difference.what == what);
    let driver = of("driver")?;
    if of("target").is_some() || scripts_differ(differences) {
        return None;
    }
    match (driver.baseline.as_deref(), driver.candidate.as_deref()) {
        (Some("engine"), Some("wire")) => Some([BASELINE, CANDIDATE]),
        (Some("wire"), Some("engine")) => Some([CANDIDATE, BASELINE]),
        _ => None,
    }
}

/// The same, of the variants of a sweep.
fn of_variants(variants: &[Variant]) -> Option<[&str; 2]> {
    variants.iter().find_map(|wire| {
        let engine = variants.iter().find(|engine| differ_in_driver(engine, wire))?;
        Some([engine.name.as_str(), wire.name.as_str()])
    })
}

/// Whether the first runs inside the server what the second sends over connections to the same one.
fn differ_in_driver(engine: &Variant, wire: &Variant) -> bool {
    let driver = |variant: &Variant| {
        variant.run.get("driver").and_then(|driver| driver.as_str()).unwrap_or("engine").to_owned()
    };
    let rest = |variant: &Variant| {
        let mut rest = Variant { name: String::new(), ..variant.clone() };
        rest.run.retain(|argument, _| argument != "driver" && argument != "jobs");
        rest
    };
    driver(engine) == "engine" && driver(wire) == "wire" && rest(engine) == rest(wire)
}

/// What a transaction takes more over a connection than inside the server, in a sentence; the driver has no counterpart there.
fn costs(engine: &RungResult, wire: &RungResult) -> Option<String> {
    let more = |figure: fn(&RungResult) -> Option<f64>| Some(finite(figure(wire))? - finite(figure(engine))?);
    let compared = |difference: f64, unit: &str, more: &str, less: &str, shown: fn(Option<f64>) -> String| {
        let word = if difference < 0.0 { less } else { more };
        format!("{} {unit} {word}", shown(Some(difference.abs())))
    };
    let latency = compared(more(|result| result.latency_avg_ms)?, "ms", "longer", "shorter", ms);
    let server = more(|result| result.server_cpu_us)
        .map(|cpu| format!("{} of processor time in the server", compared(cpu, "µs", "more", "less", us)));
    let driver = finite(wire.driver_cpu_us).map(|cpu| format!("{} µs in the driver", us(Some(cpu))));
    let costs: Vec<String> = server.into_iter().chain(driver).collect();
    let costs = if costs.is_empty() { String::new() } else { format!(", and takes {}", costs.join(" and ")) };
    Some(format!("Over a connection a transaction is {latency} on average{costs}."))
}

/// What connections add to the context switches, as a sentence; empty where they are not known.
fn switches(experiment: &Experiment, engine: &RungResult, wire: &RungResult) -> String {
    let mean_of = |result: &RungResult, of: fn(&ExperimentRun) -> Option<f64>| {
        let runs = experiment.document.runs.iter().filter(|run| run.is_completed());
        let runs = runs.filter(|run| run.variant == result.variant && run.clients == result.clients);
        mean(&runs.map(of).collect::<Vec<_>>())
    };
    let server = [wire, engine].map(|result| mean_of(result, |run| run.server_context_switches));
    let [Some(of_wire), Some(of_engine)] = server else { return String::new() };
    let more = of_wire - of_engine;
    let word = if more < 0.0 { "fewer" } else { "more" };
    let driver = mean_of(wire, |run| run.driver_context_switches)
        .map_or(String::new(), |count| format!(" and {} in the driver", fixed(Some(count), 2)));
    format!(" It has {} context switches {word} in the server{driver}.", fixed(Some(more.abs()), 2))
}
