//! The figures of a sweep.

use bench_base::number;
use bench_base::number::{MISSING, count, fixed, ms, tps, us};
use bench_base::sentence::counted;
use bench_results::sweep::SweepDocument;

use super::round_trip;
use super::variants::{label, without_variants};
use crate::content::{Body, ColumnKind, Section, Table};
use crate::sweep::results::{RangeOf, Report, RungResult, is_completed, peak, rungs, variants};

/// How many runs that did not complete are listed.
const RUNS: usize = 60;

/// A row's figures of throughput.
const RANGE: [(&str, ColumnKind); 3] =
    [("avg", ColumnKind::Number), ("min", ColumnKind::Number), ("max", ColumnKind::Number)];

/// Average, least and greatest tps.
fn range(result: &RungResult) -> [String; 3] {
    [result.tps_avg, result.tps_min, result.tps_max].map(tps)
}

/// The quotient of two averages.
fn ratio(result: &RungResult, base: &RungResult) -> String {
    let base = base.tps_avg.filter(|base| *base > 0.0);
    fixed(result.tps_avg.zip(base).map(|(tps, base)| tps / base), 3)
}

/// Throughput by number of clients, with columns for each variant; with a single number of clients, by variant.
pub fn throughput(report: &Report) -> Section {
    let (rungs, variants) = (rungs(report.document).len(), variants(report.document));
    let of_variants: Vec<&[RungResult]> = report.results.chunks(rungs.max(1)).collect();
    let body = match of_variants.len() {
        0 => Body::Table(Table::new(&[])),
        1 => Body::Table(by_clients(&variants, &of_variants)),
        _ if rungs == 1 => Body::Table(by_variant(&report.results)),
        _ => Body::Wide {
            whole: by_clients(&variants, &of_variants),
            parts: of_variants
                .iter()
                .zip(&variants)
                .map(|(results, variant)| (label(variant), part(results, of_variants[0], variants.len())))
                .collect(),
        },
    };
    let range_of = match report.results.first().map(|result| result.range_of) {
        Some(RangeOf::Runs) => {
            "avg is the mean tps of the runs, min and max are the lowest and highest of them."
        }
        _ => "avg is the tps of the run, min and max are the lowest and highest of its intervals.",
    };
    let mut note = range_of.to_owned();
    if variants.len() == 2 || (rungs == 1 && variants.len() > 1) {
        note += " The ratio compares averages with the first variant's.";
    }
    if report.document.sweep.rounds == 1 && variants.len() > 1 {
        note += " One run of each is no evidence of a difference: use rounds => 5 or more.";
    }
    Section { id: "throughput", title: "Throughput, tps", note: Some(note), body }
}

/// A row for each number of clients.
fn by_clients(variants: &[&str], of_variants: &[&[RungResult]]) -> Table {
    let mut table = Table::new(&[("clients", ColumnKind::Number)]);
    for variant in variants {
        let average = if variants.len() == 1 && variant.is_empty() {
            "avg".to_owned()
        } else {
            format!("{} avg", label(variant))
        };
        table.columns.push((average, ColumnKind::Number));
        table.columns.extend(RANGE[1..].iter().map(|(name, kind)| ((*name).to_owned(), *kind)));
    }
    if let [first, second] = variants {
        table.columns.push((format!("{} / {}", label(second), label(first)), ColumnKind::Number));
    }
    for (rung, first) in of_variants[0].iter().enumerate() {
        let mut row = vec![first.clients.to_string()];
        row.extend(of_variants.iter().flat_map(|results| range(&results[rung])));
        if let [first, second] = of_variants {
            row.push(ratio(&second[rung], &first[rung]));
        }
        table.rows.push(row);
    }
    table
}

/// The part of one of several variants. Of two, the second has the ratio to the first.
fn part(results: &[RungResult], first: &[RungResult], variants: usize) -> Table {
    let has_ratio = variants == 2 && results[0].variant != first[0].variant;
    let mut table = Table::new(&[&[("clients", ColumnKind::Number)], &RANGE[..]].concat());
    if has_ratio {
        table.columns.push(("ratio".to_owned(), ColumnKind::Number));
    }
    for (result, first) in results.iter().zip(first) {
        let mut row = vec![result.clients.to_string()];
        row.extend(range(result));
        row.extend(has_ratio.then(|| ratio(result, first)));
        table.rows.push(row);
    }
    table
}

/// A row for each variant, all with the same number of clients.
fn by_variant(results: &[RungResult]) -> Table {
    let columns = [
        &[("variant", ColumnKind::Text), ("clients", ColumnKind::Number)],
        &RANGE[..],
        &[("ratio", ColumnKind::Number)],
    ];
    let mut table = Table::new(&columns.concat());
    for result in results {
        let mut row = vec![label(&result.variant), result.clients.to_string()];
        row.extend(range(result));
        row.push(ratio(result, &results[0]));
        table.rows.push(row);
    }
    table
}

/// With how many clients each variant was fastest; nothing where there is but one number of them. Beyond the last rung it
/// may be faster.
pub fn peaks(report: &Report) -> Section {
    let rungs = rungs(report.document);
    let last = rungs.iter().max();
    let variants = if rungs.len() > 1 { variants(report.document) } else { Vec::new() };
    let peaks: Vec<_> = variants
        .iter()
        .map(|variant| {
            let peak = peak(&report.results, variant);
            let name = if variants.len() == 1 && variant.is_empty() {
                "measured".to_owned()
            } else {
                label(variant)
            };
            (
                name,
                peak.map(|peak| {
                    let clients = counted(peak.clients as u64, "client");
                    let end =
                        if Some(&peak.clients) == last { ", the last rung: no peak was reached" } else { "" };
                    format!("{} tps at {clients}{end}", tps(peak.tps_avg))
                }),
            )
        })
        .collect();
    let facts = peaks.iter().map(|(name, peak)| (name.as_str(), peak.clone())).collect();
    Section::of_facts("peaks", "Highest throughput", facts)
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
pub fn latency(report: &Report) -> Section {
    let mut table = Table::new(&[
        ("variant", ColumnKind::Text),
        ("clients", ColumnKind::Number),
        ("runs", ColumnKind::Number),
        ("avg ms", ColumnKind::Number),
        ("p50 ms", ColumnKind::Number),
        ("p95 ms", ColumnKind::Number),
        ("p99 ms", ColumnKind::Number),
        (CONNECT, ColumnKind::Number),
        (CPU, ColumnKind::Number),
        (DRIVER_CPU, ColumnKind::Number),
        (NOPM, ColumnKind::Number),
        ("failed", ColumnKind::Number),
        ("CPU idle", ColumnKind::Number),
    ]);
    for result in report.results.iter().filter(|result| result.rounds > 0) {
        table.rows.push(vec![
            label(&result.variant),
            result.clients.to_string(),
            result.rounds.to_string(),
            ms(result.latency_avg_ms),
            ms(result.latency_p50_ms),
            ms(result.latency_p95_ms),
            ms(result.latency_p99_ms),
            ms(result.connect_avg_ms),
            us(result.server_cpu_us),
            us(result.driver_cpu_us),
            tps(result.nopm),
            count(result.failed),
            number::percent(result.cpu_idle),
        ]);
    }
    let table = without_variants(table, report.document)
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
    if let Some(sentence) = round_trip::sentence(report) {
        note = format!("{note} {sentence}");
    }
    if has(NOPM) {
        note +=
            " NOPM: new orders per minute; derived from TPC-C, not comparable with published TPC results.";
    }
    Section::of_table("latency", "Latency", table).with_note(Some(note))
}

/// Runs without figures in the tables above.
pub fn not_completed(document: &SweepDocument) -> Section {
    let mut table = Table::new(&[
        ("round", ColumnKind::Number),
        ("variant", ColumnKind::Text),
        ("clients", ColumnKind::Number),
        ("status", ColumnKind::Text),
        ("run", ColumnKind::Number),
        ("error", ColumnKind::Text),
    ]);
    let others = || document.runs.iter().filter(|run| !is_completed(run));
    for run in others().take(RUNS) {
        let missing = || MISSING.to_owned();
        table.rows.push(vec![
            run.round.to_string(),
            label(&run.variant),
            run.clients.to_string(),
            run.status.clone().unwrap_or_else(|| "not run".to_owned()),
            run.run_id.map_or_else(missing, |id| id.to_string()),
            run.error.clone().unwrap_or_else(missing),
        ]);
    }
    let table = without_variants(table, document).without_idle(&["run", "error"]);
    let more = others().count().saturating_sub(RUNS);
    let note = (more > 0).then(|| format!("The first {RUNS}; {} more are in the JSON.", count(more as u64)));
    Section::of_table("not-completed", "Runs that did not complete", table).with_note(note)
}
