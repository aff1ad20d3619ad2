//! The two arms of a duel: their latencies over time, and the distributions of both.

use bench_results::{Document, Duel, DuelBatch, Samples};

use super::Chart;
use super::latency::of_sides;
use super::marks::Marks;
use super::palette::{BLUE, RED};
use super::times::{Curve, Times, axis_from_zero, legend, values};
use crate::content::latency;

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
