//! Believable documents, of any length, and one in which every text is hostile and every number is the worst.

use bench_results::{Finding, Severity, Topic, *};
use serde_json::{Map, Value, json};

/// A sequence of numbers in [0, 1), the same for the same seed.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> f64 {
        // Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    /// Around 0, mostly within ±1.
    fn noise(&mut self) -> f64 {
        (0..6).map(|_| self.next()).sum::<f64>() - 3.0
    }
}

/// With digits that JSON's fast reading of numbers gives back exactly.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// The members of a JSON object.
pub fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// A histogram of about so many latencies, with a tail of lock waits.
fn buckets(total: f64) -> Vec<Bucket> {
    let low = |i: i32| rounded(0.4 * 1.02f64.powi(i));
    let density = |i: i32| {
        let logarithm = low(i).ln();
        let hump = |center: f64, width: f64| (-((logarithm - center) / width).powi(2) / 2.0).exp();
        hump(0.25, 0.42) + 0.02 * hump(1.6, 0.9) + 1e-4 * hump(4.5, 1.1)
    };
    let sum: f64 = (0..450).map(density).sum();
    let count = |i| (density(i) / sum * total).round() as u64;
    let buckets = (0..450).map(|i| Bucket { low_ms: low(i), high_ms: low(i + 1), count: count(i) });
    buckets.filter(|bucket| bucket.count > 0).collect()
}

/// The histogram of an interval with so many transactions around a median, and of some that wait for locks.
fn spread(samples: &mut Samples, transactions: f64, p50_ms: f64, slow: f64) {
    let middle = (p50_ms.log10() + 3.0) * 10.0;
    for bucket in 20..50u32 {
        let hump =
            |center: f64, width: f64| (-((f64::from(bucket) + 0.5 - center) / width).powi(2) / 2.0).exp();
        let density = hump(middle, 2.0) / 5.0 + slow * hump(middle + 14.0, 1.5) / 4.0;
        samples.latency_histogram.entry(bucket).or_default().push((transactions * density).round());
    }
}

/// A TPC-B like run of so many seconds with a checkpoint every five minutes.
pub fn believable(secs: usize) -> Document {
    let mut dice = Dice(42);
    let period = 300.0;
    let mut samples = Samples::default();
    let wait_names = [
        "CPU",
        "Runnable",
        "IO:WALSync",
        "LWLock:WALWrite",
        "Lock:transactionid",
        "Lock:tuple",
        "IO:DataFileRead",
        "LWLock:BufferContent",
        "IO:DataFileWrite",
        "LWLock:ProcArray",
        "IO:WALWrite",
        "LWLock:LockManager",
        "IPC:ProcArrayGroupUpdate",
        "Timeout:SpinDelay",
    ];
    let mut wait_sums = vec![0.0; wait_names.len()];
    for second in 0..secs {
        let time = second as f64;
        let since_checkpoint = (time - 60.0).rem_euclid(period);
        let is_after_first = time >= 60.0;
        let in_checkpoint = is_after_first && since_checkpoint < 0.7 * period;
        let images = if is_after_first { (-since_checkpoint / 60.0).exp() } else { 0.15 };
        let dip = if is_after_first && since_checkpoint > 0.68 * period && since_checkpoint < 0.7 * period {
            0.55
        } else {
            0.0
        };
        let stall = if dice.next() < 0.002 { 0.8 } else { 0.0 };
        let tps = rounded(
            11_800.0 * (1.0 - 0.35 * images) * (1.0 - dip) * (1.0 - stall) * (1.0 + 0.025 * dice.noise()),
        );
        let p50 = 16.0 / tps * 1000.0 * 0.85;
        let push = |series: &mut Series, value: f64| series.push(Some(rounded(value)));
        push(&mut samples.elapsed, time + 1.0);
        push(&mut samples.secs, 1.0);
        push(&mut samples.clients, 16.0);
        push(&mut samples.transactions, tps.round());
        push(&mut samples.tps, tps);
        for zero in [&mut samples.failed, &mut samples.retried, &mut samples.skipped, &mut samples.late] {
            zero.push(Some(0.0));
        }
        push(&mut samples.latency_avg_ms, 16_000.0 / tps);
        push(&mut samples.latency_stddev_ms, p50 * 0.5);
        push(&mut samples.latency_p50_ms, p50);
        push(&mut samples.latency_p95_ms, p50 * (1.9 + 0.1 * dice.noise() + dip));
        push(&mut samples.latency_p99_ms, p50 * (3.2 + 0.3 * dice.noise() + 6.0 * dip + 10.0 * stall));
        push(&mut samples.latency_max_ms, p50 * (8.0 + 6.0 * dice.next() + 60.0 * dip + 400.0 * stall));
        spread(&mut samples, tps, p50, 0.004 + 0.2 * dip);
        samples.lag_avg_ms.push(None);
        push(&mut samples.wal_bytes, tps * (620.0 + 5_400.0 * images));
        push(&mut samples.wal_records, tps * 9.0);
        push(&mut samples.wal_fpi, tps * 0.9 * images * (1.0 + 0.1 * dice.noise()));
        push(&mut samples.wal_buffers_full, (3.0 * images).floor());
        push(&mut samples.checkpoints, f64::from(u8::from(is_after_first && since_checkpoint < 1.0)));
        push(&mut samples.buffers_checkpoint, if in_checkpoint { 900.0 + 60.0 * dice.noise() } else { 0.0 });
        push(&mut samples.buffers_clean, 40.0 * dice.next());
        push(&mut samples.buffers_backend, 12.0 * dice.next());
        push(&mut samples.blks_hit, tps * 31.0);
        push(&mut samples.blks_read, tps * 0.4);
        push(&mut samples.temp_files, 0.0);
        push(&mut samples.temp_bytes, 0.0);
        let user = 0.52 * tps / 11_800.0 + 0.01 * dice.noise();
        let system = 0.19 * tps / 11_800.0 + 0.008 * dice.noise();
        let iowait = 0.05 + 0.1 * images + 0.01 * dice.noise().abs();
        let steal = if dice.next() < 0.05 { 0.03 } else { 0.004 };
        push(&mut samples.cpu_user, user);
        push(&mut samples.cpu_system, system);
        push(&mut samples.cpu_iowait, iowait);
        push(&mut samples.cpu_steal, steal);
        push(&mut samples.cpu_idle, 1.0 - user - system - iowait - steal);
        push(&mut samples.memory_available_bytes, 4.1e9 - 1e5 * time.min(10_000.0));
        push(&mut samples.memory_dirty_bytes, 2e8 + 1e8 * images);
        push(&mut samples.disk_read_bytes, tps * 300.0);
        push(&mut samples.disk_written_bytes, tps * 7_000.0);
        push(&mut samples.throttled_secs, 0.0);
        let mut weights: Vec<f64> =
            (0..wait_names.len()).map(|i| 0.5f64.powi(i as i32) * (1.0 + 0.12 * dice.noise())).collect();
        weights[2] = 0.5 + 0.6 * images + 0.5 * dip;
        let sum: f64 = weights.iter().sum();
        for (index, weight) in weights.iter().enumerate() {
            let share = rounded(weight / sum);
            wait_sums[index] += share;
            samples.waits.entry(wait_names[index].to_owned()).or_default().push(share);
        }
    }
    let mean = |series: &Series| rounded(series.iter().flatten().sum::<f64>() / secs.max(1) as f64);
    let total = samples.transactions.iter().flatten().sum::<f64>();
    let mut events: Vec<Event> = (0..=secs / 300)
        .map(|i| Event {
            kind: "checkpoint".to_owned(),
            detail: Some(if i == 0 { "requested" } else { "timed" }.to_owned()),
            started: 60.0 + period * i as f64,
            ended: Some(60.0 + period * (i as f64 + 0.7)).filter(|end| *end < secs as f64),
            ..Event::default()
        })
        .filter(|event| event.started < secs as f64)
        .collect();
    events.extend((0..secs / 60).map(|i| Event {
        kind: "autovacuum".to_owned(),
        relation: Some(["public.bench_tellers", "public.bench_branches"][i % 2].to_owned()),
        started: 31.0 + 60.0 * i as f64,
        ended: Some(32.4 + 60.0 * i as f64 + (i % 5) as f64),
        ..Event::default()
    }));
    events.sort_by(|one, other| one.started.total_cmp(&other.started));
    let mut waits: Vec<Wait> = wait_names
        .iter()
        .zip(&wait_sums)
        .map(|(name, sum)| {
            let (class, event) = name.split_once(':').unwrap_or((name, name));
            Wait {
                wait_event_type: class.to_owned(),
                wait_event: event.to_owned(),
                share: rounded(sum / secs.max(1) as f64),
                ..Wait::default()
            }
        })
        .collect();
    waits.sort_by(|one, other| other.share.total_cmp(&one.share));
    let statement = |command: u32, statement: &str, avg: f64, plan: Option<&str>| CommandSummary {
        command,
        line: command,
        statement: statement.to_owned(),
        count: total as u64,
        latency_avg_ms: Some(avg),
        latency_p95_ms: plan.map(|_| rounded(avg * 2.1)),
        plan: plan.map(str::to_owned),
        generic_plans: if plan.is_some() { total as u64 } else { 0 },
        custom_plans: if plan.is_some() { 80 } else { 0 },
        ..CommandSummary::default()
    };
    let update = |table: &str| {
        format!(
            "-- generic\nUpdate on public.{table}\n  ->  Index Scan using {table}_pkey on public.{table}\n        Output: (balance + $1), ctid\n        Index Cond: ({table}.id = $2)"
        )
    };
    let relation = |name: &str, kind: &str, before: i64, growth: f64, updated: i64| Relation {
        relation: format!("public.{name}"),
        kind: kind.to_owned(),
        bytes_before: Some(before),
        bytes_after: Some((before as f64 * growth) as i64),
        live_before: Some(before / 100),
        live: Some(before / 100),
        dead_before: Some(0),
        dead: Some(updated / 900),
        inserted: Some(0),
        updated: (kind == "table").then_some(updated),
        hot_updated: (kind == "table").then_some(updated * 93 / 100),
        deleted: Some(0),
        seq_scan: Some(2),
        seq_tup_read: Some(400),
        idx_scan: Some(updated),
        vacuums: Some(0),
        autovacuums: (kind == "table").then_some(5),
        analyzes: Some(0),
        autoanalyzes: (kind == "table").then_some(4),
        ..Relation::default()
    };
    let n = total as i64;
    let latencies = buckets(total);
    let percentile = |p| {
        let buckets = latencies.iter().map(|bucket| (bucket.low_ms, bucket.high_ms, bucket.count));
        bench_stats::histogram::percentile_of(buckets, p).map(rounded)
    };
    Document {
        schema_version: SCHEMA_VERSION,
        run: Run {
            run_id: 42,
            workload: "tpcb-like".to_owned(),
            fixture: Some("bench".to_owned()),
            clients: 16,
            secs: Some(secs as f64),
            warmup: Some(30.0),
            warmup_took: Some(30.0),
            max_tries: 1,
            seed: 5_489_213,
            query_mode: "prepared".to_owned(),
            results: "serialize".to_owned(),
            variables: object(json!({"scale": 100})),
            settings: object(json!({"synchronous_commit": "on", "work_mem": "16MB"})),
            tags: object(json!({"host": "bench-3", "change": {"commit": "9c27b7d", "dirty": false}})),
            sample_interval: 1.0,
            log_rate: 0.5,
            logged: Some(4_000),
            log_lost: Some(0),
            status: "completed".to_owned(),
            started_at: Some("2026-11-21 22:03:17.482913+00".to_owned()),
            finished_at: Some("2026-11-21 22:13:47.601132+00".to_owned()),
            role: "bench".to_owned(),
            server_version: "17.6".to_owned(),
            extension_version: "0.1.0".to_owned(),
            ..Run::default()
        },
        summary: Summary {
            secs: Some(secs as f64),
            transactions: total as u64,
            failed: 3,
            tps: Some(mean(&samples.tps)),
            tps_avg: Some(mean(&samples.tps)),
            tps_min: samples.tps.iter().flatten().copied().reduce(f64::min),
            tps_max: samples.tps.iter().flatten().copied().reduce(f64::max),
            tps_stddev: Some(1_184.2),
            latency_avg_ms: Some(mean(&samples.latency_avg_ms)),
            latency_stddev_ms: Some(1.731),
            latency_p50_ms: percentile(0.5),
            latency_p95_ms: percentile(0.95),
            latency_p99_ms: percentile(0.99),
            latency_p999_ms: percentile(0.999),
            latency_max_ms: samples.latency_max_ms.iter().flatten().copied().reduce(f64::max),
            server_cpu_us: Some(231.46),
            ..Summary::default()
        },
        latencies,
        scripts: vec![ScriptSummary { workload: "tpcb-like".to_owned(), weight: 1, transactions: total as u64, ..ScriptSummary::default() }],
        statements: vec![
            statement(1, "\\set aid random(1, 100000 * :scale)", 0.002, None),
            statement(2, "\\set bid random(1, 1 * :scale)", 0.001, None),
            statement(3, "BEGIN;", 0.011, None),
            statement(4, "UPDATE bench_accounts\n   SET balance = balance + :delta\n WHERE id = :aid;", 0.241, Some(&update("bench_accounts"))),
            statement(5, "SELECT balance FROM bench_accounts WHERE id = :aid;", 0.061, Some("-- generic\nIndex Scan using bench_accounts_pkey on public.bench_accounts\n  Output: balance\n  Index Cond: (bench_accounts.id = $1)")),
            statement(6, "UPDATE bench_tellers SET balance = balance + :delta WHERE id = :tid;", 0.198, Some(&update("bench_tellers"))),
            statement(7, "UPDATE bench_branches SET balance = balance + :delta WHERE id = :bid;", 0.402, Some(&update("bench_branches"))),
            statement(8, "INSERT INTO bench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);", 0.049, Some("-- generic\nInsert on public.bench_history\n  ->  Result\n        Output: $1, $2, $3, $4, CURRENT_TIMESTAMP")),
            statement(9, "END;", 0.512, None),
        ],
        waits,
        events,
        relations: vec![
            relation("bench_accounts", "table", 1_342_177_280, 1.021, n),
            relation("bench_accounts_pkey", "index", 224_641_024, 1.0, n),
            relation("bench_tellers", "table", 49_152, 5.2, n),
            relation("bench_branches", "table", 8_192, 21.0, n),
            relation("bench_history", "table", 0, 1.0, 0),
        ],
        errors: vec![ErrorLine {
            sqlstate: "40P01".to_owned(),
            message: "deadlock detected".to_owned(),
            detail: Some("script 0, line 7: Process 4711 waits for ShareLock on transaction 815".to_owned()),
            count: 3,
            retried: 0,
            failed: 3,
            ..ErrorLine::default()
        }],
        audit: vec![
            AuditLine { counter: "xact_commit".to_owned(), harness: Some(n), server: Some(n + 41), ok: None, reason: "the coordinator's own".to_owned(), ..AuditLine::default() },
            AuditLine { counter: "xact_rollback".to_owned(), harness: Some(3), server: Some(3), ok: Some(true), reason: "failed transactions".to_owned(), ..AuditLine::default() },
        ],
        environment: Environment {
            version: Some("PostgreSQL 17.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 14.2.0) 14.2.0, 64-bit".to_owned()),
            server_settings: [("shared_buffers", "2GB"), ("max_wal_size", "4GB"), ("wal_compression", "lz4"), ("checkpoint_timeout", "5min")]
                .map(|(name, setting)| ServerSetting { name: name.to_owned(), setting: setting.to_owned(), source: "configuration file".to_owned() })
                .to_vec(),
            data_checksums: Some(true),
            processors: Some(8),
            processor_model: Some("AMD EPYC 9454P 48-Core Processor".to_owned()),
            memory_bytes: Some(16 << 30),
            swap_bytes: Some(0),
            kernel: Some("Linux 6.12.48".to_owned()),
            transparent_huge_pages: Some("madvise".to_owned()),
            kernel_parameters: [("vm.swappiness", "60"), ("vm.dirty_ratio", "20")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
            limits: [("open files", "1048576")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
            filesystem: Some("ext4".to_owned()),
            mount_options: Some("rw,relatime".to_owned()),
            clock_read_ns: Some(21.4),
            fsync_us: Some(412.0),
            coordinator_cpu_secs: Some(1.25),
            driver_cpu_secs: None,
            driver_busy: None,
            xids_used: Some(n + 50),
            xid_age: Some(81_234_567),
            ..Environment::default()
        },
        findings: vec![
            Finding {
                severity: Severity::Warning,
                topic: Topic::Writes,
                finding: "Throughput is 31 % lower in the minute after each checkpoint's begin: 58 % of the WAL is full-page images.".to_owned(),
                figures: object(json!({"tps_after": 8123.4, "tps_else": 11790.2, "checkpoints": 2})),
                advice: "Raise max_wal_size and checkpoint_timeout so that checkpoints are further apart.".to_owned(),
            },
            Finding {
                severity: Severity::Warning,
                topic: Topic::Dip,
                finding: "Throughput fell up to 58 % below its median, for 4.0 s from 22.0 s on; no observed cause coincides with it.".to_owned(),
                figures: object(json!({"depth": 0.58, "at": [22.0], "until": [26.0]})),
                advice: "Run again.".to_owned(),
            },
            Finding {
                severity: Severity::Notice,
                topic: Topic::Waits,
                finding: "Clients wait for each other's rows: bench_branches has 100 rows for 16 clients.".to_owned(),
                figures: object(json!({"share": 0.09})),
                advice: "Use a larger scale.".to_owned(),
            },
        ],
        samples,
        ..Document::default()
    }
}

/// A run of a single interval and a single client, with columns that the platform does not have.
pub fn of_one_sample() -> Document {
    let mut document = believable(1);
    document.run.clients = 1;
    for column in document.samples.columns_mut() {
        if column.len() == 1 && column[0] == Some(0.0) {
            *column = vec![None];
        }
    }
    document.summary.latency_p999_ms = None;
    document.events.clear();
    document.findings.clear();
    document
}

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
