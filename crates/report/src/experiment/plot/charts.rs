//! The charts of a sweep, in the order of a page.

use super::layout::Layout;
use super::{capacity, comparison, latency, screen, throughput};
use crate::experiment::results::Experiment;
use crate::plot::Chart;

/// The charts that there is something to draw in.
pub fn charts(experiment: &Experiment) -> Vec<Chart> {
    if let Some(sides) = &experiment.comparison {
        return comparison::charts(experiment, sides);
    }
    if experiment.document.sweep.search.is_some() {
        return capacity::chart(experiment).into_iter().collect();
    }
    if !experiment.document.screen.is_empty() {
        return screen::chart(&experiment.document.screen).into_iter().collect();
    }
    let Some(layout) = Layout::of(experiment) else { return Vec::new() };
    [throughput::chart(experiment, &layout), latency::chart(&layout)].into_iter().flatten().collect()
}
