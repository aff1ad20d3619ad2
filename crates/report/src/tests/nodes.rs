//! Reports of runs on a Citus cluster.

use bench_results::*;

use super::example::believable;
use super::hostile::{HOSTILE, hostile};
use crate::{Format, closing, render};

const SHOWN: [Format; 3] = [Format::Text, Format::Markdown, Format::Html];

/// The coordinator and two workers, the last of which went away.
pub fn on_three_nodes() -> Document {
    let mut document = believable(90);
    let node = |number: i32, tps: f64, idle: f64| Node {
        node: number,
        name: format!("node-{number}:5432"),
        is_coordinator: number == 1,
        clients: 16,
        status: Some(if number == 3 { "incomplete" } else { "completed" }.to_owned()),
        start_offset_ms: Some(0.25 * f64::from(number)),
        tps: Some(tps),
        latency_avg_ms: Some(1.5),
        latency_p99_ms: Some(7.25),
        cpu_idle: Some(idle),
        ..Node::default()
    };
    document.nodes = vec![node(1, 5000.0, 0.5), node(2, 3000.0, 0.25), node(3, 2000.0, 0.125)];
    document
}

/// The lines of a section of the text, its title and the rule under it apart.
fn section(document: &Document, title: &str) -> Vec<String> {
    let text = render(document, Format::Text);
    let lines = text.lines().skip_while(|line| *line != title).skip(2);
    lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn nodes_are_a_table() {
    let lines = section(&on_three_nodes(), "Nodes");
    assert_eq!(
        lines[..4],
        [
            "  node         coordinator  clients    tps   share  avg ms  p99 ms    idle  start ms  status",
            "  node-1:5432  yes               16  5,000  50.0 %   1.500   7.250  50.0 %     0.250  -",
            "  node-2:5432  no                16  3,000  30.0 %   1.500   7.250  25.0 %     0.500  -",
            "  node-3:5432  no                16  2,000  20.0 %   1.500   7.250  12.5 %     0.750  incomplete",
        ]
    );
    for format in [Format::Markdown, Format::Html] {
        let report = render(&on_three_nodes(), format);
        for part in ["node-2:5432", "30.0 %", "7.250", "0.750", "incomplete"] {
            assert!(report.contains(part), "{part} as {format:?}");
        }
    }
}

#[test]
fn what_no_node_has_is_left_out() {
    let mut document = on_three_nodes();
    for node in &mut document.nodes {
        *node = Node { node: node.node, cpu_idle: node.cpu_idle, ..Node::default() };
    }
    assert_eq!(
        section(&document, "Nodes")[..2],
        ["  node    coordinator  clients    idle", "  node 1  no                 0  50.0 %"]
    );
    document.nodes.clear();
    for format in SHOWN {
        assert!(!render(&document, format).contains("Nodes"), "{format:?}");
    }
}

#[test]
fn the_headline_tells_the_nodes() {
    let mut document = on_three_nodes();
    assert!(closing(&document).starts_with("run 42: tpcb-like with 3 nodes × 16 clients, 90 s"));
    for format in SHOWN {
        assert!(render(&document, format).contains("3 nodes × 16 clients"), "{format:?}");
    }
    // Nodes that only served statements are no factor.
    document.nodes[1..].iter_mut().for_each(|node| node.clients = 0);
    assert!(closing(&document).starts_with("run 42: tpcb-like with 16 clients, 90 s"));
    for format in SHOWN {
        assert!(!render(&document, format).contains("nodes ×"), "{format:?}");
    }
}

#[test]
fn statements_and_waits_are_those_of_all_nodes() {
    let mut document = on_three_nodes();
    let statement = document.statements[3].clone();
    let of_node = |node: i32, count: u64, avg: f64, p95: f64| CommandSummary {
        node,
        count,
        latency_avg_ms: Some(avg),
        latency_p95_ms: Some(p95),
        plan: Some(format!("Plan of node {node}")),
        ..statement.clone()
    };
    document.statements = vec![of_node(1, 3000, 1.0, 9.0), of_node(2, 1000, 2.0, 8.0)];
    let wait = |node: i32, event: &str, share: f64| Wait {
        node,
        wait_event_type: "IO".to_owned(),
        wait_event: event.to_owned(),
        share,
    };
    document.nodes[1].clients = 48;
    document.waits = vec![wait(1, "A", 0.6), wait(1, "B", 0.4), wait(2, "A", 0.2), wait(2, "B", 0.8)];
    let statements = section(&document, "Statements");
    assert!(statements[1].starts_with("     4   1.250   9.000  4,000"), "{statements:?}");
    assert_eq!(statements.len(), 3, "{statements:?}");
    assert_eq!(
        section(&document, "Waits"),
        ["  clients' time in   share", "  IO:B              70.0 %", "  IO:A              30.0 %"]
    );
    for format in [Format::Markdown, Format::Html] {
        let report = render(&document, format);
        assert!(report.contains("Plan of node 1") && !report.contains("Plan of node 2"), "{format:?}");
    }
}

#[test]
fn rows_of_other_tables_tell_their_node() {
    let mut document = on_three_nodes();
    let tables = [
        "Errors",
        "Audit",
        "Relations",
        "Changes",
        "Vacuum and analyze",
        "Checkpoints, vacuums and other events",
    ];
    for title in tables {
        assert!(!section(&document, title)[0].contains("node"), "{title}");
    }
    document.errors.iter_mut().for_each(|error| error.node = 2);
    document.audit.iter_mut().for_each(|line| line.node = 2);
    document.relations.iter_mut().for_each(|relation| relation.node = 2);
    document.events.iter_mut().for_each(|event| event.node = 2);
    for title in tables {
        let lines = section(&document, title);
        assert!(lines[0].contains("  node "), "{title}: {}", lines[0]);
        assert!(lines[1].contains("  node-2:5432 "), "{title}: {}", lines[1]);
    }
}

#[test]
fn what_is_of_all_nodes_or_of_one_is_said_so() {
    let on_three = on_three_nodes();
    let on_one = Document { nodes: Vec::new(), ..on_three.clone() };
    for (title, note) in [
        ("Statements", "  All nodes together; p95 is the highest of any node."),
        (
            "Server and machine",
            "  All nodes that clients ran on; processor shares are the mean of the nodes.",
        ),
        ("Environment", "  On the node that started the run."),
        ("Configuration not at its defaults", "  On the node that started the run."),
    ] {
        assert_eq!(section(&on_three, title).last().map(String::as_str), Some(note), "{title}");
        assert!(!section(&on_one, title).contains(&note.to_owned()), "{title}");
    }
    for (document, whose) in
        [(on_one, "all processors of the machine"), (on_three, "the nodes that clients ran on, on average,")]
    {
        assert!(render(&document, Format::Html).contains(&format!("{whose} went.")), "{whose}");
    }
}

#[test]
fn names_stay_text() {
    for format in SHOWN {
        let report = render(&hostile(), format);
        assert!(report.contains("9 nodes ×") && !report.contains(HOSTILE), "{format:?}");
        let mut document = on_three_nodes();
        document.nodes[0].name = "data-node<b>|x".to_owned();
        let report = render(&document, format);
        let escaped = match format {
            Format::Text => "data-node< b>|x",
            Format::Markdown => "data-node&lt;b&gt;\\|x",
            _ => "data-node&lt;b&gt;|x",
        };
        assert!(report.contains(escaped), "{format:?}");
    }
}
