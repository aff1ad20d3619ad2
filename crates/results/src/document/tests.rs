//! What merging nodes must keep, and that each row is in one part of a document.

use proptest::prelude::*;

use super::*;
use crate::Node;

fn rows() -> impl Strategy<Value = Vec<CommandSummary>> {
    let row = (1..4i32, 0..3u32, 0..1000u64, prop::option::of(0.0..1e3f64), prop::option::of("[ab]"));
    let rows = prop::collection::vec(row, 0..20);
    rows.prop_map(|rows| {
        let statement =
            |(node, command, count, latency, plan): (i32, u32, u64, Option<f64>, Option<String>)| {
                let latency = latency.filter(|_| count > 0);
                CommandSummary {
                    node,
                    command,
                    count,
                    plan,
                    latency_avg_ms: latency,
                    latency_p95_ms: latency.map(|latency| latency * 2.0),
                    generic_plans: count / 2,
                    ..CommandSummary::default()
                }
            };
        rows.into_iter().map(statement).collect()
    })
}

fn total_ms(rows: &[CommandSummary]) -> f64 {
    // Rows without a latency weigh nothing.
    rows.iter().map(|row| row.latency_avg_ms.unwrap_or(0.0) * row.count as f64).sum()
}

fn total(rows: &[CommandSummary], of: fn(&CommandSummary) -> u64) -> u64 {
    rows.iter().map(of).sum()
}

proptest! {
    /// Nothing is lost and nothing is told twice, in the order of the script.
    #[test]
    fn statements_add_up(mut rows in rows()) {
        // Every execution has a latency.
        rows.retain(|row| row.latency_avg_ms.is_some());
        let document = Document { statements: rows.clone(), ..Document::default() };
        let together = document.merged_statements();
        prop_assert_eq!(total(&together, |row| row.count), total(&rows, |row| row.count));
        prop_assert_eq!(total(&together, |row| row.generic_plans), total(&rows, |row| row.generic_plans));
        prop_assert!((total_ms(&together) - total_ms(&rows)).abs() <= 1e-9 * total_ms(&rows));
        let greatest = |rows: &[CommandSummary]| rows.iter().filter_map(|row| row.latency_p95_ms).reduce(f64::max);
        prop_assert_eq!(greatest(&together), greatest(&rows));
        if rows.iter().any(|row| row.node != rows[0].node) {
            prop_assert!(together.windows(2).all(|pair| pair[0].command < pair[1].command));
        } else {
            prop_assert_eq!(together, rows);
        }
    }

    /// Shares that add up to 1 on every node do so together, however many clients each had.
    #[test]
    fn waits_stay_shares(clients in prop::collection::vec(1..200u32, 1..4), cut in 0.0..1.0f64) {
        let nodes: Vec<Node> = (1..).zip(&clients).map(|(node, &clients)| Node { node, clients, ..Node::default() }).collect();
        let wait = |node: i32, event: &str, share| Wait {
            node, wait_event_type: "IO".into(), wait_event: event.into(), share,
        };
        let rows = nodes.iter().flat_map(|listed| {
            let own = cut / f64::from(listed.node);
            [wait(listed.node, "A", own), wait(listed.node, "B", 1.0 - own)]
        });
        let document = Document { waits: rows.collect(), nodes: nodes.clone(), ..Document::default() };
        let together = document.merged_waits();
        prop_assert_eq!(together.len(), 2);
        prop_assert!((together.iter().map(|wait| wait.share).sum::<f64>() - 1.0).abs() < 1e-9);
        if nodes.len() > 1 {
            prop_assert!(together[0].share >= together[1].share);
        }
    }
}

#[test]
fn the_plan_is_the_first_nodes_that_has_one() {
    let row = |node, plan: Option<&str>| CommandSummary {
        node,
        plan: plan.map(str::to_owned),
        ..CommandSummary::default()
    };
    let of_rows =
        |rows: Vec<CommandSummary>| Document { statements: rows, ..Document::default() }.merged_statements();
    let together = of_rows(vec![row(1, None), row(2, Some("second")), row(3, Some("third"))]);
    assert_eq!(together.iter().map(|row| row.plan.as_deref()).collect::<Vec<_>>(), [Some("second")]);
    assert_eq!(together[0].latency_avg_ms, None);
}

#[test]
fn clients_and_processors_are_those_of_all_nodes() {
    let mut document = Document::default();
    (document.run.clients, document.environment.processors) = (8, Some(2));
    assert_eq!((document.client_nodes(), document.all_clients(), document.all_processors()), (1, 8, Some(2)));
    let node = |node, clients, processors| Node { node, clients, processors, ..Node::default() };
    document.nodes = vec![node(0, 8, None), node(2, 0, Some(32))];
    assert_eq!((document.client_nodes(), document.all_clients(), document.all_processors()), (1, 8, Some(2)));
    document.nodes = vec![node(1, 8, Some(4)), node(2, 8, Some(32)), node(3, 0, Some(64))];
    assert_eq!(
        (document.client_nodes(), document.all_clients(), document.all_processors()),
        (2, 16, Some(36))
    );
    document.nodes[0].machine = Some(1);
    document.nodes[1].machine = Some(1);
    assert_eq!(
        document.all_processors(),
        Some(32),
        "of one machine, as the node says that sees most of them"
    );
    document.nodes[1].machine = Some(2);
    assert_eq!(document.all_processors(), Some(36));
    document.nodes[1].processors = None;
    assert_eq!(document.all_processors(), None);
}

#[test]
fn a_row_of_the_only_node_has_no_name() {
    let listed = Node { node: 2, name: "w:5432".into(), ..Node::default() };
    let document =
        Document { nodes: vec![listed, Node { node: 3, ..Node::default() }], ..Document::default() };
    assert_eq!(document.on_node(0), "");
    assert_eq!(document.on_node(2), " on w:5432");
    assert_eq!(document.on_node(3), " on node 3", "without a name");
    assert_eq!(document.on_node(4), " on node 4", "not listed");
}

fn windows(chunks: &[DocumentChunk]) -> Vec<Vec<(&'static str, i64, i64)>> {
    let of = |chunk: &DocumentChunk| {
        chunk.windows.iter().map(|(table, (from, rows))| (*table, *from, *rows)).collect()
    };
    chunks.iter().map(of).collect()
}

#[test]
fn nothing_is_one_part() {
    let found = chunks(&[("samples", Vec::new())], 100);
    assert_eq!(found, [DocumentChunk { number: 1, of: 1, ..DocumentChunk::default() }]);
}

#[test]
fn rows_of_one_size_are_cut_where_a_part_is_full() {
    let found = chunks(&[("samples", vec![RowRange { rows: 25, bytes: 10 }])], 100);
    assert_eq!(windows(&found), [[("samples", 0, 10)], [("samples", 10, 10)], [("samples", 20, 5)]]);
}

#[test]
fn a_row_that_is_too_large_has_a_part_to_itself() {
    let rows = [10, 1000, 10, 10].map(|bytes| RowRange { rows: 1, bytes });
    let found = chunks(&[("error_log", rows.to_vec())], 100);
    assert_eq!(windows(&found), [[("error_log", 0, 1)], [("error_log", 1, 1)], [("error_log", 2, 2)]]);
}

proptest! {
    #[test]
    fn each_row_is_in_one_part_and_parts_are_small(
        sizes in prop::collection::vec(prop::collection::vec((1..50i64, 1..300i64), 0..6), 3)
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        const MOST: i64 = 200;
        let tables: Vec<(&str, Vec<RowRange>)> = NAMES.into_iter().zip(sizes.into_iter().map(|stretches| {
            stretches.into_iter().map(|(rows, bytes)| RowRange { rows, bytes }).collect()
        })).collect();
        let sizes_of = |name: &str| -> Vec<i64> {
            let (_, stretches) = tables.iter().find(|table| table.0 == name).expect("a table");
            stretches.iter().flat_map(|s| vec![s.bytes; s.rows as usize]).collect()
        };
        let found = chunks(&tables, MOST);
        let mut next: std::collections::BTreeMap<&str, i64> = NAMES.map(|name| (name, 0)).into();
        for (place, chunk) in found.iter().enumerate() {
            prop_assert_eq!((chunk.number, chunk.of), (place as i32 + 1, found.len() as i32));
            let (mut rows, mut bytes) = (0, 0);
            for (table, (from, count)) in &chunk.windows {
                prop_assert_eq!(next.insert(table, from + count), Some(*from));
                rows += count;
                bytes += sizes_of(table)[*from as usize..(from + count) as usize].iter().sum::<i64>();
            }
            prop_assert!(bytes <= MOST || rows == 1, "{rows} rows, {bytes} bytes");
        }
        for name in NAMES {
            prop_assert_eq!(next[name], sizes_of(name).len() as i64);
        }
    }
}
