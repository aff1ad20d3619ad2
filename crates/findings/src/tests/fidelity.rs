//! Replays that are like what was captured, and such as are not.

use bench_results::FidelityPart;

use super::others::wait_throughout;
use super::*;

fn part(name: &str, captured: f64, replayed: f64, score: f64, reason: &str) -> FidelityPart {
    FidelityPart {
        part: name.to_owned(),
        captured: Some(captured),
        replayed: Some(replayed),
        score: Some(score),
        reason: Some(reason.to_owned()),
    }
}

fn found(parts: Vec<FidelityPart>, plant: impl Fn(&mut Document)) -> Vec<Finding> {
    let mut document = quiet(10, 60, 1.0, WHITE);
    document.fidelity = parts;
    plant(&mut document);
    findings(&document)
}

#[test]
fn another_benchmark_is_told_before_all_else() {
    let parts = vec![
        part("statements", 18.0, 1.0, 0.06, "too few"),
        part("blocks", 20.0, 30.0, 0.7, "blocks 20 → 30"),
    ];
    // Its commits are no reason for a faster disk.
    let found = found(parts, |document| wait_throughout(document, "IO:WALSync", 0.6));
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.topic.as_str(), finding.severity), ("fidelity", Severity::Critical));
    assert!(finding.finding.contains("with a fidelity of 0.06: too few; blocks 20 → 30"));
    assert!(finding.advice.contains("Capture transactions"));
}

#[test]
fn what_is_less_alike_is_a_warning_and_waits_alone_are_none() {
    let blocks = |score: f64| part("blocks", 20.0, 30.0, score, "blocks 20 → 30");
    let found_of = |parts| found(parts, |_| ());
    let warned = found_of(vec![blocks(0.7)]);
    assert_eq!(warned.iter().map(|finding| finding.severity).collect::<Vec<_>>(), [Severity::Warning]);
    assert!(warned[0].finding.contains("0.70: blocks 20 → 30."));
    assert_eq!(found_of(vec![blocks(0.83)]), []);
    assert_eq!(found_of(vec![part("waits", 1.0, 0.6, 0.6, "CPU takes 10 % → 50 %")]), []);
    // From a replay of single statements on, waits of flushes are told as ever.
    let slow = found(vec![blocks(0.7)], |document| wait_throughout(document, "IO:WALSync", 0.6));
    assert_eq!(slow.len(), 2);
}
