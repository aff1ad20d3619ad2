//! The sections of a sweep's computed, in their order.

use super::{capacity, indexes, runs, scalability, screen, setup, tables};
use crate::content::{Section, environment, settings};
use crate::sweep::results::Computed;

/// All sections that have something to say.
pub fn sections(computed: &Computed) -> Vec<Section> {
    let document = computed.document;
    // The trials of a search are at rates of their own, and all with the same clients.
    let mut all = if document.sweep.search.is_some() {
        vec![capacity::answers(computed), capacity::trials(computed)]
    } else if !document.screen.is_empty() {
        vec![screen::effects(document)]
    } else if !document.indexes.is_empty() {
        vec![indexes::indexes(document)]
    } else {
        vec![
            tables::throughput(computed),
            tables::peaks(computed),
            tables::latency(computed),
            scalability::scalability(computed),
        ]
    };
    all.extend([
        runs::findings(document),
        runs::runs(document),
        tables::not_completed(document),
        setup::variants(document),
        setup::database_changes(document),
        setup::conditions(&document.sweep),
        environment(&document.environment).with_note("On the first completed run."),
        settings(&document.environment),
    ]);
    all.into_iter().filter(|section| !section.is_empty()).collect()
}
