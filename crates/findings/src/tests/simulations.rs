//! How often a dip is told where there is none, and where there is one: simulated runs over a grid of depths, noises and
//! lengths. The seeds are fixed, so that the rates are too.

use std::ops::Range;

use crate::dips::detect;
use crate::intervals::Intervals;
use crate::tests::*;

/// The intervals of one run, of a second each.
fn run(seed: u64, count: usize, noise: Noise) -> Vec<f64> {
    let mut random = Random::new(seed.wrapping_mul(7919) + count as u64);
    let mut deviation = random.normal();
    let mut next = || {
        deviation = noise.rho * deviation + (1.0 - noise.rho * noise.rho).sqrt() * random.normal();
        TPS * (1.0 + noise.cv * deviation).max(0.0)
    };
    (0..count).map(|_| next()).collect()
}

/// What is detected in a series of intervals of so many seconds.
fn detected(tps: &[f64], secs: f64) -> Vec<Range<usize>> {
    let mut samples = Samples::default();
    for (index, &tps) in tps.iter().enumerate() {
        samples.elapsed.push(Some((index + 1) as f64 * secs));
        samples.secs.push(Some(secs));
        samples.tps.push(Some(tps));
        samples.transactions.push(Some(tps * secs));
    }
    detect::detect(&Intervals::of(&samples)).dips.into_iter().map(|dip| dip.intervals).collect()
}

/// The share of runs that have a dip where nothing was planted.
fn false_alarms(seeds: u64, count: usize, noise: Noise) -> f64 {
    let alarms = (0..seeds).filter(|&seed| !detected(&run(seed, count, noise), 1.0).is_empty()).count();
    alarms as f64 / seeds as f64
}

/// The share of runs in which a dip in the middle is found where it was planted, and no other.
fn found(seeds: u64, count: usize, noise: Noise, depth: f64, length: usize) -> f64 {
    found_from(seeds, count, noise, depth, count / 2..count / 2 + length)
}

/// As [`found`], of a dip anywhere.
fn found_from(seeds: u64, count: usize, noise: Noise, depth: f64, planted: Range<usize>) -> f64 {
    let is_found = |seed: &u64| {
        let mut tps = run(*seed, count, noise);
        tps[planted.clone()].iter_mut().for_each(|tps| *tps *= 1.0 - depth);
        let dips = detected(&tps, 1.0);
        dips.len() == 1 && dips[0].start <= planted.start && dips[0].end >= planted.end
    };
    (0..seeds).filter(is_found).count() as f64 / seeds as f64
}

fn white(cv: f64) -> Noise {
    Noise { cv, ..WHITE }
}

#[test]
fn few_intervals_have_hardly_a_false_alarm() {
    const SEEDS: u64 = 1000;
    let cells = [8, 10, 12, 16, 20, 24, 29].map(|count| [0.02, 0.05, 0.1].map(|cv| (count, white(cv))));
    let rates: Vec<f64> =
        cells.iter().flatten().map(|&(count, noise)| false_alarms(SEEDS, count, noise)).collect();
    let rate = rates.iter().sum::<f64>() / rates.len() as f64;
    assert!(rate <= 0.0003, "{rate} of few intervals: {rates:?}");
}

#[test]
fn one_deep_interval_of_few_is_found() {
    for count in [8, 10, 15, 20, 25, 29] {
        for cv in [0.01, 0.03, 0.05] {
            let rate = found(500, count, white(cv), 0.6, 1);
            assert!(rate >= 0.99, "{count} intervals at {cv}: {rate}");
        }
    }
    // What is no deeper than noise can be is none.
    assert!(found(500, 15, white(0.05), 0.25, 1) <= 0.01);
}

#[test]
fn longer_runs_are_judged_as_before() {
    for (count, cv, depth, length) in
        [(40, 0.03, 0.3, 4), (60, 0.05, 0.4, 3), (120, 0.05, 0.4, 1), (100, 0.15, 0.85, 3)]
    {
        let rate = found(200, count, white(cv), depth, length);
        assert!(rate >= 0.95, "{count} intervals, {length} of {depth} at {cv}: {rate}");
        let rate = false_alarms(500, count, white(cv));
        assert!(rate <= 0.004, "{count} intervals at {cv}: {rate}");
    }
}

/// One interval of such noise may lie as deep by chance, two side by side do not.
#[test]
fn a_stall_of_two_intervals_stands_out_of_much_noise() {
    for (count, cv) in [(20, 0.2), (29, 0.22), (60, 0.24), (100, 0.26)] {
        let rate = found(500, count, white(cv), 1.0, 2);
        assert!(rate >= 0.85, "{count} intervals at {cv}: {rate}");
        let rate = false_alarms(1000, count, white(cv));
        assert!(rate <= 0.012, "{count} intervals at {cv}: {rate}");
    }
}

/// Writers that an index build locks out for more than half of the run.
#[test]
fn a_standstill_of_most_of_the_run_is_found() {
    for (count, cv) in [(20, 0.05), (70, 0.03), (70, 0.1), (300, 0.05)] {
        for share in [0.45, 0.5, 0.51, 0.7] {
            let length = (count as f64 * share).ceil() as usize;
            for start in [5, count - length] {
                let rate = found_from(300, count, white(cv), 1.0, start..start + length);
                assert!(rate >= 0.98, "{share} of {count} intervals from {start} on at {cv}: {rate}");
            }
        }
    }
}

/// Long transactions of clients that began together, pauses included, and few transactions leave intervals empty as well.
#[test]
fn empty_intervals_alone_are_no_dip() {
    for clients in [4, 16, 64] {
        for cycle in [2, 3, 8, 20] {
            let mut samples = Samples::default();
            for index in 0..120 {
                let transactions = if index % cycle == cycle - 1 { f64::from(clients) } else { 0.0 };
                samples.elapsed.push(Some(f64::from(index + 1)));
                samples.secs.push(Some(1.0));
                samples.clients.push(Some(f64::from(clients)));
                samples.tps.push(Some(transactions));
                samples.transactions.push(Some(transactions));
            }
            let dips = detect::detect(&Intervals::of(&samples)).dips;
            assert_eq!(dips, [], "{clients} clients, a transaction in {cycle} s");
        }
    }
    for mean in [0.2, 0.5, 2.0, 8.0] {
        let alarms = (0..300).filter(|&seed| {
            let mut random = Random::new(seed);
            // Arrivals of a Poisson process, counted by intervals.
            let (mut tps, mut at) = (vec![0.0; 100], 0.0);
            loop {
                at -= (1.0 - random.uniform()).ln() / mean;
                match tps.get_mut(at as usize) {
                    Some(count) => *count += 1.0,
                    None => break,
                }
            }
            !detected(&tps, 1.0).is_empty()
        });
        assert_eq!(alarms.count(), 0, "{mean} an interval");
    }
}

/// The throughput of a run of 24 s with three checkpoints, as it was measured from the beginning and after the last
/// checkpoint: what lies between wanders by a third.
#[test]
fn dips_are_found_where_the_level_wanders() {
    const FIRST: [f64; 3] = [68_632.0, 87_604.0, 66_820.0];
    const DIP: [f64; 7] = [16_888.0, 16_896.0, 19_316.0, 27_484.0, 48_172.0, 75_876.0, 82_560.0];
    const STARTS: [usize; 3] = [22, 48, 74];
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let phase = random.uniform();
        let mut tps: Vec<f64> = (0..96)
            .map(|index| {
                let level =
                    77_000.0 + 13_000.0 * (std::f64::consts::TAU * (index as f64 / 48.0 + phase)).sin();
                level * (1.0 + 0.1 * random.normal())
            })
            .collect();
        tps[..3].copy_from_slice(&FIRST);
        for start in STARTS {
            tps[start..start + 7].copy_from_slice(&DIP);
        }
        let starts: Vec<usize> = detected(&tps, 0.25).into_iter().map(|dip| dip.start).collect();
        assert_eq!(starts, STARTS, "{seed}: {tps:?}");
    }
}

#[test]
fn a_deep_interval_is_told_in_a_run_of_any_length() {
    for count in [60, 600, 3000] {
        let mut document = quiet(17, count, 1.0, white(0.05));
        lower(&mut document, count / 2..count / 2 + 1, 0.6);
        assert_eq!(topics(&document), ["dip"], "{count}");
    }
    // A shallow one costs too little of ten minutes.
    let mut document = quiet(17, 600, 1.0, white(0.03));
    lower(&mut document, 300..301, 0.35);
    assert_eq!(topics(&document), [""; 0]);
}

/// The rates over the whole grid; to be read, so it is run by hand:
/// `cargo test --release findings::tests::simulations -- --ignored --nocapture`.
#[test]
#[ignore = "prints a table"]
fn rates_over_the_grid() {
    const SEEDS: u64 = 10_000;
    for count in [8, 10, 15, 20, 29, 30, 40, 60, 120, 600] {
        for (cv, rho) in
            [(0.02, 0.0), (0.05, 0.0), (0.1, 0.0), (0.15, 0.0), (0.2, 0.0), (0.05, 0.5), (0.1, 0.5)]
        {
            let noise = Noise { cv, rho, wild: 0.0 };
            let seeds = if count > 100 { SEEDS / 10 } else { SEEDS };
            print!(
                "{count} intervals, cv {cv}, rho {rho}: false alarms {:.5};",
                false_alarms(seeds, count, noise)
            );
            for (depth, length) in [(0.3, 1), (0.3, 3), (0.4, 1), (0.6, 1), (0.6, 3), (0.8, 1), (0.8, 3)] {
                let length = if count < 10 { length.min(2) } else { length };
                print!(" {length} of {depth}: {:.3}", found(seeds / 10, count, noise, depth, length));
            }
            println!();
        }
    }
}
