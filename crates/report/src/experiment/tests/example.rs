//! Believable sweeps, and one in which every text is hostile and every number is the worst.

use bench_results::experiment::{AppliedSql, ExperimentRun, IndexLine, ScreenLine, SweepChange, Variant, *};
use bench_results::{Environment, ServerSetting, Severity, Topic};
use serde_json::json;

use crate::experiment::tests::*;
use crate::tests::example::{HOSTILE, object};
use crate::tests::{ALL, html, shows_no_number, text};

/// A variant that sets a parameter.
fn variant(name: &str, synchronous_commit: &str) -> Variant {
    Variant {
        name: name.to_owned(),
        settings: object(json!({"synchronous_commit": synchronous_commit})),
        ..Variant::default()
    }
}

/// A completed run of so many tps, with the latency that so many clients then have.
pub fn run(round: u32, variant: &str, clients: u32, tps: f64) -> ExperimentRun {
    let latency_ms = f64::from(clients) / tps * 1_000.0;
    ExperimentRun {
        round,
        variant: variant.to_owned(),
        clients,
        run_id: Some(100),
        status: Some("completed".to_owned()),
        tps: Some(tps),
        figures: RunFigures {
            tps_min: Some(tps * 0.8),
            tps_max: Some(tps * 1.1),
            latency_avg_ms: Some(latency_ms),
            latency_p50_ms: Some(latency_ms * 0.8),
            latency_p95_ms: Some(latency_ms * 2.0),
            latency_p99_ms: Some(latency_ms * 4.0),
            cpu_idle: Some(0.25),
            server_cpu_us: Some(1e6 / tps),
            ..RunFigures::default()
        },
        ..ExperimentRun::default()
    }
}

/// A finding on a run.
fn finding(severity: Severity, topic: Topic, finding: &str) -> RunFinding {
    RunFinding { severity, topic, finding: finding.to_owned() }
}

/// A sweep of some runs that took half an hour.
fn sweep(
    clients: &[u32],
    rounds: u32,
    variants: Vec<Variant>,
    mut runs: Vec<ExperimentRun>,
) -> ExperimentDocument {
    for (id, run) in (101..).zip(&mut runs) {
        run.run_id = Some(id);
    }
    ExperimentDocument {
        schema_version: SCHEMA_VERSION,
        sweep: Sweep {
            sweep_id: Some(7),
            setup: SweepSetup {
                workload: "pk_update".to_owned(),
                clients: clients.to_vec(),
                secs: Some(60.0),
                warmup: Some(5.0),
                rounds,
                variants,
                seed: 5_489_213,
                query_mode: "prepared".to_owned(),
                settings: object(json!({"work_mem": "64MB"})),
                tags: object(json!({"commit": "9c27b7d"})),
                ..SweepSetup::default()
            },
            before: vec!["vacuum".to_owned(), "checkpoint".to_owned()],
            status: "completed".to_owned(),
            started_at: Some("2026-03-01T10:00:00+00:00".to_owned()),
            finished_at: Some("2026-03-01T10:30:00+00:00".to_owned()),
            role: "bench".to_owned(),
            server_version: "15.14".to_owned(),
            extension_version: "0.1.0".to_owned(),
            ..Sweep::default()
        },
        runs,
        environment: Environment {
            version: Some("PostgreSQL 15.14 on x86_64-pc-linux-gnu".to_owned()),
            processors: Some(32),
            processor_model: Some("AMD EPYC 7543".to_owned()),
            memory_bytes: Some(128 << 30),
            server_settings: vec![ServerSetting {
                name: "shared_buffers".to_owned(),
                setting: "32GB".to_owned(),
                source: "configuration file".to_owned(),
            }],
            ..Environment::default()
        },
        ..ExperimentDocument::default()
    }
}

/// Three rungs, two variants and two rounds, of which one run failed.
pub fn small() -> ExperimentDocument {
    let mut runs = vec![
        run(1, "on", 16, 4_000.0),
        run(1, "off", 8, 9_000.0),
        run(1, "on", 32, 4_400.0),
        run(1, "off", 32, 14_000.0),
        run(1, "off", 16, 16_000.0),
        run(1, "on", 8, 2_000.0),
        run(2, "off", 16, 17_000.0),
        run(2, "on", 8, 2_200.0),
        run(2, "off", 32, 15_000.0),
        run(2, "on", 16, 4_100.0),
        run(2, "off", 8, 9_500.0),
    ];
    runs[2].figures.failed = 12;
    for index in [1, 2, 6] {
        runs[index].findings =
            vec![finding(Severity::Notice, Topic::Processors, "The processors were the limit.")];
    }
    runs[6].findings.insert(0, finding(Severity::Warning, Topic::Dip, "Throughput fell at 12.0 s."));
    runs.push(ExperimentRun {
        round: 2,
        variant: "on".to_owned(),
        clients: 32,
        run_id: Some(112),
        status: Some("failed".to_owned()),
        error: Some("no client came up".to_owned()),
        tps: Some(1.0),
        ..ExperimentRun::default()
    });
    sweep(&[8, 16, 32], 2, vec![variant("off", "off"), variant("on", "on")], runs)
}

/// A ladder without variants, once each, that follows the law with a peak at 22 clients, to within 1 %.
pub fn ladder() -> ExperimentDocument {
    let clients = [1, 2, 4, 8, 16, 24, 32, 48, 64];
    let tps = |clients: f64| 1_000.0 * clients / (1.0 + (clients - 1.0) * (0.02 + 0.002 * clients));
    let rung = |(index, clients): (usize, &u32)| {
        run(1, "", *clients, tps(f64::from(*clients)) * if index % 2 == 0 { 1.01 } else { 0.99 })
    };
    let runs = clients.iter().enumerate().map(rung).collect();
    sweep(&clients, 1, vec![Variant::default()], runs)
}

/// One rung, three variants and a round.
pub fn by_setting() -> ExperimentDocument {
    let modes = [("off", 40_000.0), ("local", 26_000.0), ("on", 25_000.0)];
    let variants = modes.map(|(mode, _)| variant(mode, mode)).to_vec();
    let runs = modes.map(|(mode, tps)| run(1, mode, 64, tps)).to_vec();
    sweep(&[64], 1, variants, runs)
}

/// The sweep; it has a run for each of its variants.
pub fn hostile() -> ExperimentDocument {
    let mut document = small();
    let text = || HOSTILE.to_owned();
    let map = || object(json!({HOSTILE: {"nested": [HOSTILE]}, "plain": HOSTILE, "none": null}));
    let long = HOSTILE.repeat(200);
    let sweep = &mut document.sweep;
    for field in [
        &mut sweep.setup.workload,
        &mut sweep.setup.query_mode,
        &mut sweep.status,
        &mut sweep.role,
        &mut sweep.server_version,
        &mut sweep.extension_version,
    ] {
        *field = text();
    }
    (sweep.started_at, sweep.finished_at) = (Some(text()), Some(text()));
    (sweep.setup.variables, sweep.setup.settings, sweep.setup.tags) = (map(), map(), map());
    (sweep.setup.secs, sweep.setup.warmup, sweep.setup.rate) =
        (Some(f64::INFINITY), Some(f64::NAN), Some(1e300));
    (sweep.sweep_id, sweep.setup.seed, sweep.setup.rounds) = (Some(i64::MIN), i64::MIN, u32::MAX);
    sweep.setup.clients.extend([0, 1, u32::MAX, u32::MAX]);
    sweep.before = vec![text(); 40];
    sweep.error = Some(json!({"message": HOSTILE, "detail": long, "hint": HOSTILE}));
    let numbers = [f64::MAX, f64::MIN, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, 1e-300, f64::MAX];
    for index in 0..30 {
        let name = if index == 0 { long.clone() } else { format!("{HOSTILE}{index}") };
        let mut run = ExperimentRun {
            variant: name.clone(),
            clients: u32::MAX - index % 2,
            run_id: Some(i64::MAX),
            status: Some(if index % 3 == 0 { text() } else { "completed".to_owned() }),
            error: Some(long.clone()),
            figures: RunFigures { failed: u64::MAX, ..RunFigures::default() },
            ..ExperimentRun::default()
        };
        let fields = [
            &mut run.tps,
            &mut run.figures.tps_min,
            &mut run.figures.tps_max,
            &mut run.figures.latency_avg_ms,
            &mut run.figures.latency_p95_ms,
            &mut run.figures.latency_p99_ms,
            &mut run.figures.cpu_idle,
            &mut run.figures.server_cpu_us,
            &mut run.figures.driver_cpu_us,
            &mut run.figures.connect_avg_ms,
        ];
        for (place, field) in fields.into_iter().enumerate() {
            *field = Some(numbers[(index as usize + place) % numbers.len()]);
        }
        document.runs.push(run);
        document.sweep.setup.variants.push(Variant {
            name,
            settings: map(),
            variables: map(),
            load: map(),
            system: map(),
            restart: map(),
            sql: Some(AppliedSql { apply: vec![long.clone()], revert: vec![text()] }),
            run: map(),
            ..Variant::default()
        });
        document.changes.push(SweepChange {
            variant: text(),
            apply_secs: Some(numbers[index as usize % numbers.len()]),
            made: vec![long.clone()],
            made_bytes: Some(i64::MIN),
            error: Some(text()),
            ..SweepChange::default()
        });
    }
    document.runs.extend((0..100).map(|_| ExperimentRun::default()));
    document.environment.processor_model = Some(text());
    document.environment.server_settings.push(ServerSetting { name: text(), setting: long, source: text() });
    document
}

#[test]
fn hostile_input_is_harmless() {
    let document = hostile();
    html::check_input(&render(&document, Format::Html));
    text::check_input(&render(&document, Format::Markdown));
}

#[test]
fn hostile_answers_are_harmless() {
    let long = HOSTILE.repeat(50);
    let text = || long.clone();
    for number in [f64::NAN, f64::INFINITY, -1e300, 5e-324, 0.0, 1e300] {
        let line = ScreenLine {
            metric: text(),
            factor: text(),
            a: text(),
            b: text(),
            effect: Some(number),
            margin: number,
            effect_low: Some(-number),
            effect_high: Some(number),
            verdict: text(),
            aliases: Some(text()),
            error: Some(text()),
        };
        let index = IndexLine {
            index: text(),
            definition: text(),
            bytes: Some(i64::MIN),
            saved_us: Some(number),
            cost_low: Some(-number),
            verdict: text(),
            error: Some(text()),
            ..IndexLine::default()
        };
        let screened =
            ExperimentDocument { screen: vec![line.clone(), line], ..ExperimentDocument::default() };
        let indexed = ExperimentDocument { indexes: vec![index], ..ExperimentDocument::default() };
        for document in [screened, indexed] {
            html::check_input(&render(&document, Format::Html));
            text::check_input(&render(&document, Format::Markdown));
            text::check_lines("hostile answers", &render(&document, Format::Text));
        }
    }
}

#[test]
fn all_reports_are_well_formed() {
    for (name, document) in documents() {
        text::check_lines(name, &render(&document, Format::Text));
        text::check_tables(name, &render(&document, Format::Markdown));
        let page = render(&document, Format::Html);
        html::check_page(name, &page);
        html::check_plots(&page);
        for format in ALL {
            assert!(!shows_no_number(&render(&document, format)), "{name} as {format:?}");
        }
    }
}
