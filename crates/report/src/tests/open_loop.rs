//! Reports of open loops.

use super::*;
use crate::tests::html::{check_page, check_plots, plot_ids};

/// A run at a rate of which it skipped most.
fn behind() -> Document {
    let mut document = believable(20);
    (document.run.rate, document.run.latency_limit) = (Some(500.0), Some(10.0));
    let summary = &mut document.summary;
    (summary.transactions, summary.failed, summary.skipped, summary.late) = (1_300, 0, 8_600, 130);
    (summary.backlog, summary.tps) = (Some(100), Some(65.0));
    (summary.lag_avg_ms, summary.lag_max_ms) = (Some(9.0), Some(40.0));
    let samples = &mut document.samples;
    samples.tps.fill(Some(65.0));
    samples.skipped.fill(Some(430.0));
    samples.lag_avg_ms.fill(Some(9.0));
    document.findings = bench_findings::findings(&document);
    document
}

/// A run that kept its rate.
fn in_time() -> Document {
    let mut document = behind();
    let summary = &mut document.summary;
    (summary.transactions, summary.skipped, summary.late) = (10_000, 0, 0);
    (summary.backlog, summary.tps) = (Some(0), Some(500.0));
    document.samples.skipped.fill(Some(0.0));
    document.samples.tps.fill(Some(500.0));
    document.findings = bench_findings::findings(&document);
    document
}

#[test]
fn a_run_that_skipped_most_is_not_just_completed() {
    let sentence = "completed, but fell behind its rate: 65.0 of 500.0 tps, 86.0 % of the transactions due skipped, 1.0 % of the \
         transactions due not started at the end";
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = render(&behind(), format);
        // The text breaks lines.
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(sentence), "{format:?}");
        assert!(!render(&in_time(), format).contains("fell behind its rate:"), "{format:?}");
    }
    let page = render(&behind(), Format::Html);
    assert!(page.contains("<span class=\"status bad\">completed</span>"));
    assert!(render(&in_time(), Format::Html).contains("<span class=\"status good\">completed</span>"));
    // What was asked for and what became of it is in the headline.
    let headline =
        page.split_once("<dl class=\"headline\">").and_then(|(_, rest)| rest.split_once("</dl>")).unwrap().0;
    for figure in [
        "<dt>achieved</dt><dd>65.0",
        "<dt>offered</dt><dd>500.0",
        "<dt>skipped</dt><dd>8,600<span class=\"unit\"> 86.0 %",
        "<dt>backlog</dt><dd>100",
        "<dt>late</dt><dd>130",
    ] {
        assert!(headline.contains(figure), "{figure} in {headline}");
    }
    let closed = render(&believable(20), Format::Html);
    assert!(closed.contains("<dt>throughput</dt>") && !closed.contains("<dt>offered</dt>"));
}

#[test]
fn an_open_loop_is_plotted() {
    let page = render(&behind(), Format::Html);
    check_page("open loop", &page);
    check_plots(&page);
    let ids = plot_ids(&page);
    assert_eq!(ids[..3], ["plot-tps", "plot-rate", "plot-lag"]);
    assert!(
        page.contains("</i>skipped</li>") && !render(&in_time(), Format::Html).contains("</i>skipped</li>")
    );
    assert!(!plot_ids(&render(&believable(20), Format::Html)).contains(&"plot-rate".to_owned()));
    let mut unknown = behind();
    unknown.samples.lag_avg_ms.fill(None);
    assert!(!plot_ids(&render(&unknown, Format::Html)).contains(&"plot-lag".to_owned()));
}
