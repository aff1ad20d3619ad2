//! Runs made up for the tests: quiet ones, to which each test adds what it is about.

mod dips;
mod nodes;
mod others;
mod outage;
mod simulations;

use bench_results::*;
use proptest::prelude::*;
use serde_json::json;

use crate::*;

/// Random numbers that are the same in every run of the tests (SplitMix64, Steele et al. 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of a standard normal distribution (Box & Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// How throughput varies by itself.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// The coefficient of variation.
    pub cv: f64,
    /// The autocorrelation at lag 1.
    pub rho: f64,
    /// The share of intervals whose deviation is four times as great.
    pub wild: f64,
}

pub const WHITE: Noise = Noise { cv: 0.03, rho: 0.0, wild: 0.0 };

const TPS: f64 = 2000.0;
const CLIENTS: u32 = 4;

/// A run without anything to say of it: `count` intervals of `secs` seconds, of which everything varies a little.
pub fn quiet(seed: u64, count: usize, secs: f64, noise: Noise) -> Document {
    let mut random = Random::new(seed);
    let mut samples = Samples::default();
    let mut deviation = random.normal();
    for index in 0..count {
        let wild = if random.uniform() < noise.wild { 4.0 } else { 1.0 };
        deviation = noise.rho * deviation + (1.0 - noise.rho * noise.rho).sqrt() * random.normal() * wild;
        let tps = TPS * (1.0 + noise.cv * deviation).max(0.0);
        let transactions = tps * secs;
        let mut around =
            |middle: f64, spread: f64| Some((middle * (1.0 + spread * random.normal())).max(0.0));
        samples.elapsed.push(Some((index + 1) as f64 * secs));
        samples.secs.push(Some(secs));
        samples.clients.push(Some(f64::from(CLIENTS)));
        samples.transactions.push(Some(transactions));
        samples.tps.push(Some(tps));
        samples.wal_fpi.push(around(transactions * 0.05, 0.5));
        samples.wal_bytes.push(around(transactions * 500.0, 0.3));
        samples.buffers_checkpoint.push(Some(0.0));
        samples.cpu_user.push(around(0.35, 0.1));
        samples.cpu_system.push(around(0.15, 0.1));
        samples.cpu_iowait.push(around(0.05, 0.5));
        samples.cpu_steal.push(around(0.002, 1.0));
        samples.cpu_idle.push(around(0.4, 0.1));
        samples.throttled_secs.push(Some(0.0));
        samples.temp_bytes.push(Some(0.0));
        for (event, share) in [
            ("CPU", 0.25),
            ("Runnable", 0.05),
            ("IO:WALSync", 0.15),
            ("LWLock:WALWrite", 0.05),
            ("Lock:transactionid", 0.1),
            ("Client:ClientRead", 0.05),
        ] {
            let share = around(share, 0.3).unwrap_or(0.0);
            samples.waits.entry(event.to_owned()).or_default().push(share);
        }
    }
    let measured = count as f64 * secs;
    let mut document = Document { samples, ..Document::default() };
    document.run = Run {
        clients: CLIENTS,
        secs: Some(measured),
        sample_interval: secs,
        status: "completed".into(),
        max_tries: 1,
        warmup: Some(0.0),
        ..Run::default()
    };
    document.summary = Summary {
        secs: Some(measured),
        transactions: 1_000_000,
        tps: Some(TPS),
        latency_p50_ms: Some(1.8),
        latency_p99_ms: Some(6.0),
        latency_p999_ms: Some(15.0),
        latency_max_ms: Some(60.0),
        ..Summary::default()
    };
    document.latencies = vec![
        Bucket { low_ms: 1.0, high_ms: 2.0, count: 900_000 },
        Bucket { low_ms: 2.0, high_ms: 8.0, count: 99_000 },
        Bucket { low_ms: 8.0, high_ms: 60.0, count: 1000 },
    ];
    let wait = |kind: &str, event: &str, share| Wait {
        wait_event_type: kind.into(),
        wait_event: event.into(),
        share,
        ..Wait::default()
    };
    document.waits =
        vec![wait("IO", "WALSync", 0.15), wait("CPU", "CPU", 0.25), wait("Runnable", "Runnable", 0.05)];
    document.environment = Environment {
        processors: Some(2),
        xid_age: Some(50_000_000),
        xids_used: Some(100_000),
        ..Environment::default()
    };
    document
}

/// Takes a share of the throughput away from some intervals, and of what goes with it.
pub fn lower(document: &mut Document, intervals: std::ops::Range<usize>, share: f64) {
    let samples = &mut document.samples;
    for series in [&mut samples.tps, &mut samples.transactions, &mut samples.wal_fpi, &mut samples.wal_bytes]
    {
        for value in series[intervals.clone()].iter_mut().flatten() {
            *value *= 1.0 - share;
        }
    }
}

/// Clients spend a share of their time in one event, and less in all others.
pub fn wait_for(document: &mut Document, intervals: std::ops::Range<usize>, event: &str, share: f64) {
    let count = document.samples.len();
    let waits = &mut document.samples.waits;
    for shares in waits.values_mut() {
        shares[intervals.clone()].iter_mut().for_each(|other| *other *= 1.0 - share);
    }
    waits.entry(event.to_owned()).or_insert(vec![0.0; count])[intervals].fill(share);
}

/// A series has another value in some intervals.
pub fn set(series: &mut Series, intervals: std::ops::Range<usize>, value: f64) {
    series[intervals].fill(Some(value));
}

/// The findings of one topic.
pub fn of_topic(document: &Document, topic: &str) -> Vec<Finding> {
    findings(document).into_iter().filter(|finding| finding.topic.as_str() == topic).collect()
}

pub fn topics(document: &Document) -> Vec<&'static str> {
    findings(document).into_iter().map(|finding| finding.topic.as_str()).collect()
}

/// An event, in seconds since measuring began.
pub fn event(kind: &str, started: f64, ended: f64) -> Event {
    Event { kind: kind.into(), started, ended: Some(ended), ..Event::default() }
}

/// What a test adds to a quiet run.
pub type Plant = fn(&mut Document);

// How often a run with nothing but noise has a finding. The seeds are fixed, so that the rates are too.

fn alarms(seeds: u64, noise: Noise, count: usize, secs: f64) -> Vec<(u64, Vec<&'static str>)> {
    (0..seeds)
        .map(|seed| (seed, topics(&quiet(seed * 7919 + count as u64, count, secs, noise))))
        .filter(|(_, topics)| !topics.is_empty())
        .collect()
}

#[test]
fn noise_is_no_finding() {
    const SEEDS: u64 = 100;
    let mut runs = 0;
    let mut all = Vec::new();
    for (cv, rho, wild) in
        [(0.02, 0.0, 0.0), (0.05, 0.0, 0.0), (0.02, 0.5, 0.0), (0.05, 0.5, 0.0), (0.03, 0.5, 0.02)]
    {
        for (count, secs) in [(10, 1.0), (40, 0.5), (60, 1.0), (150, 0.2)] {
            runs += SEEDS;
            let alarms = alarms(SEEDS, Noise { cv, rho, wild }, count, secs);
            all.extend(alarms.into_iter().map(|alarm| (cv, rho, wild, count, alarm)));
        }
    }
    println!("{} of {runs} quiet runs have findings", all.len());
    assert!(all.len() as f64 <= 0.005 * runs as f64, "{} of {runs}: {all:?}", all.len());
}

/// The rates under noise that no quiet machine should have; to be read, so it is run by hand:
/// `cargo test --release findings::tests::quiet -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn rates_under_harsher_noise() {
    const SEEDS: u64 = 1000;
    for (cv, rho, wild) in [
        (0.02, 0.0, 0.0),
        (0.05, 0.0, 0.0),
        (0.05, 0.5, 0.0),
        (0.05, 0.0, 0.05),
        (0.1, 0.0, 0.0),
        (0.1, 0.5, 0.0),
        (0.05, 0.8, 0.0),
        (0.1, 0.8, 0.02),
        (0.05, 0.95, 0.0),
    ] {
        for (count, secs) in [(20, 1.0), (60, 0.2), (60, 0.5), (60, 1.0), (150, 0.2), (300, 1.0)] {
            let alarms = alarms(SEEDS, Noise { cv, rho, wild }, count, secs);
            let mut kinds = std::collections::BTreeMap::new();
            for topic in alarms.iter().flat_map(|(_, topics)| topics) {
                *kinds.entry(*topic).or_insert(0) += 1;
            }
            println!(
                "cv {cv}, rho {rho}, wild {wild}, {count} x {secs} s: {} of {SEEDS}, {kinds:?}",
                alarms.len()
            );
        }
    }
}

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
