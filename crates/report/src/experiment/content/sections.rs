//! The sections of an experiment's report, in their order.

use super::{capacity, comparison, indexes, runs, scalability, screen, setup, tables};
use crate::content::{Section, environment, settings};
use crate::experiment::results::Experiment;
use crate::statements;

/// All sections that have something to say.
pub fn sections(experiment: &Experiment) -> Vec<Section> {
    let all = match &experiment.comparison {
        Some(sides) => vec![
            comparison::metrics(sides),
            statements::section(&sides.statements),
            comparison::waits(sides),
            comparison::differences(sides),
            runs::runs(experiment),
            comparison::plans(sides),
        ],
        None => of_sweep(experiment),
    };
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

fn of_sweep(experiment: &Experiment) -> Vec<Section> {
    let document = &experiment.document;
    // The trials of a search are at rates of their own, and all with the same clients.
    let mut all = if document.sweep.search.is_some() {
        vec![capacity::answers(experiment), capacity::trials(experiment)]
    } else if !document.screen.is_empty() {
        vec![screen::effects(document)]
    } else if !document.indexes.is_empty() {
        vec![indexes::indexes(document)]
    } else {
        vec![
            tables::throughput(experiment),
            tables::peaks(experiment),
            tables::latency(experiment),
            scalability::scalability(experiment),
        ]
    };
    all.extend([
        runs::findings(document),
        runs::runs(experiment),
        tables::not_completed(document),
        setup::variants(document),
        setup::database_changes(document),
        setup::conditions(&document.sweep),
        environment(&document.environment).with_note("On the first completed run."),
        settings(&document.environment),
    ]);
    all
}
