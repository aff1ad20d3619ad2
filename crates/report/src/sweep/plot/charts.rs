//! The charts of a sweep, in the order of a page.

use super::layout::Layout;
use super::{capacity, latency, screen, throughput};
use crate::plot::Chart;
use crate::sweep::results::Report;

/// The charts that there is something to draw in.
pub fn charts(report: &Report) -> Vec<Chart> {
    if report.document.sweep.search.is_some() {
        return capacity::chart(report).into_iter().collect();
    }
    if !report.document.screen.is_empty() {
        return screen::chart(&report.document.screen).into_iter().collect();
    }
    let Some(layout) = Layout::of(report) else { return Vec::new() };
    [throughput::chart(report, &layout), latency::chart(&layout)].into_iter().flatten().collect()
}
