mod checks;
mod differences;
mod lines;

use bench_base::error::UserError;
use bench_results::{Document, Environment, Run, ServerSetting, Summary};
use serde_json::json;

use super::compare as compare_sides;
use super::*;

fn compare(baseline: &[Document], candidate: &[Document], margin: f64) -> Result<Comparison, UserError> {
    compare_sides(baseline, candidate, margin, Design::Groups)
}

fn compare_pairs(pairs: &[(Document, Document)], margin: f64) -> Result<Comparison, UserError> {
    let (baseline, candidate): (Vec<_>, Vec<_>) = pairs.iter().cloned().unzip();
    compare_sides(&baseline, &candidate, margin, Design::Pairs)
}

/// A completed run with so many TPS, and latencies to match.
fn run(run_id: i64, tps: f64) -> Document {
    let latency = |factor: f64| Some(factor * 8_000.0 / tps);
    Document {
        run: Run {
            run_id,
            workload: "tpcb".into(),
            clients: 8,
            secs: Some(10.0),
            max_tries: 1,
            query_mode: "prepared".into(),
            results: "serialize".into(),
            sample_interval: 1.0,
            seed: 1000 + run_id,
            status: "completed".into(),
            started_at: Some(format!("2025-06-0{}T12:00:00+00:00", run_id % 9 + 1)),
            server_version: "17.5".into(),
            extension_version: "0.1.0".into(),
            warmup: Some(0.0),
            ..Run::default()
        },
        summary: Summary {
            secs: Some(10.0),
            transactions: (10.0 * tps) as u64,
            tps: Some(tps),
            latency_avg_ms: latency(1.0),
            latency_p50_ms: latency(0.9),
            latency_p95_ms: latency(1.8),
            latency_p99_ms: latency(2.5),
            server_cpu_us: latency(0.12),
            ..Summary::default()
        },
        environment: Environment {
            processors: Some(8),
            memory_bytes: Some(16 << 30),
            clock_read_ns: Some(24.0),
            fsync_us: Some(900.0),
            coordinator_cpu_secs: Some(0.1 * run_id as f64),
            xids_used: Some(run_id * 1000),
            xid_age: Some(run_id * 100_000),
            server_settings: vec![setting("shared_buffers", "1GB"), setting("port", "5432")],
            ..Environment::default()
        },
        ..Document::default()
    }
}

fn setting(name: &str, setting: &str) -> ServerSetting {
    ServerSetting { name: name.into(), setting: setting.into(), source: "configuration file".into() }
}

/// Runs from an id on, with about 2 % between them.
fn side(first: i64, tps: f64, count: usize) -> Vec<Document> {
    let stray = [0.0, 0.02, -0.02, 0.01, -0.01];
    (0..count).map(|i| run(first + i as i64, tps * (1.0 + stray[i % 5]))).collect()
}

/// Runs after a change to each.
fn changed(mut runs: Vec<Document>, change: impl Fn(&mut Document)) -> Vec<Document> {
    runs.iter_mut().for_each(change);
    runs
}

fn object(value: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap()
}
