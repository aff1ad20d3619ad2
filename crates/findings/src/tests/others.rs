//! Every other finding where it was planted, and not where what makes it was left out.

use bench_results::{ComparisonLine, Duel, DuelWait, FidelityPart, StatementFigures, StatementLine};

use crate::tests::*;

/// What is planted into a quiet run, its topic and severity, and a part of the sentence.
const OTHERS: &[(&str, Severity, &str, Plant)] = &[
    ("audit", Severity::Critical, "n_tup_ins (clients 10, server 11)", |document| {
        document.audit.push(AuditLine {
            counter: "n_tup_ins".into(),
            harness: Some(10),
            server: Some(11),
            ok: Some(false),
            ..AuditLine::default()
        });
    }),
    ("audit", Severity::Notice, "more than the clients: n_tup_upd by 1,007", |document| {
        document.audit.push(AuditLine {
            counter: "n_tup_upd".into(),
            harness: Some(10),
            server: Some(1017),
            reason: UNSENT.into(),
            ..AuditLine::default()
        });
    }),
    (
        "writes",
        Severity::Warning,
        ": DELETE FROM t (command 1 of script 0) in all 3 executions",
        |document| {
            document.statements.push(writes("DELETE FROM t", 3, 3));
        },
    ),
    ("writes", Severity::Warning, "in 97 % of 1,000 executions", |document| {
        document.statements.push(writes("UPDATE t SET n = 1", 1000, 970));
    }),
    ("writes", Severity::Warning, "in 99 % of 1,000,000 executions", |document| {
        document.statements.push(writes("UPDATE t SET n = 1", 1_000_000, 999_999));
    }),
    ("writes", Severity::Notice, "in 10 % of 1,000 executions", |document| {
        document.statements.push(writes("UPDATE t SET n = 1", 1000, 100));
    }),
    ("writes", Severity::Notice, "in all 1,000", |document| {
        document.statements.push(writes("INSERT INTO t VALUES (1) ON conflict DO NOTHING", 1000, 1000));
    }),
    ("clients", Severity::Critical, "Clients were lost", |document| {
        document.run.status = "incomplete".into()
    }),
    ("clients", Severity::Critical, "An error ended 2 of 4 clients.", |document| {
        document.run.status = "incomplete".into();
        document.summary.aborted = Some(2);
    }),
    ("clients", Severity::Critical, ": 3 of 4 clients ran", |document| {
        document.samples.clients.fill(Some(3.0));
    }),
    ("failed", Severity::Warning, "9.1 %", |document| {
        document.summary.failed = 100_000;
        document.errors.push(ErrorLine { sqlstate: "40001".into(), failed: 100_000, ..ErrorLine::default() });
    }),
    ("failed", Severity::Notice, "0.2 %", |document| document.summary.failed = 2_000),
    (
        "log",
        Severity::Notice,
        "1,000 of 5,000 entries of the transaction log were lost (20 %).",
        |document| {
            document.run.log_rate = 0.5;
            document.run.logged = Some(4_000);
            document.run.log_lost = Some(1_000);
        },
    ),
    ("rate", Severity::Warning, "5,000 transactions were due", |document| {
        document.run.rate = Some(3000.0);
        document.summary.backlog = Some(5000);
    }),
    ("processors", Severity::Notice, "idle for 1 %", |document| {
        document.samples.cpu_idle.fill(Some(0.01));
        document.samples.cpu_iowait.fill(Some(0.01));
        document.waits[2].share = 0.3;
    }),
    ("processors", Severity::Notice, "waited for a processor for 70 %", |document| {
        document.waits[2].share = 0.7;
    }),
    ("driver", Severity::Warning, "one of its jobs used a processor for 97 %", |document| {
        document.environment.driver_busy = Some(0.97);
    }),
    ("steal", Severity::Notice, "3 % of the processor time", |document| {
        document.samples.cpu_steal.fill(Some(0.03))
    }),
    ("quota", Severity::Warning, "quota of 1.5 processors", |document| {
        document.environment.quota_processors = Some(1.5);
        document.samples.throttled_secs.fill(Some(0.05));
    }),
    ("others", Severity::Warning, "of 2 processors", |document| document.samples.cpu_user.fill(Some(0.7))),
    ("stall", Severity::Warning, "A transaction took 1.5 s", |document| {
        document.summary.latency_max_ms = Some(1500.0);
    }),
    ("tail", Severity::Warning, "One transaction in a thousand took", |document| {
        document.latencies.push(Bucket { low_ms: 200.0, high_ms: 300.0, count: 3000 });
    }),
    ("transactions", Severity::Notice, "99.9th percentile is noise", |document| {
        document.summary.transactions = 5000;
    }),
    ("transactions", Severity::Notice, "99th and 99.9th", |document| document.summary.transactions = 500),
    ("transactions", Severity::Critical, "No transaction completed", |document| {
        document.summary.transactions = 0
    }),
    ("horizon", Severity::Warning, "a prepared transaction held back", |document| {
        document.environment.horizon_holder = Some("a prepared transaction".into());
        document.relations.push(Relation { updated: Some(10), ..table() });
    }),
    ("horizon", Severity::Warning, "the session that waited", |document| {
        document.run.horizon_held = true;
        document.relations.push(Relation { deleted: Some(10), ..table() });
    }),
    ("vacuum", Severity::Notice, "autovacuum of accounts at 3.0 s for 1.0 s", |document| {
        document.events.push(Event { relation: Some("accounts".into()), ..event("autovacuum", 3.0, 4.0) });
    }),
    ("scan", Severity::Notice, "public.accounts 10 times, 5,000 rows each", |document| {
        document.relations.push(Relation { seq_scan: Some(10), seq_tup_read: Some(50_000), ..table() });
        document.statements.push(planned("  ->  Parallel Seq Scan on accounts a"));
    }),
    // Parallel workers count the scans that they take part in.
    ("scan", Severity::Notice, "public.accounts 100 times, 1,500 rows each", |document| {
        document.relations.push(Relation { seq_scan: Some(300), seq_tup_read: Some(150_000), ..table() });
        let statement = planned("Gather\n  ->  Parallel Seq Scan on accounts");
        document.statements.push(CommandSummary { workers_planned: 200, workers_launched: 200, ..statement });
    }),
    ("plan", Severity::Notice, "SELECT 1 (command 1 of script 0) 3 times", |document| {
        document.statements.push(CommandSummary { plan_changes: 3, ..planned("Index Scan") });
    }),
    ("workers", Severity::Warning, "4 of 10 planned parallel workers", |document| {
        document.statements.push(CommandSummary {
            workers_planned: 10,
            workers_launched: 6,
            ..planned("Gather")
        });
    }),
    ("xids", Severity::Warning, "1,500,000,000 transactions old", |document| {
        document.environment.xid_age = Some(1_500_000_000);
    }),
    ("xids", Severity::Warning, "hours at this run's", |document| {
        document.summary.secs = Some(3600.0);
        document.environment.xids_used = Some(1_200_000_000);
    }),
    (
        "waits",
        Severity::Notice,
        "40 % of their time in IO:WALSync and 10 % in LWLock:WALWrite: flushes",
        |document| {
            wait_throughout(document, "IO:WALSync", 0.4);
            document.waits.push(wait("LWLock", "WALWrite", 0.1));
        },
    ),
    ("waits", Severity::Notice, "at most 2.0 times as high", |document| {
        wait_throughout(document, "IO:DataFileRead", 0.8);
    }),
    ("cache", Severity::Warning, "rose from 204 tps in the first 15 s to 2,018", |document| {
        for (first, share) in [(0, 0.9), (10, 0.9), (20, 0.6)] {
            lower(document, first..first + 10, share);
            wait_for(document, first..first + 10, "IO:DataFileRead", share);
        }
        document.waits[0] = wait("IO", "DataFileRead", 0.41);
    }),
    (
        "temp",
        Severity::Warning,
        "wrote 120 MB of temporary files in 600 files, 2.0 MB per second",
        |document| {
            document.samples.temp_bytes.fill(Some(2.0 * 1_048_576.0));
            document.samples.temp_files = vec![Some(10.0); 60];
        },
    ),
    ("unlogged", Severity::Notice, "bench_data.pk is unlogged", |document| {
        document.environment.unlogged_tables = vec!["bench_data.pk".into()];
    }),
    (
        "scale",
        Severity::Warning,
        "variable scale to 50, but the fixture was loaded with scale 1",
        |document| {
            document.run.fixture = Some("tpcb".into());
            document.run.fixture_rows = Some(vec![100_000]);
            document.run.variables.insert("scale".into(), 50.into());
        },
    ),
    (
        "scale",
        Severity::Notice,
        "variable rows to 10, but the fixture was loaded with rows 5,000",
        |document| {
            document.run.fixture = Some("pk".into());
            document.run.fixture_rows = Some(vec![5000]);
            document.run.variables.insert("rows".into(), "10".into());
        },
    ),
    ("plan", Severity::Warning, "From 40 s on throughput was 9", |document| {
        drop_an_index(document, 40);
    }),
    // Too late in the run for a median to be the level before.
    ("plan", Severity::Warning, "from Index Scan using i on accounts to Seq Scan on accounts", |document| {
        drop_an_index(document, 20);
    }),
    ("others", Severity::Warning, "Run 7 was measured at the same time", |document| {
        document.run.other_runs = vec![7];
    }),
    ("others", Severity::Warning, "3 runs from 7 to 11 were measured at the same time", |document| {
        document.run.other_runs = vec![7, 9, 11];
    }),
    ("safety", Severity::Notice, "fsync = off", |document| {
        let off = ServerSetting { name: "fsync".into(), setting: "off".into(), source: String::new() };
        document.environment.server_settings.push(off);
    }),
];

/// Clients spend a share of the run in an event, beside what is planted already.
fn wait_throughout(document: &mut Document, event: &str, share: f64) {
    let (kind, name) = event.split_once(':').expect("a type and a name");
    let count = document.samples.len();
    wait_for(document, 0..count, event, share);
    document.waits[0] = wait(kind, name, share);
}

fn wait(kind: &str, event: &str, share: f64) -> Wait {
    Wait { wait_event_type: kind.into(), wait_event: event.into(), share, ..Wait::default() }
}

/// From some interval on, the only statement scans the whole table.
fn drop_an_index(document: &mut Document, from: usize) {
    let count = document.samples.len();
    lower(document, from..count, 0.97);
    let plan = format!(
        "generic plan:\nat first:\nIndex Scan using i on accounts\nfrom {from}.100 s on:\nSeq Scan on accounts"
    );
    document.statements.push(CommandSummary { plan_changes: 4, ..planned(&plan) });
    document.relations.push(Relation { seq_scan: Some(100), seq_tup_read: Some(500_000), ..table() });
    document.summary.latency_max_ms = Some(693.0);
}

fn table() -> Relation {
    Relation { relation: "public.accounts".into(), kind: "table".into(), ..Relation::default() }
}

fn writes(statement: &str, writes: u64, empty: u64) -> CommandSummary {
    let (writes, empty_writes) = (Some(writes), Some(empty));
    CommandSummary {
        command: 1,
        statement: statement.into(),
        writes,
        empty_writes,
        ..CommandSummary::default()
    }
}

fn planned(plan: &str) -> CommandSummary {
    CommandSummary {
        command: 1,
        statement: "SELECT 1".into(),
        plan: Some(plan.into()),
        ..CommandSummary::default()
    }
}

#[test]
fn everything_else_where_it_is_planted_and_nowhere_else() {
    assert_eq!(topics(&quiet(10, 60, 1.0, WHITE)), [""; 0]);
    for (topic, severity, part, plant) in OTHERS {
        let mut document = quiet(10, 60, 1.0, WHITE);
        plant(&mut document);
        let found = findings(&document);
        assert_eq!(
            found.iter().map(|finding| finding.topic.as_str()).collect::<Vec<_>>(),
            [*topic],
            "{part}"
        );
        assert_eq!(found[0].severity, *severity, "{part}");
        assert!(found[0].finding.contains(part), "{part} is not in: {}", found[0].finding);
        assert!(!found[0].advice.is_empty() && !found[0].figures.is_empty());
    }
}

#[test]
fn intervals_of_which_nothing_was_seen_say_nothing_of_waits() {
    let mut document = quiet(10, 60, 1.0, WHITE);
    wait_throughout(&mut document, "Lock:transactionid", 0.6);
    let told = findings(&document);
    assert_eq!(told.iter().map(|finding| finding.topic.as_str()).collect::<Vec<_>>(), ["waits"]);
    // A target that answered in every fourth interval.
    for shares in document.samples.waits.values_mut() {
        let unseen = shares.iter_mut().enumerate().filter(|(index, _)| index % 4 != 0);
        unseen.for_each(|(_, share)| *share = 0.0);
    }
    assert_eq!(findings(&document), told);
}

/// Almost a finding each.
const HARMLESS: &[(&str, Plant)] = &[
    ("a few failures", |document| document.summary.failed = 500),
    ("a backlog of what was under way", |document| {
        document.run.rate = Some(2000.0);
        document.summary.backlog = Some(4);
    }),
    ("clients that went home", |document| {
        document.run.transactions = Some(1000);
        document.samples.clients.fill(Some(3.0));
    }),
    ("a held horizon without dead rows", |document| {
        document.run.horizon_held = true;
        document.relations.push(Relation { inserted: Some(10), ..table() });
    }),
    ("a scan of few rows", |document| {
        document.relations.push(Relation { seq_scan: Some(100), seq_tup_read: Some(5000), ..table() });
        document.statements.push(planned("Seq Scan on accounts"));
    }),
    ("a scan by somebody else", |document| {
        document.relations.push(Relation { seq_scan: Some(1), seq_tup_read: Some(50_000), ..table() });
        document.statements.push(planned("Seq Scan on accounts_history"));
    }),
    ("a vacuum before the run", |document| document.events.push(event("vacuum", -5.0, -1.0))),
    ("a slow transaction of slow ones", |document| {
        document.summary.latency_p99_ms = Some(900.0);
        document.summary.latency_max_ms = Some(1500.0);
    }),
    ("a count that need not agree", |document| {
        document.audit.push(AuditLine { harness: Some(1), server: Some(2), ..AuditLine::default() });
    }),
    ("writes that now and then find no row", |document| {
        document.statements.push(writes("DELETE FROM t", 1000, 99));
    }),
    ("few writes, some of nothing", |document| {
        document.statements.push(writes("DELETE FROM t", 10, 9));
    }),
    ("an upsert that often finds the row", |document| {
        document.statements.push(writes("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", 1000, 400));
    }),
    ("a run of before the writes were counted", |document| {
        document.statements.push(CommandSummary { writes: Some(5), ..writes("DELETE FROM t", 5, 5) });
        document.statements.iter_mut().for_each(|statement| statement.empty_writes = None);
    }),
    ("few temporary files", |document| document.samples.temp_bytes.fill(Some(1e5))),
    ("a scale as loaded", |document| {
        document.run.fixture = Some("tpcb".into());
        document.run.fixture_rows = Some(vec![1_000_000]);
        document.run.variables.insert("scale".into(), 10.into());
    }),
    ("waits for a client", |document| wait_throughout(document, "Client:ClientRead", 0.9)),
    ("waits below a quarter", |document| wait_throughout(document, "IO:WALSync", 0.24)),
    ("processors that others have while clients wait for WAL", |document| {
        document.samples.cpu_idle.fill(Some(0.01));
        document.samples.cpu_iowait.fill(Some(0.01));
    }),
    ("a checkpoint", |document| document.events.push(event("checkpoint", 30.0, 50.0))),
    ("parallel workers", |document| {
        document.samples.cpu_user.fill(Some(0.7));
        document.statements.push(CommandSummary {
            workers_planned: 9,
            workers_launched: 9,
            ..planned("Gather")
        });
    }),
    ("waiting for a disk", |document| {
        document.samples.cpu_idle.fill(Some(0.01));
        document.samples.cpu_iowait.fill(Some(0.6));
    }),
    ("a minute at a rate that a day would not bear", |document| {
        document.environment.xids_used = Some(20_000_000);
    }),
];

#[test]
fn what_is_harmless_is_not_told() {
    for (name, plant) in HARMLESS {
        let mut document = quiet(11, 60, 1.0, WHITE);
        plant(&mut document);
        assert_eq!(topics(&document), [""; 0], "{name}");
    }
}

/// The advice names the variable that a user has given beyond what is loaded.
#[test]
fn a_given_scale_is_the_first_suspect() {
    let mut document = quiet(3, 60, 1.0, WHITE);
    document.statements.push(writes("UPDATE t SET n = 1", 1000, 970));
    let advice = |document: &Document| of_topic(document, "writes")[0].advice.clone();
    assert!(!advice(&document).contains("scale"), "{}", advice(&document));
    document.run.variables.insert("scale".into(), 50.into());
    assert!(advice(&document).contains("variable scale"), "{}", advice(&document));
}

/// Nobody is told to try what the run has tried.
#[test]
fn advice_is_not_what_the_run_did() {
    let mut document = quiet(3, 60, 1.0, WHITE);
    document.summary.failed = 100_000;
    document.errors.push(ErrorLine { sqlstate: "40001".into(), failed: 389, ..ErrorLine::default() });
    let failed = |document: &Document| of_topic(document, "failed").remove(0);
    assert!(failed(&document).advice.contains("max_tries above 1"));
    assert!(failed(&document).finding.contains("SQLSTATE 40001 (389)"), "{}", failed(&document).finding);
    // An error that ended clients is no failed transaction, except in runs without the count of such clients.
    document.errors.push(ErrorLine { sqlstate: "22012".into(), failed: 4, ..ErrorLine::default() });
    assert!(failed(&document).finding.contains("22012 (4)"), "{}", failed(&document).finding);
    document.summary.aborted = Some(4);
    assert!(failed(&document).finding.ends_with("SQLSTATE 40001 (389)."), "{}", failed(&document).finding);
    // More than one for each of those clients: others have gone on.
    document.errors[1].failed = 400;
    assert!(failed(&document).advice.contains("fresh copy"), "{}", failed(&document).advice);
    document.errors[1].failed = 4;
    document.run.max_tries = 2;
    assert!(failed(&document).advice.starts_with("2 tries were not enough"), "{}", failed(&document).advice);
    document.run.max_tries = 0;
    assert!(!failed(&document).advice.contains("max_tries"));
    let mut document = quiet(3, 60, 1.0, WHITE);
    document.waits[2].share = 0.7;
    assert!(of_topic(&document, "processors")[0].advice.contains("query_mode"));
    document.run.query_mode = "prepared".into();
    assert!(!of_topic(&document, "processors")[0].advice.contains("query_mode"));
}

/// A machine that others use varies too much for standard deviations to tell.
#[test]
fn a_dropped_index_is_told_under_much_noise() {
    let mut document = quiet(5, 60, 1.0, Noise { cv: 0.5, ..WHITE });
    drop_an_index(&mut document, 30);
    let told = of_topic(&document, "plan");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].severity, Severity::Warning, "{told:#?}");
}

/// Writes that found no row are told with their statements, and the variable in the advice.
#[test]
fn a_scale_that_writes_show_is_told_once() {
    let mut document = quiet(3, 60, 1.0, WHITE);
    document.run.fixture = Some("tpcb".into());
    document.run.fixture_rows = Some(vec![100_000]);
    document.run.variables.insert("scale".into(), 50.into());
    assert_eq!(topics(&document), ["scale"]);
    document.statements.push(writes("UPDATE t SET n = 1", 1000, 980));
    assert_eq!(topics(&document), ["writes"]);
}

#[test]
fn causes_come_before_symptoms_and_the_strongest_first() {
    let mut document = quiet(7, 300, 1.0, WHITE);
    document.summary.latency_max_ms = Some(5500.0);
    for (dip, event) in [(60..63, "Lock:relation"), (200..205, "LWLock:ProcArray")] {
        lower(&mut document, dip.clone(), 0.97);
        wait_for(&mut document, dip, event, 0.97);
    }
    lower(&mut document, 120..122, 0.9);
    let found = findings(&document);
    let told: Vec<_> = found
        .iter()
        .map(|finding| {
            (finding.topic.as_str(), finding.figures.get("coincide").and_then(|all| all[0]["cause"].as_str()))
        })
        .collect();
    assert_eq!(
        told,
        [("dip", Some("LWLock:ProcArray")), ("dip", Some("Lock:relation")), ("dip", None), ("stall", None)]
    );
}

#[test]
fn a_vacuum_that_was_not_seen_to_begin_has_no_duration() {
    let mut document = quiet(3, 60, 1.0, WHITE);
    document.events.push(Event { relation: Some("accounts".into()), ..event("autovacuum", 3.0, 3.0) });
    let found = of_topic(&document, "vacuum").remove(0).finding;
    assert!(found.contains("autovacuum of accounts at 3.0 s for an unknown time"), "{found}");
}

/// A statement's executions on several nodes are told once, together.
#[test]
fn writes_of_several_nodes_are_one() {
    let mut document = quiet(3, 60, 1.0, WHITE);
    for node in 1..=2 {
        document.statements.push(CommandSummary { node, ..writes("DELETE FROM t", 1000, 600) });
    }
    let found = of_topic(&document, "writes");
    assert_eq!(found.len(), 1);
    assert!(found[0].finding.contains("60 % of 2,000 executions"), "{}", found[0].finding);
}

#[test]
fn what_could_not_be_judged_is_said_once() {
    let document = quiet(22, 6, 1.0, WHITE);
    let found = findings(&document);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].severity, found[0].topic.as_str()), (Severity::Notice, "samples"));
    assert_eq!(found[0].finding, "Dips could not be detected: the run has 6 samples, and 8 are needed.");
    assert!(found[0].advice.contains("sample_interval => 0.75"), "{}", found[0].advice);
    let noisy = quiet(22, 40, 1.0, Noise { cv: 0.4, ..WHITE });
    let found = findings(&noisy);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].finding.starts_with("Dips could not be detected: throughput varies by"), "{found:#?}");
}

fn part(name: &str, captured: f64, replayed: f64, score: f64, reason: &str) -> FidelityPart {
    FidelityPart {
        part: name.to_owned(),
        captured: Some(captured),
        replayed: Some(replayed),
        score: Some(score),
        reason: Some(reason.to_owned()),
    }
}

fn found_in_parts(parts: Vec<FidelityPart>, plant: impl Fn(&mut Document)) -> Vec<Finding> {
    let mut document = quiet(10, 60, 1.0, WHITE);
    document.fidelity = parts;
    plant(&mut document);
    findings(&document)
}

#[test]
fn another_benchmark_is_told_before_all_else() {
    let parts = vec![
        part("statements", 18.0, 1.0, 0.06, "too few"),
        part("blocks", 20.0, 30.0, 0.7, "blocks 20 → 30"),
    ];
    // Its commits are no reason for a faster disk.
    let found = found_in_parts(parts, |document| wait_throughout(document, "IO:WALSync", 0.6));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.topic.as_str(), finding.severity), ("fidelity", Severity::Critical));
    assert!(finding.finding.contains("with a fidelity of 0.06: too few; blocks 20 → 30"));
    assert!(finding.advice.contains("Capture transactions"));
}

#[test]
fn what_is_less_alike_is_a_warning_and_waits_alone_are_none() {
    let blocks = |score: f64| part("blocks", 20.0, 30.0, score, "blocks 20 → 30");
    let found_of = |parts| found_in_parts(parts, |_| ());
    let warned = found_of(vec![blocks(0.7)]);
    assert_eq!(warned.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Warning]);
    assert!(warned[0].finding.contains("0.70: blocks 20 → 30."));
    assert_eq!(found_of(vec![blocks(0.83)]), []);
    assert_eq!(found_of(vec![part("waits", 1.0, 0.6, 0.6, "CPU takes 10 % → 50 %")]), []);
    // From a replay of single statements on, waits of flushes are told as ever.
    let slow = found_in_parts(vec![blocks(0.7)], |document| wait_throughout(document, "IO:WALSync", 0.6));
    assert_eq!(slow.len(), 2);
}

/// What is said of the driver, where its jobs' connections waited so long on average, of a latency of 1.6 ms.
fn said_of_driver(wait_us: f64, busy: Option<f64>) -> Vec<String> {
    let mut document = quiet(1, 60, 1.0, WHITE);
    document.summary.latency_avg_ms = Some(1.6);
    document.environment.driver_busy = busy;
    document.environment.driver_wait_avg_us = Some(wait_us);
    document.environment.driver_wait_max_ms = Some(12.0);
    let of_driver = findings(&document).into_iter().filter(|finding| finding.topic.as_str() == "driver");
    of_driver.map(|finding| finding.finding).collect()
}

#[test]
fn a_job_that_was_late_is_told_from_a_quarter_of_the_latency_on() {
    let expected = "The driver was late: answers waited 0.40 ms for their job on average, 12 ms at most, of a latency of 1.6 ms.";
    assert_eq!(said_of_driver(400.0, Some(0.5)), [expected]);
    assert_eq!(said_of_driver(400.0, None), [expected]);
    assert!(said_of_driver(399.0, Some(0.5)).is_empty());
}

#[test]
fn a_job_without_time_left_is_told_once() {
    let told = said_of_driver(400.0, Some(0.97));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("used a processor for 97 %"), "{told:?}");
}

/// Under a rate that is kept, with a client too few.
#[test]
fn a_run_that_waits_for_itself_is_told() {
    let said = |lag_ms: f64, latency_ms: f64| {
        let mut document = quiet(4, 600, 0.1, WHITE);
        document.run.rate = Some(100.0);
        document.summary.lag_avg_ms = Some(lag_ms);
        document.summary.latency_avg_ms = Some(latency_ms);
        of_topic(&document, "lag")
    };
    let told = said(229.0, 264.0);
    assert_eq!(
        told[0].finding,
        "The run waited for itself: transactions waited 229 ms for a free client, of a latency of 264 ms."
    );
    assert!(told[0].advice.contains("clients => 10 or more"), "{}", told[0].advice);
    assert!(said(20.0, 264.0).is_empty(), "a small part");
    assert!(said(0.5, 0.6).is_empty(), "a short wait");
}

fn line(metric: &str, a: f64, b: f64, half_width: f64) -> ComparisonLine {
    let ratio = b / a;
    ComparisonLine {
        metric: metric.to_owned(),
        baseline: Some(a),
        candidate: Some(b),
        ratio: Some(ratio),
        ratio_low: Some(ratio * (1.0 - half_width)),
        ratio_high: Some(ratio * (1.0 + half_width)),
        ..ComparisonLine::default()
    }
}

fn found_in_duel(duel: Duel) -> Vec<Finding> {
    let mut document = quiet(10, 60, 1.0, WHITE);
    document.duel = Some(duel);
    findings(&document)
}

#[test]
fn arms_that_do_not_do_the_same_are_told_with_the_statement() {
    let statement = |command: u32, b: f64| StatementLine {
        workload: "x".to_owned(),
        command,
        baseline: StatementFigures { rows: Some(10.0), ..StatementFigures::default() },
        candidate: StatementFigures { rows: Some(b), ..StatementFigures::default() },
        ..StatementLine::default()
    };
    let of = |line: ComparisonLine| Duel {
        metrics: vec![line],
        statements: vec![statement(1, 10.0), statement(2, 5.0)],
        ..Duel::default()
    };
    let told = found_in_duel(of(line("rows", 20.0, 15.0, 0.001)));
    assert_eq!((told.len(), told[0].topic.as_str(), told[0].severity), (1, "rows", Severity::Warning));
    assert!(told[0].finding.contains("return or change 20 rows, those of b 15; command 2 of x: 10 and 5.0"));
    // Chance, and no rows at all.
    assert_eq!(found_in_duel(of(line("rows", 20.0, 19.8, 0.02))), []);
    assert_eq!(found_in_duel(of(line("rows", 20.0, 20.0, 0.0))), []);
    let none = ComparisonLine {
        metric: "rows".to_owned(),
        baseline: Some(2.0),
        candidate: Some(0.0),
        ..ComparisonLine::default()
    };
    assert_eq!(found_in_duel(of(none)).len(), 1);
}

#[test]
fn what_leaks_from_arm_to_arm_is_told() {
    let wal = Duel { metrics: vec![line("wal_bytes", 100.0, 300.0, 0.05)], ..Duel::default() };
    assert_eq!(found_in_duel(wal).iter().map(|of| of.topic.as_str()).collect::<Vec<_>>(), ["duel"]);
    let wait = |share: f64| DuelWait {
        wait_event_type: "Lock".to_owned(),
        wait_event: "transactionid".to_owned(),
        a: 0.01,
        b: share,
    };
    let locks = |share: f64| found_in_duel(Duel { waits: vec![wait(share)], ..Duel::default() });
    assert!(locks(0.2)[0].finding.contains("a for 1 % of their time, b for 20 %"));
    assert_eq!(locks(0.04), []);
}

fn with(lag: impl Fn(usize, &mut Random) -> (f64, f64)) -> Vec<Finding> {
    let mut document = quiet(3, 40, 1.0, WHITE);
    let mut random = Random::new(17);
    for index in 0..40 {
        let (mb, ms) = lag(index, &mut random);
        document.samples.replay_lag_bytes.push(Some(mb * 1_048_576.0));
        document.samples.replay_lag_ms.push(Some(ms));
    }
    findings(&document)
}

fn told(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.topic.as_str() == "replication")
}

#[test]
fn a_standby_that_cannot_keep_up_is_told_with_its_figures() {
    let findings = with(|index, _| (index as f64 * 2.0, index as f64 * 100.0));
    let finding = told(&findings).expect("a finding");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        finding.finding,
        "The replay lag grew through the run, from 9.0 to 69 MB of WAL and from 450 ms to 3.5 s: replay cannot keep up, and \
         the lag is not steady."
    );
    assert_eq!(finding.figures["replay_lag_ms_after"], 3450.0);
}

#[test]
fn a_steady_a_small_or_a_jagged_lag_is_none() {
    assert!(told(&with(|_, random| (100.0 * random.uniform(), 5000.0 * random.uniform()))).is_none());
    assert!(told(&with(|index, _| (index as f64 * 0.1, index as f64))).is_none());
    // It catches up again and again.
    assert!(told(&with(|index, _| ((index % 8) as f64 * 20.0, (index % 8) as f64 * 900.0))).is_none());
    assert!(told(&with(|_, _| (512.0, 30_000.0))).is_none());
    assert!(told(&with(|_, _| (0.0, 0.0))).is_none());
    assert!(told(&findings(&quiet(3, 40, 1.0, WHITE))).is_none());
}

#[test]
fn chance_makes_no_lag_grow() {
    for seed in 0..2000 {
        let mut document = quiet(1, 24, 1.0, WHITE);
        let mut random = Random::new(seed);
        document.samples.replay_lag_bytes = (0..24).map(|_| Some(random.uniform() * 1e9)).collect();
        assert!(told(&findings(&document)).is_none(), "{seed}");
    }
}

fn said_of_warmup(warmup: Option<f64>, took: Option<f64>) -> Vec<String> {
    let mut document = quiet(1, 60, 1.0, WHITE);
    (document.run.warmup, document.run.warmup_took) = (warmup, took);
    findings(&document)
        .into_iter()
        .filter(|finding| finding.topic.as_str() == "unsteady")
        .map(|finding| finding.finding)
        .collect()
}

#[test]
fn a_warm_up_that_was_given_up_is_told() {
    assert_eq!(said_of_warmup(None, Some(300.0)), ["Throughput was not steady after 300 s of warm-up."]);
    for (warmup, took) in [(None, Some(299.75)), (None, None), (Some(300.0), Some(300.0))] {
        assert!(said_of_warmup(warmup, took).is_empty());
    }
}
