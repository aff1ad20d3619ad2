//! The effects of settings, the largest above: a Pareto plot with intervals.

use bench_results::screen::ScreenLine;

use crate::plot::Figure;
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

/// The plot; `None` without any effect.
pub fn figure(lines: &[ScreenLine]) -> Option<Figure> {
    let rows: Vec<ForestRow> = lines.iter().map(row).collect();
    let (svg, legend) = forest("Effects of settings with their intervals", &rows, lines.first()?.margin)?;
    let metric = lines.first().map_or("tps", |line| known(&line.metric));
    let caption = format!(
        "{metric} with the second value / with the first, and 95 % intervals that hold together. Shaded: the margin."
    );
    Some(Figure { id: "plot-screen", title: "Effects of settings", caption, legend, svg })
}

fn known(metric: &str) -> &'static str {
    match metric {
        "latency_avg_ms" => "latency_avg_ms",
        "server_cpu_us" => "server_cpu_us",
        _ => "tps",
    }
}
