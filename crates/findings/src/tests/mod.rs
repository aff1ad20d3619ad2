//! Runs made up for the tests: quiet ones, to which each test adds what it is about.

mod announced;
mod dips;
mod driver;
mod duel;
mod fidelity;
mod laws;
mod nodes;
mod others;
mod outage;
mod quiet;
mod replication;
mod several_nodes;
mod simulations;
mod unsteady;

use bench_results::*;

use super::*;

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
