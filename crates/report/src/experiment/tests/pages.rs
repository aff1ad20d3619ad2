//! The page's plots.

use super::*;
use crate::tests::html::{plot_ids, tags};

/// How many elements of a kind a page has.
fn count(page: &str, element: &str) -> usize {
    tags(page).iter().filter(|(tag, _)| tag == element).count()
}

#[test]
fn what_is_known_is_plotted() {
    for (document, circles, bars) in [
        // A dot for each mean, two for each latency.
        (small(), 6 + 12, 0),
        (ladder(), 9 + 18, 0),
        (by_setting(), 6, 3),
    ] {
        let page = render(&document, Format::Html);
        assert_eq!(plot_ids(&page), ["plot-throughput", "plot-latency"]);
        // Over each mean and each latency there is an area with its value.
        let titled = page.matches("<title>").count() - 1;
        assert_eq!(count(&page, "circle") + bars, titled);
        assert_eq!((count(&page, "circle"), count(&page, "rect") - titled), (circles, bars));
    }
}

#[test]
fn the_law_is_drawn_where_it_fits() {
    let dashes =
        |document: &ExperimentDocument| render(document, Format::Html).matches("stroke-dasharray").count();
    let mut document = ladder();
    assert_eq!(dashes(&document), 1);
    assert!(render(&document, Format::Html).contains("Dashed"));
    // Three rungs are too few for it.
    document.runs.truncate(3);
    assert!(!render(&document, Format::Html).contains("Dashed"));
    assert_eq!(dashes(&document), 0);
}

#[test]
fn what_is_not_known_is_not_plotted() {
    let mut document = small();
    for run in &mut document.runs {
        (run.latency_avg_ms, run.latency_p99_ms) = (None, None);
    }
    assert_eq!(plot_ids(&render(&document, Format::Html)), ["plot-throughput"]);
    for run in &mut document.runs {
        run.status = Some("failed".to_owned());
    }
    assert_eq!(plot_ids(&render(&document, Format::Html)), Vec::<String>::new());
    let mut single = ladder();
    single.sweep.clients.truncate(1);
    single.runs.truncate(1);
    assert_eq!(plot_ids(&render(&single, Format::Html)), Vec::<String>::new());
}

#[test]
fn more_variants_than_colors_are_told() {
    let mut document = by_setting();
    for index in 0..9 {
        document.runs.push(example::run(1, &format!("more{index}"), 64, 1_000.0));
    }
    let page = render(&document, Format::Html);
    assert!(page.contains("The first 8 of 12 variants."));
    assert_eq!(count(&page, "rect"), 8 * 2 + 2 * 8);
    assert!(page.contains("<td>more8</td>"));
}

#[test]
fn points_have_their_values() {
    let page = render(&small(), Format::Html);
    assert!(page.contains("<title>off, 16 clients\n16,500 tps (16,000 to 17,000)</title>"));
    assert!(page.contains("<title>on, 32 clients\np99 29.1 ms</title>"));
}

#[test]
fn findings_lead_to_their_runs() {
    let page = render(&small(), Format::Html);
    assert!(page.contains("<a href=\"#run-102\">102</a>, <a href=\"#run-103\">103</a>"));
    assert!(page.contains("<td class=\"number\" id=\"run-107\">107</td>"));
    assert!(page.contains("<td>1 of 11</td>") && page.contains("<td>3 of 11</td>"));
    let text = render(&small(), Format::Text);
    let warning = text.lines().find(|line| line.trim_start().starts_with("warning")).unwrap();
    assert!(warning.contains("dip") && warning.contains("107"), "{warning}");
    assert!(!render(&ladder(), Format::Html).contains("id=\"findings\""));
}

#[test]
fn variants_ten_times_apart_have_a_logarithmic_axis() {
    let is_logarithmic =
        |document: &ExperimentDocument| render(document, Format::Html).contains("The axis is logarithmic.");
    let mut document = by_setting();
    assert!(!is_logarithmic(&document));
    document.runs[2].tps = Some(3_900.0);
    assert!(is_logarithmic(&document));
    // A ladder that rises tenfold has no variants that differ.
    assert!(!is_logarithmic(&ladder()) && !is_logarithmic(&small()));
    let mut rungs = small();
    rungs
        .runs
        .iter_mut()
        .filter(|run| run.variant == "on")
        .for_each(|run| run.tps = run.tps.map(|tps| tps / 9.0));
    assert!(is_logarithmic(&rungs));
    crate::tests::html::check_plots(&render(&rungs, Format::Html));
}
