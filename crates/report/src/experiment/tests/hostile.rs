//! A sweep in which every text is hostile and every number is the worst.

use bench_results::ServerSetting;
use bench_results::experiment::{AppliedSql, ExperimentRun, SweepChange, Variant};
use bench_results::index_worth::IndexLine;
use bench_results::screen::ScreenLine;
use serde_json::json;

use super::example::small;
use super::*;
use crate::tests::example::object;
use crate::tests::hostile::HOSTILE;
use crate::tests::{ALL, html, markdown, shows_no_number, text};

/// The sweep; it has a run for each of its variants.
pub fn hostile() -> ExperimentDocument {
    let mut document = small();
    let text = || HOSTILE.to_owned();
    let map = || object(json!({HOSTILE: {"nested": [HOSTILE]}, "plain": HOSTILE, "none": null}));
    let long = HOSTILE.repeat(200);
    let sweep = &mut document.sweep;
    for field in [
        &mut sweep.workload,
        &mut sweep.query_mode,
        &mut sweep.status,
        &mut sweep.role,
        &mut sweep.server_version,
        &mut sweep.extension_version,
    ] {
        *field = text();
    }
    (sweep.started_at, sweep.finished_at) = (Some(text()), Some(text()));
    (sweep.variables, sweep.settings, sweep.tags) = (map(), map(), map());
    (sweep.secs, sweep.warmup, sweep.rate) = (Some(f64::INFINITY), Some(f64::NAN), Some(1e300));
    (sweep.sweep_id, sweep.seed, sweep.rounds) = (Some(i64::MIN), i64::MIN, u32::MAX);
    sweep.clients.extend([0, 1, u32::MAX, u32::MAX]);
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
            failed: u64::MAX,
            ..ExperimentRun::default()
        };
        let fields = [
            &mut run.tps,
            &mut run.tps_min,
            &mut run.tps_max,
            &mut run.latency_avg_ms,
            &mut run.latency_p95_ms,
            &mut run.latency_p99_ms,
            &mut run.cpu_idle,
            &mut run.server_cpu_us,
            &mut run.driver_cpu_us,
            &mut run.connect_avg_ms,
        ];
        for (place, field) in fields.into_iter().enumerate() {
            *field = Some(numbers[(index as usize + place) % numbers.len()]);
        }
        document.runs.push(run);
        document.sweep.variants.push(Variant {
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
    markdown::check_input(&render(&document, Format::Markdown));
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
            markdown::check_input(&render(&document, Format::Markdown));
            text::check_lines("hostile answers", &render(&document, Format::Text));
        }
    }
}

#[test]
fn all_reports_are_well_formed() {
    for (name, document) in documents() {
        text::check_lines(name, &render(&document, Format::Text));
        markdown::check_tables(name, &render(&document, Format::Markdown));
        let page = render(&document, Format::Html);
        html::check_page(name, &page);
        html::check_plots(&page);
        for format in ALL {
            assert!(!shows_no_number(&render(&document, format)), "{name} as {format:?}");
        }
    }
}
