//! The charts of a sweep, in the order of a page.

use super::layout::Layout;
use super::{capacity, latency, screen, throughput};
use crate::plot::Chart;
use crate::sweep::results::Computed;

/// The charts that there is something to draw in.
pub fn charts(computed: &Computed) -> Vec<Chart> {
    if computed.document.sweep.search.is_some() {
        return capacity::chart(computed).into_iter().collect();
    }
    if !computed.document.screen.is_empty() {
        return screen::chart(&computed.document.screen).into_iter().collect();
    }
    let Some(layout) = Layout::of(computed) else { return Vec::new() };
    [throughput::chart(computed, &layout), latency::chart(&layout)].into_iter().flatten().collect()
}
