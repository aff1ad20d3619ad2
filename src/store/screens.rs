//! The runs of a sweep that screens settings.

use bench_base::error::{UserError, sqlstate};
use bench_questions::screen::{CombinedRun, ScreenMetric, ScreenRuns, above_limit, row_of, screen};
use bench_questions::sweep::{Question, SweepOptions};
use bench_results::experiment::{ExperimentRun, Screen, ScreenLine};

use super::duels::duel_batches;
use super::sweeps::{sweep_options, sweep_runs_of};
use super::visible;
use crate::shm::Work;

/// The effects of the settings that a sweep screens; `metric`: `None`: tps, or the latency of an open loop.
///
/// # Errors
/// 42704 and 42501 as of a sweep, 55000 for one that screens nothing.
pub fn screen_lines(
    sweep_id: i64,
    metric: Option<ScreenMetric>,
    margin: Option<f64>,
) -> Result<Vec<ScreenLine>, UserError> {
    visible(Work::Sweep(sweep_id))?;
    let options = sweep_options(sweep_id)?;
    let Some(Question::Screen(asked)) = &options.question else {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("sweep {sweep_id} does not screen settings"),
        )
        .hint("bench.screen and bench.start_screen make such sweeps."));
    };
    lines_of(sweep_id, asked, &options, metric, margin)
}

/// As [`screen_lines`], of a sweep that the caller may see.
pub(super) fn lines_of(
    sweep_id: i64,
    asked: &Screen,
    options: &SweepOptions,
    metric: Option<ScreenMetric>,
    margin: Option<f64>,
) -> Result<Vec<ScreenLine>, UserError> {
    let is_open_loop = options.setup.rate.is_some() || options.setup.run.contains_key("rates");
    let metric = metric.unwrap_or(if is_open_loop { ScreenMetric::Latency } else { ScreenMetric::Tps });
    let limit = options.setup.run.get("latency_limit").and_then(serde_json::Value::as_f64);
    let mut runs = ScreenRuns { latency_limit_ms: limit, ..ScreenRuns::default() };
    for run in sweep_runs_of(sweep_id)? {
        pgrx::check_for_interrupts!();
        let value = value_of(&run, metric, limit);
        match (row_of(&run.variant), value) {
            // Not run yet.
            (_, None) => {}
            (Some(row), Some(value)) => runs.combined.push(CombinedRun { row, round: run.round, value }),
            (None, Some(Err(error))) => runs.failed_duels.push((run.variant, error)),
            (None, Some(Ok(_))) => {
                let batches = run.run_id.map_or_else(|| Ok(Vec::new()), duel_batches)?;
                runs.duels.push((run.variant, batches));
            }
        }
    }
    Ok(screen(asked, &runs, metric, margin.unwrap_or(asked.margin)))
}

/// The metric of a run; why it does not count; `None`: it has not been made.
fn value_of(run: &ExperimentRun, metric: ScreenMetric, limit: Option<f64>) -> Option<Result<f64, String>> {
    if run.error.is_some() || run.status.as_deref() != Some("completed") {
        let is_over = !matches!(run.status.as_deref(), None | Some("starting" | "running"));
        let status = run.status.as_deref().filter(|_| is_over).map(|status| format!("the run is {status}"));
        return run.error.clone().or(status).map(Err);
    }
    // The arms of a duel are looked at one by one.
    let is_combination = row_of(&run.variant).is_some();
    if let Some((p99, limit)) =
        run.figures.latency_p99_ms.zip(limit).filter(|(p99, limit)| is_combination && p99 > limit)
    {
        return Some(Err(above_limit(&run.variant, p99, limit)));
    }
    let value = match metric {
        ScreenMetric::Tps => run.tps,
        ScreenMetric::Latency => run.figures.latency_avg_ms,
        ScreenMetric::Cpu => run.figures.server_cpu_us,
    };
    Some(value.ok_or_else(|| format!("the run has no {}", metric.as_str())))
}
