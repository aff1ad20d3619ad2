//! The report of a sweep.

use bench_base::number::{MISSING, tps};
use bench_questions::index_worth::sentence as index_sentence;
use bench_questions::screen::sentence as screen_sentence;
use bench_results::sweep::SweepDocument;

use super::results::{Computed, is_completed, peak, results, rungs, scalability, variants};
use super::{content, plot};
use crate::formats::{Format, write};
use crate::report::{Conclusion, HeadlineFigure, Report};
use crate::sanitize::cut;
use crate::schema::schema_of;

/// How many columns the headline has for a variant's name.
const NAME: usize = 24;

/// Writes the report of a sweep.
pub fn render(document: &SweepDocument, format: Format) -> String {
    // The trials of a search are no rungs.
    let (results, scalability) = match document.sweep.search {
        Some(_) => (Vec::new(), Vec::new()),
        None => (results(document), scalability(document)),
    };
    let computed = Computed { document, results, scalability };
    write(&computed, || report(&computed), format)
}

/// Returns the JSON schema of a sweep's document.
pub fn schema() -> String {
    schema_of::<Computed>()
}

fn report<'a>(computed: &'a Computed) -> Report<'a> {
    let (document, sweep) = (computed.document, &computed.document.sweep);
    Report {
        subject: content::subject(sweep),
        workload: sweep.workload.clone(),
        status: &sweep.status,
        subtitle: content::subtitle(document),
        outcome: content::outcome(sweep),
        conclusion: conclusion(document),
        opening: content::opening_lines(document),
        closing: Vec::new(),
        headline: headline(computed),
        sparkline: Vec::new(),
        charts: Box::new(|| plot::charts(computed)),
        charts_note: None,
        findings: None,
        sections: content::sections(computed),
        extension_version: &sweep.extension_version,
        schema_version: document.schema_version,
    }
}

/// What was asked for, where the sweep is a search, a screen or a judgement on indexes.
fn conclusion(document: &SweepDocument) -> Option<Conclusion> {
    let indexes = (!document.indexes.is_empty()).then(|| index_sentence(&document.indexes));
    let answers = document.capacities.iter().map(content::sentence);
    let mut sentences = answers.chain(screen_sentence(&document.screen)).chain(indexes);
    Some(Conclusion {
        verdict: if document.capacities.is_empty() { "" } else { "sustained" }.to_owned(),
        sentence: sentences.next()?,
        remarks: sentences.collect(),
    })
}

/// The answer of a search, or the fastest of all; and how far the sweep came.
fn headline(computed: &Computed) -> Vec<HeadlineFigure> {
    let document = computed.document;
    let mut figures = if document.sweep.search.is_some() {
        let answer = document.capacities.first();
        let limited_by = answer.and_then(|answer| answer.limited_by).map_or(MISSING, |limit| limit.as_str());
        let operating = tps(answer.and_then(|answer| answer.operating_rate));
        vec![
            HeadlineFigure::new("sustained", tps(answer.and_then(|answer| answer.rate)), "tps").in_large(),
            HeadlineFigure::new("operating rate", operating, "tps").in_large(),
            HeadlineFigure::new("limited by", limited_by.to_owned(), ""),
        ]
    } else {
        let variants = variants(document);
        let peaks = variants.iter().filter_map(|variant| peak(&computed.results, variant));
        let best = peaks.reduce(|best, next| if next.tps_avg > best.tps_avg { next } else { best });
        let clients = best.map_or(MISSING.to_owned(), |best| best.clients.to_string());
        let at_clients = if rungs(document).len() > 1 { "at clients" } else { "clients" };
        let variant = best.map_or(MISSING.to_owned(), |best| cut(&content::label(&best.variant), NAME));
        let highest = tps(best.and_then(|best| best.tps_avg));
        let mut figures = vec![
            HeadlineFigure::new("highest throughput", highest, "tps").in_large(),
            HeadlineFigure::new(at_clients, clients, ""),
        ];
        if variants.len() > 1 {
            figures.push(HeadlineFigure::new("variant", variant, ""));
        }
        figures
    };
    let (completed, all) =
        (document.runs.iter().filter(|run| is_completed(run)).count(), document.runs.len());
    let runs = HeadlineFigure::new("runs completed", completed.to_string(), format!("of {all}"));
    figures.push(runs.bad_if(completed < all));
    figures
}
