//! Areas over time as steps: the value of an interval applies to the whole interval, not only to its end.

use bench_results::Series;
use plotters::prelude::*;

use super::frame::{Chart, DrawResult};
use super::palette::Ink;
use super::times::Times;
use crate::downsample::Envelope;

/// Fills what is between two series of a plot's columns, with gaps where the upper one has no value. One shape for
/// as many columns as possible: between shapes side by side there would be fine stripes.
pub fn draw(
    chart: &mut Chart,
    times: &Times,
    lower: &[f64],
    upper: &[Option<f64>],
    style: ShapeStyle,
) -> DrawResult {
    let mut first = 0;
    for run in upper.chunk_by(|one, next| one.is_some() == next.is_some()) {
        let columns = || run.iter().flatten().zip(lower[first..].iter().zip(&times.spans[first..]));
        let above = columns().flat_map(|(upper, (_, (begin, end)))| [(*begin, *upper), (*end, *upper)]);
        let below = columns().flat_map(|(_, (lower, (begin, end)))| [(*begin, *lower), (*end, *lower)]);
        let mut outline: Vec<(f64, f64)> = above.collect();
        outline.extend(below.collect::<Vec<_>>().into_iter().rev());
        if !outline.is_empty() {
            chart.draw_series([Polygon::new(outline, style)])?;
        }
        first += run.len();
    }
    Ok(())
}

/// The area under the means, and paler the one under the highest.
pub fn draw_area(chart: &mut Chart, times: &Times, ink: Ink, thinned: &[Option<Envelope>]) -> DrawResult {
    let floor = vec![0.0; times.spans.len()];
    let series = |choose: fn(Envelope) -> f64| -> Series {
        thinned.iter().map(|envelope| envelope.map(choose)).collect()
    };
    if times.per_column > 1 {
        draw(chart, times, &floor, &series(|envelope| envelope.high), ink.color().mix(0.35).filled())?;
    }
    draw(chart, times, &floor, &series(|envelope| envelope.mean), ink.color().filled())
}
