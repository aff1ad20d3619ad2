use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::compare::Verdict;
use crate::duel::*;
use crate::histogram::bucket_of;

const TERMS: Terms = Terms { margin: 0.0, confidence: CONFIDENCE, better: Better::Lower };

/// A machine: how its speed wanders from batch to batch, for both arms alike (`drift`) and for one of them (`apart`, of which
/// `persistence` is left in the next batch), and how much single transactions differ.
#[derive(Clone, Copy)]
struct Machine {
    drift: f64,
    apart: f64,
    persistence: f64,
    spread: f64,
    /// Share of batches in which everything takes three times as long for one of the arms, by chance.
    bursts: f64,
}

const QUIET: Machine = Machine { drift: 0.0, apart: 0.0, persistence: 0.0, spread: 0.8, bursts: 0.0 };

/// A duel of an arm that takes `effect` times as long, with transactions whose times have a heavy tail.
fn batches(random: &mut StdRng, effect: f64, machine: Machine) -> Vec<[ArmBatch; 2]> {
    let (mut common, mut own) = (0.0, 0.0);
    (0..BATCHES)
        .map(|_| {
            common = 0.95 * common + machine.drift * normal(random);
            own = machine.persistence * own + machine.apart * normal(random);
            let mut arm = |shift: f64| {
                let burst = if random.random_bool(machine.bursts) { 3.0 } else { 1.0 };
                let (mut latencies, mut sum) = (BTreeMap::new(), 0.0);
                for _ in 0..100 {
                    let ms = burst * (common + shift + machine.spread * normal(random)).exp();
                    *latencies.entry(bucket_of((ms * 1e6) as u64) as u32).or_default() += 1;
                    sum += ms;
                }
                ArmBatch {
                    transactions: 100,
                    latency_ms: sum,
                    timed: 100,
                    cpu_us: sum,
                    latencies,
                    ..ArmBatch::default()
                }
            };
            [arm(0.0), arm(own + effect.ln())]
        })
        .collect()
}

fn normal(random: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (random.random_range(1e-12..1.0), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Shares of duels whose interval excludes the true ratio, and the mean half-width.
fn misses(effect: f64, machine: Machine, metric: &DuelMetric) -> (f64, f64) {
    const DUELS: usize = 400;
    let mut random = StdRng::seed_from_u64(11);
    let (mut missed, mut width) = (0, 0.0);
    for _ in 0..DUELS {
        let found = compare(&batches(&mut random, effect, machine), metric, TERMS).unwrap();
        let ratio = found.comparison.ratio.unwrap();
        missed += usize::from(effect < ratio.low || effect > ratio.high);
        width += (ratio.high - ratio.low) / 2.0 / DUELS as f64;
    }
    (missed as f64 / DUELS as f64, width)
}

#[test]
fn intervals_hold_the_truth_however_the_machine_wanders() {
    // By 5 % if they are right: of 400, 8.5 % are beyond three standard errors.
    let (steady, width) = misses(1.0, QUIET, &METRICS[0]);
    assert!(steady < 0.085, "{steady}");
    let drifting = Machine { drift: 0.3, ..QUIET };
    let (drifted, drifting_width) = misses(1.0, drifting, &METRICS[0]);
    assert!(drifted < 0.085, "{drifted}");
    // Drift is no part of the ratios. It costs a little, for slow times weigh more than others.
    assert!(drifting_width < 1.3 * width, "{drifting_width} {width}");
    let (found, _) = misses(1.05, drifting, &METRICS[0]);
    assert!(found < 0.085, "{found}");
    let (burst, _) = misses(1.0, Machine { bursts: 0.03, ..drifting }, &METRICS[0]);
    assert!(burst < 0.085, "{burst}");
    for p50_or_p95 in [&METRICS[1], &METRICS[2]] {
        let (of_percentile, _) = misses(1.05, drifting, p50_or_p95);
        assert!(of_percentile < 0.085, "{of_percentile}");
    }
}

#[test]
fn what_favours_one_arm_for_a_while_widens_the_interval() {
    let favours = Machine { drift: 0.1, apart: 0.05, persistence: 0.7, ..QUIET };
    let (misses, _) = misses(1.0, favours, &METRICS[0]);
    assert!(misses < 0.12, "{misses}");
}

#[test]
fn an_effect_is_found() {
    let mut random = StdRng::seed_from_u64(3);
    let batches = batches(&mut random, 1.10, Machine { drift: 0.3, ..QUIET });
    let found = compare(&batches, &METRICS[4], TERMS).unwrap();
    assert_eq!(found.comparison.verdict, Verdict::Slower);
    assert!((found.means[1] / found.means[0] - 1.1).abs() < 0.05);
}

/// A client of ten seconds whose arms take turns of three milliseconds, and which is stopped once a second, for 100 ms on average,
/// in whatever arm it is. A transaction of b takes `ratio` times as long as one of a.
fn with_stalls(random: &mut StdRng, ratio: f64) -> Vec<[ArmBatch; 2]> {
    const SECS: f64 = 10.0;
    const TURN: f64 = 0.003;
    const COST: f64 = 0.0001;
    let exponential = |random: &mut StdRng, mean: f64| -mean * random.random_range(1e-12..1.0_f64).ln();
    let mut batches = vec![<[ArmBatch; 2]>::default(); BATCHES];
    let mut now = 0.0;
    let mut stall_at = exponential(random, 1.0);
    while now < SECS {
        let first = usize::from(random.random_bool(0.5));
        for arm in [first, 1 - first] {
            let cost = if arm == 1 { ratio * COST } else { COST };
            let count = (TURN / cost).round();
            let mut took = cost * (count + 0.3 * count.sqrt() * normal(random)).max(0.2 * count);
            while stall_at < now + took {
                let stall = exponential(random, 0.1);
                took += stall;
                stall_at += stall + exponential(random, 1.0);
            }
            let batch = &mut batches[((now / SECS * BATCHES as f64) as usize).min(BATCHES - 1)][arm];
            batch.transactions += count as u64;
            batch.latency_ms += took * 1e3;
            now += took;
        }
    }
    batches
}

#[test]
fn intervals_hold_the_truth_where_the_machine_stalls() {
    const DUELS: usize = 400;
    for ratio in [1.0, 3.0, 10.0, 30.0] {
        let mut random = StdRng::seed_from_u64(17);
        let held = (0..DUELS).filter(|_| {
            let found = compare(&with_stalls(&mut random, ratio), &METRICS[0], TERMS).unwrap();
            let printed = found.means[1] / found.means[0];
            let found = found.comparison.ratio.unwrap();
            assert!((found.value / printed - 1.0).abs() < 1e-12, "{found:?} beside {printed}");
            found.low <= ratio && ratio <= found.high
        });
        let held = held.count() as f64 / DUELS as f64;
        assert!(held >= 0.93, "{ratio}: {held}");
    }
}

/// Runs that end at the first look that decides: the verdict, and the share of the time that each took.
fn ended_early(effect: f64, machine: Machine, margin: f64) -> Vec<(Verdict, f64)> {
    let mut random = StdRng::seed_from_u64(5);
    let duels = (0..400).map(|_| {
        let all = batches(&mut random, effect, machine);
        let decides = |count: &usize| is_look(*count) && is_decided(&all[..*count], margin);
        let count = (1..=BATCHES).find(decides).unwrap_or(BATCHES);
        let (count, confidence) = looked_at(count, true);
        let terms = Terms { margin, confidence, better: Better::Lower };
        let found = compare(&all[..count], &METRICS[0], terms).unwrap();
        (found.comparison.verdict, count as f64 / BATCHES as f64)
    });
    duels.collect()
}

fn share(duels: &[(Verdict, f64)], is: impl Fn(Verdict) -> bool) -> f64 {
    duels.iter().filter(|(verdict, _)| is(*verdict)).count() as f64 / duels.len() as f64
}

#[test]
fn a_run_that_ends_when_it_is_decided_is_wrong_no_oftener_than_another() {
    let drifting = Machine { drift: 0.3, ..QUIET };
    // Equal arms, with a margin that is never reached: all looks are taken.
    let equal = ended_early(1.0, drifting, 0.0);
    let wrong = share(&equal, |verdict| verdict != Verdict::Inconclusive);
    assert!(wrong < 0.085, "{wrong}");
    // At the margin's edge either verdict is right; beyond it `same` is wrong.
    let same = share(&ended_early(1.06, drifting, 0.05), |verdict| verdict == Verdict::Same);
    assert!(same < 0.085, "{same}");
    // What is plain is decided soon, and rightly.
    for (effect, expected) in [(1.0, Verdict::Same), (1.3, Verdict::Slower), (0.7, Verdict::Faster)] {
        let duels = ended_early(effect, Machine { spread: 0.2, ..drifting }, 0.05);
        let right = share(&duels, |verdict| verdict == expected);
        let took = duels.iter().map(|(_, took)| took).sum::<f64>() / duels.len() as f64;
        assert!(right > 0.99 && took < 0.4, "{effect}: {right} {took}");
    }
}

#[test]
fn looks_are_at_quarters() {
    assert_eq!((1..=BATCHES).filter(|count| is_look(*count)).collect::<Vec<_>>(), [16, 32, 48, 64]);
    assert_eq!(looked_at(17, true), (16, LOOKS[0]));
    assert_eq!(looked_at(64, true), (64, LOOKS[3]));
    assert_eq!(looked_at(5, true), (5, LOOKS[0]));
    assert_eq!(looked_at(17, false), (17, CONFIDENCE));
    assert!(!is_look(0));
}

#[test]
fn an_arm_without_transactions_is_not_compared() {
    let one = ArmBatch { transactions: 5, latency_ms: 1.0, ..ArmBatch::default() };
    let none = ArmBatch::default;
    let found = |batches: &[[ArmBatch; 2]]| compare(batches, &METRICS[0], TERMS);
    assert_eq!(found(&[[one.clone(), none()]]), None);
    assert_eq!(found(&[]), None);
    assert_eq!(compare(&[[one.clone(), one.clone()]], &METRICS[4], TERMS), None);
    // Long transactions: one arm by turns.
    let (a, b) = ([one.clone(), none()], [none(), one.clone()]);
    let slow = found(&[a.clone(), b.clone(), a.clone(), b, a]);
    assert_eq!(slow.map(|found| (found.batches, found.means)), Some((2, [0.2, 0.2])));
    let single = found(&[[one.clone(), one]]).unwrap();
    assert_eq!((single.comparison.ratio, single.batches), (None, 1));
    assert_eq!(none().percentile_ms(0.5), None);
}

#[test]
fn what_neither_has_is_nothing_of_both() {
    let arm = ArmBatch { transactions: 5, counted: 5, rows: 10, ..ArmBatch::default() };
    let found = compare(&[[arm.clone(), arm.clone()], [arm.clone(), arm]], &METRICS[6], TERMS).unwrap();
    assert_eq!((found.means, found.batches, found.comparison.ratio), ([0.0, 0.0], 0, None));
}
