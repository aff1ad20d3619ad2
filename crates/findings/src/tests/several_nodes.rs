//! Findings that are not about nodes, on a run on several: they count all of them and name the one that they are about.

use super::nodes::{idle, on_all, on_one};
use super::*;

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
