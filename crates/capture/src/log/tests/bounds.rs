//! What a log may hold: each has a limit, and none takes more than a moment.

use bench_base::interrupts::testing::checks_during;

use crate::log::*;
use crate::statements::shared;

fn options() -> LogOptions {
    LogOptions::new("db".to_owned(), &serde_json::json!({})).expect("no options")
}

fn entry(session: &str, at_secs: f64, id: &str, message: &str) -> LogEntry {
    LogEntry {
        at_ms: at_secs * 1e3,
        database: "db".into(),
        session: session.into(),
        severity: "LOG".into(),
        virtual_transaction: id.into(),
        message: message.into(),
        ..LogEntry::default()
    }
}

fn statement(text: &str) -> String {
    format!("duration: 1.000 ms  statement: {text}")
}

fn captured(entries: impl IntoIterator<Item = LogEntry>) -> CapturedLog {
    let mut capture = LogCapture::new(options());
    entries.into_iter().for_each(|entry| capture.take(entry).expect("within the limits"));
    capture.finish().expect("within the limits")
}

fn reasons(captured: &CapturedLog) -> Vec<(&str, u64)> {
    captured.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.transactions)).collect()
}

/// Quadratic loops over half a million constants would take minutes.
#[test]
fn a_megabyte_of_constants_takes_a_moment() {
    let list = format!("SELECT 1 IN ({}1)", "1,".repeat(400_000));
    let entries = (0..2).map(|at| entry("s", f64::from(at), "3/0", &statement(&list)));
    let (captured, looks) = checks_during(|| captured(entries));
    assert_eq!(captured.shapes.len(), 1);
    assert_eq!(captured.shapes[0].transactions, 2);
    assert!(looks > 1000, "{looks} looks at interrupts");
    let places: Vec<u32> = (0..200_000).map(|place| place / 2).collect();
    let text: String = (1..=200_000).map(|number| format!("${number},")).collect();
    let (text, distinct) = shared(&text, &places).expect("shared");
    assert!(distinct.len() == 100_000 && text.ends_with("$100000,$100000,"));
}

/// Each of these has a list behind ORDER BY at a depth of its own, and ends them.
#[test]
fn lists_at_many_depths_are_told_apart() {
    let nested = format!("{}SELECT 1{}", "SELECT (".repeat(30_000), " ORDER BY 1, 2 LIMIT 5)".repeat(30_000));
    let found = captured([entry("s", 0.0, "3/0", &statement(&nested))]);
    assert_eq!(found.shapes.len(), 1);
    // Positions stay, and limits do not.
    let found = captured([entry(
        "s",
        0.0,
        "3/0",
        &statement("SELECT (SELECT 7 ORDER BY 1 LIMIT 5), 8 ORDER BY 2, (3), 4"),
    )]);
    assert_eq!(found.shapes[0].shown, "SELECT (SELECT $1 ORDER BY 1 LIMIT $2), $3 ORDER BY 2, ($4), 4");
}

/// Many texts that look like variables.
#[test]
fn a_prefix_is_found_at_once() {
    let texts: String = (0..1000).map(|length| format!(":p{}1 ", "_".repeat(length))).collect();
    let found = captured([entry("s", 0.0, "3/0", &statement(&format!("SELECT '{texts}' || a FROM t")))]);
    assert!(found.shapes[0].script.starts_with("SELECT '"), "a constant that never varies stays");
    let entries =
        ["1", "2"].map(|n| entry("s", 0.0, "3/0", &statement(&format!("SELECT $$ :p__ $$ || {n} || f(a)"))));
    assert_eq!(captured(entries).shapes[0].columns[0].name, "p___2");
}

#[test]
fn long_messages_are_listed() {
    let long = format!("SELECT 'secret{}'", "x".repeat(2 << 20));
    let found = captured([entry("s", 0.0, "3/0", &statement(&long))]);
    assert_eq!(reasons(&found), [("a message with more than 1 MB of statements", 1)]);
    assert_eq!(found.skipped[0].1.example, "SELECT ?", "without its constants");
}

#[test]
fn long_transactions_are_listed() {
    let steps = (0..20_000).map(|n| entry("s", f64::from(n), "3/7", &statement(&format!("SELECT {n}"))));
    let found = captured(steps);
    assert_eq!(reasons(&found), [("more than 10,000 statements, or 16 MB of them", 1)]);
    assert_eq!(found.figures.busy_ms, 20_000.0, "its time counts");
    let half = statement(&format!("SELECT '{}'", "x".repeat(500_000)));
    let found = captured((0..40).map(|n| entry("s", f64::from(n), "3/7", &half)));
    assert_eq!(reasons(&found), [("more than 10,000 statements, or 16 MB of them", 1)]);
}

/// Each could be kept; all of them are too many.
#[test]
fn open_transactions_have_a_limit() {
    let half = statement(&format!("SELECT '{}'", "x".repeat(500_000)));
    let mut capture = LogCapture::new(options());
    let entries = (0..400).map(|n| entry(&format!("s{n}"), f64::from(n), "3/7", &half));
    let error = entries.map(|entry| capture.take(entry)).find_map(Result::err).expect("too many");
    assert_eq!(error.to_string(), "the log's open transactions have more than 256 MB of statements (54000)");
}

#[test]
fn reasons_have_a_limit() {
    let failures = (0..3000).map(|n| LogEntry {
        severity: "ERROR".into(),
        sqlstate: format!("{n:05}"),
        query: format!("SELECT '{}'", "y".repeat(100_000)),
        ..entry("s", f64::from(n), "3/0", "failed")
    });
    let found = captured(failures);
    assert_eq!(found.skipped.len(), 1001);
    assert!(
        found.skipped.iter().any(
            |(reason, skipped)| reason == "one of more than 1000 reasons" && skipped.transactions == 2000
        )
    );
    let odd =
        LogEntry { severity: "ERROR".into(), sqlstate: "x".repeat(1000), ..entry("s", 0.0, "3/0", "failed") };
    assert_eq!(reasons(&captured([odd])), [("aborted by error unknown", 1)]);
}

/// A second with work is no entry: only where work begins and ends.
#[test]
fn days_of_work_take_no_memory() {
    const DAY: f64 = 86_400.0;
    let message = "duration: 86000000.000 ms  statement: SELECT 1";
    let entries = (0..20_000).map(|n| entry("s", f64::from(n) * 2.0 * DAY, "3/0", message));
    let found = captured(entries);
    assert_eq!((found.figures.transactions, found.figures.clients), (20_000, 1));
    // Three sessions, two of which overlap in one second.
    let works = |session: &str, until: f64| {
        entry(session, until, "3/0", "duration: 2000.000 ms  statement: SELECT 1")
    };
    let found = captured([works("a", 10.5), works("b", 12.0), works("c", 20.0)]);
    assert_eq!((found.figures.clients, found.figures.sessions), (2, 3));
    for at in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        captured([entry("s", at, "3/0", message), entry("s", at, "3/0", message)]);
    }
}
