//! What the report of a run says.

use bench_results::Document;

use super::duel::duel_sentence;
use super::latency_limit::LatencyLimit;
use super::machine::{environment, settings};
use super::section::Section;
use super::{database, duel, headline, machine, nodes, open_loop, orders, transactions};

/// What is looked for first, where there is such: whether the run kept its limit, or which arm of a duel is faster. The verdict,
/// with the sentence.
pub fn conclusion(document: &Document) -> Option<(String, String)> {
    if let Some(duel) = &document.duel {
        let verdict = duel.metric("latency_avg_ms").map(|line| line.verdict.clone()).unwrap_or_default();
        return Some((verdict, duel_sentence(duel)?));
    }
    let limit = LatencyLimit::of(document)?;
    let verdict = if limit.is_kept { "kept" } else { "missed" };
    Some((verdict.to_owned(), limit.sentence()))
}

/// All sections that have something to say.
pub fn sections(document: &Document) -> Vec<Section> {
    let all = [
        duel::metrics(document),
        duel::statements(document),
        duel::waits(document),
        transactions::latency(document),
        transactions::fidelity(document),
        orders::orders(document),
        transactions::connections(document),
        transactions::processor_time(document),
        open_loop::open_loop(document),
        nodes::nodes(document),
        transactions::waits(document),
        machine::server(document),
        transactions::statements(document),
        transactions::plans(document),
        transactions::scripts(document),
        database::sizes(document),
        database::changes(document),
        database::upkeep(document),
        database::events(document),
        transactions::errors(document),
        transactions::audit(document),
        headline::run(document),
        environment(&document.environment).with_note_if(asked(document)),
        settings(&document.environment).with_note_if(asked(document)),
    ];
    all.into_iter().filter(|section| !section.is_empty()).collect()
}

/// Whose environment it is, where there are others.
fn asked(document: &Document) -> Option<String> {
    (document.client_nodes() > 1).then(|| "On the node that started the run.".to_owned())
}
