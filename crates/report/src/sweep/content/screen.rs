//! What a screen of settings has shown.

use bench_base::number::{MISSING, finite, fixed};
use bench_questions::screen::sentence;
use bench_results::screen::ScreenLine;
use bench_results::sweep::SweepDocument;

use crate::content::{Body, ColumnKind, Section, Table};

/// A row for each setting, the largest effect first.
pub fn effects(document: &SweepDocument) -> Section {
    let mut table = Table::new(&[
        ("setting", ColumnKind::Text),
        ("from", ColumnKind::Text),
        ("to", ColumnKind::Text),
        ("effect", ColumnKind::Number),
        ("low", ColumnKind::Number),
        ("high", ColumnKind::Number),
        ("verdict", ColumnKind::Text),
        ("remark", ColumnKind::Text),
    ]);
    let change = |share: Option<f64>| {
        finite(share).map_or(MISSING.to_owned(), |share| {
            let sign = if share > 0.0 { "+" } else { "" };
            format!("{sign}{} %", fixed(Some(share * 100.0), 1))
        })
    };
    let remark = |line: &ScreenLine| match (&line.error, &line.aliases) {
        (Some(error), _) => error.clone(),
        (None, Some(aliases)) => format!("not told from {aliases}"),
        (None, None) => String::new(),
    };
    for line in &document.screen {
        table.rows.push(vec![
            line.factor.clone(),
            line.a.clone(),
            line.b.clone(),
            change(line.effect),
            change(line.effect_low),
            change(line.effect_high),
            line.verdict.clone(),
            remark(line),
        ]);
    }
    let metric = document.screen.first().map_or(String::new(), |line| line.metric.clone());
    let said = sentence(&document.screen).unwrap_or_default();
    let note = format!(
        "{said}. Change of {metric} from one value to the other; the intervals hold together with 95 %."
    );
    Section { id: "screen", title: "Effects of settings", note: Some(note), body: Body::Table(table) }
}
