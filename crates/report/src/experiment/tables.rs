//! The figures of a sweep: by variant and number of clients, run by run, and how throughput scales with the clients.

use bench_base::number;
use bench_base::number::{MISSING, count, fixed, ms, significant, to_the_second, tps, us};
use bench_base::sentence::counted;
use bench_results::experiment::{ExperimentDocument, ExperimentRun, RunFinding};
use bench_stats::Estimate;
use bench_stats::scalability::FitVerdict;

use crate::experiment::capacity::telling;
use crate::experiment::comparison;
use crate::experiment::results::{
    Experiment, RangeOf, RungResult, VariantScalability, peak, rungs, variants,
};
use crate::experiment::setup::{label, without_variants};
use crate::section::{Body, ColumnKind, Section, Table, TableOf, more_in_json, or_missing};

/// How many runs that did not complete are listed.
const OTHERS: usize = 60;

/// Average, least and greatest tps, of results that are found by the subjects of the rows.
fn with_range<'a, T>(
    table: TableOf<'a, T>,
    average: &str,
    result: impl Fn(&'a T) -> &'a RungResult,
) -> TableOf<'a, T> {
    table
        .number(average, |subject| tps(result(subject).tps_avg))
        .number("min", |subject| tps(result(subject).figures.tps_min))
        .number("max", |subject| tps(result(subject).figures.tps_max))
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
    if experiment.document.sweep.setup.rounds == 1 && variants.len() > 1 {
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
        .number("avg ms", |result| ms(result.figures.latency_avg_ms))
        .number("p50 ms", |result| ms(result.figures.latency_p50_ms))
        .number("p95 ms", |result| ms(result.figures.latency_p95_ms))
        .number("p99 ms", |result| ms(result.figures.latency_p99_ms))
        .number(CONNECT, |result| ms(result.figures.connect_avg_ms))
        .number(CPU, |result| us(result.figures.server_cpu_us))
        .number(DRIVER_CPU, |result| us(result.figures.driver_cpu_us))
        .number(NOPM, |result| tps(result.figures.nopm))
        .number("failed", |result| count(result.figures.failed))
        .number("CPU idle", |result| number::percent(result.figures.cpu_idle))
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
    if let Some(sentence) = comparison::round_trip_sentence(experiment) {
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
    let table = Table::of(others().take(OTHERS))
        .number("round", |run| run.round)
        .text("variant", |run| label(&run.variant))
        .number("clients", |run| run.clients)
        .text("status", |run| run.status.as_deref().unwrap_or("not run"))
        .number("run", run_id)
        .text("error", |run| or_missing(&run.error))
        .table();
    let table = without_variants(table, document).without_idle(&["run", "error"]);
    Section::of_table("not-completed", "Runs that did not complete", table)
        .with_note_if(more_in_json(OTHERS, others().count()))
}

/// The column of the rate, of a search.
const RATE: &str = "rate";

/// How many runs are listed.
const RUNS: usize = 60;

/// How many ids of runs are named with a finding.
const NAMED: usize = 12;

/// Columns that the runs of a sweep do without, for which they are too many, and those of a comparison.
const OF_COMPARISONS: [&str; 4] = ["p95 ms", "CPU µs", "skipped", "started"];
const OF_SWEEPS: [&str; 4] = ["round", "clients", RATE, "findings"];

/// The completed runs, each by its id.
pub fn runs(experiment: &Experiment) -> Section {
    let document = &experiment.document;
    let runs: Vec<(i64, &ExperimentRun)> = identified(document).collect();
    let started = |run: &ExperimentRun| run.started_at.as_deref().map(to_the_second);
    let mut table = Table::of(runs.iter().take(RUNS))
        .column("run", ColumnKind::Run, |(id, _)| id)
        .number("round", |(_, run)| run.round)
        .text("variant", |(_, run)| label(&run.variant))
        .number("clients", |(_, run)| run.clients)
        .number(RATE, |(_, run)| tps(run.rate))
        .number("tps", |(_, run)| tps(run.tps))
        .number("avg ms", |(_, run)| ms(run.figures.latency_avg_ms))
        .number("p95 ms", |(_, run)| ms(run.figures.latency_p95_ms))
        .number("p99 ms", |(_, run)| ms(run.figures.latency_p99_ms))
        .number("CPU µs", |(_, run)| us(run.figures.server_cpu_us))
        .number("failed", |(_, run)| count(run.figures.failed))
        .number("skipped", |(_, run)| count(run.skipped))
        .number("findings", |(_, run)| run.findings.len())
        .text("started", |(_, run)| or_missing(&started(run)).to_owned())
        .table();
    for column in if experiment.comparison.is_some() { OF_SWEEPS } else { OF_COMPARISONS } {
        table = table.without(column);
    }
    let more = runs.len().saturating_sub(RUNS);
    let note = "SELECT bench.report(run, 'html') shows one of them.".to_owned();
    let note = if more == 0 { note } else { format!("{note} {} more are in the JSON.", count(more as u64)) };
    let table = without_variants(table, document).without_idle(&["CPU µs", "failed", "skipped", "findings"]);
    let table = if document.sweep.search.is_some() { table } else { table.without(RATE) };
    Section::of_table("runs", "Runs", table).with_note(note)
}

/// The findings of all runs, those of one topic together under the first of them, the gravest first.
fn kinds(document: &ExperimentDocument) -> Vec<(&RunFinding, Vec<i64>)> {
    let mut kinds: Vec<(&RunFinding, Vec<i64>)> = Vec::new();
    for (id, run) in looked_at(document) {
        for finding in &run.findings {
            let is_same = |(first, _): &&mut (&RunFinding, Vec<i64>)| {
                (first.severity, first.topic) == (finding.severity, finding.topic)
            };
            match kinds.iter_mut().find(is_same) {
                // One run may have several of a kind.
                Some((_, runs)) if runs.last() == Some(&id) => {}
                Some((_, runs)) => runs.push(id),
                None => kinds.push((finding, vec![id])),
            }
        }
    }
    // Stable: of those as grave and as frequent, the one that was first met comes first.
    kinds.sort_by_key(|(finding, runs)| (finding.severity, std::cmp::Reverse(runs.len())));
    kinds
}

/// Some ids, separated by commas.
fn named(runs: &[i64]) -> String {
    let mut ids: Vec<String> = runs.iter().take(NAMED).map(i64::to_string).collect();
    if runs.len() > NAMED {
        ids.push("…".to_owned());
    }
    ids.join(", ")
}

/// The findings in lines, for a text whose tables are too narrow for sentences.
fn finding_lines(document: &ExperimentDocument) -> Vec<String> {
    let all = looked_at(document).count();
    let line = |(finding, runs): (&RunFinding, Vec<i64>)| {
        let (severity, count) = (finding.severity.as_str(), runs.len());
        format!(
            "{severity} {}, {count} of {all} runs ({}): {}",
            finding.topic.as_str(),
            named(&runs),
            finding.finding
        )
    };
    kinds(document).into_iter().map(line).collect()
}

/// The findings, with links to their runs.
pub fn findings(document: &ExperimentDocument) -> Section {
    let all = looked_at(document).count();
    let kinds = kinds(document);
    let table = Table::of(&kinds)
        .text("severity", |(finding, _)| finding.severity.as_str())
        .text("topic", |(finding, _)| finding.topic.as_str())
        .text("of the runs", |(_, runs)| format!("{} of {all}", runs.len()))
        .column("run", ColumnKind::Runs, |(_, runs)| named(runs))
        .text("the first of them", |(finding, _)| &finding.finding)
        .table();
    let note = telling(document).map(|_| "Only trials that failed at the lowest failing rate.".to_owned());
    let body = Body::Sentences { table, lines: finding_lines(document) };
    Section::of("findings", "Findings", body).with_note_if(note)
}

/// The completed runs whose findings are told: of a search, those that showed its limit, for that overloads find the server
/// overloaded is no news.
fn looked_at(document: &ExperimentDocument) -> impl Iterator<Item = (i64, &ExperimentRun)> {
    let telling = telling(document);
    identified(document)
        .filter(move |(_, run)| telling.as_ref().is_none_or(|places| places.contains(&run.place)))
}

/// The runs that completed or have shown a limit, with their ids.
fn identified(document: &ExperimentDocument) -> impl Iterator<Item = (i64, &ExperimentRun)> {
    let counts = |run: &&ExperimentRun| run.is_completed() || run.outcome.is_some();
    document.runs.iter().filter(counts).filter_map(|run| Some((run.run_id?, run)))
}

/// The law fitted to each variant.
pub fn scalability(experiment: &Experiment) -> Section {
    let rows: Vec<[String; 6]> = experiment.scalability.iter().flat_map(rows).collect();
    let table = Table::of(&rows)
        .text("variant", |[variant, ..]| variant)
        .text("verdict", |[_, verdict, ..]| verdict)
        .text("figure", |[_, _, figure, ..]| figure)
        .number("estimate", |[.., estimate, _, _]| estimate)
        .number("low", |[.., low, _]| low)
        .number("high", |[.., high]| high)
        .table();
    let note = "The universal scalability law, tps = λN / (1 + σ(N − 1) + κN(N − 1)) with N clients, fitted to the \
                mean tps of each number of clients; low and high are the bounds of 95 % confidence intervals.";
    Section::of_table("scalability", "Scalability", without_variants(table, &experiment.document))
        .with_note(note.to_owned() + &remarks(&experiment.scalability))
}

/// A row for each figure of a variant, whose name and verdict are said once, in the first of them.
fn rows(fitted: &VariantScalability) -> Vec<[String; 6]> {
    let mut figures = figures(fitted);
    if figures.is_empty() {
        figures.push([MISSING; 4].map(str::to_owned));
    }
    let mut said = [label(&fitted.variant), fitted.law.verdict.as_str().to_owned()];
    let row = |[figure, estimate, low, high]: [String; 4]| {
        let [variant, verdict] = std::mem::take(&mut said);
        [variant, verdict, figure, estimate, low, high]
    };
    figures.into_iter().map(row).collect()
}

/// The names and values of what was fitted.
fn figures(fitted: &VariantScalability) -> Vec<[String; 4]> {
    let row = |name: &str, estimate: Option<Estimate>, show: fn(f64) -> String| {
        let Estimate { value, low, high } = estimate?;
        Some([name.to_owned(), show(value), show(low), show(high)])
    };
    let missing = || MISSING.to_owned();
    let rows = [
        row("λ, tps of one client", fitted.law.lambda, |value| tps(Some(value))),
        row("σ, contention", fitted.law.sigma, significant_or_missing),
        row("κ, crosstalk", fitted.law.kappa, significant_or_missing),
        row("clients at the peak", fitted.law.peak_clients, |value| fixed(Some(value), 1)),
        row("tps at the peak", fitted.law.peak_tps, |value| tps(Some(value))),
        fitted.law.r2.map(|r2| ["R²".to_owned(), fixed(Some(r2), 4), missing(), missing()]),
    ];
    rows.into_iter().flatten().collect()
}

/// Four digits, of what is a number.
fn significant_or_missing(value: f64) -> String {
    number::finite(Some(value)).map_or(MISSING.to_owned(), significant)
}

/// What the verdicts mean, of those that are no fit.
fn remarks(all: &[VariantScalability]) -> String {
    let meanings = [
        (
            FitVerdict::NoPeak,
            "the runs follow the law, but the interval of its peak extends beyond twice the last rung, or tps only \
             falls",
        ),
        (FitVerdict::NotEnoughRungs, "the law needs completed runs with at least four numbers of clients"),
        (FitVerdict::DoesNotFit, "the runs do not follow the law"),
    ];
    let said = meanings.iter().filter(|(verdict, _)| all.iter().any(|one| one.law.verdict == *verdict));
    said.map(|(verdict, meaning)| format!(" {}: {meaning}.", verdict.as_str())).collect()
}
