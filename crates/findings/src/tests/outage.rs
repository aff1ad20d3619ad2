//! Times in which nothing was committed: how long, how long until throughput was back, and in which runs.

use std::ops::Range;

use proptest::prelude::*;

use crate::tests::*;

/// A quiet run whose clients connect again, without a commit in some of its intervals of half a second.
fn interrupted(seed: u64, empty: Range<usize>) -> Document {
    let mut document = quiet(seed, 100, 0.5, Noise { cv: 0.01, ..WHITE });
    document.run.on_disconnect = "reconnect".into();
    document.summary.unknown = Some(4);
    document.errors = vec![lost("08006", 3), lost("08007", 4), lost("57P03", 0), lost("40001", 7)];
    lower(&mut document, empty, 1.0);
    document
}

fn lost(sqlstate: &str, failed: u64) -> ErrorLine {
    ErrorLine { sqlstate: sqlstate.into(), count: 9, failed, ..ErrorLine::default() }
}

/// The only finding, which is on outages.
fn the_outage(document: &Document) -> Finding {
    let mut found = findings(document);
    assert_eq!(
        found.iter().map(|finding| finding.topic.as_str()).collect::<Vec<_>>(),
        ["outage"],
        "{found:#?}"
    );
    found.remove(0)
}

/// Throughput that is the same throughout, so that sentences can be foretold.
fn even(mut document: Document) -> Document {
    for (tps, transactions) in document.samples.tps.iter_mut().zip(&mut document.samples.transactions) {
        if *tps > Some(0.0) {
            (*tps, *transactions) = (Some(2000.0), Some(1000.0));
        }
    }
    document
}

#[test]
fn an_outage_is_told_with_its_length_and_that_of_the_recovery() {
    let mut document = even(interrupted(1, 40..46));
    lower(&mut document, 46..48, 0.5);
    let found = the_outage(&document);
    assert_eq!(found.severity, Severity::Warning);
    assert_eq!(
        found.finding,
        "Nothing was committed for 3.0 s from 20 s on; throughput recovered to 90 % of the 2,000 tps before after \
         another 1.0 s. 4 transactions are in doubt."
    );
    let expected = serde_json::json!({
        "outages": 1, "outage_secs": 3.0, "back_at_90_percent_secs": 1.0, "tps_before": 2000.0, "unknown": 4,
        "failed": 3, "at": [20.0], "until": [23.0],
    });
    assert_eq!(serde_json::Value::Object(found.figures), expected);
    assert!(found.advice.starts_with("bench.errors shows how connections were lost"), "{}", found.advice);
}

#[test]
fn of_several_outages_the_longest_is_told() {
    let mut document = even(interrupted(2, 20..22));
    for empty in [50..57, 80..81] {
        lower(&mut document, empty, 1.0);
    }
    document.summary.unknown = Some(1);
    let found = the_outage(&document);
    assert_eq!(
        found.finding,
        "Nothing was committed 3 times, for up to 3.5 s (from 25 s on); throughput recovered to 90 % of the 2,000 \
         tps before at once. 1 transaction is in doubt."
    );
    assert_eq!(found.figures["at"], serde_json::json!([10.0, 25.0, 40.0]));
    assert_eq!(found.figures["until"], serde_json::json!([11.0, 28.5, 40.5]));
}

#[test]
fn what_was_not_back_until_the_end_is_said_so() {
    let mut document = even(interrupted(3, 90..100));
    document.summary.unknown = Some(0);
    let found = the_outage(&document);
    assert_eq!(
        found.finding,
        "Nothing was committed for 5.0 s from 45 s on; the run ended before anything was."
    );
    assert_eq!(found.figures["back_at_90_percent_secs"], serde_json::Value::Null);
    // The other server may be slower for good.
    let mut document = even(interrupted(3, 80..84));
    lower(&mut document, 84..100, 0.4);
    let found = the_outage(&document).finding;
    assert!(found.contains("; throughput never recovered to 90 % of the 2,000 tps before."), "{found}");
    // One interval alone is not it.
    lower(&mut document, 90..91, -1.0);
    assert_eq!(the_outage(&document).figures["back_at_90_percent_secs"], serde_json::Value::Null);
}

/// What is planted into a run with an outage of two intervals so that there is nothing to tell.
const NONE: &[(&str, Plant)] = &[
    ("clients that end, and no connection lost", |document| {
        document.run.on_disconnect = "end".into();
        document.summary.unknown = None;
        document.errors = vec![lost("40001", 7), lost("08001", 0)];
    }),
    ("transactions so few that an empty interval is ordinary", |document| scale(document, 0.004)),
    ("few transactions for so short a time", |document| scale(document, 0.012)),
    ("transactions that take half of the time", |document| document.summary.latency_p50_ms = Some(600.0)),
    ("nothing before it", |document| lower(document, 0..50, 1.0)),
];

fn scale(document: &mut Document, scale: f64) {
    let samples = &mut document.samples;
    for value in samples.tps.iter_mut().chain(&mut samples.transactions).flatten() {
        *value *= scale;
    }
}

#[test]
fn what_chance_or_others_explain_is_no_outage() {
    for (name, plant) in NONE {
        let mut document = interrupted(4, 50..52);
        assert_eq!(of_topic(&document, "outage").len(), 1, "{name}");
        plant(&mut document);
        assert_eq!(of_topic(&document, "outage"), [], "{name}");
    }
    assert_eq!(topics(&interrupted(4, 0..0)), [""; 0]);
    // Clients with a rate do not wait for each other.
    let mut document = interrupted(4, 50..52);
    (document.run.rate, document.summary.latency_p50_ms) = (Some(2000.0), Some(600.0));
    assert_eq!(of_topic(&document, "outage").len(), 1);
}

#[test]
fn clients_that_end_with_their_connections_may_leave_others() {
    for (sqlstate, failed) in [("08006", 1), ("57P01", 1), ("57P02", 1)] {
        let mut document = interrupted(5, 50..52);
        (document.run.on_disconnect, document.summary.unknown) = ("end".into(), None);
        document.errors = vec![lost(sqlstate, failed)];
        assert_eq!(the_outage(&document).figures["failed"], 1, "{sqlstate}");
        // With the last client the run has ended.
        lower(&mut document, 52..100, 1.0);
        assert_eq!(of_topic(&document, "outage"), [], "{sqlstate}");
    }
}

/// A lock, or a network that lets nothing through, loses no connection.
#[test]
fn an_outage_without_a_lost_connection_has_other_advice() {
    let mut document = interrupted(6, 50..56);
    wait_for(&mut document, 50..56, "Lock:relation", 1.0);
    document.errors = vec![lost("40001", 7)];
    document.summary.unknown = Some(0);
    let found = the_outage(&document);
    assert!(found.advice.starts_with("No connection was lost: see bench.waits"), "{}", found.advice);
    assert!(!found.finding.contains("doubt"), "{}", found.finding);
}

/// Dips that an outage explains are not told again, and others are.
#[test]
fn a_dip_beside_an_outage_is_told_as_a_dip() {
    let mut document = interrupted(7, 40..46);
    lower(&mut document, 70..76, 0.6);
    wait_for(&mut document, 70..76, "Lock:relation", 0.9);
    let dips = of_topic(&document, "dip");
    assert_eq!(dips.len(), 1, "{dips:#?}");
    assert_eq!((&dips[0].figures["count"], &dips[0].figures["at"][0]), (&1.into(), &35.0.into()));
    assert_eq!(of_topic(&document, "outage").len(), 1);
    // A dip in the recovery that the outage tells of.
    let mut document = interrupted(7, 40..46);
    lower(&mut document, 46..49, 0.15);
    lower(&mut document, 49..52, 0.7);
    assert_eq!(the_outage(&document).figures["back_at_90_percent_secs"], 3.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Wherever nothing is committed and however fast the machine, it is one finding with the length that was planted.
    #[test]
    fn every_outage_is_told_once_and_whole(
        seed: u64, start in 5..60usize, length in 1..20usize, recovery in 0..8usize, depth in 0.3..0.9f64,
        factor in 0.1..1000.0f64,
    ) {
        let end = start + length;
        let mut document = interrupted(seed, start..end);
        lower(&mut document, end..end + recovery, depth);
        scale(&mut document, factor);
        let found = the_outage(&document);
        prop_assert_eq!(found.figures["outage_secs"].as_f64(), Some(length as f64 * 0.5));
        prop_assert_eq!(found.figures["back_at_90_percent_secs"].as_f64(), Some(recovery as f64 * 0.5));
        prop_assert_eq!(found.figures["at"][0].as_f64(), Some(start as f64 * 0.5));
    }
}
