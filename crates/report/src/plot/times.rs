//! Charts over time: where a run's intervals lie, thinned to the columns of a chart, and what is drawn of their values.

use std::ops::Range;

use bench_base::number::{duration, finite};
use bench_results::{Samples, Series};

use crate::downsample::{Envelope, PLOT_COLUMNS, columns, envelopes, per_column, range};
use crate::plot::axis::Axis;
use crate::plot::chart::{Hover, Ink, Legend, Panel, Plot, Point, Shape};

/// How many strips that show values a chart has at most: they are wide enough to be hit.
const STRIPS: usize = 180;

/// A column alone, of at most this share of the axis, is a dot: as a line it would not be seen.
const NARROW: f64 = 0.01;

/// The columns of a chart over time.
pub struct Times {
    /// Begin and end of each, in seconds since measuring began.
    pub spans: Vec<(f64, f64)>,
    /// How many intervals a column has.
    pub per_column: usize,
    pub axis: Axis,
}

/// A series of a chart over time.
pub struct Curve {
    pub ink: Ink,
    pub name: String,
    pub columns: Vec<Option<Envelope>>,
    /// Writes a value with its unit.
    pub shown: fn(f64) -> String,
}

impl Times {
    /// The times of the measured intervals; `None` when there is none.
    pub fn of(samples: &Samples) -> Option<Times> {
        Times::in_columns(samples, PLOT_COLUMNS)
    }

    /// As [`Times::of`], in at most so many columns.
    pub fn in_columns(samples: &Samples, most: usize) -> Option<Times> {
        let intervals = samples.len();
        let mut ends = Vec::with_capacity(intervals);
        let mut begin = 0.0;
        for (index, elapsed) in samples.elapsed.iter().enumerate() {
            let secs = samples.secs.get(index).copied().flatten();
            // One without an end has its length, or is taken for a second long; time does not run backwards.
            let end = finite(*elapsed).unwrap_or(begin + finite(secs).unwrap_or(1.0)).max(begin);
            ends.push(end);
            begin = end;
        }
        let per_column = per_column(intervals, most);
        let begin_of = |interval: usize| if interval == 0 { 0.0 } else { ends[interval - 1] };
        let spans = columns(intervals, per_column)
            .map(|range| (begin_of(range.start), ends[range.end - 1]))
            .collect();
        Some(Times { spans, per_column, axis: Axis::of_time(*ends.last()?) })
    }

    /// A series thinned to the columns; one that is shorter than the others has no value in the rest.
    pub fn thinned(&self, series: &[Option<f64>]) -> Vec<Option<Envelope>> {
        let mut thinned = envelopes(series, self.per_column);
        thinned.resize(self.spans.len(), None);
        thinned
    }

    /// A series as a curve.
    pub fn curve(&self, ink: Ink, name: &str, series: &[Option<f64>], shown: fn(f64) -> String) -> Curve {
        Curve { ink, name: name.to_owned(), columns: self.thinned(series), shown }
    }

    /// The middle of a column.
    pub fn middle(&self, column: usize) -> f64 {
        let (begin, end) = self.spans[column];
        begin / 2.0 + end / 2.0
    }

    /// The points of a value that holds over all of the time.
    pub fn level(&self, value: f64) -> Vec<Point> {
        vec![(self.axis.low, value), (self.axis.high, value)]
    }

    /// A sentence on what a column shows of its intervals, where it has more than one.
    pub fn note(&self, shown: &str) -> String {
        if self.per_column == 1 {
            return String::new();
        }
        let (begin, end) = self.spans[0];
        let length = duration(((end - begin) * 10.0).round() / 10.0);
        format!(" Each column shows {shown} of {} intervals ({length}).", self.per_column)
    }

    /// The plot of some panels, where the pointer shows `values` of the columns under it.
    pub fn plot(&self, panels: Vec<Panel>, values: impl Fn(Range<usize>) -> Vec<String>) -> Plot {
        let strips = columns(self.spans.len(), per_column(self.spans.len(), STRIPS));
        let hover = strips.filter_map(|columns| {
            let (begin, end) = (self.spans[columns.start].0, self.spans[columns.end - 1].1);
            let lines = values(columns);
            let text = format!("{} to {}\n{}", clock(begin), clock(end), lines.join("\n"));
            (!lines.is_empty()).then_some(Hover::Span([begin, end], text))
        });
        Plot { x: self.axis.clone(), is_upright: false, hover: hover.collect(), panels }
    }

    /// A line through the means of a curve, with a band of its ranges where it is thinned; both are broken where there is no
    /// value.
    pub fn line(&self, curve: &Curve) -> Vec<Shape> {
        let mut shapes = Vec::new();
        for known in unbroken(&curve.columns) {
            if let [(column, envelope)] = known[..] {
                let (begin, end) = self.spans[column];
                shapes.push(if end - begin > NARROW * self.axis.high {
                    curve.ink.line(vec![(begin, envelope.mean), (end, envelope.mean)], 3)
                } else {
                    curve.ink.dot((self.middle(column), envelope.mean), 6)
                });
                continue;
            }
            let points = |choose: fn(&Envelope) -> f64| {
                known.iter().map(move |(column, envelope)| (self.middle(*column), choose(envelope)))
            };
            if self.per_column > 1 {
                let outline = points(|of| of.high).chain(points(|of| of.low).rev());
                shapes.push(curve.ink.area(outline.collect()).faint(0.25));
            }
            shapes.push(curve.ink.line(points(|of| of.mean).collect(), 3));
        }
        shapes
    }

    /// The area under the means of a curve, and paler the one under the highest.
    pub fn area(&self, curve: &Curve) -> Vec<Shape> {
        let floor = vec![0.0; self.spans.len()];
        let series = |choose: fn(Envelope) -> f64| -> Series {
            curve.columns.iter().map(|envelope| envelope.map(choose)).collect()
        };
        let highest = if self.per_column > 1 { series(|of| of.high) } else { Vec::new() };
        let pale = self.steps(curve.ink, &floor, &highest).into_iter().map(|shape| shape.faint(0.35));
        pale.chain(self.steps(curve.ink, &floor, &series(|of| of.mean))).collect()
    }

    /// What is between two series of the columns, as steps: the value of an interval applies to the whole interval. One shape
    /// for as many columns as possible: between shapes side by side there would be fine stripes.
    pub fn steps(&self, ink: Ink, lower: &[f64], upper: &[Option<f64>]) -> Vec<Shape> {
        let outline = |known: Vec<(usize, f64)>| {
            let step = |column: usize, value: f64| {
                let (begin, end) = self.spans[column];
                [(begin, value), (end, value)]
            };
            let above = known.iter().flat_map(|(column, upper)| step(*column, *upper));
            let below = known.iter().flat_map(|(column, _)| step(*column, lower[*column]));
            above.chain(below.rev()).collect()
        };
        unbroken(upper).map(|known| ink.area(outline(known))).collect()
    }
}

impl Curve {
    /// The value of some columns with its name, or from the lowest to the highest; nothing where there is none.
    fn value(&self, columns: Range<usize>) -> Option<String> {
        let (low, high) = range(self.columns.get(columns)?)?;
        let (low, high) = ((self.shown)(low), (self.shown)(high));
        let name = &self.name;
        Some(if low == high { format!("{name}: {low}") } else { format!("{name}: {low} to {high}") })
    }
}

/// The values of some columns, each under the name of its curve.
pub fn values<'a>(curves: impl IntoIterator<Item = &'a Curve>, columns: &Range<usize>) -> Vec<String> {
    curves.into_iter().filter_map(|curve| curve.value(columns.clone())).collect()
}

/// The names of curves.
pub fn legend<'a>(curves: impl IntoIterator<Item = &'a Curve>) -> Legend {
    curves.into_iter().map(|curve| (curve.ink, curve.name.clone())).collect()
}

/// An axis from 0 to above the highest value of some curves; `None` without any value.
pub fn axis_from_zero<'a>(curves: impl IntoIterator<Item = &'a Curve>, ticks: usize) -> Option<Axis> {
    let highest = curves.into_iter().filter_map(|curve| Some(range(&curve.columns)?.1)).reduce(f64::max)?;
    Some(Axis::from_zero(highest * ABOVE, ticks))
}

/// How far an axis goes beyond the highest value: the lane of vacuums is above all points.
pub const ABOVE: f64 = 1.08;

/// A count of each interval as so many units for each second.
pub fn per_second(counts: &Series, secs: &Series, unit: f64) -> Series {
    let rates = counts.iter().enumerate().map(|(index, count)| {
        let secs = secs.get(index).copied().flatten().filter(|secs| *secs > 0.0)?;
        Some((*count)? / secs / unit)
    });
    rates.collect()
}

/// The columns with values, those side by side together, each with its place.
fn unbroken<T: Copy>(columns: &[Option<T>]) -> impl Iterator<Item = Vec<(usize, T)>> {
    let mut next = 0;
    columns.chunk_by(|one, other| one.is_some() == other.is_some()).filter_map(move |run| {
        let first = next;
        next += run.len();
        let known: Vec<_> = (first..).zip(run.iter().copied().flatten()).collect();
        (!known.is_empty()).then_some(known)
    })
}

/// A time of the run, to the tenth of a second.
fn clock(secs: f64) -> String {
    duration((secs * 100.0).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_side_by_side_are_together() {
        let columns = [None, Some(1.0), Some(2.0), None, None, Some(5.0)];
        let places: Vec<Vec<usize>> =
            unbroken(&columns).map(|run| run.iter().map(|(place, _)| *place).collect()).collect();
        assert_eq!(places, [vec![1, 2], vec![5]]);
        assert_eq!(unbroken::<f64>(&[None]).count(), 0);
    }

    #[test]
    fn strips_cover_the_plot_and_say_what_is_there() {
        let samples = Samples {
            elapsed: (1..=400).map(|end| Some(f64::from(end))).collect(),
            tps: (1..=400).map(|second| Some(f64::from(second))).collect(),
            ..Samples::default()
        };
        let times = Times::of(&samples).unwrap();
        let curve = times.curve(crate::plot::chart::BLUE, "<tps>", &samples.tps, |tps| tps.to_string());
        let plot = times.plot(Vec::new(), |columns| values([&curve], &columns));
        assert_eq!(plot.hover.len(), 134);
        let mut next = 0.0;
        for hover in &plot.hover {
            let Hover::Span([begin, end], _) = hover else { panic!("a span") };
            assert_eq!(*begin, next);
            next = *end;
        }
        let text = |place: usize| match &plot.hover[place] {
            Hover::Span(_, text) | Hover::Around(_, text) => text.as_str(),
        };
        assert_eq!(text(0), "0 s to 3 s\n<tps>: 1 to 3");
        assert_eq!(text(133), "6 min 39 s to 6 min 40 s\n<tps>: 400");
        assert!(times.plot(Vec::new(), |_| Vec::new()).hover.is_empty());
    }
}
