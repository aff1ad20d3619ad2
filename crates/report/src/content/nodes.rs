//! What each node of a Citus cluster had of the run.

use bench_base::number;
use bench_base::number::{MISSING, finite, ms};
use bench_results::{Document, Node};

use super::{Section, Table};

/// A row for each node, those that only served statements too; nothing where none is listed.
pub fn nodes(document: &Document) -> Section {
    let all_tps: f64 = document.nodes.iter().filter_map(|node| finite(node.tps)).sum();
    let share = |node: &Node| node.tps.filter(|_| all_tps > 0.0).map(|tps| tps / all_tps);
    let table = Table::of(&document.nodes)
        .text("node", Node::label)
        .text("coordinator", |node| if node.is_coordinator { "yes" } else { "no" })
        .number("clients", |node| node.clients)
        .number("tps", |node| number::tps(node.tps))
        .number("share", |node| number::percent(share(node)))
        .number("avg ms", |node| ms(node.latency_avg_ms))
        .number("p99 ms", |node| ms(node.latency_p99_ms))
        .number("idle", |node| number::percent(node.cpu_idle))
        .number("start ms", |node| ms(node.start_offset_ms))
        .number("stuck", |node| node.clients_stuck.len())
        .text("status", status)
        .table();
    let idle = ["tps", "share", "avg ms", "p99 ms", "idle", "start ms", "stuck", "status"];
    Section::of_table("nodes", "Nodes", table.without_idle(&idle)).with_note(
        "Shares are of the nodes' tps and, idle, of a node's processors over the whole run; start is the delay of \
         its clients' start after the agreed time.",
    )
}

/// How its part ended, where that is not as it should.
fn status(node: &Node) -> &str {
    node.status.as_deref().filter(|status| *status != "completed").unwrap_or(MISSING)
}
