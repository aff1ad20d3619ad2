//! Draws a chart as SVG.
//!
//! All charts have one size and the same margins, so that the time axes of a page line up. Lengths are in half pixels
//! of a chart of 640 × 300.

use crate::plot::axis::{Axis, Scale};
use crate::plot::chart::{AXIS, Chart, Form, GRID, Hover, Ink, Panel, Plot, Point, Shape, TEXT};
use crate::sanitize::escaped;

const WIDTH: i32 = 1_280;
const HEIGHT: i32 = 600;
/// The height of a row with a name over it.
const ROW: i32 = 76;
/// Room left of an axis whose names are over its rows.
const LEFT_OF_NAMES: i32 = 16;
/// Room for numbers left of the axis. The page shows them greater on a phone: there is room for those.
const LEFT: i32 = 152;
/// Half of the last number under the axis.
const RIGHT: i32 = 64;
const TOP: i32 = 22;
const BOTTOM: i32 = 56;
/// The height of a panel's title.
const TITLE: i32 = 34;
/// The length of a tick; twice as far from the axis is its number.
const TICK: i32 = 8;
/// The size of numbers and titles.
const TEXT_SIZE: i32 = 26;
/// How far the area around a point reaches in which its text shows.
const AROUND: i32 = 16;

/// The chart without its title, legend and caption: the page around it can wrap those.
pub fn svg(chart: &Chart) -> String {
    let Plot { x, is_upright, panels, hover } = &chart.plot;
    let height = height(panels);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\" \
         font-family=\"sans-serif\" font-size=\"{TEXT_SIZE}\">\n",
        escaped(&chart.label)
    );
    let frames: Vec<Frame> = (0..)
        .zip(panels)
        .map(|(index, panel)| Frame::of(x, panel, height, index, panels.len() as i32))
        .collect();
    for (panel, frame) in panels.iter().zip(&frames) {
        frame.draw_axes(&mut svg, *is_upright);
        if let Some(title) = panel.title {
            write_text(&mut svg, TEXT, (LEFT, frame.top - 8), "start", "-0.5ex", title);
        }
        panel.shapes.iter().for_each(|shape| frame.draw(&mut svg, shape));
    }
    svg += "<g class=\"values\">\n";
    for hover in hover {
        let Some(frame) = frames.first() else { break };
        let ((left, top), (right, bottom), text) = match hover {
            Hover::Span([from, to], text) => {
                ((frame.across(*from), TOP), (frame.across(*to), height - BOTTOM), text)
            }
            Hover::Around(at, text) => {
                let (x, y) = frame.place(*at);
                ((x - AROUND, (y - AROUND).max(0)), (x + AROUND, y + AROUND), text)
            }
        };
        svg += &format!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"none\"><title>{}</title></rect>\n",
            (right - left).max(1),
            bottom - top,
            escaped(text)
        );
    }
    svg + "</g>\n</svg>\n"
}

/// The height of a chart: rows with names have room for them.
fn height(panels: &[Panel]) -> i32 {
    match panels {
        [Panel { y, .. }] if y.scale == Scale::Names => TOP + BOTTOM + ROW * y.ticks.len().max(1) as i32,
        _ => HEIGHT,
    }
}

/// Where a panel lies.
struct Frame<'a> {
    x: &'a Axis,
    y: &'a Axis,
    left: i32,
    top: i32,
    bottom: i32,
    /// Whether the numbers of the x axis are under it.
    is_last: bool,
}

impl Frame<'_> {
    /// The frame of one of several panels, which are alike in height.
    fn of<'a>(x: &'a Axis, panel: &'a Panel, height: i32, index: i32, panels: i32) -> Frame<'a> {
        let is_last = index + 1 == panels;
        let left = if panel.y.scale == Scale::Names { LEFT_OF_NAMES } else { LEFT };
        let top = height * index / panels + TOP + if panel.title.is_some() { TITLE } else { 0 };
        let bottom = height * (index + 1) / panels - if is_last { BOTTOM } else { 0 };
        Frame { x, y: &panel.y, left, top, bottom: bottom - 1, is_last }
    }

    fn across(&self, value: f64) -> i32 {
        self.x.place(value, self.left, WIDTH - RIGHT - 1)
    }

    fn up(&self, value: f64) -> i32 {
        self.y.place(value, self.bottom, self.top)
    }

    fn place(&self, (x, y): Point) -> (i32, i32) {
        (self.across(x), self.up(y))
    }

    /// The grid, and the axes with their numbers.
    fn draw_axes(&self, svg: &mut String, is_upright: bool) {
        let Frame { x, y, left, top, bottom, is_last } = *self;
        let right = WIDTH - RIGHT - 1;
        let across: Vec<_> =
            x.ticks.iter().map(|(value, name)| (x.place_scaled(*value, left, right), name)).collect();
        let up: Vec<_> =
            y.ticks.iter().map(|(value, name)| (y.place_scaled(*value, bottom, top), name)).collect();
        if is_upright {
            across.iter().for_each(|(at, _)| write_line(svg, GRID, (*at, bottom), (*at, top)));
        }
        up.iter().for_each(|(at, _)| write_line(svg, GRID, (left, *at), (right, *at)));
        write_line(svg, AXIS, (left - 1, top), (left - 1, bottom));
        for (at, name) in up {
            if y.scale == Scale::Names {
                write_text(svg, TEXT, (left + TICK, at), "start", "-1ex", name);
                continue;
            }
            write_line(svg, AXIS, (left - 1 - TICK, at), (left - 1, at));
            write_text(svg, TEXT, (left - 2 * TICK, at), "end", "0.5ex", name);
        }
        if !is_last {
            return;
        }
        let under = bottom + 1;
        write_line(svg, AXIS, (left, under), (right, under));
        for (at, name) in across {
            write_line(svg, AXIS, (at, under), (at, under + TICK));
            write_text(svg, TEXT, (at, under + 2 * TICK), "middle", "0.76em", name);
        }
    }

    fn draw(&self, svg: &mut String, shape: &Shape) {
        let color = shape.ink.hex();
        let opacity = match shape.opacity {
            1.0 => String::new(),
            part => format!(" opacity=\"{part}\""),
        };
        let outlined = format!("fill=\"none\" stroke=\"{color}\"{opacity}");
        let filled = format!("fill=\"{color}\"{opacity}");
        let placed = |points: &[Point]| -> String {
            let points = points.iter().map(|point| self.place(*point));
            points.map(|(x, y)| format!("{x},{y}")).collect::<Vec<_>>().join(" ")
        };
        *svg += &match &shape.form {
            // A single point has no line.
            Form::Line { points, .. } if points.len() < 2 => return,
            Form::Line { points, width, is_dashed } => {
                let dashes = if *is_dashed { " stroke-dasharray=\"10 8\"" } else { "" };
                let points = placed(points);
                format!("<polyline {outlined} stroke-width=\"{width}\"{dashes} points=\"{points}\"/>\n")
            }
            Form::Area(outline) => format!("<polygon {filled} points=\"{}\"/>\n", placed(outline)),
            Form::Rectangle([corner, opposite]) => {
                let ((x, y), (other_x, other_y)) = (self.place(*corner), self.place(*opposite));
                format!(
                    "<rect {filled} x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                    x.min(other_x),
                    y.min(other_y),
                    x.abs_diff(other_x),
                    y.abs_diff(other_y)
                )
            }
            Form::Circle { at, radius, is_filled } => {
                let (x, y) = self.place(*at);
                let drawn = if *is_filled { &filled } else { &format!("{outlined} stroke-width=\"2\"") };
                format!("<circle {drawn} cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n")
            }
            Form::Text { at, text } => {
                return write_text(svg, shape.ink, self.place(*at), "middle", "-0.5ex", text);
            }
        };
    }
}

/// A line of the grid or of an axis.
fn write_line(svg: &mut String, ink: Ink, (x1, y1): (i32, i32), (x2, y2): (i32, i32)) {
    let color = ink.hex();
    *svg += &format!(
        "<line stroke=\"{color}\" stroke-width=\"2\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n"
    );
}

/// A text that begins, ends or has its middle at a place, moved down by a part of its size.
fn write_text(svg: &mut String, ink: Ink, (x, y): (i32, i32), anchor: &str, down: &str, text: &str) {
    if !text.is_empty() {
        let (color, text) = (ink.hex(), escaped(text));
        *svg += &format!(
            "<text x=\"{x}\" y=\"{y}\" dy=\"{down}\" text-anchor=\"{anchor}\" fill=\"{color}\">{text}</text>\n"
        );
    }
}
