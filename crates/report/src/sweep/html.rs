//! The report of a sweep as one page, in the frame and the style of a run's.

use bench_base::number::{MISSING, tps};
use bench_questions::index_worth::sentence as index_sentence;
use bench_questions::screen::sentence as screen_sentence;

use super::results::{Report, is_completed, peak, rungs, variants};
use super::{content, plot};
use crate::html::page;
use crate::html::page::{Conclusion, PageHead};
use crate::html::{PlanRows, write_figure, write_plots, write_section};
use crate::sanitize::cut;

/// How many columns the headline has for a variant's name.
const NAME: usize = 24;

/// Writes the report.
pub fn render(report: &Report) -> String {
    let (document, sweep) = (report.document, &report.document.sweep);
    let mut page = String::new();
    let mut sentences: Vec<String> = document.capacities.iter().map(content::sentence).collect();
    sentences.extend(screen_sentence(&document.screen));
    if !document.indexes.is_empty() {
        sentences.push(index_sentence(&document.indexes));
    }
    let head = PageHead {
        subject: content::subject(sweep),
        workload: &sweep.workload,
        status: &sweep.status,
        subtitle: content::subtitle(document),
        outcome: content::outcome(sweep),
        conclusion: sentences.first().map(|sentence| Conclusion {
            verdict: if document.capacities.is_empty() { "" } else { "sustained" },
            sentence,
            remarks: &sentences[1..],
        }),
    };
    page::open(&mut page, &head);
    write_headline(&mut page, report);
    let (figures, sections) = (plot::charts(report), content::sections(report));
    let parts: Vec<_> = sections.iter().map(|section| (section.id, section.title)).collect();
    page::write_contents(&mut page, &figures, &parts);
    write_plots(&mut page, &figures);
    page += "<div class=\"sections\">\n";
    for section in &sections {
        write_section(&mut page, section, &mut PlanRows::default());
    }
    page += "</div>\n";
    page::close(&mut page, &sweep.extension_version, document.schema_version);
    page
}

/// The fastest of all, and how far the sweep came.
fn write_headline(page: &mut String, report: &Report) {
    let document = report.document;
    let completed = document.runs.iter().filter(|run| is_completed(run)).count();
    let class = if completed < document.runs.len() { "bad" } else { "" };
    let unit = format!("of {}", document.runs.len());
    if document.sweep.search.is_some() {
        let answer = document.capacities.first();
        write_figure(page, "sustained", &tps(answer.and_then(|answer| answer.rate)), "tps", "tps");
        let operating = tps(answer.and_then(|answer| answer.operating_rate));
        write_figure(page, "operating rate", &operating, "tps", "tps");
        let limited_by = answer.and_then(|answer| answer.limited_by).map_or(MISSING, |limit| limit.as_str());
        write_figure(page, "limited by", limited_by, "", "");
        write_figure(page, "runs completed", &completed.to_string(), &unit, class);
        *page += "</dl>\n</header>\n";
        return;
    }
    let variants = variants(document);
    let peaks = variants.iter().filter_map(|variant| peak(&report.results, variant));
    let best = peaks.reduce(|best, next| if next.tps_avg > best.tps_avg { next } else { best });
    write_figure(page, "highest throughput", &tps(best.and_then(|best| best.tps_avg)), "tps", "tps");
    let clients = best.map_or(MISSING.to_owned(), |best| best.clients.to_string());
    write_figure(page, if rungs(document).len() > 1 { "at clients" } else { "clients" }, &clients, "", "");
    if variants.len() > 1 {
        let variant = best.map_or(MISSING.to_owned(), |best| cut(&content::label(&best.variant), NAME));
        write_figure(page, "variant", &variant, "", "");
    }
    write_figure(page, "runs completed", &completed.to_string(), &unit, class);
    *page += "</dl>\n</header>\n";
}
