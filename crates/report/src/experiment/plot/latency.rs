//! Latency: the average and the 99th percentile, on a logarithmic axis.

use super::layout::{Layout, RungFigure};
use crate::content::latency;
use crate::plot::Chart;
use crate::plot::axis::Axis;
use crate::plot::chart::Panel;

const AVERAGE: RungFigure = |result| result.latency_avg_ms.filter(|ms| *ms > 0.0);
const P99: RungFigure = |result| result.latency_p99_ms.filter(|ms| *ms > 0.0);

/// The chart; `None` where no latency is known.
pub fn chart(layout: &Layout) -> Option<Chart> {
    let (averages, p99s) = (layout.points(AVERAGE), layout.points(P99));
    let known = || averages.iter().chain(&p99s).flat_map(|(_, points)| points.iter().map(|(_, ms)| *ms));
    let high = known().reduce(f64::max)?;
    let mut panel = Panel::new(Axis::of_latencies(known().reduce(f64::min)?, high));
    for ((ink, averages), (_, p99s)) in averages.into_iter().zip(p99s) {
        panel = panel
            .with(averages.iter().map(|at| ink.ring(*at, 7)).collect::<Vec<_>>())
            .with([ink.line(averages, 2)])
            .with(p99s.iter().map(|at| ink.dot(*at, 8)).collect::<Vec<_>>())
            .with([ink.line(p99s, 4)]);
    }
    let mut hover = layout.hover(AVERAGE, |_, ms| format!("average {}", latency(ms)));
    hover.extend(layout.hover(P99, |_, ms| format!("p99 {}", latency(ms))));
    Some(Chart {
        id: "plot-latency",
        title: layout.title("Latency by number of clients", "Latency by variant"),
        label: format!("Latency {}, at most {}", layout.along(), latency(high)),
        caption: format!(
            "Filled: 99th percentile; hollow: average; means over the runs, on a logarithmic axis.{}",
            layout.omitted
        ),
        legend: layout.legend(),
        plot: layout.plot(panel, hover),
    })
}
