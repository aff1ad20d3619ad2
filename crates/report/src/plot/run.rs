//! The plots of a run, in the order of a page.

use bench_results::Document;

use super::figure::Figure;
use super::{by_node, duel, heat_map, latency, open_loop, stacked, throughput, wal};

/// The plots that there is something to draw in.
pub fn figures(document: &Document) -> Vec<Figure> {
    let figures = [
        throughput::figure(document),
        duel::over_time(document),
        duel::distributions(document),
        by_node::figure(document),
        open_loop::rates(document),
        open_loop::lag(document),
        latency::over_time(document),
        heat_map::figure(document),
        latency::distribution(document),
        stacked::waits(document),
        wal::figure(document),
        stacked::processors(document),
    ];
    figures.into_iter().flatten().collect()
}
