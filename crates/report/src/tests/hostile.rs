//! A document in which every text is hostile and every number is the worst.

use bench_results::*;
use bench_results::{Finding, Severity, Topic};
use serde_json::json;

use super::example::{believable, object};

/// What a report must not take for its own, in any format.
pub const HOSTILE: &str = "<script>alert(\"1\")</script>|'&amp;`*_[x](http://evil.example)\u{1b}[31m\u{0}\r\n\t\u{202e}数据🐘</style></td>-->";

/// A mix of 128 scripts in which every text is hostile and every number is the worst.
pub fn hostile() -> Document {
    let mut document = believable(20);
    let text = || HOSTILE.to_owned();
    let map =
        || object(json!({HOSTILE: {"nested": [HOSTILE, {"deep": HOSTILE}]}, "plain": HOSTILE, "none": null}));
    let long = HOSTILE.repeat(200);
    let run = &mut document.run;
    for field in [&mut run.workload, &mut run.query_mode, &mut run.results, &mut run.status, &mut run.role] {
        *field = text();
    }
    run.workload = (0..128).map(|i| format!("{HOSTILE}{i}@{i}")).collect::<Vec<_>>().join(", ");
    (run.fixture, run.started_at, run.finished_at) = (Some(text()), Some(text()), Some(text()));
    (run.driver, run.target) = ("wire".to_owned(), Some(text()));
    (run.server_version, run.extension_version) = (text(), text());
    (run.variables, run.settings, run.tags) = (map(), map(), map());
    run.error = Some(json!({"message": HOSTILE, "detail": long, "hint": HOSTILE}));
    run.origin = Some(json!({"run_id": HOSTILE, "role": long, "database": null}));
    (run.rate, run.latency_limit) = (Some(1e300), Some(f64::NAN));
    (run.clients, run.seed, run.warmup) = (u32::MAX, i64::MIN, Some(f64::INFINITY));
    let summary = &mut document.summary;
    (summary.transactions, summary.failed, summary.skipped, summary.late) =
        (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
    summary.backlog = Some(u64::MAX);
    (summary.tps, summary.latency_avg_ms, summary.latency_p99_ms) =
        (Some(f64::INFINITY), Some(f64::NAN), Some(f64::MAX));
    (summary.secs, summary.tps_max) = (Some(f64::MAX), Some(f64::MAX));
    (summary.server_cpu_us, summary.driver_cpu_us) = (Some(f64::NEG_INFINITY), Some(f64::NAN));
    for (index, column) in document.samples.columns_mut().into_iter().enumerate() {
        for (interval, value) in column.iter_mut().enumerate() {
            *value = match (index + interval) % 7 {
                0 => None,
                1 => Some(f64::NAN),
                2 => Some(f64::INFINITY),
                3 => Some(-1e300),
                4 => Some(f64::MAX),
                _ => *value,
            };
        }
    }
    for event in 0..64 {
        document.samples.waits.insert(format!("{HOSTILE}{event}"), vec![f64::NAN, 0.5, f64::INFINITY, -1.0]);
        document.waits.push(Wait {
            wait_event_type: text(),
            wait_event: text(),
            share: f64::NAN,
            ..Wait::default()
        });
    }
    document.samples.latency_histogram.insert(u32::MAX, vec![f64::NAN, f64::INFINITY, -1.0, f64::MAX]);
    for number in [f64::MAX, f64::MIN, 5.0] {
        document.findings.push(Finding {
            severity: Severity::Warning,
            topic: Topic::Dip,
            finding: text(),
            figures: object(json!({"at": [number, HOSTILE], "until": [f64::MAX, null]})),
            advice: text(),
        });
    }
    document.latencies.push(Bucket { low_ms: f64::NAN, high_ms: f64::INFINITY, count: u64::MAX });
    document.scripts = (0..128)
        .map(|script| ScriptSummary {
            script,
            workload: text(),
            weight: u32::MAX,
            transactions: u64::MAX,
            tps: Some(f64::MAX),
            ..ScriptSummary::default()
        })
        .collect();
    document.statements.extend((0..128).map(|script| CommandSummary {
        script,
        line: u32::MAX,
        statement: if script == 0 { long.clone() } else { text() },
        count: u64::MAX,
        failed: u64::MAX,
        retried: u64::MAX,
        latency_avg_ms: Some(f64::NAN),
        latency_p95_ms: Some(1e300),
        plan: Some(long.clone()),
        generic_plans: u64::MAX,
        ..CommandSummary::default()
    }));
    document.events.extend((0..200).map(|_| Event {
        kind: text(),
        relation: Some(text()),
        detail: Some(text()),
        started: f64::NAN,
        ended: Some(f64::INFINITY),
        node: 7,
    }));
    document.relations.push(Relation {
        relation: long.clone(),
        kind: text(),
        bytes_before: Some(1),
        bytes_after: Some(i64::MAX),
        live: Some(i64::MIN),
        dead_before: Some(i64::MIN),
        dead: Some(i64::MAX),
        inserted: Some(i64::MIN),
        ..Relation::default()
    });
    document.errors.push(ErrorLine {
        sqlstate: text(),
        message: long.clone(),
        detail: Some(text()),
        count: u64::MAX,
        retried: 0,
        failed: 0,
        node: 7,
    });
    document.audit.push(AuditLine {
        counter: text(),
        harness: Some(i64::MIN),
        server: Some(i64::MAX),
        ok: Some(false),
        reason: text(),
        node: i32::MIN,
    });
    document.statements.extend((0..2).map(|_| CommandSummary {
        node: 7,
        statement: text(),
        count: u64::MAX,
        latency_avg_ms: Some(f64::MAX),
        generic_plans: u64::MAX,
        ..CommandSummary::default()
    }));
    document.nodes = (7..16)
        .map(|node| Node {
            node,
            name: if node == 7 { long.clone() } else { text() },
            is_coordinator: node == 8,
            clients: u32::MAX,
            status: Some(text()),
            error: Some(json!({"message": HOSTILE})),
            start_offset_ms: Some(f64::NAN),
            tps: Some(f64::MAX),
            transactions: Some(u64::MAX),
            latency_avg_ms: Some(f64::INFINITY),
            latency_p99_ms: Some(1e300),
            processors: Some(u32::MAX),
            cpu_idle: Some(-1e300),
            prepared_left: Some(u64::MAX),
            connections_opened: Some(u64::MAX),
            settings: [(text(), text())].into(),
            ..Node::default()
        })
        .collect();
    let environment = &mut document.environment;
    for field in [
        &mut environment.version,
        &mut environment.processor_model,
        &mut environment.kernel,
        &mut environment.filesystem,
        &mut environment.mount_options,
        &mut environment.horizon_holder,
    ] {
        *field = Some(text());
    }
    environment.kernel_parameters.insert(text(), text());
    environment.unsupported_settings = vec![text(); 100];
    environment.server_settings.push(ServerSetting { name: text(), setting: long.clone(), source: text() });
    (environment.clock_read_ns, environment.fsync_us) = (Some(f64::NAN), Some(f64::INFINITY));
    for severity in [Severity::Critical, Severity::Warning, Severity::Notice] {
        document.findings.push(Finding {
            severity,
            topic: Topic::Waits,
            finding: long.clone(),
            figures: map(),
            advice: text(),
        });
    }
    document
}
