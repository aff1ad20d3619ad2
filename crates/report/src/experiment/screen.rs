//! What changes are worth: the effects of the settings of a screen, as a table and a chart, and of indexes.

use bench_base::number::{MISSING, bytes, finite, fixed};
use bench_questions::index_worth::sentence as index_sentence;
use bench_questions::screen::sentence as screen_sentence;
use bench_results::experiment::{ExperimentDocument, IndexLine, ScreenLine};

use crate::experiment::sides::percentage;
use crate::plot::chart::Chart;
use crate::plot::forest::{ForestRow, forest};
use crate::sanitize::{cut, one_line};
use crate::section::{ColumnKind, Section, Table};

/// A row for each setting, the largest effect first.
pub fn effects(document: &ExperimentDocument) -> Section {
    let change =
        |share: Option<f64>| finite(share).map_or(MISSING.to_owned(), |share| percentage(1.0 + share));
    let remark = |line: &ScreenLine| match (&line.error, &line.aliases) {
        (Some(error), _) => error.clone(),
        (None, Some(aliases)) => format!("not told from {aliases}"),
        (None, None) => String::new(),
    };
    let table = Table::of(&document.screen)
        .text("setting", |line| &line.factor)
        .text("from", |line| &line.a)
        .text("to", |line| &line.b)
        .number("effect", |line| change(line.effect))
        .number("low", |line| change(line.effect_low))
        .number("high", |line| change(line.effect_high))
        .text("verdict", |line| &line.verdict)
        .text("remark", remark)
        .table();
    let metric = document.screen.first().map_or(String::new(), |line| line.metric.clone());
    let said = screen_sentence(&document.screen).unwrap_or_default();
    let note = format!(
        "{said}. Change of {metric} from one value to the other; the intervals hold together with 95 %."
    );
    Section::of_table("screen", "Effects of settings", table).with_note(note)
}

/// How many columns a setting's name may take.
const NAME: usize = 24;

fn forest_row(line: &ScreenLine) -> ForestRow<'_> {
    let ratio = |effect: Option<f64>| effect.map(|effect| 1.0 + effect);
    ForestRow {
        name: cut(&one_line(&line.factor), NAME),
        ratio: [line.effect, line.effect_low, line.effect_high].map(ratio),
        verdict: &line.verdict,
    }
}

/// The chart; `None` without any effect.
pub fn screen_chart(lines: &[ScreenLine]) -> Option<Chart> {
    let rows: Vec<ForestRow> = lines.iter().map(forest_row).collect();
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

/// A row for each index, the one that earns most first.
pub fn indexes(document: &ExperimentDocument) -> Section {
    let us = |value: Option<f64>| finite(value).map_or(MISSING.to_owned(), |value| fixed(Some(value), 1));
    let runs = |line: &IndexLine| {
        let runs = [line.reads_run_id, line.writes_run_id].into_iter().flatten();
        runs.map(|run| run.to_string()).collect::<Vec<_>>().join(", ")
    };
    let table = Table::of(&document.indexes)
        .text("index", |line| &line.index)
        .number("size", |line| bytes(line.bytes.map(|bytes| bytes as f64)))
        .number("saves µs", |line| us(line.saved_us))
        .number("low", |line| us(line.saved_low))
        .number("high", |line| us(line.saved_high))
        .number("costs µs", |line| us(line.cost_us))
        .number("low", |line| us(line.cost_low))
        .number("high", |line| us(line.cost_high))
        .text("verdict", |line| &line.verdict)
        .column("runs", ColumnKind::Runs, runs)
        .text("remark", |line| line.error.as_deref().unwrap_or_default())
        .table();
    let note = format!(
        "{}. Microseconds of a transaction: what it would take longer if the planner did not see the index, and what it takes \
         longer because the index is maintained. The intervals hold together with 95 %.",
        index_sentence(&document.indexes)
    );
    Section::of_table("indexes", "What indexes are worth", table).with_note(note)
}
