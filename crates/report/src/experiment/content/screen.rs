//! What a screen of settings has shown.

use bench_base::number::{MISSING, finite};
use bench_questions::screen::sentence;
use bench_results::experiment::ExperimentDocument;
use bench_results::screen::ScreenLine;

use crate::content::{Section, Table};
use crate::experiment::conclusion::percentage;

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
    let said = sentence(&document.screen).unwrap_or_default();
    let note = format!(
        "{said}. Change of {metric} from one value to the other; the intervals hold together with 95 %."
    );
    Section::of_table("screen", "Effects of settings", table).with_note(note)
}
