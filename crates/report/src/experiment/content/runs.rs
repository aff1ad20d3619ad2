//! The runs of a sweep, and what there is to say of them.

use bench_base::number::{count, ms, to_the_second, tps, us};
use bench_results::experiment::{ExperimentDocument, ExperimentRun, RunFinding};

use super::capacity::telling;
use super::variants::{label, without_variants};
use crate::content::{Body, ColumnKind, Section, Table, or_missing};
use crate::experiment::results::Experiment;

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
        .number("avg ms", |(_, run)| ms(run.latency_avg_ms))
        .number("p95 ms", |(_, run)| ms(run.latency_p95_ms))
        .number("p99 ms", |(_, run)| ms(run.latency_p99_ms))
        .number("CPU µs", |(_, run)| us(run.server_cpu_us))
        .number("failed", |(_, run)| count(run.failed))
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
