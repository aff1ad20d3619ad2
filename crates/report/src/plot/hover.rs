//! Values that show where the pointer rests on a plot: areas over it, each with a title of SVG.

use std::ops::Range;

use bench_base::number::duration;

use super::axis::Axis;
use super::frame::{place, place_of};
use super::times::Times;
use crate::downsample::{Envelope, columns, per_column, range};
use crate::escape::escaped;

/// How many strips a plot has at most: they are wide enough to be hit.
const STRIPS: usize = 180;

/// How far the area around a point reaches.
const AROUND: i32 = 16;

/// The plot with strips, each titled by its time and by what `lines` has of its columns.
pub fn with_values(svg: &str, times: &Times, lines: &dyn Fn(Range<usize>) -> Vec<String>) -> String {
    with_spans(svg, &times.axis, &times.spans, lines)
}

/// As [`with_values`], of columns that lie at these spans of a time axis.
pub fn with_spans(
    svg: &str,
    axis: &Axis,
    spans: &[(f64, f64)],
    lines: &dyn Fn(Range<usize>) -> Vec<String>,
) -> String {
    let strips = columns(spans.len(), per_column(spans.len(), STRIPS)).filter_map(|columns| {
        let (begin, end) = (spans[columns.start].0, spans[columns.end - 1].1);
        let lines = lines(columns);
        let ([left, right], [top, bottom]) = place(axis, (begin, end));
        let title = format!("{} to {}\n{}", clock(begin), clock(end), lines.join("\n"));
        (!lines.is_empty()).then(|| area([left, right], [top, bottom], &title))
    });
    with_areas(svg, strips)
}

/// The plot with an area around each point, titled by its text.
pub fn with_points(svg: &str, x: &Axis, y: &Axis, points: &[(f64, f64, String)]) -> String {
    let areas = points.iter().map(|(across, up, text)| {
        let (across, up) = place_of(x, y, (*across, *up));
        area([across - AROUND, across + AROUND], [up - AROUND, up + AROUND], text)
    });
    with_areas(svg, areas)
}

/// The plot with areas over all that is drawn.
fn with_areas(svg: &str, areas: impl Iterator<Item = String>) -> String {
    let Some(shapes) = svg.trim_end().strip_suffix("</svg>") else { return svg.to_owned() };
    let areas: String = areas.collect();
    format!("{shapes}<g class=\"values\">\n{areas}</g>\n</svg>\n")
}

/// A rectangle that is not seen and has a title.
fn area([left, right]: [i32; 2], [top, bottom]: [i32; 2], title: &str) -> String {
    let (left, top) = (left.max(0), top.max(0));
    let (width, height) = ((right - left).max(1), (bottom - top).max(1));
    format!(
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\"><title>{}</title></rect>\n",
        escaped(title)
    )
}

/// A time of the run, to the tenth of a second.
fn clock(secs: f64) -> String {
    duration((secs * 100.0).round() / 100.0)
}

/// The value of some columns with its name, or from the lowest to the highest; nothing where there is none.
pub fn value(
    name: &str,
    thinned: &[Option<Envelope>],
    columns: Range<usize>,
    shown: impl Fn(f64) -> String,
) -> Option<String> {
    let (low, high) = range(thinned.get(columns)?)?;
    let (low, high) = (shown(low), shown(high));
    Some(if low == high { format!("{name}: {low}") } else { format!("{name}: {low} to {high}") })
}

#[cfg(test)]
mod tests {
    use bench_results::Samples;

    use super::*;

    #[test]
    fn strips_cover_the_plot_and_say_what_is_there() {
        let samples = Samples {
            elapsed: (1..=400).map(|end| Some(f64::from(end))).collect(),
            tps: (1..=400).map(|second| Some(f64::from(second))).collect(),
            ..Samples::default()
        };
        let times = Times::of(&samples).unwrap();
        let thinned = times.thinned(&samples.tps);
        let lines = |columns: Range<usize>| {
            let tps = value("<tps>", &thinned, columns, |tps| tps.to_string());
            tps.into_iter().collect::<Vec<_>>()
        };
        let svg = with_values("<svg></svg>\n", &times, &lines);
        assert_eq!(svg.matches("<title>").count(), 134);
        assert!(svg.contains("<title>0 s to 3 s\n&lt;tps&gt;: 1 to 3</title>"), "{svg}");
        assert!(svg.contains("<title>6 min 39 s to 6 min 40 s\n&lt;tps&gt;: 400</title>"), "{svg}");
        let place = |line: &str, name: &str| -> i32 {
            line.split_once(name).unwrap().1.split('"').next().unwrap().parse().unwrap()
        };
        let mut next = place(&svg, " x=\"");
        for line in svg.lines().filter(|line| line.starts_with("<rect")) {
            assert_eq!(place(line, " x=\""), next);
            next += place(line, " width=\"");
        }
        assert_eq!(
            with_values("<svg></svg>", &times, &|_| Vec::new()),
            "<svg><g class=\"values\">\n</g>\n</svg>\n"
        );
    }
}
