//! When simulated series of intervals of a quarter of a second count as steady, and how far the ten seconds after that are
//! from their final level. Seeds are fixed.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::until_steady::*;

const INTERVAL_SECS: f64 = 0.25;
/// The throughput that the series come to.
const LEVEL: f64 = 1000.0;

/// A normal deviate (Box & Muller, Annals of Mathematical Statistics 29, 1958).
fn normal(random: &mut Pcg64) -> f64 {
    let (radius, angle): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// When a series counts as steady, in seconds; at the limit if never. `next` is the throughput of the interval that
/// begins at a time.
fn stops_after(mut next: impl FnMut(f64) -> f64) -> f64 {
    let mut series = UntilSteady::new(false);
    let mut secs = 0.0;
    while secs < LONGEST_SECS {
        let is_steady = series.add(INTERVAL_SECS, next(secs), None);
        secs += INTERVAL_SECS;
        if is_steady {
            break;
        }
    }
    secs
}

/// The same of so many series with noise of this coefficient of variation, of which each value is like the one before by
/// `alike`; sorted.
fn stops(cv: f64, alike: f64, level: impl Fn(f64) -> f64) -> Vec<f64> {
    const SERIES: u64 = 400;
    let one = |seed| {
        let mut random = Pcg64::seed_from_u64(seed);
        let mut deviation = normal(&mut random);
        stops_after(|secs| {
            deviation = alike * deviation + (1.0 - alike * alike).sqrt() * normal(&mut random);
            level(secs) * (1.0 + cv * deviation).max(0.0)
        })
    };
    let mut stops: Vec<f64> = (0..SERIES).map(one).collect();
    stops.sort_by(f64::total_cmp);
    stops
}

/// The value that this share of the sorted values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

/// The share of series of which the ten seconds after they count as steady are within 3 % of the level, for each noise: its
/// coefficient of variation, and how alike neighbours are.
fn share_within(level: impl Fn(f64) -> f64 + Copy) -> [f64; 3] {
    [(0.02, 0.0), (0.02, 0.6), (0.1, 0.0)].map(|(cv, alike)| {
        let is_within = |stop: &&f64| {
            let mean = (0..100).map(|tenth| level(**stop + f64::from(tenth) / 10.0)).sum::<f64>() / 100.0;
            (mean / LEVEL - 1.0).abs() <= 0.03
        };
        let stops = stops(cv, alike, level);
        stops.iter().filter(is_within).count() as f64 / stops.len() as f64
    })
}

/// The tables of docs/statistics.md.
#[test]
#[ignore = "prints figures"]
fn figures_of_the_documentation() {
    for (cv, alike) in
        [(0.005, 0.0), (0.01, 0.0), (0.02, 0.0), (0.02, 0.6), (0.05, 0.0), (0.1, 0.0), (0.1, 0.6), (0.3, 0.0)]
    {
        let stops = stops(cv, alike, |_| LEVEL);
        println!("| {cv} {alike} | {:.0} s | {:.0} s |", quantile(&stops, 0.5), quantile(&stops, 0.95));
    }
    for from in [0.0, 0.5, 0.8] {
        for tau in [1.0, 5.0, 20.0, 60.0] {
            let level = move |secs: f64| LEVEL * (1.0 - (1.0 - from) * (-secs / tau).exp());
            let ends = [(0.02, 0.0), (0.1, 0.0)].map(|(cv, alike)| quantile(&stops(cv, alike, level), 0.5));
            println!("| {from} {tau} | {ends:?} | {:?} |", share_within(level));
        }
    }
    for length in [5.0, 30.0, 100.0] {
        let level = move |secs: f64| LEVEL * (0.5 + 0.5 * (secs / length).min(1.0));
        let ends = [(0.02, 0.0), (0.1, 0.0)].map(|(cv, alike)| quantile(&stops(cv, alike, level), 0.5));
        println!("| linear {length} | {ends:?} | {:?} |", share_within(level));
    }
}

#[test]
fn a_steady_series_is_soon_told() {
    let secs = [
        ((0.005, 0.0), 7.0),
        ((0.01, 0.0), 10.0),
        ((0.02, 0.0), 20.0),
        ((0.02, 0.6), 25.0),
        ((0.05, 0.0), 30.0),
        ((0.1, 0.0), 45.0),
        ((0.1, 0.6), 90.0),
    ];
    for ((cv, alike), within) in secs {
        let most = quantile(&stops(cv, alike, |_| LEVEL), 0.95);
        assert!(most <= within, "{cv} {alike}: {most} s");
    }
}

#[test]
fn a_rise_is_waited_for() {
    for from in [0.0, 0.5] {
        for tau in [1.0, 5.0, 20.0, 60.0] {
            let level = move |secs: f64| LEVEL * (1.0 - (1.0 - from) * (-secs / tau).exp());
            let shares = share_within(level);
            assert!(shares.iter().all(|share| *share >= 0.95), "from {from}, {tau} s: {shares:?}");
        }
    }
    for length in [5.0, 30.0, 100.0] {
        let shares = share_within(move |secs: f64| LEVEL * (0.5 + 0.5 * (secs / length).min(1.0)));
        assert!(shares.iter().all(|share| *share >= 0.95), "linear, {length} s: {shares:?}");
    }
}

#[test]
fn a_fall_is_waited_for() {
    for tau in [1.0, 5.0, 20.0] {
        let level = move |secs: f64| LEVEL * (1.0 + 0.5 * (-secs / tau).exp());
        let shares = share_within(level);
        assert!(shares[..2].iter().all(|share| *share >= 0.95), "{tau} s: {shares:?}");
    }
}

#[test]
fn a_slow_start_is_waited_for() {
    let shares = share_within(|secs| LEVEL * if secs < 4.0 { 0.5 } else { 1.0 });
    assert!(shares.iter().all(|share| *share >= 0.95), "{shares:?}");
}

/// Nothing foretells a step, and a change of less than 3 % in ten seconds counts as none.
#[test]
fn what_comes_later_is_not_foreseen() {
    let step = stops(0.02, 0.0, |secs| LEVEL * if secs < 30.0 { 0.5 } else { 1.0 });
    assert!(quantile(&step, 0.95) < 30.0);
    let slow = stops(0.02, 0.0, |secs| LEVEL * (1.0 - 0.1 * (-secs / 60.0).exp()));
    assert!(quantile(&slow, 0.95) < 30.0);
}

/// One transaction in each interval, on average.
#[test]
fn few_transactions_do_not_take_for_ever() {
    let one = |seed| {
        let mut random = Pcg64::seed_from_u64(seed);
        stops_after(|_| {
            let gaps = std::iter::repeat_with(|| -(1.0 - random.random::<f64>()).ln());
            let mut sum = 0.0;
            let count = gaps
                .take_while(|gap| {
                    sum += gap;
                    sum < 1.0
                })
                .count();
            count as f64 / INTERVAL_SECS
        })
    };
    let mut stops: Vec<f64> = (0..400).map(one).collect();
    stops.sort_by(f64::total_cmp);
    assert!(quantile(&stops, 0.95) <= 100.0, "{stops:?}");
}

#[test]
fn nothing_done_is_not_steady() {
    assert_eq!(stops_after(|_| 0.0), LONGEST_SECS);
    assert_eq!(stops_after(|_| f64::NAN), LONGEST_SECS);
}

/// A server at its limit is as steady as can be, while it makes up for what it is behind by.
#[test]
fn a_backlog_is_waited_for() {
    let stop = |lag: fn(f64) -> f64| {
        let mut series = UntilSteady::new(true);
        (1..=1200).find(|&index| {
            let secs = f64::from(index) * INTERVAL_SECS;
            series.add(INTERVAL_SECS, LEVEL, Some(lag(secs)))
        })
    };
    let secs = |index: Option<u32>| f64::from(index.expect("steady")) * INTERVAL_SECS;
    assert_eq!(secs(stop(|_| 0.001)), 5.0);
    // Made up for after 16 s.
    let drained = secs(stop(|secs| (0.8 - 0.05 * secs).max(0.0)));
    assert!((16.0..40.0).contains(&drained), "{drained}");
    // Never, for more come than are served.
    assert_eq!(stop(|secs| 0.05 * secs), None);
}

#[test]
fn what_is_steady_stays_so() {
    let mut series = UntilSteady::new(false);
    let steady = (0..20).filter(|_| series.add(INTERVAL_SECS, LEVEL, None)).count();
    assert_eq!(steady, 1);
    assert!((0..100).all(|index| series.add(INTERVAL_SECS, LEVEL * f64::from(index), None)));
}
