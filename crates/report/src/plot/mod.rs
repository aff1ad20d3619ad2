//! The charts of a run. A figure is a function that describes its [`Chart`] from a document; [`svg`] draws all of them:
//! shapes and numbers, and no text of a user's but on axes.

pub mod axis;
pub mod chart;
pub mod forest;
pub mod latency;
mod marks;
mod stacked;
pub mod svg;
mod throughput;
pub mod times;

use bench_results::Document;

use crate::plot::chart::Chart;

/// The charts of a run that there is something to draw in, in the order of a page.
pub fn charts(document: &Document) -> Vec<Chart> {
    let duel = document.duel.as_ref();
    let charts = [
        duel.and_then(|duel| forest::of_statements(&duel.statements, duel.margin)),
        // Of a duel it would be that of both arms together.
        if duel.is_some() { None } else { throughput::throughput(document) },
        forest::over_time(document),
        forest::latencies(document),
        throughput::by_node(document),
        throughput::rates(document),
        throughput::lag(document),
        latency::over_time(document),
        latency::heat_map(document),
        latency::distribution(document),
        stacked::waits(document),
        stacked::wal(document),
        stacked::processors(document),
    ];
    charts.into_iter().flatten().collect()
}
