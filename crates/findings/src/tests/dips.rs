//! Dips, warm-ups and drifts where they were planted, with the cause that was planted beside them and no other.

use std::ops::Range;

use crate::dips::{announced, detect};
use crate::intervals::Intervals;
use crate::tests::*;

/// A short run of 20 s whose throughput falls by 60 % for 2 s.
const DIP: Range<usize> = 50..60;
const COUNT: usize = 100;
const SECS: f64 = 0.2;

fn dipped(seed: u64) -> Document {
    let mut document = quiet(seed, COUNT, SECS, WHITE);
    lower(&mut document, DIP, 0.6);
    document
}

/// Full-page images of 2 per transaction in some intervals, which backends report up to a second later.
fn images(document: &mut Document, intervals: Range<usize>) {
    let late = (1.0 / document.run.sample_interval) as usize;
    for index in intervals {
        let made = document.samples.transactions[index].unwrap() * 2.0;
        for reported in index..=index + late {
            let there = document.samples.wal_fpi[reported].unwrap();
            document.samples.wal_fpi[reported] = Some(there + made / (late + 1) as f64);
        }
    }
}

/// The only dip that there is to tell, with the name of the first cause, if any.
fn the_dip(document: &Document) -> (Finding, Option<String>) {
    let mut dips = of_topic(document, "dip");
    assert_eq!(dips.len(), 1, "{dips:#?}");
    let dip = dips.remove(0);
    let cause = dip.figures["coincide"][0]["cause"].as_str().map(str::to_owned);
    (dip, cause)
}

#[test]
fn a_dip_is_told_with_depth_length_and_time() {
    let (dip, cause) = the_dip(&dipped(1));
    assert_eq!(cause, None);
    assert!(dip.finding.contains("no observed cause coincides with it"), "{}", dip.finding);
    assert!(dip.finding.contains("for 2.0 s from 10 s on"), "{}", dip.finding);
    let depth = dip.figures["depth"].as_f64().unwrap();
    assert!((0.6..0.7).contains(&depth), "{depth}");
    assert!((dip.figures["lost_secs"].as_f64().unwrap() - 1.2).abs() < 0.15);
}

/// What makes each cause, and its name.
const CAUSES: &[(&str, Plant)] = &[
    ("Lock:relation", |document| wait_for(document, DIP, "Lock:relation", 0.98)),
    ("Lock:transactionid", |document| wait_for(document, DIP, "Lock:transactionid", 0.8)),
    ("IO:WALSync", |document| wait_for(document, DIP, "IO:WALSync", 0.9)),
    ("Runnable", |document| wait_for(document, DIP, "Runnable", 0.6)),
    ("full-page images", |document| {
        document.events.push(event("checkpoint", 9.8, 12.0));
        images(document, DIP);
    }),
    ("checkpoint writes", |document| {
        document.events.push(event("checkpoint", 9.9, 12.1));
        set(&mut document.samples.buffers_checkpoint, 60..61, 5000.0);
        set(&mut document.samples.cpu_iowait, DIP, 0.4);
    }),
    ("vacuum", |document| document.events.push(event("autovacuum", 9.9, 12.0))),
    ("iowait", |document| set(&mut document.samples.cpu_iowait, DIP, 0.4)),
    ("steal", |document| set(&mut document.samples.cpu_steal, DIP, 0.3)),
    ("throttled", |document| set(&mut document.samples.throttled_secs, DIP, 0.1)),
    ("other processes", |document| {
        wait_for(document, DIP, "Runnable", 0.12);
        set(&mut document.samples.cpu_user, DIP, 0.85);
        for share in &mut document.samples.waits.get_mut("CPU").unwrap()[DIP] {
            *share /= 2.0;
        }
    }),
    ("temporary files", |document| set(&mut document.samples.temp_bytes, DIP, 5e6)),
];

#[test]
fn every_cause_is_named() {
    for (name, plant) in CAUSES {
        for seed in 0..5 {
            let mut document = dipped(seed);
            plant(&mut document);
            let (dip, cause) = the_dip(&document);
            assert_eq!(cause.as_deref(), Some(*name), "{seed}: {dip:#?}");
            assert!(!dip.advice.is_empty() && !dip.finding.contains("nothing that was"), "{dip:#?}");
        }
    }
}

/// A lock of two seconds in a run of ten, right after something else had slowed it.
#[test]
fn a_lock_is_named_in_a_dip_that_began_before_it() {
    for seed in 0..20 {
        let mut document = quiet(seed, 40, 0.25, WHITE);
        lower(&mut document, 16..19, 0.5);
        lower(&mut document, 19..27, 0.99);
        wait_for(&mut document, 19..27, "Lock:relation", 0.98);
        assert_eq!(the_dip(&document).1.as_deref(), Some("Lock:relation"), "{seed}");
    }
}

/// An index build of 4 s in a run of 7 s.
#[test]
fn a_lock_of_more_than_half_of_the_run_is_named() {
    for seed in 0..20 {
        let mut document = quiet(seed, 70, 0.1, WHITE);
        lower(&mut document, 20..56, 1.0);
        wait_for(&mut document, 20..56, "Lock:relation", 0.98);
        document.summary.latency_max_ms = Some(3600.0);
        let (dip, cause) = the_dip(&document);
        assert_eq!(cause.as_deref(), Some("Lock:relation"), "{seed}");
        let (start, end) =
            (dip.figures["at"][0].as_f64().unwrap(), dip.figures["until"][0].as_f64().unwrap());
        assert!((1.7..2.01).contains(&start) && (5.59..5.9).contains(&end), "{}", dip.finding);
        let median = dip.figures["median_tps"].as_f64().unwrap();
        assert!((1900.0..2100.0).contains(&median), "{median}");
        assert_eq!(topics(&document), ["dip", "stall"], "{seed}");
    }
}

/// PostgreSQL 17 changed names of wait events; what there is to do about them stays.
#[test]
fn advice_knows_the_names_of_each_version() {
    let advice = |event: &str| {
        let mut document = dipped(2);
        wait_for(&mut document, DIP, event, 0.9);
        let (dip, cause) = the_dip(&document);
        assert_eq!(cause.as_deref(), Some(event));
        dip.advice
    };
    assert!(advice("IO:WALSync").contains("pg_wal"));
    assert_eq!(advice("IO:WalSync"), advice("IO:WALSync"));
    assert!(advice("IO:BufFileWrite").contains("work_mem"));
    assert_eq!(advice("IO:BuffileWrite"), advice("IO:BufFileWrite"));
    assert!(advice("IO:DataFileRead").contains("shared_buffers"));
}

#[test]
fn a_cause_that_was_elsewhere_is_not_named() {
    for (name, plant) in CAUSES {
        let mut document = dipped(3);
        plant(&mut document);
        // The dip is healed and planted where the cause is not.
        lower(&mut document, DIP, -1.5);
        lower(&mut document, 20..30, 0.6);
        let (dip, cause) = the_dip(&document);
        assert_eq!(cause, None, "{name}: {dip:#?}");
    }
}

#[test]
fn a_cause_without_a_dip_is_no_dip() {
    for (name, plant) in CAUSES {
        let mut document = quiet(4, COUNT, SECS, WHITE);
        plant(&mut document);
        assert_eq!(of_topic(&document, "dip"), [], "{name}");
    }
}

/// A run on three nodes, of which everything is together what it is on one.
fn dipped_on_three_nodes(cause: &str) -> Document {
    let mut document = dipped(3);
    let (_, plant) = CAUSES.iter().find(|(name, _)| *name == cause).expect("a cause");
    plant(&mut document);
    document.nodes = (1..=3).map(|node| Node { node, clients: 4, ..Node::default() }).collect();
    document
}

#[test]
fn causes_of_several_nodes_count_once() {
    let mut document = dipped_on_three_nodes("throttled");
    let (dip, cause) = the_dip(&document);
    assert_eq!(cause.as_deref(), Some("throttled"));
    // A tenth of a second in 0.2 s, of three nodes together.
    assert!(dip.finding.contains("0.17 s in every second"), "{}", dip.finding);
    set(&mut document.samples.throttled_secs, DIP, 0.05);
    assert_eq!(the_dip(&document).1, None, "0.083 s in every second of a node");
    // Sessions that serve other nodes are no clients either.
    let cause = the_dip(&dipped_on_three_nodes("other processes")).1;
    assert_ne!(cause.as_deref(), Some("other processes"));
    let mut document = dipped_on_three_nodes("vacuum");
    (document.events[0].relation, document.events[0].node) = (Some("accounts".into()), 2);
    let (dip, _) = the_dip(&document);
    assert!(dip.finding.contains("autovacuum of accounts on node 2 was under way"), "{}", dip.finding);
}

#[test]
fn a_checkpoint_without_images_is_not_their_cause() {
    let mut document = dipped(5);
    document.events.push(event("checkpoint", 9.8, 12.0));
    document.samples.wal_fpi.fill(Some(0.0));
    let is_behind = |document: &Document| {
        let (dip, cause) = the_dip(document);
        assert_eq!(cause.as_deref(), Some("checkpoint"));
        assert!(!dip.finding.contains("full-page"), "{}", dip.finding);
    };
    is_behind(&document);
    // Images without a checkpoint are not those after one either, nor where they are off.
    let mut document = dipped(5);
    images(&mut document, DIP);
    assert_eq!(the_dip(&document).1, None);
    document.events.push(event("checkpoint", 9.8, 10.0));
    assert_eq!(the_dip(&document).1.as_deref(), Some("full-page images"));
    let off = ServerSetting { name: "full_page_writes".into(), setting: "off".into(), source: String::new() };
    document.environment.server_settings.push(off);
    is_behind(&document);
}

#[test]
fn a_stall_does_not_look_like_images() {
    let mut document = quiet(6, COUNT, SECS, WHITE);
    document.events.push(event("checkpoint", 9.8, 12.0));
    lower(&mut document, DIP, 1.0);
    wait_for(&mut document, DIP, "Lock:relation", 1.0);
    // What was made before the stall is reported in it.
    set(&mut document.samples.wal_fpi, 50..55, 20.0);
    let (dip, cause) = the_dip(&document);
    assert_eq!(cause.as_deref(), Some("Lock:relation"));
    assert!(!dip.finding.contains("full-page"), "{}", dip.finding);
}

#[test]
fn short_runs_with_one_checkpoint() {
    for (count, secs) in [(60, 0.2), (60, 0.5), (100, 0.2), (150, 0.2), (60, 1.0), (300, 0.2)] {
        for seed in 0..5 {
            let mut document = quiet(seed, count, secs, WHITE);
            let start = count / 2;
            let length = (3.0 / secs) as usize;
            // It decays, as pages are written whole once only.
            for (step, index) in (start..start + length).enumerate() {
                let left = 1.0 - step as f64 / length as f64;
                lower(&mut document, index..index + 1, 0.7 * left);
            }
            images(&mut document, start..start + length);
            document.events.push(event("checkpoint", start as f64 * secs - 0.3, start as f64 * secs + 1.0));
            wait_for(&mut document, start..start + length, "LWLock:WALWrite", 0.5);
            let (dip, cause) = the_dip(&document);
            assert_eq!(cause.as_deref(), Some("full-page images"), "{count} of {secs} s, {seed}: {dip:#?}");
        }
    }
}

#[test]
fn a_checkpoint_from_which_the_run_does_not_recover() {
    for seed in 0..5 {
        let mut document = quiet(seed, 100, 0.2, WHITE);
        let low = 60..100;
        lower(&mut document, low.clone(), 0.5);
        assert_eq!(of_topic(&document, "dip"), [], "a level");
        images(&mut document, low.start..low.end - 5);
        document.events.push(event("checkpoint", 11.8, 13.0));
        let (dip, cause) = the_dip(&document);
        assert_eq!(cause.as_deref(), Some("full-page images"), "{seed}: {dip:#?}");
        assert_eq!(topics(&document), ["dip"]);
    }
}

#[test]
fn a_checkpoint_in_the_middle_of_a_noisy_run_that_does_not_recover() {
    let noisy = Noise { cv: 0.12, rho: 0.3, wild: 0.0 };
    for seed in 0..10 {
        let mut document = quiet(seed, 100, 0.2, noisy);
        lower(&mut document, 50..100, 0.45);
        document.events.push(event("checkpoint", 10.0, 12.0));
        images(&mut document, 50..95);
        let (dip, cause) = the_dip(&document);
        assert_eq!(cause.as_deref(), Some("checkpoint"), "{seed}: {dip:#?}");
        assert!(dip.finding.starts_with("A checkpoint began at 10 s: throughput was "), "{}", dip.finding);
        assert!(dip.finding.contains("full-page images in "), "{}", dip.finding);
        assert_eq!(topics(&document), ["dip"], "{seed}");
    }
}

#[test]
fn a_dip_is_found_on_a_slope() {
    let mut document = quiet(12, 100, 1.0, WHITE);
    for index in 0..100 {
        lower(&mut document, index..index + 1, 0.4 * index as f64 / 100.0);
    }
    lower(&mut document, 80..84, 0.6);
    let (dip, _) = the_dip(&document);
    assert_eq!((dip.figures["at"][0].as_f64(), dip.figures["count"].as_u64()), (Some(80.0), Some(1)));
}

#[test]
fn dips_of_one_cause_are_one_finding_and_others_another() {
    let mut document = quiet(7, 300, 1.0, WHITE);
    for start in [60, 120, 180, 240] {
        lower(&mut document, start..start + 5, 0.5);
        images(&mut document, start..start + 5);
        document.events.push(event("checkpoint", start as f64 - 0.5, start as f64 + 20.0));
    }
    lower(&mut document, 30..33, 1.0);
    wait_for(&mut document, 30..33, "Lock:relation", 1.0);
    let dips = of_topic(&document, "dip");
    assert_eq!(dips.len(), 2, "{dips:#?}");
    let images = dips.iter().find(|dip| dip.finding.contains("full-page images")).unwrap();
    assert_eq!(images.figures["count"], 4);
    assert!(
        images.finding.contains("4 times") && images.finding.contains("60 s, 120 s"),
        "{}",
        images.finding
    );
    assert!(dips.iter().any(|dip| dip.finding.contains("Lock:relation") && dip.figures["count"] == 1));
}

#[test]
fn a_stall_is_told_from_few_intervals() {
    let mut document = quiet(8, 12, 1.0, WHITE);
    lower(&mut document, 6..8, 1.0);
    wait_for(&mut document, 6..8, "Lock:relation", 1.0);
    document.summary.latency_max_ms = Some(2000.0);
    let (dip, cause) = the_dip(&document);
    assert_eq!(cause.as_deref(), Some("Lock:relation"), "{dip:#?}");
    assert_eq!(of_topic(&document, "stall").len(), 1);
    // Half of it is a dip, a third may be noise.
    for (share, told) in [(0.5, ["dip"].as_slice()), (0.3, &[])] {
        let mut document = quiet(8, 12, 1.0, WHITE);
        lower(&mut document, 6..8, share);
        assert_eq!(topics(&document), told);
    }
}

#[test]
fn small_dips_need_a_cause() {
    let mut document = quiet(9, COUNT, SECS, WHITE);
    lower(&mut document, DIP, 0.3);
    assert_eq!(of_topic(&document, "dip"), []);
    wait_for(&mut document, DIP, "Lock:advisory", 0.4);
    assert_eq!(the_dip(&document).1.as_deref(), Some("Lock:advisory"));
}

#[test]
fn a_warmup_and_a_drift_are_told_apart() {
    for seed in 0..20 {
        let mut document = quiet(seed, 60, 1.0, WHITE);
        for index in 0..10 {
            lower(&mut document, index..index + 1, 0.4 * (1.0 - index as f64 / 10.0));
        }
        let found = findings(&document);
        assert_eq!(
            found.iter().map(|finding| finding.topic.as_str()).collect::<Vec<_>>(),
            ["warmup"],
            "{seed}"
        );
        let after = found[0].figures["steady_after_secs"].as_f64().unwrap();
        assert!((5.0..=20.0).contains(&after), "{seed}: {after}");
        assert!(found[0].advice.contains("warmup => "));

        let mut document = quiet(seed, 60, 1.0, WHITE);
        for index in 0..60 {
            lower(&mut document, index..index + 1, 0.2 * index as f64 / 60.0);
        }
        let found = findings(&document);
        assert_eq!(
            found.iter().map(|finding| finding.topic.as_str()).collect::<Vec<_>>(),
            ["drift"],
            "{seed}"
        );
        let change = found[0].figures["change"].as_f64().unwrap();
        assert!((change + 0.2).abs() < 0.05, "{seed}: {change}");
        assert!(found[0].figures["change_low"].as_f64().unwrap() < change);
        assert!(found[0].figures["change_high"].as_f64().unwrap() > change);
    }
}

#[test]
fn a_soak_of_hours_is_told_in_one_sentence() {
    let mut document = quiet(13, 10_000, 1.0, WHITE);
    for start in (300..10_000).step_by(300) {
        lower(&mut document, start..start + 10, 0.5);
        images(&mut document, start..start + 10);
        document.events.push(event("checkpoint", start as f64 - 0.5, start as f64 + 200.0));
    }
    let (dip, cause) = the_dip(&document);
    assert_eq!((cause.as_deref(), dip.figures["count"].as_u64()), (Some("full-page images"), Some(33)));
    assert!(dip.finding.contains("33 times") && dip.finding.contains("and 30 more"), "{}", dip.finding);
}

#[test]
fn a_slope_under_much_noise_is_no_warmup() {
    for seed in 0..10 {
        let mut document = quiet(seed, 300, 1.0, Noise { cv: 0.05, ..WHITE });
        for index in 0..300 {
            lower(&mut document, index..index + 1, 0.25 * index as f64 / 300.0);
        }
        assert_eq!(topics(&document), ["drift"], "{seed}");
    }
}

#[test]
fn a_shallow_dip_is_none_even_with_a_cause() {
    let mut document = quiet(14, 100, 1.0, Noise { cv: 0.005, ..WHITE });
    lower(&mut document, 50..60, 0.15);
    wait_for(&mut document, 50..60, "Lock:relation", 0.5);
    assert_eq!(topics(&document), [""; 0]);
}

#[test]
fn a_handful_of_transactions_makes_no_dip() {
    let mut document = quiet(15, 60, 1.0, WHITE);
    document.samples.tps.fill(Some(5.0));
    document.samples.transactions.fill(Some(5.0));
    set(&mut document.samples.tps, 30..31, 1.0);
    set(&mut document.samples.transactions, 30..31, 1.0);
    assert_eq!(of_topic(&document, "dip"), []);
}

#[test]
fn a_wait_that_rises_everywhere_is_chance() {
    let mut document = quiet(16, 120, 0.5, WHITE);
    for start in (0..120).step_by(8) {
        wait_for(&mut document, start..start + 4, "IO:DataFileRead", 0.6);
    }
    lower(&mut document, 56..60, 0.6);
    assert_eq!(the_dip(&document).1, None);
}

#[test]
fn a_warmup_ends_where_the_steady_level_begins() {
    for seed in 0..30 {
        let mut document = quiet(seed, 40, 0.5, WHITE);
        lower(&mut document, 0..8, 0.66);
        let found = findings(&document);
        let told: Vec<_> =
            found.iter().map(|f| (f.topic.as_str(), f.figures["steady_after_secs"].as_f64())).collect();
        assert_eq!(told, [("warmup", Some(4.0))], "{seed}");
    }
}

#[test]
fn what_a_checkpoint_ends_was_no_warmup() {
    let mut document = quiet(3, 120, 0.5, WHITE);
    let scaled = |tps: &mut Option<f64>| *tps = tps.map(|tps| tps * 0.6);
    document.samples.tps[24..].iter_mut().for_each(scaled);
    assert_eq!(topics(&document), ["warmup"]);
    document.events.push(event("checkpoint", 12.2, 30.0));
    assert!(!topics(&document).contains(&"warmup"));
}

#[test]
fn what_is_slow_has_not_stood_still() {
    let mut document = quiet(4, 60, 1.0, WHITE);
    lower(&mut document, 20..23, 0.93);
    document.summary.latency_max_ms = Some(70.0);
    assert!(!topics(&document).contains(&"stall"));
    // Three seconds, of which nobody waited for most.
    document.summary.latency_max_ms = Some(900.0);
    assert!(!topics(&document).contains(&"stall"));
    document.summary.latency_max_ms = Some(1600.0);
    assert!(topics(&document).contains(&"stall"));
}

/// With a rate, latencies show a stall, unless what was due in it was never started.
#[test]
fn a_rate_hides_what_is_never_started() {
    let mut document = quiet(4, 600, 0.1, WHITE);
    (document.run.rate, document.summary.backlog) = (Some(TPS), Some(4));
    lower(&mut document, 200..206, 1.0);
    document.summary.latency_max_ms = Some(600.0);
    assert_eq!(topics(&document), ["dip"], "each waited from when it was due");
    document.summary.skipped = 1100;
    let found = of_topic(&document, "stall").remove(0);
    assert!(found.finding.contains("of the transactions due, 1,100 were skipped, and have no"), "{found:#?}");
    assert!(found.advice.contains("without latency_limit"), "{}", found.advice);
    (document.summary.skipped, document.summary.backlog) = (0, Some(1100));
    let found = of_topic(&document, "stall").remove(0);
    assert!(
        found.finding.contains("of the transactions due, 1,096 were not started by the end"),
        "{found:#?}"
    );
    // As many as make it a rate that was not kept are one finding.
    document.summary.backlog = Some(20_000);
    assert_eq!(topics(&document), ["rate", "dip"]);
    assert!(
        of_topic(&document, "rate")[0]
            .finding
            .ends_with("Latencies do not include transactions that were not started.")
    );
}

/// What begins low by the rule for dips is a warm-up where there are too few intervals for levels.
#[test]
fn a_warmup_is_told_from_few_intervals() {
    for count in [8, 10, 20, 29] {
        let mut document = quiet(21, count, 1.0, WHITE);
        lower(&mut document, 0..2, 0.7);
        let found = findings(&document);
        let told: Vec<_> =
            found.iter().map(|f| (f.topic.as_str(), f.figures["steady_after_secs"].as_f64())).collect();
        assert_eq!(told, [("warmup", Some(2.0))], "{count}");
        assert!(found[0].advice.contains("warmup => 2"), "{}", found[0].advice);
        // One that lasts for half of the run may be anything.
        let mut document = quiet(21, count, 1.0, WHITE);
        lower(&mut document, 0..count / 2 - 1, 0.7);
        assert!(!topics(&document).contains(&"warmup"), "{count}");
    }
}

// Events that the server announced: told with the size of what followed them, and not told where nothing did. The seeds
// are fixed, so that the rates are too.

/// Lowers throughput from a time on for so many seconds, intervals at the edges by their part.
fn fall(document: &mut Document, at: f64, secs: f64, depth: f64) {
    for index in 0..document.samples.len() {
        let (end, length) = (document.samples.elapsed[index].unwrap(), document.samples.secs[index].unwrap());
        let within = (end.min(at + secs) - (end - length).max(at)).max(0.0) / length;
        lower(document, index..index + 1, depth * within);
    }
}

/// Whether anything is told of the events.
fn is_told(document: &Document) -> bool {
    let intervals = Intervals::of(&document.samples);
    !announced::effects(document, &intervals, &detect::detect(&intervals)).is_empty()
}

/// How often an effect is told in runs of so many intervals, and an event that did nothing: moved to another place of
/// the same run.
fn rates(seeds: u64, (count, secs): (usize, f64), noise: Noise, (depth, length): (f64, f64)) -> (f64, f64) {
    let (mut right, mut wrong) = (0, 0);
    for seed in 0..seeds {
        let mut random = Random::new(seed ^ 0x5eed);
        let measured = count as f64 * secs;
        let mut place = || 1.5 + random.uniform() * (measured - 4.0);
        let at = place();
        let elsewhere =
            std::iter::repeat_with(place).take(99).find(|other| (other - at).abs() > length + 1.5);
        let mut document = quiet(seed * 7919 + count as u64, count, secs, noise);
        fall(&mut document, at, length, depth);
        document.events.push(event("checkpoint", at, at + 2.0));
        right += u64::from(is_told(&document));
        let Some(elsewhere) = elsewhere else { continue };
        document.events[0].started = elsewhere;
        wrong += u64::from(is_told(&document));
    }
    (right as f64 / seeds as f64, wrong as f64 / seeds as f64)
}

#[test]
fn most_falls_of_a_second_are_told_and_other_places_are_not() {
    for (cv, effect) in [(0.02, (0.15, 1.0)), (0.05, (0.15, 1.5)), (0.05, (0.3, 1.3))] {
        let rates = [(40, 0.25), (80, 0.25)].map(|run| rates(300, run, Noise { cv, ..WHITE }, effect));
        assert!(
            rates.iter().all(|(right, wrong)| *right >= 0.95 && *wrong <= 0.02),
            "{cv}, {effect:?}: {rates:?}"
        );
    }
}

#[test]
fn a_checkpoint_is_told_with_its_size() {
    let mut document = quiet(1, 60, 0.25, WHITE);
    fall(&mut document, 8.0, 1.5, 0.18);
    document.samples.latency_p99_ms = vec![Some(14.0); 60];
    set(&mut document.samples.latency_p99_ms, 32..38, 22.0);
    set(&mut document.samples.wal_fpi, 34..38, 10_000.0);
    set(&mut document.samples.wal_bytes, 34..38, 100e6);
    document.events.push(event("checkpoint", 8.02, 9.0));
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    let text = &found[0].finding;
    assert!(text.starts_with("A checkpoint began at 8.0 s: throughput was "), "{text}");
    assert!(text.contains(", 99th percentile 22 ms instead of 14 ms; 40,"), "{text}");
    assert_eq!(found[0].severity, Severity::Notice);
    let depth = found[0].figures["depth"].as_f64().unwrap();
    assert!((depth - 0.18).abs() < 0.05, "{depth}");
    assert!(found[0].figures["depth_low"].as_f64().unwrap() < depth);
}

#[test]
fn events_of_a_kind_are_told_together_and_small_ones_as_notice() {
    let mut document = quiet(2, 160, 0.25, WHITE);
    for at in [8.0, 18.0, 28.0] {
        fall(&mut document, at, 2.0, 0.12);
        let relation = Some("pk".to_owned());
        document.events.push(Event { relation, ..event("autoanalyze", at, at + 2.0) });
    }
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].finding.starts_with("3 autoanalyzes of pk began (at 8.0 s, 18 s and 28 s): "),
        "{found:#?}"
    );
    assert_eq!((found[0].severity, &found[0].figures["count"]), (Severity::Notice, &3.into()));
}

#[test]
fn what_was_under_way_before_is_judged_by_its_end() {
    let mut document = quiet(3, 60, 0.25, WHITE);
    fall(&mut document, -1.0, 6.0, 0.3);
    document.events.push(event("backup", -10.0, 5.0));
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].finding.starts_with("A base backup ended at 5.0 s: throughput was "), "{found:#?}");
    assert_eq!((found[0].severity, &found[0].figures["until"][0]), (Severity::Warning, &5.0.into()));
}

#[test]
fn a_lock_beside_an_event_is_the_cause() {
    let mut document = quiet(4, 100, 0.2, WHITE);
    lower(&mut document, 50..60, 0.6);
    wait_for(&mut document, 50..60, "Lock:relation", 0.98);
    document.events.push(event("reload", 10.0, 10.0));
    let found = of_topic(&document, "dip");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].figures["coincide"][0]["cause"], "Lock:relation");
}

/// The rates over the whole grid; to be read, so it is run by hand:
/// `cargo test --release findings::tests::announced -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn announced_rates() {
    for (count, secs) in [(40, 0.25), (80, 0.25), (60, 0.5), (120, 1.0)] {
        for (cv, rho, wild) in [
            (0.02, 0.0, 0.0),
            (0.02, 0.3, 0.03),
            (0.05, 0.0, 0.0),
            (0.05, 0.3, 0.0),
            (0.05, 0.6, 0.0),
            (0.05, 0.0, 0.03),
            (0.1, 0.0, 0.0),
            (0.1, 0.3, 0.0),
        ] {
            print!("{count} of {secs} s, cv {cv}, rho {rho}, wild {wild}:");
            for effect in
                [(0.0, 1.0), (0.15, 1.0), (0.15, 1.5), (0.2, 1.0), (0.3, 1.3), (0.5, 1.3), (0.2, 4.0)]
            {
                let (right, wrong) = rates(300, (count, secs), Noise { cv, rho, wild }, effect);
                print!("  {:.0} % {} s: {right:.2} {wrong:.3}", effect.0 * 100.0, effect.1);
            }
            println!();
        }
    }
}

/// Where 12 s vary by more than a third from sample to sample and nothing is committed for 4.5 s of them, in the middle or at the
/// end.
#[test]
fn a_standstill_is_found_in_a_noisy_run() {
    let mut unjudged = Vec::new();
    for (seed, low) in (1..=20).flat_map(|seed| [(seed, 20..38), (seed, 30..48)]) {
        let begin = low.start as f64 * 0.25;
        let mut document = quiet(seed, 48, 0.25, Noise { cv: 0.4, ..WHITE });
        lower(&mut document, low, 1.0);
        let (dip, _) = the_dip(&document);
        assert!(dip.finding.contains("up to 100 % below"), "{}", dip.finding);
        // Samples beside it may be low by chance.
        let secs = dip.figures["secs"].as_f64().unwrap();
        let at = dip.figures["at"][0].as_f64().unwrap();
        assert!((4.5..=6.0).contains(&secs) && (begin - 1.0..=begin).contains(&at), "{}", dip.finding);
        unjudged.extend(of_topic(&document, "samples"));
    }
    // In most of them nothing else would have stood out.
    let is_said = |of: &Finding| of.finding.contains("only a standstill of several samples stands out");
    assert!(unjudged.len() > 20 && unjudged.iter().all(is_said), "{unjudged:#?}");
}
