//! Findings on a Citus cluster: each planted, and each just below its limit.

use serde_json::json;

use crate::tests::*;

const CLIENTS_EACH: u32 = 4;

fn node(number: i32, clients: u32) -> Node {
    let has_clients = clients > 0;
    let settings = [("citus.node_conninfo", "sslmode=disable"), ("citus.max_cached_conns_per_worker", "1")];
    Node {
        node: number,
        name: format!("n{number}:5432"),
        is_coordinator: number <= 1,
        clients,
        status: has_clients.then(|| "completed".to_owned()),
        start_offset_ms: has_clients.then_some(1.0),
        clock_error_ms: has_clients.then_some(0.5),
        transactions: has_clients.then_some(300_000),
        tps: has_clients.then_some(700.0),
        processors: Some(2),
        cpu_user: Some(0.35),
        cpu_system: Some(0.15),
        cpu_iowait: Some(0.05),
        cpu_steal: Some(0.0),
        cpu_idle: Some(0.4),
        prepared: has_clients.then_some(0),
        connections_opened: has_clients.then_some(12),
        connections_reused: has_clients.then_some(500_000),
        prepared_left: Some(0),
        settings: settings.map(|(name, setting)| (name.to_owned(), setting.to_owned())).into(),
        ..Node::default()
    }
}

/// The SQL statement of 500,000 executions, with a meta command before it that needs no connection.
fn with_statements(document: &mut Document) {
    let line = |command, statement: &str, count| CommandSummary {
        command,
        statement: statement.into(),
        count,
        ..CommandSummary::default()
    };
    document.statements = vec![
        line(1, "\\set id random(1, 10)", 5_000_000),
        line(2, "SELECT 1 FROM t WHERE id = :id;", 500_000),
    ];
}

/// Clients on the coordinator, which two workers serve.
fn on_one() -> Document {
    let mut document = quiet(12, 60, 1.0, WHITE);
    document.nodes = vec![node(0, CLIENTS_EACH), node(2, 0), node(3, 0)];
    with_statements(&mut document);
    document
}

/// As many clients on each of three nodes: intervals and counts are of all.
fn on_all() -> Document {
    let mut document = quiet(12, 60, 1.0, WHITE);
    document.nodes = (1..=3).map(|number| node(number, CLIENTS_EACH)).collect();
    document.samples.clients.fill(Some(f64::from(3 * CLIENTS_EACH)));
    with_statements(&mut document);
    document.statements[1].count = 1_500_000;
    document
}

pub fn idle(document: &mut Document, shares: [f64; 3]) {
    for (node, share) in document.nodes.iter_mut().zip(shares) {
        node.cpu_idle = Some(share);
        node.cpu_iowait = Some(0.0);
    }
}

/// What is planted into a run on one node or on all, its topic and severity, parts of the sentence, and the same just
/// below the limit.
type Case = (fn() -> Document, &'static str, Severity, &'static [&'static str], Plant, Plant);

const CASES: &[Case] = &[
    (
        on_all,
        "node",
        Severity::Critical,
        &["n2:5432 (incomplete: server went away)", "do not represent 3 nodes × 4 clients"],
        |document| {
            document.run.status = "incomplete".into();
            document.samples.clients.fill(Some(8.0));
            document.nodes[1].status = Some("incomplete".into());
            document.nodes[1].error = Some(json!({ "sqlstate": "08006", "message": "server went away" }));
        },
        |document| {
            document.run.status = "canceled".into();
            document.nodes.iter_mut().for_each(|node| node.status = Some("canceled".into()));
        },
    ),
    (
        on_all,
        "start",
        Severity::Warning,
        &["n3:5432 started 11 ms after n1:5432", "clock error up to 1.0 ms"],
        |document| document.nodes[2].start_offset_ms = Some(12.001),
        |document| document.nodes[2].start_offset_ms = Some(11.999),
    ),
    (
        on_all,
        "start",
        Severity::Warning,
        &["n3:5432 started 20 ms after n2:5432"],
        |document| {
            document.nodes[1].start_offset_ms = Some(-19.0);
        },
        |document| {
            document.nodes[1].start_offset_ms = Some(-19.0);
            document.nodes[1].clock_error_ms = Some(9.6);
        },
    ),
    (
        on_one,
        "prepared",
        Severity::Warning,
        &["1 prepared transaction of Citus was left on n3:5432"],
        |document| document.nodes[2].prepared_left = Some(1),
        |document| document.nodes[2].prepared_left = None,
    ),
    (
        on_one,
        "node",
        Severity::Warning,
        &["1 node that served statements did not answer", "node n3:5432: no answer within 5 s"],
        |document| document.nodes[2].error = Some(json!({ "message": "node n3:5432: no answer within 5 s" })),
        |document| document.nodes[2].error = None,
    ),
    (
        on_all,
        "stuck",
        Severity::Warning,
        &["2 clients could not be ended: on n2:5432 (processes 11 and 12)", "worker slot"],
        |document| document.nodes[1].clients_stuck = vec![11, 12],
        |document| document.nodes[1].clients_stuck.clear(),
    ),
    (
        on_one,
        "coordinator",
        Severity::Warning,
        &["n0:5432, where the clients ran, was saturated (idle for 3 %", "2 nodes", "60 %"],
        |document| idle(document, [0.03, 0.5, 0.7]),
        |document| idle(document, [0.1, 0.5, 0.7]),
    ),
    (
        on_one,
        "coordinator",
        Severity::Warning,
        &[
            "2 nodes that served the statements (n2:5432 and n3:5432) were saturated",
            "n0:5432 was idle for 50 %",
        ],
        |document| idle(document, [0.5, 0.09, 0.01]),
        |document| idle(document, [0.49, 0.09, 0.01]),
    ),
    (
        on_all,
        "coordinator",
        Severity::Warning,
        &["2 nodes that served", "n1:5432 was idle for 80 %"],
        |document| idle(document, [0.8, 0.0, 0.0]),
        |document| idle(document, [0.8, 0.11, 0.0]),
    ),
    (
        on_one,
        "balance",
        Severity::Notice,
        &["the processors of n3:5432 were busy for 60 % of the time, the processors of n2:5432 for 34 %"],
        |document| idle(document, [0.4, 0.66, 0.4]),
        |document| idle(document, [0.4, 0.64, 0.4]),
    ),
    (
        on_all,
        "balance",
        Severity::Notice,
        &["the processors of n3:5432 were busy for 52 %"],
        |document| idle(document, [0.4, 0.76, 0.48]),
        |document| idle(document, [0.4, 0.9, 0.51]),
    ),
    (
        on_all,
        "balance",
        Severity::Notice,
        &["n3:5432 reached 700 tps with 4 clients, n2:5432 reached 460 tps with 4 clients"],
        |document| document.nodes[1].tps = Some(460.0),
        |document| document.nodes[1].tps = Some(470.0),
    ),
    (
        on_all,
        "balance",
        Severity::Notice,
        &["n2:5432 reached 460 tps with 2 clients, n1:5432 reached 100 tps with 4 clients"],
        |document| {
            (document.nodes[1].tps, document.nodes[1].clients) = (Some(460.0), 2);
            (document.nodes[0].tps, document.samples.clients) = (Some(100.0), vec![Some(10.0); 60]);
        },
        |document| {
            document.nodes[1].tps = Some(100.0);
            document.nodes.iter_mut().for_each(|node| node.transactions = Some(999));
        },
    ),
    (
        on_one,
        "connections",
        Severity::Warning,
        &["27,000 (5.1 %) were new", "1.1 per statement", "(citus.max_cached_conns_per_worker = 1)"],
        |document| document.nodes[0].connections_opened = Some(27_000),
        |document| document.nodes[0].connections_opened = Some(26_000),
    ),
    (
        on_one,
        "connections",
        Severity::Notice,
        &["1.5 per statement", "(citus.max_cached_conns_per_worker = 1)"],
        |document| document.nodes[0].connections_reused = Some(750_000),
        |document| document.nodes[0].connections_reused = Some(749_000),
    ),
    (
        on_all,
        "connections",
        Severity::Notice,
        &["4,500,000 in all, 3.0 per statement."],
        |document| {
            for node in &mut document.nodes {
                (node.connections_opened, node.connections_reused) = (Some(0), Some(1_500_000));
                node.settings.insert("citus.max_cached_conns_per_worker".into(), "16".into());
            }
        },
        // Citus did not count them on one of the nodes.
        |document| {
            document.nodes.iter_mut().for_each(|node| node.connections_reused = Some(1_500_000));
            document.nodes[2].connections_opened = None;
        },
    ),
    (
        on_one,
        "connections",
        Severity::Warning,
        &["of 130 used", "61 (47 %)"],
        |document| {
            (document.nodes[0].connections_opened, document.nodes[0].connections_reused) =
                (Some(61), Some(69));
        },
        // Each of four sessions keeps up to 16 connections to each of three nodes, and opens those once.
        |document| {
            (document.nodes[0].connections_opened, document.nodes[0].connections_reused) =
                (Some(192), Some(0));
            document.nodes[0].settings.insert("citus.max_cached_conns_per_worker".into(), "16".into());
        },
    ),
    (
        on_all,
        "two-phase",
        Severity::Notice,
        &["other nodes prepared 100,000 transactions, 0.10 per committed"],
        |document| document.nodes[1].prepared = Some(100_000),
        |document| document.nodes[1].prepared = Some(99_000),
    ),
    (
        on_one,
        "sslmode",
        Severity::Notice,
        &["sslmode=require (citus.node_conninfo)"],
        |document| conninfo(document, "sslmode=require"),
        |document| conninfo(document, "sslmode=allow"),
    ),
    (
        on_all,
        "sslmode",
        Severity::Notice,
        &["sslmode=prefer (citus.node_conninfo)"],
        |document| conninfo(document, ""),
        |document| {
            conninfo(document, "");
            for node in &mut document.nodes {
                (node.connections_opened, node.connections_reused) = (Some(0), Some(0));
            }
        },
    ),
];

fn conninfo(document: &mut Document, conninfo: &str) {
    document.nodes[0].settings.insert("citus.node_conninfo".into(), conninfo.into());
}

#[test]
fn each_is_told_where_it_is_planted_and_not_below_its_limit() {
    for make in [on_one, on_all] {
        assert_eq!(topics(&make()), [""; 0]);
    }
    for (make, topic, severity, parts, plant, below) in CASES {
        let mut document = make();
        plant(&mut document);
        let found = findings(&document);
        assert_eq!(topics(&document), [*topic], "{parts:?}");
        assert_eq!(found[0].severity, *severity, "{topic}");
        for part in *parts {
            assert!(found[0].finding.contains(part), "{part} is not in: {}", found[0].finding);
        }
        let mut document = make();
        below(&mut document);
        assert_eq!(topics(&document), [""; 0], "below {parts:?}");
    }
}

#[test]
fn without_nodes_nothing_is_told_of_a_cluster() {
    for (make, topic, _, _, plant, _) in CASES {
        let mut document = make();
        plant(&mut document);
        document.nodes.clear();
        assert!(!topics(&document).contains(topic), "{topic}");
    }
}

#[test]
fn processors_of_a_short_run_tell_nothing() {
    for shares in [[0.03, 0.5, 0.7], [0.5, 0.0, 0.0], [0.4, 0.66, 0.4]] {
        let mut document = on_one();
        idle(&mut document, shares);
        document.summary.secs = Some(5.0);
        assert_eq!(findings(&document).len(), 1, "{shares:?}");
        document.summary.secs = Some(4.9);
        assert_eq!(topics(&document), [""; 0], "{shares:?}");
    }
}

#[test]
fn advice_says_what_to_call() {
    for (topic, plant, part) in [
        (
            "coordinator",
            (|document| idle(document, [0.03, 0.5, 0.7])) as Plant,
            "nodes => 'all' runs the clients on each node, nodes => 'workers'",
        ),
        ("coordinator", |document| idle(document, [0.5, 0.0, 0.0]), "citus_add_node"),
        (
            "prepared",
            |document| document.nodes[1].prepared_left = Some(2),
            "SELECT recover_prepared_transactions()",
        ),
        (
            "connections",
            |document| document.nodes[0].connections_opened = Some(100_000),
            "citus.max_cached_connection_lifetime",
        ),
        (
            "two-phase",
            |document| document.nodes[0].prepared = Some(1_000_000),
            "Citus 11.0 removed the one-phase protocol",
        ),
    ] {
        let mut document = on_one();
        plant(&mut document);
        let advice = &of_topic(&document, topic)[0].advice;
        assert!(advice.contains(part), "{part} is not in: {advice}");
    }
}

// Findings that are not about nodes, on a run on several: they count all of them and name the one that they are about.

/// One row for each node, of what one node has one row for.
fn on_each_node<Row: Clone>(rows: &[Row], set: fn(&mut Row, i32)) -> Vec<Row> {
    let of_node = |number| {
        rows.iter().cloned().map(move |mut row| {
            set(&mut row, number);
            row
        })
    };
    (1..=3).flat_map(of_node).collect()
}

#[test]
fn other_findings_count_all_nodes() {
    let mut document = on_all();
    document.samples.clients.fill(Some(11.0));
    let found = of_topic(&document, "clients");
    assert!(found[0].finding.contains("11 of 12 clients ran"), "{}", found[0].finding);
    assert!(found[0].finding.ends_with("do not represent 12 clients."), "{}", found[0].finding);

    let mut document = on_all();
    document.run.rate = Some(1.0);
    (document.summary.backlog, document.summary.secs) = (Some(12), Some(60.0));
    assert_eq!(of_topic(&document, "rate"), [], "one for each client is under way at the end");
    document.summary.backlog = Some(13);
    assert_eq!(of_topic(&document, "rate").len(), 1);

    let mut document = on_all();
    document.waits[2].share = 0.6;
    document.waits = on_each_node(&document.waits, |wait, number| wait.node = number);
    let found = of_topic(&document, "processors");
    assert!(found[0].finding.contains("for 60 % of their time (12 clients, 6 processors)"), "{found:?}");
    document.waits.iter_mut().filter(|wait| wait.node == 1).for_each(|wait| wait.share = 0.0);
    assert_eq!(topics(&document), [""; 0], "on average it is 40 %");

    let mut document = on_all();
    document.samples.throttled_secs.fill(Some(0.06));
    document.environment.quota_processors = Some(1.5);
    let found = of_topic(&document, "quota");
    assert!(found[0].finding.contains("The control group's quota throttled its processes"), "{found:?}");
    assert!(found[0].finding.contains("1.2 s of 60 s on the average node"), "{found:?}");
    document.samples.throttled_secs.fill(Some(0.029));
    assert_eq!(of_topic(&document, "quota"), []);
}

#[test]
fn other_findings_name_the_node() {
    let mut document = on_all();
    document.audit.push(AuditLine {
        node: 2,
        counter: "n_tup_ins".into(),
        ok: Some(false),
        ..AuditLine::default()
    });
    document.events.push(Event { node: 3, relation: Some("t".into()), ..event("vacuum", 3.0, 4.0) });
    document.relations.push(Relation {
        node: 1,
        relation: "t".into(),
        seq_scan: Some(1),
        seq_tup_read: Some(5000),
        ..Relation::default()
    });
    document.statements[1].plan = Some("Seq Scan on t".into());
    for (topic, part) in
        [("audit", "n_tup_ins on n2:5432"), ("vacuum", "vacuum of t on n3:5432"), ("scan", "t on n1:5432")]
    {
        let found = of_topic(&document, topic);
        assert!(found[0].finding.contains(part), "{part} is not in: {}", found[0].finding);
    }
}

#[test]
fn rows_of_several_nodes_are_told_once() {
    let mut document = on_all();
    document.summary.failed = 100_000;
    let error = ErrorLine { sqlstate: "40001".into(), failed: 20_000, ..ErrorLine::default() };
    document.errors = on_each_node(&[error], |error, number| error.node = number);
    document.statements[1].plan_changes = 2;
    document.statements[1].workers_planned = 5;
    document.statements[1].count /= 3;
    document.statements = on_each_node(&document.statements, |statement, number| statement.node = number);
    for (topic, part) in [
        ("failed", "1,100,000): SQLSTATE 40001 (60,000)."),
        ("plan", "run: SELECT 1 FROM t WHERE id = :id; (command 2 of script 0) 6 times."),
        (
            "workers",
            "15 of 15 planned parallel workers did not start: SELECT 1 FROM t WHERE id = :id; (command 2 of script 0).",
        ),
    ] {
        let found = of_topic(&document, topic);
        assert!(found[0].finding.contains(part), "{part} is not in: {}", found[0].finding);
    }
}

#[test]
fn sessions_that_serve_other_nodes_are_no_other_processes() {
    let mut document = on_one();
    document.samples.cpu_user.fill(Some(0.7));
    assert_eq!(of_topic(&document, "others"), []);
    document.nodes.clear();
    assert_eq!(of_topic(&document, "others").len(), 1);
}

#[test]
fn processors_of_one_side_are_told_as_such() {
    let mut document = on_one();
    document.samples.cpu_idle.fill(Some(0.01));
    document.samples.cpu_iowait.fill(Some(0.0));
    document.waits.iter_mut().filter(|wait| wait.wait_event == "Runnable").for_each(|wait| wait.share = 0.4);
    assert_eq!(topics(&document), ["processors"]);
    idle(&mut document, [0.01, 0.6, 0.6]);
    assert_eq!(topics(&document), ["coordinator"]);
}
