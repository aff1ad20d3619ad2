//! What `docs/report-json.md` says of the JSON report is written by hand; here it is held against the document
//! that the report is made of: each object has its section, and each section's table names the object's keys.

use bench_capture::fidelity::FidelityPart;
use bench_results::*;
use serde_json::Map;

use crate::json_keys::{Keys, assert_documented, assert_title, collect, differences, documentation, keys_in};

/// A document with an element in every list. Its fields are all named, so that a new one is not forgotten here.
fn filled() -> Document {
    let mut samples = Samples::default();
    samples.columns_mut().into_iter().for_each(|column| column.push(None));
    Document {
        schema_version: SCHEMA_VERSION,
        run: Run { other_runs: vec![0], applied: vec![String::new()], ..Run::default() },
        summary: Summary::default(),
        samples: samples.clone(),
        warmup_samples: samples,
        latencies: vec![Bucket::default()],
        scripts: vec![ScriptSummary::default()],
        statements: vec![CommandSummary::default()],
        waits: vec![Wait::default()],
        events: vec![Event::default()],
        relations: vec![Relation::default()],
        errors: vec![ErrorLine::default()],
        audit: vec![AuditLine::default()],
        fidelity: vec![FidelityPart::default()],
        unreplayed: Some(Unreplayed::default()),
        duel: Some(Duel {
            versions: Some([String::new(), String::new()]),
            metrics: vec![DuelLine::default()],
            statements: vec![DuelStatement::default()],
            waits: vec![DuelWait::default()],
            batches: vec![DuelBatch::default()],
            latencies: [vec![Bucket::default()], Vec::new()],
            ..Duel::default()
        }),
        nodes: vec![Node { clients_stuck: vec![0], ..Node::default() }],
        node_samples: vec![NodeSamples {
            node: 1,
            elapsed: vec![None],
            secs: vec![None],
            tps: vec![None],
            latency_p99_ms: vec![None],
        }],
        environment: Environment {
            server_settings: vec![ServerSetting::default()],
            unsupported_settings: vec![String::new()],
            unlogged_tables: vec![String::new()],
            ..Environment::default()
        },
        findings: vec![Finding {
            severity: Severity::Notice,
            topic: Topic::Dip,
            finding: String::new(),
            figures: Map::new(),
            advice: String::new(),
        }],
    }
}

fn keys_of(document: &Document) -> Keys {
    let mut found = Keys::new();
    collect("", &serde_json::to_value(document).expect("JSON"), &mut found);
    found
}

#[test]
fn the_documentation_and_the_document_have_the_same_keys() {
    assert_documented("report-json.md", &keys_of(&filled()));
}

#[test]
fn the_documentation_is_of_this_version() {
    let title = format!("# The JSON report, schema version {SCHEMA_VERSION}");
    assert_title("report-json.md", &title);
}

#[test]
fn differences_are_found() {
    let document = keys_of(&filled());
    assert!(document["environment.server_settings[]"].contains("source"), "{document:?}");
    let text = documentation("report-json.md");
    for (was, becomes, expected) in [
        ("| `tps_avg` |", "| tps_avg |", vec!["`tps_avg` of `summary` is not documented"]),
        (
            "| `tps_avg` |",
            "| `tps_mean` |",
            vec!["`tps_avg` of `summary` is not documented", "`tps_mean` of `summary` does not exist"],
        ),
        (
            "## `waits[]`",
            "## `wait[]`",
            vec![
                "`node` of `wait[]` does not exist",
                "`share` of `wait[]` does not exist",
                "`wait_event` of `wait[]` does not exist",
                "`wait_event_type` of `wait[]` does not exist",
                "`node` of `waits[]` is not documented",
                "`share` of `waits[]` is not documented",
                "`wait_event` of `waits[]` is not documented",
                "`wait_event_type` of `waits[]` is not documented",
            ],
        ),
        (
            "| `wal_fpi` |",
            "| |",
            vec![
                "`wal_fpi` of `samples` is not documented",
                "`wal_fpi` of `warmup_samples` is not documented",
            ],
        ),
    ] {
        let changed = text.replacen(was, becomes, 1);
        assert_ne!(changed, text, "{was}");
        assert_eq!(differences(&document, &keys_in(&changed)), expected, "{was} → {becomes}");
    }
}
