//! Lines and dots.

use plotters::prelude::*;

use crate::plot::frame::{Chart, DrawResult};

/// A line from point to point, which a single one has not.
pub fn draw_line(chart: &mut Chart, points: &[(f64, f64)], style: ShapeStyle) -> DrawResult {
    if points.len() > 1 {
        chart.draw_series([PathElement::new(points.to_vec(), style)])?;
    }
    Ok(())
}

/// A dot at each point.
pub fn draw_dots(chart: &mut Chart, points: &[(f64, f64)], radius: i32, style: ShapeStyle) -> DrawResult {
    chart.draw_series(points.iter().map(|point| Circle::new(*point, radius, style)))?;
    Ok(())
}
