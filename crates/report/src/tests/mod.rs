//! Tests of whole reports, on documents as they come from the server and on hostile ones.

pub mod example;
mod files;
pub mod hostile;
pub mod html;
pub mod markdown;
mod nodes;
mod open_loop;
pub mod text;

use bench_results::*;
use proptest::prelude::*;

use super::{Format, render};
use example::{believable, of_one_sample};
use hostile::{HOSTILE, hostile};
use nodes::on_three_nodes;

/// All formats that show a document.
pub const ALL: [Format; 4] = [Format::Text, Format::Markdown, Format::Json, Format::Html];

/// All kinds of documents that reports are tested with.
fn documents() -> [(&'static str, Document); 5] {
    [
        ("empty", Document::default()),
        ("one sample", of_one_sample()),
        ("believable", believable(90)),
        ("three nodes", on_three_nodes()),
        ("hostile", hostile()),
    ]
}

/// Whether a report shows a number that is none.
pub fn shows_no_number(report: &str) -> bool {
    let mut words = report.split(|c: char| !c.is_alphanumeric());
    words.any(|word| matches!(word, "NaN" | "inf" | "Infinity" | "infinity"))
}

#[test]
fn every_name_has_its_format() {
    let parsed: Vec<_> = Format::NAMES.iter().map(|name| Format::parse(name)).collect();
    let formats: Vec<_> = ALL.into_iter().chain([Format::Schema]).map(Some).collect();
    assert_eq!(parsed, formats);
    assert_eq!(Format::parse("HTML"), None);
    assert_eq!(Format::parse(""), None);
}

#[test]
fn json_is_the_document() {
    for (name, document) in documents().into_iter().take(4) {
        let json = render(&document, Format::Json);
        assert_eq!(serde_json::from_str::<Document>(&json).unwrap(), document, "{name}");
    }
    let hostile: serde_json::Value = serde_json::from_str(&render(&hostile(), Format::Json)).unwrap();
    assert_eq!(hostile["run"]["role"], HOSTILE);
    assert!(!render(&self::hostile::hostile(), Format::Json).contains(['<', '>', '&', '\u{202e}']));
    assert_eq!(hostile["summary"]["tps"], serde_json::Value::Null);
}

#[test]
fn what_is_no_number_is_not_shown() {
    for (name, document) in documents() {
        for format in ALL {
            assert!(!shows_no_number(&render(&document, format)), "{name} as {format:?}");
        }
    }
}

#[test]
fn a_far_percentile_is_shown_only_where_it_is_known() {
    let mut document = believable(90);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(render(&document, format).contains("p99.9"), "{format:?}");
    }
    document.summary.latency_p999_ms = None;
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(!render(&document, format).contains("p99.9"), "{format:?}");
    }
}

#[test]
fn processor_time_is_shown_only_where_it_is_known() {
    let mut document = believable(90);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(render(&document, format).contains("231.5 µs"), "{format:?}");
    }
    for unknown in [None, Some(f64::NAN)] {
        document.summary.server_cpu_us = unknown;
        for format in [Format::Text, Format::Markdown, Format::Html] {
            assert!(!render(&document, format).contains("Processor time"), "{format:?}");
        }
    }
}

#[test]
fn what_is_known_is_in_every_report() {
    let mut document = believable(90);
    document.scripts = (0..128)
        .map(|script| ScriptSummary {
            script,
            workload: format!("part{script}"),
            weight: 1,
            ..ScriptSummary::default()
        })
        .collect();
    let known = [
        "tpcb-like",
        "part127",
        "bench_accounts",
        "deadlock detected",
        "xact_commit",
        "EPYC",
        "lz4",
        "autovacuum",
        "9c27b7d",
        "IO:WALSync",
        "full-page images",
        "SELECT balance",
        "Raise",
        "412 µs",
    ];
    for format in [Format::Text, Format::Markdown, Format::Html] {
        // Markdown has backslashes, and the text breaks lines.
        let report = render(&document, format).replace('\\', "");
        for known in known {
            assert!(report.contains(known), "{known} as {format:?}");
        }
        // A finding's figures are in its sentence: beside it only where there is room.
        assert_eq!(report.contains("8,123"), format != Format::Text, "{format:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_series_panics(
        lengths in proptest::collection::vec(0..6usize, Samples::COLUMNS.len()),
        values in proptest::collection::vec(proptest::option::of(any::<f64>()), 1..20),
        begins in proptest::collection::vec((any::<f64>(), proptest::option::of(any::<f64>())), 0..4),
        counts in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<u64>()), 0..4),
    ) {
        let mut document = of_one_sample();
        for (column, length) in document.samples.columns_mut().into_iter().zip(lengths) {
            *column = (0..length).map(|index| values[(index * 7 + length) % values.len()]).collect();
        }
        document.events = begins
            .into_iter()
            .map(|(started, ended)| Event { kind: "checkpoint".to_owned(), started, ended, ..Event::default() })
            .collect();
        document.latencies =
            counts.into_iter().map(|(low_ms, high_ms, count)| Bucket { low_ms, high_ms, count }).collect();
        for format in ALL {
            prop_assert!(!shows_no_number(&render(&document, format)));
        }
    }
}
