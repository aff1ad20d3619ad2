use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use statrs::distribution::{ContinuousCDF, Normal};

use crate::change_points::*;

/// Changes of any size.
fn changes_of(values: &[f64]) -> Vec<ChangePoint> {
    change_points(values, 0.0)
}

/// Runs about levels, in lognormal noise of a relative standard deviation.
struct Runs {
    random: Pcg64,
    noise: Normal,
}

impl Runs {
    fn new(seed: u64, noise: f64) -> Self {
        Self { random: Pcg64::seed_from_u64(seed), noise: Normal::new(0.0, noise).unwrap() }
    }

    fn about(&mut self, levels: &[f64]) -> Vec<f64> {
        self.alike_about(levels, 0.0)
    }

    /// A series about levels, whose noise is a first-order autoregression with a coefficient.
    fn alike_about(&mut self, levels: &[f64], coefficient: f64) -> Vec<f64> {
        let share = (1.0 - coefficient * coefficient).sqrt();
        let mut off = self.noise.inverse_cdf(self.random.random());
        let mut run = |level: &f64| {
            let value = level * off.exp();
            off = coefficient * off + share * self.noise.inverse_cdf(self.random.random());
            value
        };
        levels.iter().map(&mut run).collect()
    }
}

/// Stretches of (length, level).
fn levels(stretches: &[(usize, f64)]) -> Vec<f64> {
    stretches.iter().flat_map(|(length, level)| vec![*level; *length]).collect()
}

fn near(found: &[ChangePoint], index: usize) -> bool {
    found.iter().any(|change| change.index.abs_diff(index) <= 2)
}

#[test]
fn a_clean_step_is_where_it_is() {
    let found = changes_of(&levels(&[(6, 100.0), (5, 110.0)]));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].index, found[0].before, found[0].after), (6, 100.0, 110.0));
    let change = found[0].change.unwrap();
    assert!((change.value - 0.1).abs() < 1e-12 && change.high - change.low < 1e-12, "{change:?}");
    assert!(found[0].p >= 0.005 && found[0].p <= SIGNIFICANCE);
}

#[test]
fn what_cannot_change_does_not() {
    for length in 0..6 {
        assert_eq!(changes_of(&levels(&[(length / 2, 1.0), (length - length / 2, 9.0)])), []);
    }
    assert_eq!(changes_of(&[7.0; 50]), []);
    assert_eq!(changes_of(&[levels(&[(9, 1.0), (9, 2.0)]), vec![f64::NAN]].concat()), []);
}

#[test]
fn values_that_are_not_positive_have_no_ratio() {
    let found = changes_of(&levels(&[(9, 0.0), (9, 5.0)]));
    assert_eq!((found.len(), found[0].index, found[0].change), (1, 9, None));
}

#[test]
fn a_series_without_change_seldom_has_one() {
    const SERIES: usize = 1000;
    // Three standard errors of a rate of 5 % of 1000 above it.
    const MOST: f64 = SIGNIFICANCE + 0.021;
    for (seed, noise) in [(1, 0.03), (2, 0.5)] {
        let mut runs = Runs::new(seed, noise);
        let any = (0..SERIES).filter(|_| !changes_of(&runs.about(&[1000.0; 30])).is_empty()).count();
        let rate = any as f64 / SERIES as f64;
        assert!(rate <= MOST, "{rate} at {noise}");
        // It is a test, and not one that never speaks.
        assert!(rate >= 0.01, "{rate} at {noise}");
    }
}

#[test]
fn a_step_of_five_percent_is_found_and_measured() {
    const SERIES: usize = 400;
    let mut runs = Runs::new(3, 0.02);
    let (mut found, mut alone, mut held) = (0, 0, 0);
    for _ in 0..SERIES {
        let changes = changes_of(&runs.about(&levels(&[(20, 1000.0), (20, 950.0)])));
        found += usize::from(near(&changes, 20));
        if let [change] = changes.as_slice() {
            let interval = change.change.unwrap();
            assert!(interval.low <= interval.value && interval.value <= interval.high);
            alone += 1;
            held += usize::from(interval.low <= -0.05 && -0.05 <= interval.high);
        }
    }
    assert!(found as f64 >= 0.95 * SERIES as f64, "found in {found}");
    // 95 %, less three standard errors of a rate of 400.
    assert!(held as f64 >= 0.917 * f64::from(alone), "{held} of {alone}");
}

#[test]
fn two_steps_are_found_both_even_where_the_level_returns() {
    const SERIES: usize = 50;
    for (seed, last) in [(4, 1120.0), (5, 1000.0)] {
        let mut runs = Runs::new(seed, 0.02);
        let both = (0..SERIES)
            .filter(|_| {
                let changes = changes_of(&runs.about(&levels(&[(15, 1000.0), (15, 1060.0), (30, last)])));
                near(&changes, 15) && near(&changes, 30)
            })
            .count();
        assert!(both >= 42, "{both} of {SERIES} with {last}");
    }
}

/// How often a history of equal levels has a change that is worth telling.
fn alarms(series: usize, mut history: impl FnMut(usize) -> Vec<f64>) -> f64 {
    (0..series).filter(|number| !change_points(&history(*number), 0.02).is_empty()).count() as f64
        / series as f64
}

/// Without regard to it, half of histories of 30 runs with a coefficient of 0.5 changed.
#[test]
fn neighbours_that_are_alike_are_seldom_a_level() {
    for (length, coefficient, most) in [(30, 0.3, 0.15), (30, 0.5, 0.23)] {
        let mut runs = Runs::new(7, 0.02);
        let rate = alarms(200, |_| runs.alike_about(&vec![1000.0; length], coefficient));
        assert!(rate <= most, "{length} runs, {coefficient}: {rate}");
    }
}

/// Two runs of half the throughput were a level in 9 of 10 histories of 100 runs, wherever they were.
#[test]
fn two_outliers_beside_each_other_are_no_level() {
    for (length, noise) in [(30, 0.02), (100, 0.02)] {
        let mut runs = Runs::new(8, noise);
        let rate = alarms(100, |number| {
            let mut history = runs.about(&vec![1000.0; length]);
            let first = number * 7 % (length - 1);
            history[first..first + 2].iter_mut().for_each(|value| *value *= 0.5);
            history
        });
        assert!(rate <= 0.15, "{length} runs, {noise}: {rate}");
    }
}

#[test]
fn outliers_hide_no_step() {
    const SERIES: usize = 50;
    let mut runs = Runs::new(9, 0.02);
    let found = (0..SERIES).filter(|number| {
        let mut history = runs.about(&levels(&[(30, 1000.0), (30, 900.0)]));
        let first = number * 7 % 59;
        history[first..first + 2].iter_mut().for_each(|value| *value *= 0.5);
        let changes = change_points(&history, 0.02);
        changes.iter().any(|change| change.index.abs_diff(30) <= 4)
    });
    let found = found.count();
    assert!(found >= 40, "{found}");
}

#[test]
fn three_runs_are_a_level() {
    let mut runs = Runs::new(10, 0.01);
    let stretches = [(30, 1000.0), (3, 500.0), (30, 1000.0)];
    let changes = change_points(&runs.about(&levels(&stretches)), 0.02);
    assert_eq!(changes.iter().map(|change| change.index).collect::<Vec<_>>(), [30, 33]);
}

#[test]
fn changes_below_the_margin_are_not_told() {
    let mut runs = Runs::new(11, 0.001);
    let history = runs.about(&levels(&[(20, 1000.0), (20, 990.0), (20, 1040.0)]));
    let indexes =
        |margin| change_points(&history, margin).iter().map(|change| change.index).collect::<Vec<_>>();
    assert_eq!((indexes(0.0), indexes(0.005)), (vec![20, 40], vec![20, 40]));
    // What is left is told against the two levels that are one now.
    assert_eq!(indexes(0.02), [40]);
    let change = change_points(&history, 0.02)[0].change.unwrap();
    assert!((change.value - 0.045).abs() < 0.002, "{change:?}");
    assert_eq!(indexes(0.06), [0; 0]);
}

/// There is no level, and what is found are steps of its direction: more than one, which a single change never is.
#[test]
fn a_drift_is_found_as_steps() {
    let drift: Vec<f64> = (0..40).map(|run| 1000.0 * (1.0 - 0.005 * f64::from(run))).collect();
    let mut runs = Runs::new(6, 0.02);
    let mut several = 0;
    for _ in 0..20 {
        let changes = changes_of(&runs.about(&drift));
        assert!(changes.iter().all(|change| change.after < change.before), "{changes:?}");
        several += usize::from(changes.len() >= 2);
    }
    // A drift makes neighbours alike, so now and then a single step is all that is told.
    assert!(several >= 15, "{several}");
}

/// The definition, pair by pair.
fn statistic(before: &[f64], after: &[f64]) -> f64 {
    let mean_distance = |one: &[f64], other: &[f64], pairs: f64| {
        one.iter().flat_map(|from| other.iter().map(move |to| (from - to).abs())).sum::<f64>() / pairs
    };
    let (m, n) = (before.len() as f64, after.len() as f64);
    let energy = 2.0 * mean_distance(before, after, m * n)
        - mean_distance(before, before, m * (m - 1.0))
        - mean_distance(after, after, n * (n - 1.0));
    m * n / (m + n) * energy
}

proptest! {
    #[test]
    fn the_split_is_the_best_of_all(values in prop::collection::vec(-100.0..100.0f64, 0..20)) {
        let all = (6..=values.len()).flat_map(|end| (3..=end - 3).map(move |index| (index, end)));
        let best = all.map(|(index, end)| statistic(&values[..index], &values[index..end])).reduce(f64::max);
        let found = split(&values);
        prop_assert_eq!(found.is_some(), best.is_some());
        if let (Some(found), Some(best)) = (found, best) {
            prop_assert!((found.statistic - best).abs() < 1e-9, "{:?} {}", found, best);
            let its_own = (found.index + 3..=values.len())
                .map(|end| statistic(&values[..found.index], &values[found.index..end]))
                .fold(f64::NEG_INFINITY, f64::max);
            prop_assert!((found.statistic - its_own).abs() < 1e-9);
        }
    }

    /// Whatever the values, changes are in order and apart; a unit does not matter.
    #[test]
    fn changes_are_in_order(values in prop::collection::vec(prop_oneof![1.0..2.0f64, 5.0..6.0f64], 0..30)) {
        let found = changes_of(&values);
        let ends: Vec<usize> =
            [vec![0], found.iter().map(|change| change.index).collect(), vec![values.len()]].concat();
        prop_assert!(found.is_empty() || ends.windows(2).all(|ends| ends[1] >= ends[0] + 3));
        let doubled: Vec<f64> = values.iter().map(|value| value * 2.0).collect();
        prop_assert_eq!(changes_of(&doubled).iter().map(|change| change.index).collect::<Vec<_>>(), &ends[1..ends.len() - 1]);
    }
}

#[test]
fn wild_values_are_brought_in() {
    let mut values: Vec<f64> = (0..21).map(|index| 90.0 + f64::from(index)).collect();
    values.push(1e6);
    let tamed = tamed(&values);
    assert_eq!(tamed[..21], values[..21]);
    assert!(tamed[21] > 110.0 && tamed[21] < 130.0, "{}", tamed[21]);
    assert_eq!(crate::change_points::tamed(&[5.0, 5.0, 5.0, 9.0]), [5.0, 5.0, 5.0, 9.0]);
}

#[test]
fn likeness_is_found_whatever_the_levels() {
    let mut random = Pcg64::seed_from_u64(1);
    for expected in [0.0, 0.3, 0.6, 0.9] {
        let mut values: Vec<f64> = (0..20_000).map(|index| f64::from(index % 101)).collect();
        reorder(&mut values, expected, &mut random);
        values[10_000..].iter_mut().for_each(|value| *value += 500.0);
        let (one, other) = values.split_at(10_000);
        let found = likeness(&[one, other]);
        assert!((found - expected).abs() < 0.05, "{found} instead of {expected}");
    }
    // Equal values, none, and values that alternate are not alike beyond their level.
    assert_eq!(likeness(&[&[5.0; 9], &[7.0; 9]]), 0.0);
    assert_eq!(likeness(&[&[5.0]]), 0.0);
    assert_eq!(likeness(&[&[1.0, 2.0, 1.0, 2.0, 1.0]]), 0.0);
}

proptest! {
    #[test]
    fn without_likeness_only_the_order_changes(values in prop::collection::vec(-9.0..9.0f64, 0..20)) {
        let mut other = values.clone();
        reorder(&mut other, 0.0, &mut Pcg64::seed_from_u64(2));
        let sorted = |mut values: Vec<f64>| { values.sort_by(f64::total_cmp); values };
        prop_assert_eq!(sorted(other), sorted(values));
    }
}
