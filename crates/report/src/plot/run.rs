//! The charts of a run, in the order of a page.

use bench_results::Document;

use super::chart::Chart;
use super::{by_node, duel, heat_map, latency, open_loop, stacked, throughput, wal};

/// The charts that there is something to draw in.
pub fn charts(document: &Document) -> Vec<Chart> {
    let charts = [
        throughput::chart(document),
        duel::over_time(document),
        duel::latencies(document),
        by_node::chart(document),
        open_loop::rates(document),
        open_loop::lag(document),
        latency::over_time(document),
        heat_map::chart(document),
        latency::distribution(document),
        stacked::waits(document),
        wal::chart(document),
        stacked::processors(document),
    ];
    charts.into_iter().flatten().collect()
}
