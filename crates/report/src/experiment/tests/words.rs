//! What reports say.

use bench_results::experiment::{AppliedSql, Variant};
use serde_json::{Value, json};

use super::*;

#[test]
fn the_text_is_as_expected() {
    let text = render(&small(), Format::Text);
    assert_eq!(text, include_str!("small.txt"), "{text}");
}

#[test]
fn the_table_of_two_variants_is_one() {
    let text = render(&small(), Format::Text);
    assert!(text.contains("  clients  off avg     min     max  on avg    min    max  on / off\n"), "{text}");
    let markdown = render(&small(), Format::Markdown);
    assert!(
        markdown.contains("| clients | off avg | min | max | on avg | min | max | on / off |\n"),
        "{markdown}"
    );
    assert!(markdown.contains("| 16 | 16,500 | 16,000 | 17,000 | 4,050 | 4,000 | 4,100 | 0.245 |\n"));
}

#[test]
fn a_table_too_wide_for_a_line_is_one_for_each_variant() {
    let mut document = small();
    let long = "synchronous_commit_waits_for_the_standby".to_owned();
    document.sweep.variants[1].name.clone_from(&long);
    for run in document.runs.iter_mut().filter(|run| run.variant == "on") {
        run.variant.clone_from(&long);
    }
    let text = render(&document, Format::Text);
    assert!(!text.contains("off avg"), "{text}");
    assert!(text.contains("  off\n  clients     avg     min     max\n        8   9,250"), "{text}");
    let second = format!("\n\n  {long}\n  clients    avg    min    max  ratio\n        8  2,100");
    assert!(text.contains(&second), "{text}");
    assert!(render(&document, Format::Markdown).contains("| off avg |"));
}

#[test]
fn a_single_rung_is_shown_by_variant() {
    let text = render(&by_setting(), Format::Text);
    assert!(
        text.contains("  variant  clients     avg     min     max  ratio\n  off           64  40,000"),
        "{text}"
    );
    assert!(text.contains("  on            64  25,000  20,000  27,500  0.625\n"), "{text}");
    assert!(text.contains("of its intervals. The ratio"), "{text}");
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("variant's. One run of each is no evidence of a difference: use rounds => 5 or more.")
    );
    for absent in ["Highest throughput", "Scalability"] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn without_variants_nothing_is_said_of_them() {
    let document = ladder();
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = render(&document, format);
        let body = report.split_once("</style>").map_or(&*report, |(_, body)| body);
        assert!(!body.to_lowercase().contains("variant") && !body.contains("unnamed"), "{format:?}: {body}");
    }
    let text = render(&document, Format::Text);
    assert!(text.contains("  clients    avg    min     max\n        1  1,010"), "{text}");
    assert!(text.contains("  measured: 9,267 tps at 24 clients\n"), "{text}");
    assert!(text.contains("clients at the peak"), "{text}");
}

#[test]
fn a_sweep_that_did_not_complete_says_why_and_how_to_go_on() {
    let mut document = small();
    document.sweep.status = "canceled".to_owned();
    document.sweep.error = Some(json!({"message": "the sweep was stopped", "hint": null}));
    let expected = "canceled: the sweep was stopped. SELECT bench.resume_sweep(7) continues it.";
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = render(&document, format).replace('\\', "");
        assert!(report.contains(expected), "{format:?}: {report}");
        assert!(report.contains("11 of 12 runs completed"), "{format:?}: {report}");
        assert!(report.contains("no client came up"), "{format:?}");
    }
    document.sweep.error = Some(json!({"message": "no ".repeat(5_000)}));
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(render(&document, format).replace('\\', "").contains("resume_sweep(7)"), "{format:?}");
    }
    for (status, is_resumed) in
        [("running", false), ("starting", false), ("crashed", true), ("completed", false)]
    {
        document.sweep.status = status.to_owned();
        document.sweep.error = None;
        assert_eq!(render(&document, Format::Text).contains("resume_sweep"), is_resumed, "{status}");
    }
}

#[test]
fn runs_that_are_missing_are_listed_up_to_a_limit() {
    let mut document = small();
    for run in &mut document.runs {
        (run.run_id, run.status, run.error) = (None, None, None);
    }
    let text = render(&document, Format::Text);
    assert_eq!(text.matches("not run\n").count(), 12, "{text}");
    assert!(text.contains("0 of 12 runs completed"), "{text}");
    document.runs = std::iter::repeat_n(document.runs, 100).flatten().collect();
    let text = render(&document, Format::Text);
    assert_eq!(text.matches("not run\n").count(), 60);
    assert!(text.contains("1,140 more are in the JSON"), "{text}");
}

#[test]
fn a_variant_s_changes_are_told() {
    let mut document = small();
    document.sweep.variants.push(Variant {
        name: "large".to_owned(),
        load: json!({"rows": 100_000_000}).as_object().cloned().unwrap_or_default(),
        system: json!({"full_page_writes": "off"}).as_object().cloned().unwrap_or_default(),
        run: json!({"driver": "wire"}).as_object().cloned().unwrap_or_default(),
        sql: Some(AppliedSql { apply: vec!["VACUUM".to_owned()], revert: vec!["VACUUM".to_owned()] }),
        ..Variant::default()
    });
    document.sweep.variants.push(Variant { name: "as is".to_owned(), ..Variant::default() });
    let text = render(&document, Format::Text);
    for line in [
        "  off: settings: synchronous_commit = off\n",
        "  large: run: driver = wire; load: rows = 100000000; server: full_page_writes = off; sql: VACUUM\n",
        "  as is: nothing\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn json_is_the_document_and_what_is_computed_of_it() {
    for (name, document) in documents().into_iter().take(4) {
        let json = render(&document, Format::Json);
        assert_eq!(serde_json::from_str::<ExperimentDocument>(&json).unwrap(), document, "{name}");
    }
    let json: Value = serde_json::from_str(&render(&small(), Format::Json)).unwrap();
    assert_eq!(json["results"][1]["variant"], "off");
    assert_eq!(json["results"][1]["tps_avg"], 16_500.0);
    assert_eq!(json["results"][1]["range_of"], "runs");
    assert_eq!(json["scalability"][0]["verdict"], "not enough rungs");
}
