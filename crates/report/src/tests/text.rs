//! The report for a terminal, and that in Markdown.

use crate::formats::Format;
use crate::run::render;
use crate::sanitize::width;
use crate::tests::documents;
use crate::tests::example::{HOSTILE, believable, hostile};

/// Whether a text is harmless and no line of it is too wide.
pub fn check_lines(name: &str, text: &str) {
    for line in text.lines() {
        assert!(width(line) <= 100, "{name}: {} columns in {line:?}", width(line));
        assert!(name == "hostile" || line == line.trim_end(), "{name}: {line:?}");
        assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{name}: {line:?}");
    }
    assert!(text.ends_with('\n'));
    assert!(!text.contains(HOSTILE));
    for tag in ["<script", "</script", "</style", "</td"] {
        assert!(!text.contains(tag), "{name}: {tag}");
    }
}

#[test]
fn no_line_is_too_wide_and_none_holds_controls() {
    for (name, document) in documents() {
        check_lines(name, &render(&document, Format::Text));
    }
}

#[test]
fn the_closing_notice_is_its_begin() {
    let mut document = believable(90);
    document.run.rate = Some(12_000.0);
    document.run.latency_limit = Some(50.0);
    let summary = &mut document.summary;
    (summary.transactions, summary.failed, summary.skipped, summary.late) = (90_000, 10_000, 25_000, 900);
    summary.aborted = Some(3);
    (summary.lag_avg_ms, summary.lag_max_ms, summary.backlog) = (Some(1.25), Some(340.5), Some(77));
    (summary.latency_avg_ms, summary.latency_p95_ms) = (Some(1.5), None);
    (summary.tps, summary.tps_min, summary.tps_max) = (Some(1_000.04), Some(900.0), Some(1_100.0));
    (summary.latency_p99_ms, summary.latency_max_ms) = (Some(7.0), Some(2_000.5));
    let text = render(&document, Format::Text);
    let begin = "run 42: tpcb-like with 16 clients, 90 s, seed 5489213\n\
                 number of transactions actually processed: 90000\n\
                 number of failed transactions: 10000 (10.000%)\n\
                 number of aborted clients: 3\n\
                 latency average = 1.500 ms, stddev = 1.731 ms\n\
                 latency p95 = - ms, p99 = 7.000 ms, max = 2000.500 ms\n\
                 tps = 1000.0 (samples: min 900.0, max 1100.0, stddev 1184.2)\n\
                 rate limit: 12000 tps, schedule lag: avg 1.250 ms, max 340.500 ms\n\
                 fell behind: 77 transactions were due but not started at the end\n\
                 number of transactions above the 50 ms latency limit: 900/90000 (1.000%), skipped: 25000 (20.000%)\n";
    assert!(text.starts_with(begin), "{}", text.lines().take(12).collect::<Vec<_>>().join("\n"));
    let limit = "Latency limit of 50 ms missed: 35,900 of 125,000 transactions (28.7 %) were late, skipped or failed, \
                 1.0 % may be.";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(limit), "{text}");
    for format in [Format::Markdown, Format::Html] {
        assert!(render(&document, format).contains(limit), "{format:?}");
    }
    (document.summary.failed, document.summary.skipped) = (0, 0);
    assert!(render(&document, Format::Text).contains("\nLatency limit of 50 ms kept: 900 of 90,000 "));
    document.run.clients = 1;
    assert!(render(&document, Format::Text).starts_with("run 42: tpcb-like with 1 client, 90 s, "));
}

#[test]
fn a_failure_is_told() {
    let mut document = believable(0);
    document.run.status = "failed".to_owned();
    document.run.error =
        Some(serde_json::json!({"message": "no client came up", "detail": "too many sessions"}));
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(
            render(&document, format).contains("failed: no client came up (too many sessions)"),
            "{format:?}"
        );
    }
}

#[test]
fn numbers_too_wide_for_a_table_are_listed() {
    let mut document = believable(90);
    for script in 0..2 {
        document.scripts.push(bench_results::ScriptSummary {
            script,
            workload: "wide".to_owned(),
            transactions: u64::MAX,
            failed: u64::MAX,
            retried: u64::MAX,
            late: u64::MAX,
            ..Default::default()
        });
    }
    let text = render(&document, Format::Text);
    // No digit of a number is ever cut off.
    assert_eq!(text.matches("18,446,744,073,709,551,615").count(), 8);
    assert!(text.contains("    workload: wide\n"));
}

#[test]
fn a_warm_up_until_throughput_was_steady_is_told() {
    let told = |warmup, took: Option<f64>, status: &str| {
        let mut document = believable(20);
        (document.run.warmup, document.run.warmup_took) = (warmup, took);
        document.run.status = status.to_owned();
        let report = render(&document, Format::Text);
        let line = report.lines().find(|line| line.trim_start().starts_with("warm-up:"));
        line.map(|line| line.trim().to_owned())
    };
    let of = |text: &str| Some(format!("warm-up: {text}"));
    assert_eq!(told(None, Some(7.25), "completed"), of("7.3 s, until throughput was steady"));
    assert_eq!(told(None, Some(300.0), "completed"), of("5 min, throughput was not steady by then"));
    assert_eq!(told(None, Some(4.0), "canceled"), of("4 s"));
    assert_eq!(told(None, None, "running"), of("until throughput is steady"));
    assert_eq!(told(Some(30.0), Some(30.0), "completed"), of("30 s"));
    assert_eq!(told(Some(0.0), Some(0.0), "completed"), None);
}

#[test]
fn a_canceled_run_says_how_long_it_was() {
    let told = |secs: Option<f64>, measured: Option<f64>, status: &str| {
        let mut document = believable(20);
        (document.run.secs, document.run.transactions, document.summary.secs) = (secs, None, measured);
        document.run.status = status.to_owned();
        let report = render(&document, Format::Text);
        let line = report.lines().find_map(|line| line.trim_start().strip_prefix("measured:"));
        line.expect("a line").trim().to_owned()
    };
    assert_eq!(told(Some(15.0), Some(6.23), "canceled"), "6.2 of 15 s");
    assert_eq!(told(Some(15.0), Some(15.001), "canceled"), "15 s");
    assert_eq!(told(Some(15.0), Some(6.23), "completed"), "15 s");
    assert_eq!(told(Some(15.0), None, "canceled"), "15 s");
    assert_eq!(told(None, Some(6.23), "canceled"), "until it was stopped");
}

/// The cells of a table's line, as GitHub takes it apart: at bars without a backslash before them.
fn cells(line: &str) -> usize {
    let bars = line.char_indices().filter(|(at, c)| *c == '|' && !line[..*at].ends_with('\\'));
    bars.count() - 1
}

/// The lines that are not in a block of code.
fn prose(markdown: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut prose = Vec::new();
    for line in markdown.lines() {
        let quotes = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            None if quotes.len() >= 3 && quotes.len() == line.len() => fence = Some(quotes),
            None => prose.push(line),
            Some(open) if line == open => fence = None,
            Some(_) => {}
        }
    }
    assert_eq!(fence, None, "a block of code is not closed");
    prose
}

/// Whether there are tables and all rows of each have as many cells.
pub fn check_tables(name: &str, markdown: &str) {
    let mut tables = 0;
    for table in prose(markdown).chunk_by(|one, next| one.starts_with('|') == next.starts_with('|')) {
        if table[0].starts_with('|') {
            tables += 1;
            assert!(table.len() > 2 && table[1].contains("---"), "{name}: {}", table[0]);
            for row in table {
                assert_eq!(cells(row), cells(table[0]), "{name}: {row}");
                assert!(row.ends_with('|'), "{name}: {row}");
            }
        }
    }
    assert!(tables > 0, "{name}");
}

#[test]
fn all_rows_of_a_table_have_as_many_cells() {
    for (name, document) in documents() {
        let markdown = render(&document, Format::Markdown);
        assert!(markdown.starts_with("# "), "{name}");
        check_tables(name, &markdown);
    }
}

#[test]
fn input_stays_text() {
    check_input(&render(&hostile(), Format::Markdown));
}

/// Whether hostile input is but text.
pub fn check_input(markdown: &str) {
    let is_code = |line: &str| line.contains("` ");
    for line in prose(markdown).into_iter().filter(|line| !is_code(line)) {
        assert!(!line.contains("[x]("), "{line}");
    }
    // Not even in code: others render it, too.
    for tag in ["<script", "</script", "</style", "</td", "<!--"] {
        assert!(!markdown.contains(tag), "{tag}");
    }
    assert!(!markdown.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
}
