//! The plots of a run as SVG, drawn by plotters: shapes and numbers only, no text of a user's. Titles, legends and
//! captions are left to the page around them, which can wrap lines.
//!
//! All plots have one size and the same margins, so that the time axes of a page line up. Lengths are in half
//! pixels of a plot of 640 × 300: plotters knows whole numbers only.

pub mod axis;
mod by_node;
mod duel;
pub mod forest;
pub mod frame;
mod heat_map;
pub mod hover;
pub mod latency;
pub mod lines;
mod marks;
mod open_loop;
pub mod palette;
mod stacked;
mod steps;
mod throughput;
mod times;
mod wal;

use bench_results::Document;

use palette::Ink;

/// A plot with what is written around it.
pub struct Figure {
    /// One word, for links.
    pub id: &'static str,
    /// With the unit.
    pub title: &'static str,
    /// How to read it.
    pub caption: String,
    /// What the colours are.
    pub legend: Vec<(Ink, String)>,
    pub svg: String,
}

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
