//! What changes are worth: the effects of the settings of a screen, as a table and a chart, and of indexes.

use bench_base::number::{MISSING, bytes, finite, fixed};
use bench_results::experiment::{ExperimentDocument, IndexLine, ScreenLine};

use crate::experiment::sides::percentage;
use crate::plot::axis::Axis;
use crate::plot::chart::{Chart, GREEN, Hover, INDIGO, Panel, Plot, RED};
use crate::plot::forest::{ForestRow, forest};
use crate::report::HeadlineFigure;
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
    let note =
        format!("Change of {metric} from one value to the other; the intervals hold together with 95 %.");
    Section::of_table("screen", "Settings", table).with_note(note)
}

/// How many columns a setting's or an index's name may take.
const NAME: usize = 60;

fn forest_row(line: &ScreenLine) -> ForestRow {
    let ratio = |effect: Option<f64>| effect.map(|effect| 1.0 + effect);
    ForestRow {
        name: cut(&one_line(&format!("{}: {} → {}", line.factor, line.a, line.b)), NAME),
        ratio: [line.effect, line.effect_low, line.effect_high].map(ratio),
        verdict: line.verdict.clone(),
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

/// How many lines have each of some verdicts, as figures.
fn counts<'a>(
    verdicts: impl Iterator<Item = &'a str> + Clone,
    named: &[(&'static str, &[&str])],
) -> Vec<HeadlineFigure> {
    let figure = |(name, of): &(&'static str, &[&str])| {
        let count = verdicts.clone().filter(|verdict| of.contains(verdict)).count();
        HeadlineFigure::new(name, count.to_string(), "")
    };
    named.iter().map(figure).collect()
}

/// How many settings or indexes have which verdict; nothing where neither is judged.
pub fn headline(document: &ExperimentDocument) -> Vec<HeadlineFigure> {
    let (screen, indexes) = (&document.screen, &document.indexes);
    let settings: [(_, &[&str]); 4] = [
        ("settings that matter", &["faster", "slower"]),
        ("make no difference", &["same"]),
        ("not decided", &["inconclusive"]),
        ("fail", &["fails"]),
    ];
    let worths: [(_, &[&str]); 5] = [
        ("indexes that earn", &["earns"]),
        ("cost", &["costs"]),
        ("make no difference", &["same"]),
        ("not decided", &["inconclusive"]),
        ("not measured", &["not measured"]),
    ];
    match (screen.is_empty(), indexes.is_empty()) {
        (false, _) => counts(screen.iter().map(|line| line.verdict.as_str()), &settings),
        (_, false) => counts(indexes.iter().map(|line| line.verdict.as_str()), &worths),
        _ => Vec::new(),
    }
}

/// The settings or the indexes that are judged, in a line.
pub fn compared(document: &ExperimentDocument) -> Vec<(String, String)> {
    let settings = document.screen.iter().map(|line| format!("{}: {} → {}", line.factor, line.a, line.b));
    let indexes = document.indexes.iter().map(|line| cut(&one_line(&line.index), NAME));
    let (settings, indexes): (Vec<_>, Vec<_>) = (settings.collect(), indexes.collect());
    let listed = [("settings", settings.join("; ")), ("indexes", indexes.join(", "))];
    let listed = listed.into_iter().filter(|(_, list)| !list.is_empty());
    listed.map(|(name, list)| (name.to_owned(), list)).collect()
}

/// Half the height of a bar, of a row.
const HALF_BAR: f64 = 0.13;
/// The middle of a bar, below its name.
const BAR: f64 = 0.2;

/// What each index saves, to the right, and what it costs, to the left; `None` without any figure.
pub fn index_chart(lines: &[IndexLine]) -> Option<Chart> {
    let y = Axis::of_names(
        lines.iter().rev().map(|line| cut(&one_line(&format!("{}: {}", line.verdict, line.index)), NAME)),
    );
    let mut shapes = vec![INDIGO.line(vec![(0.0, y.low), (0.0, y.high)], 2)];
    let (mut ends, mut hover) = (Vec::new(), Vec::new());
    for (place, line) in (1..).map(f64::from).zip(lines.iter().rev()) {
        let saved = [line.saved_us, line.saved_low, line.saved_high];
        let cost = [line.cost_us, line.cost_high, line.cost_low].map(|us| us.map(|us| -us));
        for (ink, [us, low, high]) in [(GREEN, saved), (RED, cost)] {
            let Some(us) = finite(us) else { continue };
            let at = place - BAR;
            shapes.push(ink.rectangle((0.0, at + HALF_BAR), (us, at - HALF_BAR)).faint(0.6));
            let interval = finite(low).zip(finite(high));
            shapes.extend(interval.map(|(low, high)| ink.line(vec![(low, at), (high, at)], 4)));
            ends.extend([Some(us), finite(low), finite(high)].into_iter().flatten());
            let word = if ink == GREEN { "saves" } else { "costs" };
            hover.push(Hover::Around(
                (us, at),
                format!("{}\n{word} {} µs", line.index, fixed(Some(us.abs()), 1)),
            ));
        }
    }
    let end = |choose: fn(f64, f64) -> f64| ends.iter().copied().fold(0.0, choose);
    let x = Axis::around_zero(end(f64::min) * 1.05, end(f64::max) * 1.05, 6);
    let plot = Plot { x, is_upright: true, panels: vec![Panel::new(y).with(shapes)], hover };
    (!ends.is_empty()).then(|| Chart {
        id: "plot-indexes",
        title: "Saved and spent, µs of a transaction",
        label: "Microseconds that indexes save and cost a transaction".to_owned(),
        caption: "To the right what a transaction would take longer without the index, to the left what its \
                  maintenance takes, each with its interval."
            .to_owned(),
        legend: vec![(GREEN, "saves".to_owned()), (RED, "costs".to_owned())],
        plot,
    })
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
    let note = "Microseconds of a transaction: what it would take longer if the planner did not see the index, and what it \
                takes longer because the index is maintained. The intervals hold together with 95 %.";
    Section::of_table("indexes", "What indexes are worth", table).with_note(note)
}
