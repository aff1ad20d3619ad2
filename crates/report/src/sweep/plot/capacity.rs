//! A search for a capacity: latency over the rate that was offered, on a logarithmic axis.

use bench_base::number::{short_ms, tps};
use bench_results::sweep::SweepRun;
use bench_stats::robust::median;
use plotters::prelude::*;

use super::marks::{draw_dots, draw_line};
use crate::plot::Figure;
use crate::plot::axis::Axis;
use crate::plot::frame::{Chart, Panel, svg};
use crate::plot::hover::with_points;
use crate::plot::palette::CURVES;
use crate::sweep::content::{percentile_name, trials_of};
use crate::sweep::results::Report;

/// The plot; `None` where no latency is known.
pub fn figure(report: &Report) -> Option<Figure> {
    let search = report.document.sweep.search.as_ref()?;
    let mut trials: Vec<(f64, f64, &SweepRun)> = trials_of(report.document)
        .filter_map(|run| Some((run.rate?, run.outcome.as_ref()?.latency_ms.filter(|ms| *ms > 0.0)?, run)))
        .collect();
    trials.sort_by(|one, other| one.0.total_cmp(&other.0));
    let limits = || search.latency_limits_ms.iter().copied().filter(|ms| *ms > 0.0);
    let known = || trials.iter().map(|(_, ms, _)| *ms).chain(limits());
    let (low, high) = (known().reduce(f64::min)?, known().reduce(f64::max)?);
    let most = trials.last()?.0;
    let (x, y) = (Axis::from_zero(most * 1.05, 6), Axis::of_latencies(low, high));
    let medians: Vec<(f64, f64)> = trials
        .chunk_by(|one, other| one.0 == other.0)
        .filter_map(|of_rate| {
            let all: Vec<f64> = of_rate.iter().map(|(_, ms, _)| *ms).collect();
            Some((of_rate[0].0, median(&all)?.log10()))
        })
        .collect();
    let ink = CURVES[0];
    let draw = |chart: &mut Chart| {
        for limit in limits() {
            let line = vec![(0.0, limit.log10()), (x.high, limit.log10())];
            chart.draw_series(DashedLineSeries::new(line, 10, 8, CURVES[1].color().stroke_width(2)))?;
        }
        draw_line(chart, &medians, ink.color().stroke_width(3))?;
        let points: Vec<(f64, f64)> = trials.iter().map(|(rate, ms, _)| (*rate, ms.log10())).collect();
        draw_dots(chart, &points, 6, ink.color().filled())
    };
    let percentile = percentile_name(search.percentile);
    let name = format!("Latency by offered rate: {percentile} of trials at up to {} tps", tps(Some(most)));
    let svg = svg(&name, &x, true, &[Panel { title: None, y: y.clone(), draw: &draw }])?;
    let titled: Vec<(f64, f64, String)> = trials
        .iter()
        .map(|(rate, ms, run)| {
            let (value, unit) = short_ms(Some(*ms));
            let done = tps(run.outcome.as_ref().map(|outcome| outcome.tps));
            (
                *rate,
                ms.log10(),
                format!("{} tps offered, {done} done\n{percentile} {value} {unit}", tps(Some(*rate))),
            )
        })
        .collect();
    let caption = format!(
        "{percentile} of each trial from when transactions were due, with a line through the medians; dashed: the limits. \
         The axis of latency is logarithmic."
    );
    Some(Figure {
        id: "plot-capacity",
        title: "Latency by offered rate, tps",
        caption,
        legend: Vec::new(),
        svg: with_points(&svg, &x, &y, &titled),
    })
}
