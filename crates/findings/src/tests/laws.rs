//! What holds of every document, sensible or not.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Numbers that a series should not have, among those that it may.
fn number() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        4 => (0.0..1e4f64).prop_map(Some),
        1 => Just(None),
        1 => Just(Some(0.0)),
        1 => prop::sample::select(vec![
            f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, f64::MAX, f64::MIN_POSITIVE, 1e300,
        ]).prop_map(Some),
    ]
}

prop_compose! {
    /// Columns of any lengths and values; `sane` ones keep those that make an interval.
    fn any_samples()(
        columns in prop::collection::vec(prop::collection::vec(number(), 0..80), Samples::COLUMNS.len()),
        waits in prop::collection::btree_map("[A-Z][a-z]{1,4}:[A-Z]|CPU|Runnable", prop::collection::vec(0.0..1.0f64, 0..80), 0..5),
        sane: bool,
        length in 0..80usize,
    ) -> Samples {
        let mut samples = Samples { waits, ..Samples::default() };
        samples.columns_mut().into_iter().zip(columns).for_each(|(series, column)| *series = column);
        if sane {
            samples.elapsed = (1..=length).map(|end| Some(end as f64)).collect();
            samples.secs = vec![Some(1.0); length];
            samples.tps = (0..length).map(|index| Some(if index % 17 == 9 { 1.0 } else { 1000.0 })).collect();
        }
        samples
    }
}

prop_compose! {
    fn any_node()(
        node in prop::sample::select(vec![0, 1, 2, i32::MIN]),
        figures in prop::collection::vec(number(), 8),
        counts in prop::collection::vec(any::<Option<u64>>(), 5),
        clients in prop::sample::select(vec![0, 1, u32::MAX]),
        status in prop::option::of(prop::sample::select(vec!["completed", "incomplete", "failed", "?"])),
        (name, setting, message) in any::<(String, String, String)>(),
        is_coordinator: bool,
    ) -> Node {
        let settings = ["citus.node_conninfo", "citus.max_cached_conns_per_worker"];
        Node {
            node, name, is_coordinator, clients, status: status.map(str::to_owned),
            error: Some(json!({ "message": message })), start_offset_ms: figures[0], clock_error_ms: figures[1],
            tps: figures[2], cpu_idle: figures[3], cpu_iowait: figures[4], cpu_steal: figures[5],
            transactions: counts[0], prepared: counts[1], connections_opened: counts[2],
            connections_reused: counts[3], prepared_left: counts[4], processors: Some(clients),
            settings: settings.map(|name| (name.to_owned(), setting.clone())).into(), ..Node::default()
        }
    }
}

prop_compose! {
    fn any_document()(
        samples in any_samples(),
        figures in prop::collection::vec(number(), 12),
        counts in prop::collection::vec(any::<u64>(), 10),
        signed in prop::collection::vec(any::<Option<i64>>(), 8),
        kind in prop::sample::select(vec!["checkpoint", "vacuum", "autovacuum", "?"]),
        status in prop::sample::select(vec!["completed", "incomplete", "crashed", ""]),
        text in any::<String>(),
        some: bool,
        nodes in prop::collection::vec(any_node(), 0..4),
    ) -> Document {
        let plain = |index: usize| figures[index].unwrap_or(1.0);
        Document {
            samples,
            run: Run {
                clients: counts[0] as u32, warmup: Some(plain(0)), rate: figures[1], status: status.into(),
                horizon_held: some, on_disconnect: if some { "reconnect" } else { "end" }.into(), ..Run::default()
            },
            summary: Summary {
                secs: figures[2], transactions: counts[1], failed: counts[2], skipped: counts[3], tps: figures[3],
                latency_p99_ms: figures[4], latency_max_ms: figures[5], lag_avg_ms: figures[6],
                backlog: some.then_some(counts[4]), unknown: some.then_some(counts[6]), ..Summary::default()
            },
            latencies: vec![Bucket { low_ms: plain(7), high_ms: plain(8), count: counts[5] }; 2],
            statements: vec![CommandSummary {
                statement: text.clone(), plan: Some(format!("Seq Scan on {text}")), plan_changes: counts[6],
                workers_planned: counts[7], workers_launched: counts[8], rows: Some(counts[9]),
                writes: some.then_some(counts[7]), empty_writes: some.then_some(counts[8]), ..CommandSummary::default()
            }; 2],
            waits: vec![Wait { wait_event_type: "CPU".into(), wait_event: "CPU".into(), share: plain(9), node: 0 }],
            events: vec![
                Event { kind: kind.into(), started: plain(10), ended: figures[11], ..Event::default() }; 2
            ],
            relations: vec![Relation {
                relation: text.clone(), updated: signed[0], deleted: signed[1], seq_scan: signed[2],
                seq_tup_read: signed[3], ..Relation::default()
            }; 2],
            errors: vec![ErrorLine { sqlstate: text, failed: counts[9], ..ErrorLine::default() }],
            audit: vec![AuditLine { harness: signed[4], server: signed[5], ok: Some(some), ..AuditLine::default() }],
            nodes,
            environment: Environment {
                processors: some.then_some(counts[0] as u32), xids_used: signed[6], xid_age: signed[7],
                coordinator_cpu_secs: figures[0], ..Environment::default()
            },
            ..Document::default()
        }
    }
}

#[test]
fn nothing_known_is_nothing_said() {
    assert_eq!(findings(&Document::default()), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever there is in the document: no panic, the gravest first, and nothing left empty or open.
    #[test]
    fn every_document_has_findings_that_can_be_read(document in any_document()) {
        let found = findings(&document);
        prop_assert!(found.is_sorted_by_key(|finding| finding.severity));
        for finding in &found {
            prop_assert!(!finding.advice.is_empty() && finding.finding.ends_with('.'));
            let topic = finding.topic.as_str();
            prop_assert!(!topic.is_empty() && !topic.contains(' '));
            prop_assert!(!finding.figures.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// A machine that is so many times as fast has the same findings.
    #[test]
    fn scale_does_not_matter(seed: u64, scale in 1.0..1000.0f64, start in 5..80usize, share in 0.0..1.0f64) {
        let mut document = quiet(seed, 100, 0.5, WHITE);
        lower(&mut document, start..start + 6, share);
        wait_for(&mut document, start..start + 6, "Lock:relation", share);
        let before = topics(&document);
        let samples = &mut document.samples;
        for series in [&mut samples.tps, &mut samples.transactions, &mut samples.wal_fpi] {
            series.iter_mut().flatten().for_each(|value| *value *= scale);
        }
        prop_assert_eq!(before, topics(&document));
    }

    /// A deeper dip is never told less.
    #[test]
    fn a_deeper_dip_is_told_too(seed: u64, share in 0.1..0.9f64) {
        let told = |share: f64| {
            let mut document = quiet(seed, 100, 0.5, WHITE);
            lower(&mut document, 40..46, share);
            of_topic(&document, "dip").len()
        };
        prop_assert!(told(share) <= told(share + 0.1));
    }
}
