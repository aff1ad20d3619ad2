//! Checkpoints and vacuums behind a plot over time: checkpoints as shaded bands with a line where they begin,
//! vacuums as bars in a lane at the upper edge.

use plotters::prelude::*;

use super::axis::Axis;
use super::frame::{Chart, Drawn};
use super::palette::{Ink, OLIVE, SHADE};
use crate::document::Event;
use crate::report::number::finite;

/// How finely time is divided: a soak has more vacuums than its plot has pixels.
const CELLS: usize = 1_000;

/// The lane of vacuums, as a fraction of the plot's height.
const LANE: f64 = 0.035;

/// Up to how many checkpoints have a line where they begin.
const MOST_LINES: usize = 30;

/// The events of a run on its time axis.
pub struct Marks {
    /// When each began, without those before the measurement.
    checkpoint_begins: Vec<f64>,
    checkpoints: Vec<(f64, f64)>,
    vacuums: Vec<(f64, f64)>,
}

impl Marks {
    /// The marks that lie on the axis.
    pub fn of(events: &[Event], time: &Axis) -> Marks {
        let of_kind = |is_wanted: fn(&str) -> bool| {
            let wanted = events.iter().filter(move |event| is_wanted(&event.kind));
            wanted.filter_map(|event| {
                let begin = finite(Some(event.started))?;
                // One that had not ended goes on to the end.
                let end = finite(event.ended).unwrap_or(time.high);
                (begin <= time.high && end >= time.low).then_some((begin, end))
            })
        };
        let is_checkpoint = |kind: &str| kind == "checkpoint";
        let begins = of_kind(is_checkpoint).filter(|(begin, _)| *begin >= time.low);
        Marks {
            checkpoint_begins: merged(begins.map(|(begin, _)| (begin, begin)), time)
                .map(|(begin, _)| begin)
                .collect(),
            checkpoints: merged(of_kind(is_checkpoint), time).collect(),
            vacuums: merged(of_kind(|kind| kind == "vacuum" || kind == "autovacuum"), time).collect(),
        }
    }

    /// What they look like.
    pub fn legend(&self) -> impl Iterator<Item = (Ink, String)> {
        let checkpoints = (!self.checkpoints.is_empty()).then(|| (SHADE, "checkpoint".to_owned()));
        let vacuums = (!self.vacuums.is_empty()).then(|| (OLIVE, "vacuum".to_owned()));
        checkpoints.into_iter().chain(vacuums)
    }

    /// Draws them.
    pub fn draw(&self, chart: &mut Chart) -> Drawn {
        let y = chart.y_range();
        let rectangle =
            |begin, end, low, high, style: ShapeStyle| Rectangle::new([(begin, high), (end, low)], style);
        let band = SHADE.color().mix(0.13).filled();
        let line = SHADE.color().mix(0.7).stroke_width(2);
        let bar = OLIVE.color().filled();
        let lane = y.end - (y.end - y.start) * LANE;
        chart.draw_series(
            self.checkpoints.iter().map(|(begin, end)| rectangle(*begin, *end, y.start, y.end, band)),
        )?;
        // A soak has so many that lines would hide everything else.
        let lines =
            if self.checkpoint_begins.len() <= MOST_LINES { &self.checkpoint_begins[..] } else { &[] };
        chart.draw_series(
            lines.iter().map(|begin| PathElement::new(vec![(*begin, y.start), (*begin, y.end)], line)),
        )?;
        chart
            .draw_series(self.vacuums.iter().map(|(begin, end)| rectangle(*begin, *end, lane, y.end, bar)))?;
        Ok(())
    }
}

/// The spans of time with those joined that overlap or are too near to each other to be seen apart.
fn merged(spans: impl Iterator<Item = (f64, f64)>, time: &Axis) -> impl Iterator<Item = (f64, f64)> {
    let (low, length) = (time.low, time.high - time.low);
    let cell = move |value: f64| (((value - low) / length * CELLS as f64) as usize).min(CELLS - 1);
    let mut covered = vec![false; CELLS];
    for (begin, end) in spans {
        // A float below 0 is cast to 0.
        let (begin, end) = (cell(begin), cell(end));
        covered[begin..=end.max(begin)].fill(true);
    }
    let value = move |cell: usize| low + length * cell as f64 / CELLS as f64;
    let mut runs = Vec::new();
    let mut from = 0;
    for run in covered.chunk_by(|one, next| one == next) {
        if run[0] {
            runs.push((value(from), value(from + run.len())));
        }
        from += run.len();
    }
    runs.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, started: f64, ended: Option<f64>) -> Event {
        Event { kind: kind.to_owned(), started, ended, ..Event::default() }
    }

    #[test]
    fn events_are_cut_to_the_axis_and_joined() {
        let time = Axis::of_time(100.0);
        let events = [
            event("checkpoint", -20.0, Some(10.0)),
            event("checkpoint", 90.0, None),
            event("checkpoint", -20.0, Some(-10.0)),
            event("autovacuum", 50.0, Some(50.01)),
            event("vacuum", 50.05, Some(51.0)),
            event("vacuum", f64::NAN, None),
        ];
        let marks = Marks::of(&events, &time);
        assert_eq!(marks.checkpoints, [(0.0, 10.1), (90.0, 100.0)]);
        assert_eq!(marks.checkpoint_begins, [90.0]);
        assert_eq!(marks.vacuums, [(50.0, 51.1)]);
        assert_eq!(marks.legend().count(), 2);
    }

    #[test]
    fn any_number_of_events_is_drawn_as_a_bounded_number_of_shapes() {
        let events: Vec<_> =
            (0..100_000).map(|i| event("autovacuum", f64::from(i), Some(f64::from(i)))).collect();
        let marks = Marks::of(&events, &Axis::of_time(100_000.0));
        assert!(marks.vacuums.len() <= CELLS);
    }
}
