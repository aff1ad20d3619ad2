//! What the report of a sweep says, apart from how it looks.

mod capacity;
mod headline;
mod indexes;
mod round_trip;
mod runs;
mod scalability;
mod screen;
mod setup;
mod tables;

use bench_results::sweep::SweepDocument;

pub use bench_base::sentence::counted;
pub use capacity::{percentile_name, sentence, telling, trials_of};
pub use headline::{opening_lines, outcome, subject, subtitle};
pub use runs::{FINDINGS, finding_lines};

use super::Report;
use super::results::variants;
use crate::content::{Section, Table, environment, settings};
use crate::sanitize::{cut, one_line};

/// How many columns a variant's name may take where it stands for the variant.
const NAME: usize = 60;

/// All sections that have something to say.
pub fn sections(report: &Report) -> Vec<Section> {
    let document = report.document;
    // The trials of a search are at rates of their own, and all with the same clients.
    let mut all = if document.sweep.search.is_some() {
        vec![capacity::answers(report), capacity::trials(report)]
    } else if !document.screen.is_empty() {
        vec![screen::effects(document)]
    } else if !document.indexes.is_empty() {
        vec![indexes::indexes(document)]
    } else {
        vec![
            tables::throughput(report),
            tables::peaks(report),
            tables::latency(report),
            scalability::scalability(report),
        ]
    };
    all.extend([
        runs::findings(document),
        runs::runs(document),
        tables::not_completed(document),
        setup::variants(document),
        setup::database_changes(document),
        setup::conditions(&document.sweep),
        environment(&document.environment).with_note(Some("On the first completed run.".to_owned())),
        settings(&document.environment),
    ]);
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

/// A variant's name where it stands for the variant.
pub fn label(variant: &str) -> String {
    match cut(&one_line(variant), NAME) {
        name if name.is_empty() => "unnamed".to_owned(),
        name => name,
    }
}

/// Takes the column of variants away where there are none.
fn without_variants(table: Table, document: &SweepDocument) -> Table {
    if variants(document) == [""] { table.without("variant") } else { table }
}
