//! Two arms or sides against each other: ratios with their intervals, one under the other, and the latencies of a duel.

use bench_base::number::{finite, fixed};
use bench_results::{Document, Duel, DuelBatch, Samples, StatementLine};

use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, Chart, GREEN, GREY, Hover, INDIGO, Ink, Legend, Panel, Plot, RED};
use crate::plot::latency::of_sides;
use crate::plot::marks::Marks;
use crate::plot::times::{Curve, Times, axis_from_zero, legend, values};
use crate::sanitize::{cut, one_line};
use crate::section::latency;

/// A ratio.
pub struct ForestRow {
    /// What it is of.
    pub name: String,
    /// Its value and the ends of its interval.
    pub ratio: [Option<f64>; 3],
    pub verdict: String,
}

/// The colours of verdicts.
const VERDICTS: [(&str, Ink); 5] =
    [("faster", GREEN), ("slower", RED), ("same", INDIGO), ("inconclusive", GREY), ("fails", RED)];

/// The colour of a verdict.
fn ink(verdict: &str) -> Ink {
    VERDICTS.iter().find(|(name, _)| *name == verdict).map_or(GREY, |(_, ink)| *ink)
}

/// How many rows are drawn: a mix of many scripts has more, which are in the tables.
const ROWS: usize = 40;

/// The first rows from above, and the margin around 1; with what the colours are. `None` without any ratio.
pub fn forest(given: &[ForestRow], margin: f64) -> Option<(Plot, Legend)> {
    let given = &given[..given.len().min(ROWS)];
    let positive = |ratio: Option<f64>| finite(ratio).filter(|ratio| *ratio > 0.0);
    let margin = [(1.0 - margin).max(0.1), 1.0 + margin];
    let known = || given.iter().flat_map(|row| row.ratio).filter_map(positive).chain(margin);
    let x = Axis::of_ratios(known().fold(1.0, f64::min), known().fold(1.0, f64::max));
    let y = Axis::of_names(given.iter().rev().map(|row| row.name.clone()));
    let (bottom, top) = (y.low, y.high);
    let mut shapes = vec![
        GREY.rectangle((margin[0], top), (margin[1], bottom)).faint(0.45),
        INDIGO.line(vec![(1.0, bottom), (1.0, top)], 2),
    ];
    let mut hover = Vec::new();
    for (place, row) in (1..).map(f64::from).zip(given.iter().rev()) {
        let [ratio, low, high] = row.ratio.map(positive);
        shapes.extend(
            low.zip(high).map(|(low, high)| ink(&row.verdict).line(vec![(low, place), (high, place)], 6)),
        );
        let Some(ratio) = ratio else { continue };
        shapes.push(ink(&row.verdict).dot((ratio, place), 10));
        let [value, low, high] = row.ratio.map(|value| fixed(value, 3));
        let text = format!("{} {value} [{low}, {high}]: {}", row.name, row.verdict);
        hover.push(Hover::Around((ratio, place), text));
    }
    let is_there = |verdict: &str| given.iter().any(|row| row.verdict == verdict);
    let legend = VERDICTS.iter().filter(|(verdict, _)| is_there(verdict));
    let legend = legend.map(|(verdict, ink)| (*ink, (*verdict).to_owned())).collect();
    let plot = Plot { x, is_upright: true, panels: vec![Panel::new(y).with(shapes)], hover };
    (!plot.hover.is_empty()).then_some((plot, legend))
}

/// How many statements are drawn: the table has them all.
const STATEMENTS: usize = 12;
/// How many columns of a statement are drawn.
const NAME: usize = 60;

/// The ratios of the statements that add most to a transaction or save most of it; `None` without two of them.
pub fn of_statements(lines: &[StatementLine], margin: f64) -> Option<Chart> {
    let size = |line: &StatementLine| line.effect.or(line.effect_us).unwrap_or_default().abs();
    let mut lines: Vec<&StatementLine> =
        lines.iter().filter(|line| line.is_sql() && line.ratio.is_some()).collect();
    lines.sort_by(|one, other| size(other).total_cmp(&size(one)));
    lines.truncate(STATEMENTS);
    let row = |line: &&StatementLine| ForestRow {
        name: cut(&one_line(&line.statement), NAME),
        ratio: [line.ratio, line.ratio_low, line.ratio_high],
        verdict: line.verdict.clone(),
    };
    let rows: Vec<ForestRow> = lines.iter().map(row).collect();
    let (plot, legend) = (rows.len() > 1).then(|| forest(&rows, margin)).flatten()?;
    Some(Chart {
        id: "plot-statements",
        title: "Statements, ratio of mean latencies",
        label: "Ratios of the statements' mean latencies with their intervals".to_owned(),
        caption: format!(
            "The latency of each statement on the second side / on the first, with intervals that hold together: to the \
             right of 1 it is slower. Shaded: the margin. At most {STATEMENTS}, those with the greatest effect first."
        ),
        legend,
        plot,
    })
}

/// Mean latencies of both, batch by batch; `None` of another run.
pub fn over_time(document: &Document) -> Option<Chart> {
    let duel = document.duel.as_ref()?;
    let times = times(duel)?;
    let curve = |ink, name, of_batch: fn(&DuelBatch) -> Option<f64>| {
        times.curve(ink, name, &duel.batches.iter().map(of_batch).collect::<Vec<_>>(), latency)
    };
    let arms: [Curve; 2] =
        [curve(BLUE, "a", |batch| batch.a_latency_avg_ms), curve(RED, "b", |batch| batch.b_latency_avg_ms)];
    let marks = Marks::of(document, &times.axis);
    let panel = marks.panel(axis_from_zero(&arms, 4)?).titled("ms");
    let panel = panel.with(arms.iter().flat_map(|arm| times.line(arm)));
    Some(Chart {
        id: "plot-arms",
        title: "Arms over time",
        label: "Mean latency of both arms over time".to_owned(),
        caption: "Mean latency in each batch: what the machine did meanwhile affects both arms.".to_owned(),
        legend: marks.legend(legend(&arms)),
        plot: times.plot(vec![panel], |columns| values(&arms, &columns)),
    })
}

/// When the batches were.
fn times(duel: &Duel) -> Option<Times> {
    let ends: Vec<f64> = duel.batches.iter().map(|batch| batch.elapsed).collect();
    let begins = [0.0].into_iter().chain(ends.iter().copied());
    Times::of(&Samples {
        elapsed: ends.iter().copied().map(Some).collect(),
        secs: ends.iter().zip(begins).map(|(end, begin)| Some(end - begin)).collect(),
        ..Samples::default()
    })
}

/// All latencies of both arms; `None` of another run.
pub fn latencies(document: &Document) -> Option<Chart> {
    let [a, b] = &document.duel.as_ref()?.latencies;
    of_sides("plot-arm-distributions", [("a", a), ("b", b)])
}
