//! Lines over time, with bands of the ranges around them; both are broken where there is no value.

use plotters::prelude::*;

use super::frame::{Chart, DrawResult};
use super::palette::Ink;
use super::times::Times;
use crate::downsample::Envelope;

/// The columns with values, those side by side together, each with its place.
pub fn unbroken(columns: &[Option<Envelope>]) -> impl Iterator<Item = Vec<(usize, Envelope)>> {
    let mut next = 0;
    columns.chunk_by(|one, other| one.is_some() == other.is_some()).filter_map(move |run| {
        let first = next;
        next += run.len();
        let known: Vec<_> = (first..).zip(run.iter().copied().flatten()).collect();
        (!known.is_empty()).then_some(known)
    })
}

/// A line through the means.
pub fn means(points: &[(f64, Envelope)]) -> Vec<(f64, f64)> {
    points.iter().map(|(x, envelope)| (*x, envelope.mean)).collect()
}

/// Fills what is between the lowest and the highest values.
pub fn draw_band(chart: &mut Chart, points: &[(f64, Envelope)], style: ShapeStyle) -> DrawResult {
    let upper = points.iter().map(|(x, envelope)| (*x, envelope.high));
    let lower = points.iter().rev().map(|(x, envelope)| (*x, envelope.low));
    let outline: Vec<_> = upper.chain(lower).collect();
    chart.draw_series([Polygon::new(outline, style)])?;
    Ok(())
}

/// A line of a run's columns, with a band where they are thinned.
pub fn draw_line(chart: &mut Chart, times: &Times, ink: Ink, thinned: &[Option<Envelope>]) -> DrawResult {
    let line = ink.color().stroke_width(3);
    for columns in unbroken(thinned) {
        if let [(column, envelope)] = columns[..] {
            // A single interval has a length, but no line.
            let (begin, end) = times.spans[column];
            chart
                .draw_series([PathElement::new(vec![(begin, envelope.mean), (end, envelope.mean)], line)])?;
            continue;
        }
        let points: Vec<_> =
            columns.into_iter().map(|(column, envelope)| (times.middle(column), envelope)).collect();
        if times.per_column > 1 {
            draw_band(chart, &points, ink.color().mix(0.25).filled())?;
        }
        chart.draw_series([PathElement::new(means(&points), line)])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_side_by_side_are_together() {
        let known = |mean| Some(Envelope { low: mean, high: mean, mean });
        let columns = [None, known(1.0), known(2.0), None, None, known(5.0)];
        let places: Vec<Vec<usize>> =
            unbroken(&columns).map(|run| run.iter().map(|(place, _)| *place).collect()).collect();
        assert_eq!(places, [vec![1, 2], vec![5]]);
        assert_eq!(unbroken(&[None]).count(), 0);
    }
}
