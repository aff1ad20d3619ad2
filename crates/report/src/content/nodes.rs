//! What each node of a Citus cluster had of the run.

use bench_base::number;
use bench_base::number::{MISSING, finite, ms};
use bench_results::{Document, Node};

use super::{ColumnKind, Section, Table};

/// A row for each node, those that only served statements too; nothing where none is listed.
pub fn nodes(document: &Document) -> Section {
    let mut table = Table::new(&[
        ("node", ColumnKind::Text),
        ("coordinator", ColumnKind::Text),
        ("clients", ColumnKind::Number),
        ("tps", ColumnKind::Number),
        ("share", ColumnKind::Number),
        ("avg ms", ColumnKind::Number),
        ("p99 ms", ColumnKind::Number),
        ("idle", ColumnKind::Number),
        ("start ms", ColumnKind::Number),
        ("stuck", ColumnKind::Number),
        ("status", ColumnKind::Text),
    ]);
    let all_tps: f64 = document.nodes.iter().filter_map(|node| finite(node.tps)).sum();
    for node in &document.nodes {
        let share = node.tps.filter(|_| all_tps > 0.0).map(|tps| tps / all_tps);
        table.rows.push(vec![
            node.label(),
            if node.is_coordinator { "yes" } else { "no" }.to_owned(),
            node.clients.to_string(),
            number::tps(node.tps),
            number::percent(share),
            ms(node.latency_avg_ms),
            ms(node.latency_p99_ms),
            number::percent(node.cpu_idle),
            ms(node.start_offset_ms),
            node.clients_stuck.len().to_string(),
            status(node),
        ]);
    }
    let idle = ["tps", "share", "avg ms", "p99 ms", "idle", "start ms", "stuck", "status"];
    Section::of_table("nodes", "Nodes", table.without_idle(&idle)).with_note(Some(
        "Shares are of the nodes' tps and, idle, of a node's processors over the whole run; start is the delay of \
         its clients' start after the agreed time."
            .to_owned(),
    ))
}

/// How its part ended, where that is not as it should.
fn status(node: &Node) -> String {
    let status = node.status.as_ref().filter(|status| *status != "completed");
    status.map_or_else(|| MISSING.to_owned(), String::clone)
}
