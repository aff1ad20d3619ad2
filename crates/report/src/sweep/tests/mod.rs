//! Tests of whole reports of sweeps.

mod example;
mod figures;
mod files;
mod hostile;
mod laws;
mod pages;
mod searches;
mod words;

use bench_results::sweep::SweepDocument;

use super::render;
use crate::Format;
use example::{by_setting, ladder, small};
use hostile::hostile;

/// All kinds of documents that reports are tested with.
fn documents() -> [(&'static str, SweepDocument); 6] {
    [
        ("empty", SweepDocument::default()),
        ("small", small()),
        ("ladder", ladder()),
        ("by setting", by_setting()),
        ("hostile", hostile()),
        ("search", searches::searched()),
    ]
}
