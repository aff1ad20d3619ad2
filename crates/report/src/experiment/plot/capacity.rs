//! A search for a capacity: latency over the rate that was offered, on a logarithmic axis.

use bench_base::number::tps;
use bench_results::experiment::ExperimentRun;
use bench_stats::robust::median;

use crate::content::latency;
use crate::experiment::content::{percentile_name, trials_of};
use crate::experiment::results::Experiment;
use crate::plot::Chart;
use crate::plot::axis::Axis;
use crate::plot::chart::{Hover, Panel, Plot};
use crate::plot::palette::CURVES;

/// The chart; `None` where no latency is known.
pub fn chart(experiment: &Experiment) -> Option<Chart> {
    let search = experiment.document.sweep.search.as_ref()?;
    let percentile = percentile_name(search.percentile);
    let mut trials: Vec<(f64, f64, &ExperimentRun)> = trials_of(&experiment.document)
        .filter_map(|run| Some((run.rate?, run.outcome.as_ref()?.latency_ms.filter(|ms| *ms > 0.0)?, run)))
        .collect();
    trials.sort_by(|one, other| one.0.total_cmp(&other.0));
    let limits = || search.latency_limits_ms.iter().copied().filter(|ms| *ms > 0.0);
    let known = || trials.iter().map(|(_, ms, _)| *ms).chain(limits());
    let y = Axis::of_latencies(known().reduce(f64::min)?, known().reduce(f64::max)?);
    let most = trials.last()?.0;
    let x = Axis::from_zero(most * 1.05, 6);
    let median_of = |trials: &[(f64, f64, &ExperimentRun)]| {
        let latencies: Vec<f64> = trials.iter().map(|(_, ms, _)| *ms).collect();
        Some((trials[0].0, median(&latencies)?))
    };
    let medians = trials.chunk_by(|one, other| one.0 == other.0).filter_map(median_of).collect();
    let [ink, ink_of_limits, ..] = CURVES;
    let panel = Panel::new(y)
        .with(limits().map(|limit| ink_of_limits.dashes(vec![(0.0, limit), (x.high, limit)])))
        .with([ink.line(medians, 3)])
        .with(trials.iter().map(|(rate, ms, _)| ink.dot((*rate, *ms), 6)));
    let hover = trials.iter().map(|(rate, ms, run)| {
        let done = tps(run.outcome.as_ref().map(|outcome| outcome.tps));
        let text = format!("{} tps offered, {done} done\n{percentile} {}", tps(Some(*rate)), latency(*ms));
        Hover::Around((*rate, *ms), text)
    });
    Some(Chart {
        id: "plot-capacity",
        title: "Latency by offered rate, tps",
        label: format!("Latency by offered rate: {percentile} of trials at up to {} tps", tps(Some(most))),
        caption: format!(
            "{percentile} of each trial from when transactions were due, with a line through the medians; dashed: the \
             limits. The axis of latency is logarithmic."
        ),
        legend: Vec::new(),
        plot: Plot { x, is_upright: true, hover: hover.collect(), panels: vec![panel] },
    })
}
