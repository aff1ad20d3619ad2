//! The frame of a plot: its size, grid and axes.

use std::io;

use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::palette::{AXIS, GRID, TEXT};

/// Width and height in half pixels.
const SIZE: (u32, u32) = (1_280, 600);
/// Room for numbers left of the axis. The page shows them greater on a phone: there is room for those.
const LEFT: i32 = 152;
const BOTTOM: i32 = 56;
/// Half of the last number under the axis.
const RIGHT: i32 = 64;
const TOP: i32 = 22;
/// The height of a panel's title.
const TITLE: i32 = 34;
/// Font size of numbers and titles. plotters divides it by 1.24.
pub const TEXT_SIZE: f64 = 26.0 * 1.24;

/// What drawing ends with; into a string it does not fail.
pub type DrawResult = Result<(), DrawingAreaErrorKind<io::Error>>;

/// The area between the axes.
pub type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// One of the plots that share an x axis.
pub struct Panel<'a> {
    /// Where there are several.
    pub title: Option<&'a str>,
    pub y: Axis,
    /// Draws what is between the axes.
    pub draw: &'a dyn Fn(&mut Chart) -> DrawResult,
}

/// Draws panels under each other. Lines are drawn up from the ticks of the x axis where `upright`.
pub fn svg(label: &str, x: &Axis, upright: bool, panels: &[Panel]) -> Option<String> {
    let mut buffer = String::new();
    draw(&mut buffer, x, upright, panels).ok()?;
    // plotters gives a fixed size and no name; the page gives the width.
    let shapes = buffer.split_once('>')?.1;
    let (width, height) = SIZE;
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"{label}\">{shapes}"
    ))
}

/// Left and right end of a span of the x axis, and top and bottom of all panels together, in the plot's coordinates.
pub fn place(x: &Axis, span: (f64, f64)) -> ([i32; 2], [i32; 2]) {
    let (width, height) = (SIZE.0.cast_signed(), SIZE.1.cast_signed());
    let of = |value: &f64| x.map(value, (LEFT, width - RIGHT));
    ([of(&span.0), of(&span.1)], [TOP, height - BOTTOM])
}

/// Where a point of a plot with a single panel lies.
pub fn place_of(x: &Axis, y: &Axis, (across, up): (f64, f64)) -> (i32, i32) {
    let (_, [top, bottom]) = place(x, (x.low, x.high));
    (place(x, (across, across)).0[0], y.map(&up, (bottom, top)))
}

/// Draws the chart into a buffer.
fn draw(buffer: &mut String, x: &Axis, upright: bool, panels: &[Panel]) -> DrawResult {
    let root = SVGBackend::with_string(buffer, SIZE).into_drawing_area();
    let areas = root.split_evenly((panels.len(), 1));
    for (index, (area, panel)) in areas.iter().zip(panels).enumerate() {
        let is_last = index + 1 == panels.len();
        draw_panel(area, x, upright, panel, is_last)?;
    }
    root.present()
}

/// One panel; the last one has the numbers of the x axis.
fn draw_panel(
    area: &DrawingArea<SVGBackend, Shift>,
    x: &Axis,
    upright: bool,
    panel: &Panel,
    is_last: bool,
) -> DrawResult {
    let number = ("sans-serif", TEXT_SIZE).into_font().color(&TEXT.color());
    let mut chart = ChartBuilder::on(area)
        .margin_top(if panel.title.is_some() { TOP + TITLE } else { TOP })
        .margin_right(RIGHT)
        .x_label_area_size(if is_last { BOTTOM } else { 0 })
        .y_label_area_size(LEFT)
        .build_cartesian_2d(x.clone(), panel.y.clone())?;
    let mut mesh = chart.configure_mesh();
    if !upright {
        mesh.disable_x_mesh();
    }
    mesh.bold_line_style(GRID.color().stroke_width(2))
        .axis_style(AXIS.color().stroke_width(2))
        .label_style(number.clone())
        .set_all_tick_mark_size(8)
        .draw()?;
    if let Some(title) = panel.title {
        let style = number.pos(Pos::new(HPos::Left, VPos::Bottom));
        area.draw(&Text::new(title.to_owned(), (LEFT, TOP + TITLE - 8), style))?;
    }
    (panel.draw)(&mut chart)
}
