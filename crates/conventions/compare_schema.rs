//! What `docs/compare-json.md` says of the JSON report of a comparison, held against what is written.

use bench_questions::comparison::{Comparison, ComparisonLine, Difference};
use bench_questions::statements::StatementLine;
use bench_report::Format;
use bench_report::compare::{Collected, ComparisonReport, SCHEMA_VERSION, render};
use bench_results::{Bucket, CommandSummary, Document, Run, Samples, Unreplayed, Wait};
use serde_json::Value;

use crate::json_keys::{Keys, assert_documented, assert_title, collect};

/// A run with an element in every list, executed by that plan.
fn document(plan: &str) -> Document {
    let samples = Samples { elapsed: vec![Some(1.0)], tps: vec![Some(100.0)], ..Samples::default() };
    Document {
        run: Run { run_id: 1, ..Run::default() },
        samples,
        latencies: vec![Bucket { low_ms: 1.0, high_ms: 1.01, count: 7 }],
        statements: vec![CommandSummary { plan: Some(plan.to_owned()), ..CommandSummary::default() }],
        unreplayed: Some(Unreplayed::default()),
        waits: vec![Wait { wait_event: "WALSync".to_owned(), share: 1.0, ..Wait::default() }],
        ..Document::default()
    }
}

/// The keys of a report with an element in every list.
fn keys() -> Keys {
    let side = |plan: &str| {
        let mut side = Collected::default();
        side.add(&document(plan));
        side
    };
    let line = ComparisonLine {
        metric: "tps",
        script: None,
        baseline: None,
        candidate: None,
        ratio: None,
        ratio_low: None,
        ratio_high: None,
        verdict: "inconclusive",
        advice: None,
    };
    let difference = Difference { what: "clients".to_owned(), baseline: None, candidate: None };
    let compared = Comparison { lines: vec![line], differences: vec![difference] };
    let report = ComparisonReport::new(
        compared,
        0.02,
        false,
        side("Seq Scan"),
        side("Index Scan"),
        vec![StatementLine::default()],
    );
    let report: Value = serde_json::from_str(&render(&report, Format::Json)).expect("JSON");
    let mut found = Keys::new();
    collect("", &report, &mut found);
    found
}

#[test]
fn the_documentation_and_the_report_have_the_same_keys() {
    assert_documented("compare-json.md", &keys());
    assert!(keys()["candidate.runs[].samples"].contains("tps"), "{:?}", keys());
}

#[test]
fn the_documentation_is_of_this_version() {
    let title = format!("# The JSON report of a comparison, schema version {SCHEMA_VERSION}");
    assert_title("compare-json.md", &title);
}
