//! What `docs/sweep-json.md` says of the JSON report of a sweep, held against what is written.

use bench_report::Format;
use bench_report::sweep::render;
use bench_results::capacity::{CapacityAnswer, TrialOutcome};
use bench_results::index_worth::IndexLine;
use bench_results::screen::ScreenLine;
use bench_results::sweep::*;
use bench_results::{Environment, Severity, Topic, Unreplayed};
use serde_json::{Map, Value};

use crate::json_keys::{Keys, assert_documented, assert_title, collect};

/// A sweep with a law that is fitted. Its fields are all named, so that a new one is not forgotten here.
fn filled() -> SweepDocument {
    let tps = |clients: f64| 1_000.0 * clients / (1.0 + (clients - 1.0) * (0.02 + 0.002 * clients));
    let run = |clients: u32| SweepRun {
        place: 1,
        round: 1,
        variant: "off".to_owned(),
        clients,
        run_id: None,
        status: Some("completed".to_owned()),
        error: None,
        tps: Some(tps(f64::from(clients)) * if clients.is_multiple_of(3) { 1.01 } else { 0.99 }),
        tps_min: None,
        tps_max: None,
        latency_avg_ms: None,
        latency_p50_ms: None,
        latency_p95_ms: None,
        latency_p99_ms: None,
        cpu_idle: None,
        server_cpu_us: None,
        driver_cpu_us: None,
        connect_avg_ms: None,
        nopm: None,
        failed: 0,
        findings: vec![RunFinding {
            severity: Severity::Notice,
            topic: Topic::Warmup,
            finding: "Throughput rose.".to_owned(),
        }],
        rate: None,
        purpose: None,
        outcome: Some(TrialOutcome::default()),
    };
    let variant = VariantDescription {
        name: "off".to_owned(),
        settings: Map::new(),
        variables: Map::new(),
        load: Map::new(),
        system: Map::new(),
        restart: Map::new(),
        sql: Some(AppliedSql { apply: vec!["SELECT 1".to_owned()], revert: vec!["SELECT 2".to_owned()] }),
        run: Map::new(),
    };
    SweepDocument {
        schema_version: SCHEMA_VERSION,
        sweep: Sweep {
            clients: vec![1],
            before: vec!["vacuum".to_owned()],
            variants: vec![variant],
            ..Sweep::default()
        },
        runs: [1, 3, 8, 16, 24, 32, 48, 63].map(run).to_vec(),
        changes: vec![SweepChange { made: vec!["i".to_owned()], ..SweepChange::default() }],
        environment: Environment::default(),
        unreplayed: Some(Unreplayed::default()),
        capacities: vec![CapacityAnswer { failing: vec![1], ..CapacityAnswer::default() }],
        screen: vec![ScreenLine::default()],
        indexes: vec![IndexLine::default()],
    }
}

/// The keys of the report, without those of the environment, which is that of a run's report.
fn keys() -> Keys {
    let json = |document: &SweepDocument| -> Value {
        serde_json::from_str(&render(document, Format::Json)).expect("JSON")
    };
    let mut search = filled();
    search.sweep.search =
        Some(SearchDescription { latency_limits_ms: vec![10.0], ..SearchDescription::default() });
    let (mut value, search) = (json(&filled()), json(&search));
    // A search has no table and no law.
    assert!(search["results"] == Value::Array(vec![]) && search["scalability"] == Value::Array(vec![]));
    value["sweep"] = search["sweep"].clone();
    value["environment"] = Value::Null;
    let mut found = Keys::new();
    collect("", &value, &mut found);
    found
}

#[test]
fn the_documentation_and_the_report_have_the_same_keys() {
    assert_documented("sweep-json.md", &keys());
}

#[test]
fn the_documentation_is_of_this_version() {
    let title = format!("# The JSON report of a sweep, schema version {SCHEMA_VERSION}");
    assert_title("sweep-json.md", &title);
}

#[test]
fn the_keys_are_those_of_what_is_computed_too() {
    let keys = keys();
    assert!(keys["results[]"].contains("range_of"), "{keys:?}");
    assert!(keys["scalability[].peak_clients"].contains("low"), "{keys:?}");
}
