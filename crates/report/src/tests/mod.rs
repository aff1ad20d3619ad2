//! Tests of whole reports, on documents as they come from the server and on hostile ones.

pub mod example;
pub mod html;
pub mod text;

use std::path::Path;
use std::time::Instant;

use bench_results::{Document, *};
use proptest::prelude::*;

use crate::formats::Format;
use crate::run::headline::closing;
use crate::run::render;
use crate::tests::example::{HOSTILE, believable, hostile, of_one_sample};
use crate::tests::html::{check_page, check_plots, plot_ids};

/// All formats that show a document.
pub const ALL: [Format; 4] = [Format::Text, Format::Markdown, Format::Json, Format::Html];

/// All kinds of documents that reports are tested with.
fn documents() -> [(&'static str, Document); 5] {
    [
        ("empty", Document::default()),
        ("one sample", of_one_sample()),
        ("believable", believable(90)),
        ("three nodes", on_three_nodes()),
        ("hostile", hostile()),
    ]
}

/// Whether a report shows a number that is none.
pub fn shows_no_number(report: &str) -> bool {
    let mut words = report.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "NaN" | "inf" | "Infinity" | "infinity"))
}

#[test]
fn json_is_the_document() {
    for (name, document) in documents().into_iter().take(4) {
        let json = render(&document, Format::Json);
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document, "{name}");
    }
    let hostile: serde_json::Value = serde_json::from_str(&render(&hostile(), Format::Json)).unwrap();
    assert_eq!(hostile["run"]["role"], HOSTILE);
    assert!(!render(&crate::tests::example::hostile(), Format::Json).contains(['<', '>', '&', '\u{202e}']));
    assert_eq!(hostile["summary"]["tps"], serde_json::Value::Null);
}

#[test]
fn what_is_no_number_is_not_shown() {
    for (name, document) in documents() {
        for format in ALL {
            assert!(!shows_no_number(&render(&document, format)), "{name} as {format:?}");
        }
    }
}

#[test]
fn a_far_percentile_is_shown_only_where_it_is_known() {
    let mut document = believable(90);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(render(&document, format).contains("p99.9"), "{format:?}");
    }
    document.summary.latency_p999_ms = None;
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(!render(&document, format).contains("p99.9"), "{format:?}");
    }
}

#[test]
fn processor_time_is_shown_only_where_it_is_known() {
    let mut document = believable(90);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(render(&document, format).contains("231.5 µs"), "{format:?}");
    }
    for unknown in [None, Some(f64::NAN)] {
        document.summary.server_cpu_us = unknown;
        for format in [Format::Text, Format::Markdown, Format::Html] {
            assert!(!render(&document, format).contains("Processor time"), "{format:?}");
        }
    }
}

#[test]
fn what_is_known_is_in_every_report() {
    let mut document = believable(90);
    document.scripts = (0..128)
        .map(|script| ScriptSummary {
            script,
            workload: format!("part{script}"),
            weight: 1,
            ..ScriptSummary::default()
        })
        .collect();
    let known = [
        "tpcb-like",
        "part127",
        "bench_accounts",
        "deadlock detected",
        "xact_commit",
        "EPYC",
        "lz4",
        "autovacuum",
        "9c27b7d",
        "IO:WALSync",
        "full-page images",
        "SELECT balance",
        "Raise",
        "412 µs",
    ];
    for format in [Format::Text, Format::Markdown, Format::Html] {
        // Markdown has backslashes, and the text breaks lines.
        let report = render(&document, format).replace('\\', "");
        for known in known {
            assert!(report.contains(known), "{known} as {format:?}");
        }
        // A finding's figures are in its sentence: beside it only where there is room.
        assert_eq!(report.contains("8,123"), format != Format::Text, "{format:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_series_panics(
        lengths in proptest::collection::vec(0..6usize, Samples::COLUMNS.len()),
        values in proptest::collection::vec(proptest::option::of(any::<f64>()), 1..20),
        begins in proptest::collection::vec((any::<f64>(), proptest::option::of(any::<f64>())), 0..4),
        counts in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<u64>()), 0..4),
    ) {
        let mut document = of_one_sample();
        for (column, length) in document.samples.columns_mut().into_iter().zip(lengths) {
            *column = (0..length).map(|index| values[(index * 7 + length) % values.len()]).collect();
        }
        document.events = begins
            .into_iter()
            .map(|(started, ended)| Event { kind: "checkpoint".to_owned(), started, ended, ..Event::default() })
            .collect();
        document.latencies =
            counts.into_iter().map(|(low_ms, high_ms, count)| Bucket { low_ms, high_ms, count }).collect();
        for format in ALL {
            prop_assert!(!shows_no_number(&render(&document, format)));
        }
    }
}

const SHOWN: [Format; 3] = [Format::Text, Format::Markdown, Format::Html];

/// The coordinator and two workers, the last of which went away.
fn on_three_nodes() -> Document {
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

/// A run at a rate of which it skipped most.
fn behind() -> Document {
    let mut document = believable(20);
    (document.run.rate, document.run.latency_limit) = (Some(500.0), Some(10.0));
    let summary = &mut document.summary;
    (summary.transactions, summary.failed, summary.skipped, summary.late) = (1_300, 0, 8_600, 130);
    (summary.backlog, summary.tps) = (Some(100), Some(65.0));
    (summary.lag_avg_ms, summary.lag_max_ms) = (Some(9.0), Some(40.0));
    let samples = &mut document.samples;
    samples.tps.fill(Some(65.0));
    samples.skipped.fill(Some(430.0));
    samples.lag_avg_ms.fill(Some(9.0));
    document.findings = bench_findings::findings(&document);
    document
}

/// A run that kept its rate.
fn in_time() -> Document {
    let mut document = behind();
    let summary = &mut document.summary;
    (summary.transactions, summary.skipped, summary.late) = (10_000, 0, 0);
    (summary.backlog, summary.tps) = (Some(0), Some(500.0));
    document.samples.skipped.fill(Some(0.0));
    document.samples.tps.fill(Some(500.0));
    document.findings = bench_findings::findings(&document);
    document
}

#[test]
fn a_run_that_skipped_most_is_not_just_completed() {
    let sentence = "completed, but fell behind its rate: 65.0 of 500.0 tps, 86.0 % of the transactions due skipped, 1.0 % of the \
         transactions due not started at the end";
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = render(&behind(), format);
        // The text breaks lines.
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(sentence), "{format:?}");
        assert!(!render(&in_time(), format).contains("fell behind its rate:"), "{format:?}");
    }
    let page = render(&behind(), Format::Html);
    assert!(page.contains("<span class=\"status bad\">completed</span>"));
    assert!(render(&in_time(), Format::Html).contains("<span class=\"status good\">completed</span>"));
    // What was asked for and what became of it is in the headline.
    let headline =
        page.split_once("<dl class=\"headline\">").and_then(|(_, rest)| rest.split_once("</dl>")).unwrap().0;
    for figure in [
        "<dt>achieved</dt><dd>65.0",
        "<dt>offered</dt><dd>500.0",
        "<dt>skipped</dt><dd>8,600<span class=\"unit\"> 86.0 %",
        "<dt>backlog</dt><dd>100",
        "<dt>late</dt><dd>130",
    ] {
        assert!(headline.contains(figure), "{figure} in {headline}");
    }
    let closed = render(&believable(20), Format::Html);
    assert!(closed.contains("<dt>throughput</dt>") && !closed.contains("<dt>offered</dt>"));
}

#[test]
fn an_open_loop_is_plotted() {
    let page = render(&behind(), Format::Html);
    check_page("open loop", &page);
    check_plots(&page);
    let ids = plot_ids(&page);
    assert_eq!(ids[..3], ["plot-tps", "plot-rate", "plot-lag"]);
    assert!(
        page.contains("</i>skipped</li>") && !render(&in_time(), Format::Html).contains("</i>skipped</li>")
    );
    assert!(!plot_ids(&render(&believable(20), Format::Html)).contains(&"plot-rate".to_owned()));
    let mut unknown = behind();
    unknown.samples.lag_avg_ms.fill(None);
    assert!(!plot_ids(&render(&unknown, Format::Html)).contains(&"plot-lag".to_owned()));
}

// Reports as files, to be looked at: `REPORT_DIR=/tmp/reports cargo test -p bench_report report_files -- --ignored`.

#[test]
#[ignore = "writes files"]
fn report_files() {
    let directory = std::env::var("REPORT_DIR").expect("REPORT_DIR");
    let documents = [
        ("short", believable(60)),
        ("run", believable(600)),
        ("soak", believable(28_800)),
        ("one", of_one_sample()),
        ("empty", Document::default()),
        ("nodes", on_three_nodes()),
        ("hostile", hostile()),
    ];
    for (name, document) in documents {
        for (format, ending) in
            [(Format::Text, "txt"), (Format::Markdown, "md"), (Format::Json, "json"), (Format::Html, "html")]
        {
            let begin = Instant::now();
            let report = render(&document, format);
            println!("{name}.{ending}: {} bytes in {:?}", report.len(), begin.elapsed());
            std::fs::write(Path::new(&directory).join(format!("{name}.{ending}")), report).unwrap();
        }
    }
}
