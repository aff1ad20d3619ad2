//! The figures of a sweep.

use bench_base::number;
use bench_base::number::{MISSING, count, fixed, ms, tps, us};
use bench_base::sentence::counted;
use bench_results::experiment::{ExperimentDocument, ExperimentRun};

use super::round_trip;
use super::variants::{label, without_variants};
use crate::content::{Body, Section, Table, TableOf, more_in_json, or_missing};
use crate::experiment::results::{Experiment, RangeOf, RungResult, peak, rungs, variants};

/// How many runs that did not complete are listed.
const RUNS: usize = 60;

/// Average, least and greatest tps, of results that are found by the subjects of the rows.
fn with_range<'a, T>(
    table: TableOf<'a, T>,
    average: &str,
    result: impl Fn(&'a T) -> &'a RungResult,
) -> TableOf<'a, T> {
    table
        .number(average, |subject| tps(result(subject).tps_avg))
        .number("min", |subject| tps(result(subject).tps_min))
        .number("max", |subject| tps(result(subject).tps_max))
}

/// The quotient of two averages.
fn ratio(result: &RungResult, base: &RungResult) -> String {
    let base = base.tps_avg.filter(|base| *base > 0.0);
    fixed(result.tps_avg.zip(base).map(|(tps, base)| tps / base), 3)
}

/// Throughput by number of clients, with columns for each variant; with a single number of clients, by variant.
pub fn throughput(experiment: &Experiment) -> Section {
    let (rungs, variants) = (rungs(&experiment.document).len(), variants(&experiment.document));
    let of_variants: Vec<&[RungResult]> = experiment.results.chunks(rungs.max(1)).collect();
    let body = match of_variants.len() {
        0 => Body::Table(by_variant(&[])),
        1 => Body::Table(by_clients(&variants, &of_variants)),
        _ if rungs == 1 => Body::Table(by_variant(&experiment.results)),
        _ => Body::Wide {
            whole: by_clients(&variants, &of_variants),
            parts: of_variants
                .iter()
                .zip(&variants)
                .map(|(results, variant)| (label(variant), part(results, of_variants[0], variants.len())))
                .collect(),
        },
    };
    let range_of = match experiment.results.first().map(|result| result.range_of) {
        Some(RangeOf::Runs) => {
            "avg is the mean tps of the runs, min and max are the lowest and highest of them."
        }
        _ => "avg is the tps of the run, min and max are the lowest and highest of its intervals.",
    };
    let mut note = range_of.to_owned();
    if variants.len() == 2 || (rungs == 1 && variants.len() > 1) {
        note += " The ratio compares averages with the first variant's.";
    }
    if experiment.document.sweep.rounds == 1 && variants.len() > 1 {
        note += " One run of each is no evidence of a difference: use rounds => 5 or more.";
    }
    Section::of("throughput", "Throughput, tps", body).with_note(note)
}

/// A row for each number of clients.
fn by_clients(variants: &[&str], of_variants: &[&[RungResult]]) -> Table {
    // The results of all variants, rung by rung.
    let rung = |index: usize| of_variants.iter().map(|results| &results[index]).collect::<Vec<_>>();
    let rungs: Vec<Vec<&RungResult>> = (0..of_variants[0].len()).map(rung).collect();
    let mut table = Table::of(&rungs).number("clients", |rung| rung[0].clients);
    for (place, variant) in variants.iter().enumerate() {
        let average = match (variants.len(), variant.is_empty()) {
            (1, true) => "avg".to_owned(),
            _ => format!("{} avg", label(variant)),
        };
        table = with_range(table, &average, |rung| rung[place]);
    }
    if let [first, second] = variants {
        let name = format!("{} / {}", label(second), label(first));
        table = table.number(&name, |rung| ratio(rung[1], rung[0]));
    }
    table.table()
}

/// The part of one of several variants. Of two, the second has the ratio to the first.
fn part(results: &[RungResult], first: &[RungResult], variants: usize) -> Table {
    let rungs: Vec<(&RungResult, &RungResult)> = results.iter().zip(first).collect();
    let table = Table::of(&rungs).number("clients", |(result, _)| result.clients);
    let table = with_range(table, "avg", |(result, _)| result);
    let has_ratio = variants == 2 && results[0].variant != first[0].variant;
    if has_ratio {
        table.number("ratio", |(result, first)| ratio(result, first)).table()
    } else {
        table.table()
    }
}

/// A row for each variant, all with the same number of clients.
fn by_variant(results: &[RungResult]) -> Table {
    let table = Table::of(results)
        .text("variant", |result| label(&result.variant))
        .number("clients", |result| result.clients);
    with_range(table, "avg", |result| result).number("ratio", |result| ratio(result, &results[0])).table()
}

/// With how many clients each variant was fastest; nothing where there is but one number of them. Beyond the last rung it
/// may be faster.
pub fn peaks(experiment: &Experiment) -> Section {
    let rungs = rungs(&experiment.document);
    let last = rungs.iter().max();
    let variants = if rungs.len() > 1 { variants(&experiment.document) } else { Vec::new() };
    let mut section = Section::of_facts("peaks", "Highest throughput");
    for variant in &variants {
        let is_only = variants.len() == 1 && variant.is_empty();
        let name = if is_only { "measured".to_owned() } else { label(variant) };
        let peak = peak(&experiment.results, variant).map(|peak| {
            let clients = counted(peak.clients as u64, "client");
            let end = if Some(&peak.clients) == last { ", the last rung: no peak was reached" } else { "" };
            format!("{} tps at {clients}{end}", tps(peak.tps_avg))
        });
        section = section.fact(&name, peak);
    }
    section
}

/// The column of processor time.
const CPU: &str = "CPU µs";

/// The column of the driver's processor time.
const DRIVER_CPU: &str = "driver µs";

/// The column of the time to connect.
const CONNECT: &str = "connect ms";

/// The column of new orders per minute.
const NOPM: &str = "NOPM";

/// Latencies, processor time, failures and idle processors by variant and number of clients, of those that have a completed run.
pub fn latency(experiment: &Experiment) -> Section {
    let table = Table::of(experiment.results.iter().filter(|result| result.rounds > 0))
        .text("variant", |result| label(&result.variant))
        .number("clients", |result| result.clients)
        .number("runs", |result| result.rounds)
        .number("avg ms", |result| ms(result.latency_avg_ms))
        .number("p50 ms", |result| ms(result.latency_p50_ms))
        .number("p95 ms", |result| ms(result.latency_p95_ms))
        .number("p99 ms", |result| ms(result.latency_p99_ms))
        .number(CONNECT, |result| ms(result.connect_avg_ms))
        .number(CPU, |result| us(result.server_cpu_us))
        .number(DRIVER_CPU, |result| us(result.driver_cpu_us))
        .number(NOPM, |result| tps(result.nopm))
        .number("failed", |result| count(result.failed))
        .number("CPU idle", |result| number::percent(result.cpu_idle))
        .table();
    let table = without_variants(table, &experiment.document)
        .without_idle(&["p50 ms", "p95 ms", CONNECT, CPU, DRIVER_CPU, NOPM, "failed", "CPU idle"]);
    let has = |column| table.columns.iter().any(|(name, _)| name == column);
    let mut note = "Means over the runs; failed transactions are summed.".to_owned();
    if has(CONNECT) {
        note += " connect ms: time to open a transaction's connection, which is not part of the latencies.";
    }
    if has(CPU) {
        note += " CPU µs: processor time of the clients' processes per transaction.";
    }
    if has(DRIVER_CPU) {
        note += " driver µs: processor time of the driver's jobs per transaction.";
    }
    if let Some(sentence) = round_trip::sentence(experiment) {
        note = format!("{note} {sentence}");
    }
    if has(NOPM) {
        note +=
            " NOPM: new orders per minute; derived from TPC-C, not comparable with published TPC results.";
    }
    Section::of_table("latency", "Latency", table).with_note(note)
}

/// Runs without figures in the tables above.
pub fn not_completed(document: &ExperimentDocument) -> Section {
    let others = || document.runs.iter().filter(|run| !run.is_completed());
    let run_id = |run: &ExperimentRun| run.run_id.map_or_else(|| MISSING.to_owned(), |id| id.to_string());
    let table = Table::of(others().take(RUNS))
        .number("round", |run| run.round)
        .text("variant", |run| label(&run.variant))
        .number("clients", |run| run.clients)
        .text("status", |run| run.status.as_deref().unwrap_or("not run"))
        .number("run", run_id)
        .text("error", |run| or_missing(&run.error))
        .table();
    let table = without_variants(table, document).without_idle(&["run", "error"]);
    Section::of_table("not-completed", "Runs that did not complete", table)
        .with_note_if(more_in_json(RUNS, others().count()))
}
