//! The plots of a sweep, in the order of a page.

use super::layout::Layout;
use super::{capacity, latency, screen, throughput};
use crate::plot::Figure;
use crate::sweep::results::Report;

/// The plots that there is something to draw in.
pub fn figures(report: &Report) -> Vec<Figure> {
    if report.document.sweep.search.is_some() {
        return capacity::figure(report).into_iter().collect();
    }
    if !report.document.screen.is_empty() {
        return screen::figure(&report.document.screen).into_iter().collect();
    }
    let Some(layout) = Layout::of(report) else { return Vec::new() };
    [throughput::figure(report, &layout), latency::figure(&layout)].into_iter().flatten().collect()
}
