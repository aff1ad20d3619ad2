//! The report of a search for a capacity.

use super::example::small;
use crate::capacity::{Outcome, Search, Step, Trial, answers, next};
use crate::document::Severity;
use crate::document::sweep::{RunFinding, SearchDescription, SweepDocument, SweepRun};
use crate::report::Format;
use crate::report::sweep::render;

/// A search over a server that takes 2 ms, and 2 / (1 - load) under load, up to 2,000 a second.
pub fn searched() -> SweepDocument {
    let search = Search {
        latency_limits_ms: vec![10.0, 20.0],
        percentile: 0.99,
        trials: 1,
        precision: 0.05,
        max_failed: 0.0,
        rounds: 1,
    };
    let outcome = |step: &Step| {
        let rate = step.rate.unwrap_or(2000.0);
        let tps = rate.min(1990.0);
        Outcome {
            tps,
            latency_ms: Some(2.0 / (1.0 - tps / 2000.0)),
            due: (rate * 10.0) as u64,
            done: (tps * 10.0) as u64,
            service_ms: Some(2.0),
            busy: Some(tps / 2000.0),
            cpu_idle: Some(0.05),
            ..Outcome::default()
        }
    };
    let mut trials = Vec::new();
    while let Some(step) = next(&search, &trials) {
        trials.push(Trial { step, place: trials.len() as u32 + 1, outcome: outcome(&step) });
    }
    let mut document = small();
    document.capacities = answers(&search, &trials);
    document.sweep.search = Some(SearchDescription {
        latency_limits_ms: search.latency_limits_ms.clone(),
        percentile: search.percentile,
        trials: search.trials,
        precision: search.precision,
        max_failed: search.max_failed,
        rounds: search.rounds,
    });
    document.sweep.clients = vec![4];
    let findings = |place| {
        vec![RunFinding {
            severity: Severity::Warning,
            topic: "processors".to_owned(),
            finding: format!("Run {place} had no processor left."),
        }]
    };
    document.runs = trials
        .iter()
        .map(|trial| SweepRun {
            place: trial.place,
            round: 1,
            clients: 4,
            run_id: Some(100 + i64::from(trial.place)),
            status: Some("completed".to_owned()),
            tps: Some(trial.outcome.tps),
            rate: trial.step.rate,
            purpose: Some(trial.step.purpose),
            outcome: Some(trial.outcome.clone()),
            findings: findings(trial.place),
            ..SweepRun::default()
        })
        .collect();
    document
}

/// The text in one line.
fn unwrapped(document: &SweepDocument) -> String {
    render(document, Format::Text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_answers_come_first() {
    let text = unwrapped(&searched());
    assert!(text.contains("pk_update, search for a capacity, 4 clients"), "{text}");
    // 2 / (1 - load) is 10 ms at 1,600 a second and 20 ms at 1,800.
    assert!(text.contains("p99 within 10 ms: 1,5"), "{text}");
    assert!(text.contains("p99 within 20 ms: 1,7"), "{text}");
    assert!(text.contains("limited by latency; operating rate 1,"), "{text}");
    assert!(!text.contains("Scalability") && !text.contains("Peaks"), "{text}");
}

#[test]
fn findings_are_those_of_the_trials_that_failed() {
    let document = searched();
    let text = unwrapped(&document);
    let failing: Vec<u32> = document.capacities.iter().flat_map(|answer| answer.failing.clone()).collect();
    let first = failing.iter().min().expect("some failed");
    assert!(text.contains(&format!("Run {first} had no processor left.")), "{text}");
    assert!(text.contains(&format!("of {} runs", failing.len())), "{text}");
}

#[test]
fn the_curve_is_drawn_over_the_rate() {
    let page = render(&searched(), Format::Html);
    assert!(page.contains("id=\"plot-capacity\""), "no plot");
    assert!(page.contains("tps offered") && page.contains("sustained"));
    assert!(!page.contains("plot-throughput"));
    let markdown = render(&searched(), Format::Markdown);
    assert!(markdown.contains("## Capacity") && markdown.contains("## Trials"));
}

#[test]
fn a_search_without_an_answer_has_a_report() {
    let mut document = searched();
    document.capacities.clear();
    document.runs.truncate(1);
    for format in [Format::Text, Format::Markdown, Format::Html, Format::Json] {
        assert!(!render(&document, format).is_empty());
    }
}
