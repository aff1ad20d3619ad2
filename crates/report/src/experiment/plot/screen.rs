//! The effects of settings, the largest above: a Pareto plot with intervals.

use bench_results::screen::ScreenLine;

use crate::plot::Chart;
use crate::plot::forest::{ForestRow, forest};
use crate::sanitize::{cut, one_line};

/// How many columns a setting's name may take.
const NAME: usize = 24;

fn row(line: &ScreenLine) -> ForestRow<'_> {
    let ratio = |effect: Option<f64>| effect.map(|effect| 1.0 + effect);
    ForestRow {
        name: cut(&one_line(&line.factor), NAME),
        ratio: [line.effect, line.effect_low, line.effect_high].map(ratio),
        verdict: &line.verdict,
    }
}

/// The chart; `None` without any effect.
pub fn chart(lines: &[ScreenLine]) -> Option<Chart> {
    let rows: Vec<ForestRow> = lines.iter().map(row).collect();
    let first = lines.first()?;
    let (plot, legend) = forest(&rows, first.margin)?;
    let metric = known(&first.metric);
    Some(Chart {
        id: "plot-screen",
        title: "Effects of settings",
        label: "Effects of settings with their intervals".to_owned(),
        caption: format!(
            "{metric} with the second value / with the first, and 95 % intervals that hold together. Shaded: the margin."
        ),
        legend,
        plot,
    })
}

fn known(metric: &str) -> &'static str {
    match metric {
        "latency_avg_ms" => "latency_avg_ms",
        "server_cpu_us" => "server_cpu_us",
        _ => "tps",
    }
}
