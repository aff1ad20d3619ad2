//! Checkpoints, vacuums and dips behind a plot over time: checkpoints as shaded bands with a line where they begin,
//! vacuums as bars in a lane at the upper edge, dips as shaded bands under the number of their finding.

use bench_base::number::finite;
use bench_results::{Document, Event, Finding, Topic};
use serde_json::Value;

use crate::plot::axis::Axis;
use crate::plot::chart::{Ink, Legend, OLIVE, PINK, Panel, SHADE, WINE};

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
    /// The change of a rehearsal.
    changes: Vec<(f64, f64)>,
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
            changes: merged(of_kind(|kind| kind == "change"), time).collect(),
            dips: dips(&document.findings, time),
        }
    }

    /// The names of some curves, and what the marks look like.
    pub fn legend(&self, mut curves: Legend) -> Legend {
        let numbers: Vec<String> = self.dips.iter().map(|dips| dips.finding.to_string()).collect();
        let noun = if numbers.len() == 1 { "finding" } else { "findings" };
        let marks = [
            (SHADE, !self.checkpoints.is_empty(), "checkpoint".to_owned()),
            (OLIVE, !self.vacuums.is_empty(), "vacuum".to_owned()),
            (PINK, !self.changes.is_empty(), "change".to_owned()),
            (WINE, !numbers.is_empty(), format!("dip: {noun} {}", numbers.join(", "))),
        ];
        curves
            .extend(marks.into_iter().filter(|(_, is_there, _)| *is_there).map(|(ink, _, name)| (ink, name)));
        curves
    }

    /// A panel with the marks, behind all that comes over them.
    pub fn panel(&self, y: Axis) -> Panel {
        let (bottom, lane, top) = (y.value_at(0.0), y.value_at(1.0 - LANE), y.value_at(1.0));
        let bars = |ink: Ink, opacity: f64, from: f64, spans: &[(f64, f64)]| {
            let bars =
                spans.iter().map(|(begin, end)| ink.rectangle((*begin, from), (*end, top)).faint(opacity));
            bars.collect::<Vec<_>>()
        };
        // A soak has so many that lines would hide everything else.
        let lines =
            if self.checkpoint_begins.len() <= MOST_LINES { &self.checkpoint_begins[..] } else { &[] };
        let lines = lines.iter().map(|begin| SHADE.line(vec![(*begin, bottom), (*begin, top)], 2).faint(0.7));
        Panel::new(y)
            .with(bars(SHADE, 0.13, bottom, &self.checkpoints))
            .with(lines)
            .with(bars(OLIVE, 1.0, lane, &self.vacuums))
            .with(bars(PINK, 0.25, bottom, &self.changes))
            .with(self.dips.iter().flat_map(|dips| bars(WINE, 0.18, bottom, &dips.spans)))
    }

    /// A panel with the numbers of the dips' findings over all that it has.
    pub fn numbered(&self, panel: Panel, time: &Axis) -> Panel {
        let at = panel.y.value_at(LANE);
        let of_finding = |dips: &Dips| {
            let number = dips.finding.to_string();
            dips.spans
                .iter()
                .map(move |(begin, end)| ((begin + end) / 2.0, number.clone()))
                .collect::<Vec<_>>()
        };
        let mut numbers: Vec<(f64, String)> = self.dips.iter().flat_map(of_finding).collect();
        numbers.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free_from = f64::NEG_INFINITY;
        numbers.retain(|(middle, _)| {
            let has_room = *middle >= free_from;
            if has_room {
                free_from = middle + (time.high - time.low) * NUMBER;
            }
            has_room
        });
        let numbers = numbers.into_iter().take(MOST_NUMBERS);
        panel.with(numbers.map(|(middle, number)| WINE.text((middle, at), number)))
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
        assert_eq!(
            marks.legend(Vec::new()).into_iter().map(|(_, name)| name).collect::<Vec<_>>(),
            ["dip: findings 2, 4, 5"]
        );
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
        assert_eq!(marks.legend(Vec::new()).len(), 2);
    }

    #[test]
    fn any_number_of_events_is_drawn_as_a_bounded_number_of_shapes() {
        let events: Vec<_> =
            (0..100_000).map(|i| event("autovacuum", f64::from(i), Some(f64::from(i)))).collect();
        let marks = Marks::of(&with(events), &Axis::of_time(100_000.0));
        assert!(marks.vacuums.len() <= CELLS);
    }
}
