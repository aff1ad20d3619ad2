//! Checkpoints, vacuums and dips behind a plot over time: checkpoints as shaded bands with a line where they begin,
//! vacuums as bars in a lane at the upper edge, dips as shaded bands under the number of their finding.

use bench_base::number::finite;
use bench_results::{Document, Event, Finding, Topic};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde_json::Value;

use super::axis::Axis;
use super::frame::{Chart, DrawResult, TEXT_SIZE};
use super::palette::{Ink, OLIVE, SHADE, WINE};

/// How finely time is divided: a soak has more vacuums than its plot has pixels.
const CELLS: usize = 1_000;

/// The lane of vacuums, as a fraction of the plot's height.
const LANE: f64 = 0.035;

/// Up to how many checkpoints have a line where they begin.
const MOST_LINES: usize = 30;

/// Up to how many dips have the number of their finding.
const MOST_NUMBERS: usize = 40;

/// How wide a number is, as a fraction of the axis: of two that are nearer to each other the first is written.
const NUMBER: f64 = 0.03;

/// The dips of a finding.
struct Dips {
    /// The finding's number in the report, from 1.
    finding: usize,
    spans: Vec<(f64, f64)>,
}

/// The events of a run on its time axis.
pub struct Marks {
    /// When each began, without those before the measurement.
    checkpoint_begins: Vec<f64>,
    checkpoints: Vec<(f64, f64)>,
    vacuums: Vec<(f64, f64)>,
    dips: Vec<Dips>,
}

impl Marks {
    /// The marks of a run that lie on the axis.
    pub fn of(document: &Document, time: &Axis) -> Marks {
        let events: &[Event] = &document.events;
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
            dips: dips(&document.findings, time),
        }
    }

    /// What they look like.
    pub fn legend(&self) -> impl Iterator<Item = (Ink, String)> {
        let numbers: Vec<String> = self.dips.iter().map(|dips| dips.finding.to_string()).collect();
        let dips = (!numbers.is_empty()).then(|| {
            let noun = if numbers.len() == 1 { "finding" } else { "findings" };
            (WINE, format!("dip: {noun} {}", numbers.join(", ")))
        });
        let checkpoints = (!self.checkpoints.is_empty()).then(|| (SHADE, "checkpoint".to_owned()));
        let vacuums = (!self.vacuums.is_empty()).then(|| (OLIVE, "vacuum".to_owned()));
        checkpoints.into_iter().chain(vacuums).chain(dips)
    }

    /// Draws them.
    pub fn draw(&self, chart: &mut Chart) -> DrawResult {
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
        let band = WINE.color().mix(0.18).filled();
        let spans = self.dips.iter().flat_map(|dips| &dips.spans);
        chart.draw_series(spans.map(|(begin, end)| rectangle(*begin, *end, y.start, y.end, band))).map(drop)
    }

    /// Writes the numbers of the dips' findings, over all that is drawn.
    pub fn draw_numbers(&self, chart: &mut Chart) -> DrawResult {
        let (x, y) = (chart.x_range(), chart.y_range());
        let bottom = y.start + (y.end - y.start) * LANE;
        let mut numbers: Vec<(f64, usize)> = self
            .dips
            .iter()
            .flat_map(|dips| dips.spans.iter().map(|(begin, end)| ((begin + end) / 2.0, dips.finding)))
            .collect();
        numbers.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free_from = f64::NEG_INFINITY;
        numbers.retain(|(middle, _)| {
            let has_room = *middle >= free_from;
            if has_room {
                free_from = middle + (x.end - x.start) * NUMBER;
            }
            has_room
        });
        let style = ("sans-serif", TEXT_SIZE).into_font().color(&WINE.color());
        let style = style.pos(Pos::new(HPos::Center, VPos::Bottom));
        chart.draw_series(
            numbers
                .iter()
                .take(MOST_NUMBERS)
                .map(|(middle, finding)| Text::new(finding.to_string(), (*middle, bottom), style.clone())),
        )?;
        Ok(())
    }
}

/// The dips that findings tell of, as far as they lie on the axis.
fn dips(findings: &[Finding], time: &Axis) -> Vec<Dips> {
    let times = |finding: &Finding, name: &str| -> Vec<f64> {
        let list = finding.figures.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let of_finding = |(index, finding): (usize, &Finding)| {
        let spans = times(finding, "at").into_iter().zip(times(finding, "until"));
        let spans = spans.filter(|(begin, end)| begin <= end && *begin <= time.high && *end >= time.low);
        let spans: Vec<(f64, f64)> = merged(spans, time).collect();
        ([Topic::Dip, Topic::Outage].contains(&finding.topic) && !spans.is_empty())
            .then_some(Dips { finding: index + 1, spans })
    };
    findings.iter().enumerate().filter_map(of_finding).collect()
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
    use bench_results::Severity;
    use serde_json::json;

    use super::*;

    fn event(kind: &str, started: f64, ended: Option<f64>) -> Event {
        Event { kind: kind.to_owned(), started, ended, ..Event::default() }
    }

    fn with(events: Vec<Event>) -> Document {
        Document { events, ..Document::default() }
    }

    #[test]
    fn dips_have_the_numbers_of_their_findings() {
        let finding = |topic: Topic, figures: Value| Finding {
            severity: Severity::Warning,
            topic,
            finding: String::new(),
            figures: figures.as_object().cloned().unwrap_or_default(),
            advice: String::new(),
        };
        let findings = vec![
            finding(Topic::Waits, json!({"at": [1.0], "until": [2.0]})),
            finding(Topic::Dip, json!({"at": [10.0, 90.0], "until": [20.0, 400.0]})),
            finding(Topic::Dip, json!({"at": [50.0]})),
            finding(Topic::Dip, json!({"at": [60.0, "x", 1e300], "until": [61.0, 1e301]})),
            finding(Topic::Outage, json!({"at": [30.0], "until": [35.0]})),
        ];
        let marks = Marks::of(&Document { findings, ..Document::default() }, &Axis::of_time(100.0));
        let told: Vec<_> = marks.dips.iter().map(|dips| (dips.finding, dips.spans.as_slice())).collect();
        let dips = [[(10.0, 20.1), (90.0, 100.0)].as_slice(), &[(60.0, 61.1)], &[(30.0, 35.1)]];
        assert_eq!(told, [(2, dips[0]), (4, dips[1]), (5, dips[2])]);
        assert_eq!(marks.legend().map(|(_, name)| name).collect::<Vec<_>>(), ["dip: findings 2, 4, 5"]);
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
        let marks = Marks::of(&with(events.to_vec()), &time);
        assert_eq!(marks.checkpoints, [(0.0, 10.1), (90.0, 100.0)]);
        assert_eq!(marks.checkpoint_begins, [90.0]);
        assert_eq!(marks.vacuums, [(50.0, 51.1)]);
        assert_eq!(marks.legend().count(), 2);
    }

    #[test]
    fn any_number_of_events_is_drawn_as_a_bounded_number_of_shapes() {
        let events: Vec<_> =
            (0..100_000).map(|i| event("autovacuum", f64::from(i), Some(f64::from(i)))).collect();
        let marks = Marks::of(&with(events), &Axis::of_time(100_000.0));
        assert!(marks.vacuums.len() <= CELLS);
    }
}
