//! How often a run with nothing but noise has a finding. The seeds are fixed, so that the rates are too.

use super::*;

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
