//! Tests of whole reports of experiments.

mod compared_figures;
mod comparisons;
mod example;
mod figures;
mod files;
mod hostile;
mod laws;
mod pages;
mod searches;
mod words;

use bench_results::experiment::ExperimentDocument;

use super::*;
use crate::Format;
use example::{by_setting, ladder, small};
use hostile::hostile;

/// The report of a sweep.
fn render(document: &ExperimentDocument, format: Format) -> String {
    super::render(&Experiment::new(document.clone(), None), format)
}

/// All kinds of documents that reports are tested with.
fn documents() -> [(&'static str, ExperimentDocument); 6] {
    [
        ("empty", ExperimentDocument::default()),
        ("small", small()),
        ("ladder", ladder()),
        ("by setting", by_setting()),
        ("hostile", hostile()),
        ("search", searches::searched()),
    ]
}
