//! Believable sweeps.

use bench_results::experiment::*;
use bench_results::{Environment, ServerSetting, Severity, Topic};
use serde_json::json;

use crate::tests::example::object;

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
        error: None,
        tps: Some(tps),
        tps_min: Some(tps * 0.8),
        tps_max: Some(tps * 1.1),
        latency_avg_ms: Some(latency_ms),
        latency_p50_ms: Some(latency_ms * 0.8),
        latency_p95_ms: Some(latency_ms * 2.0),
        latency_p99_ms: Some(latency_ms * 4.0),
        cpu_idle: Some(0.25),
        server_cpu_us: Some(1e6 / tps),
        driver_cpu_us: None,
        connect_avg_ms: None,
        failed: 0,
        findings: Vec::new(),
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
            workload: "pk_update".to_owned(),
            clients: clients.to_vec(),
            secs: Some(60.0),
            warmup: Some(5.0),
            rate: None,
            rounds,
            variants,
            before: vec!["vacuum".to_owned(), "checkpoint".to_owned()],
            seed: 5_489_213,
            query_mode: "prepared".to_owned(),
            run: object(json!({})),
            variables: object(json!({})),
            settings: object(json!({"work_mem": "64MB"})),
            tags: object(json!({"commit": "9c27b7d"})),
            status: "completed".to_owned(),
            started_at: Some("2026-03-01T10:00:00+00:00".to_owned()),
            finished_at: Some("2026-03-01T10:30:00+00:00".to_owned()),
            role: "bench".to_owned(),
            error: None,
            server_version: "15.14".to_owned(),
            extension_version: "0.1.0".to_owned(),
            search: None,
            sure_within: None,
        },
        changes: Vec::new(),
        runs,
        unreplayed: None,
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
        capacities: Vec::new(),
        screen: Vec::new(),
        indexes: Vec::new(),
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
    runs[2].failed = 12;
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
