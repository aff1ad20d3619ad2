//! The report of a search for a capacity.

use bench_questions::capacity::{CapacitySearch, NextTrial, Trial, TrialOutcome, answers, next};
use bench_results::experiment::{CapacityAnswer, ExperimentDocument, ExperimentRun, Limit, RunFinding};
use bench_results::{Severity, Topic};

use crate::experiment::capacity::capacity_sentence;
use crate::experiment::tests::example::small;
use crate::experiment::tests::render;
use crate::formats::Format;

/// A search over a server that takes 2 ms, and 2 / (1 - load) under load, up to 2,000 a second.
pub fn searched() -> ExperimentDocument {
    let search = CapacitySearch {
        latency_limits_ms: vec![10.0, 20.0],
        percentile: 0.99,
        trials: 1,
        margin: 0.05,
        max_failed: 0.0,
        rounds: 1,
    };
    let outcome = |step: &NextTrial| {
        let rate = step.rate.unwrap_or(2000.0);
        let tps = rate.min(1990.0);
        TrialOutcome {
            tps,
            latency_ms: Some(2.0 / (1.0 - tps / 2000.0)),
            due: (rate * 10.0) as u64,
            done: (tps * 10.0) as u64,
            service_ms: Some(2.0),
            busy: Some(tps / 2000.0),
            cpu_idle: Some(0.05),
            ..TrialOutcome::default()
        }
    };
    let mut trials = Vec::new();
    while let Some(step) = next(&search, &trials) {
        trials.push(Trial { step, place: trials.len() as u32 + 1, outcome: outcome(&step) });
    }
    let mut document = small();
    document.capacities = answers(&search, &trials);
    document.sweep.search = Some(search);
    document.sweep.setup.clients = vec![4];
    let findings = |place| {
        vec![RunFinding {
            severity: Severity::Warning,
            topic: Topic::Processors,
            finding: format!("Run {place} had no processor left."),
        }]
    };
    document.runs = trials
        .iter()
        .map(|trial| ExperimentRun {
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
            ..ExperimentRun::default()
        })
        .collect();
    document
}

/// The text in one line.
fn unwrapped(document: &ExperimentDocument) -> String {
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
    assert!(!text.contains("Scalability") && !text.contains("Highest throughput"), "{text}");
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

#[test]
fn a_sentence_says_what_the_answer_is_worth() {
    let answer = CapacityAnswer {
        latency_limit_ms: Some(10.0),
        percentile: 0.99,
        rate: Some(500.0),
        rate_low: Some(500.0),
        rate_high: Some(520.0),
        operating_rate: Some(350.0),
        checkpoints: Some(1),
        limited_by: Some(Limit::Latency),
        rounds: 1,
        above: Some(10),
        ..CapacityAnswer::default()
    };
    let said = |change: &dyn Fn(&mut CapacityAnswer)| {
        let mut answer = answer.clone();
        change(&mut answer);
        capacity_sentence(&answer)
    };
    assert_eq!(
        said(&|_| ()),
        "p99 within 10 ms: 500.0 transactions per second are sustained, 520.0 are not; limited by latency; operating rate \
         350.0"
    );
    assert!(said(&|a| a.checkpoints = Some(0)).ends_with("operating rate 350.0, without a checkpoint"));
    assert!(said(&|a| a.operating_rate = None).ends_with("; 70 % of it was not sustained over a longer run"));
    // 1,000 transactions have ten above the percentile, which are 2 s.
    assert!(
        said(&|a| a.above = Some(9))
            .ends_with("; p99 rests on 9 transactions above it: use secs => 2 or more")
    );
    assert!(
        said(&|a| a.above = Some(0))
            .ends_with("; p99 rests on no transaction above it: use secs => 2 or more")
    );
    let clients = said(&|a| a.limited_by = Some(Limit::Clients));
    assert!(
        clients.contains("500.0 transactions per second and more are sustained, 520.0 are not"),
        "{clients}"
    );
    assert!(clients.contains("limited by the clients, so this is not the capacity"), "{clients}");
    // Rounds that all found the same.
    let same = said(&|a| (a.rounds, a.rate_high) = (3, Some(500.0)));
    assert!(same.contains("are sustained (500.0 to 500.0);"), "{same}");
    let none = |rounds, without| {
        said(&|a| (a.rate, a.rounds, a.rounds_without, a.above) = (None, rounds, without, None))
    };
    assert_eq!(none(1, 1), "p99 within 10 ms: no tried rate is sustained: limited by latency");
    assert_eq!(
        none(3, 1),
        "p99 within 10 ms: no tried rate is sustained in 1 of 3 rounds: limited by latency"
    );
}

#[test]
fn a_note_says_whether_there_was_a_checkpoint() {
    let with = |checkpoints| {
        let mut document = searched();
        document.capacities.iter_mut().for_each(|answer| answer.checkpoints = checkpoints);
        unwrapped(&document)
    };
    assert!(with(Some(0)).contains("No checkpoint fell into that run."));
    assert!(with(Some(2)).contains("A checkpoint fell into that run."));
}

#[test]
fn how_sure_means_are_is_a_condition() {
    let mut document = small();
    document.sweep.sure_within = Some(0.034);
    assert!(unwrapped(&document).contains("±3.4 %, not ±2 %"), "{}", unwrapped(&document));
    document.sweep.sure_within = Some(0.0121);
    assert!(unwrapped(&document).contains("±1.2 %, as asked for"));
}
