//! How runs of one level scatter: without wild values, and as like their neighbours as they are.

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use crate::robust;

/// Robust standard deviations from the median beyond which a value is taken for wild.
const WILD: f64 = 3.0;
/// A series that is more like its neighbours than this is one long wander, and has no levels.
const MOST_ALIKE: f64 = 0.9;

/// The values, with those beyond three robust standard deviations of the median put there (winsorised): a wild value
/// counts as one that lies far out, not by how far. Values more than half of which are equal are left as they are.
pub fn tamed(values: &[f64]) -> Vec<f64> {
    match (robust::median(values), robust::sigma(values)) {
        (Some(middle), Some(sigma)) if sigma > 0.0 => {
            values.iter().map(|value| value.clamp(middle - WILD * sigma, middle + WILD * sigma)).collect()
        }
        _ => values.to_vec(),
    }
}

/// How much a run's value is like the one before, the coefficient φ of a first-order autoregression about the levels;
/// 0 where it is not, or the values tell nothing.
///
/// From differences, which no level moves, and no estimate of it: values one apart differ by 2γ(1 − φ) on the mean
/// square, two apart by 2γ(1 − φ²), and the ratio is 1 + φ (Chakar, Lebarbier, Lévy-Leduc & Robin 2017, "A robust
/// approach for estimating change-points in the mean of an AR(1) process", Bernoulli 23, with mean squares of tamed
/// values in the place of medians, which are too rough for 30 runs).
pub fn likeness(levels: &[&[f64]]) -> f64 {
    // Without the wild ones: two beside each other are alike.
    let levels: Vec<Vec<Option<f64>>> = levels
        .iter()
        .map(|values| {
            tamed(values).iter().zip(*values).map(|(tame, value)| (tame == value).then_some(*value)).collect()
        })
        .collect();
    let apart = |distance: usize| {
        let squares = levels.iter().flat_map(|values| {
            values
                .iter()
                .zip(&values[distance.min(values.len())..])
                .filter_map(|(one, other)| Some(((*one)? - (*other)?).powi(2)))
        });
        let (sum, count) = squares.fold((0.0, 0.0), |(sum, count), square| (sum + square, count + 1.0));
        sum / count
    };
    let likeness = apart(2) / apart(1) - 1.0;
    if likeness.is_finite() { likeness.clamp(0.0, MOST_ALIKE) } else { 0.0 }
}

/// Puts values into another order, and makes each as like the one before as `likeness` says. Their mean and variance
/// stay; with a likeness of 0 so do the values.
pub fn reorder(values: &mut [f64], likeness: f64, random: &mut Pcg64) {
    values.shuffle(random);
    if likeness == 0.0 {
        return;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let share = (1.0 - likeness * likeness).sqrt();
    let mut before = None;
    for value in values {
        let own = *value - mean;
        let off = before.map_or(own, |before: f64| likeness * before + share * own);
        *value = mean + off;
        before = Some(off);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn wild_values_are_brought_in() {
        let mut values: Vec<f64> = (0..21).map(|index| 90.0 + f64::from(index)).collect();
        values.push(1e6);
        let tamed = tamed(&values);
        assert_eq!(tamed[..21], values[..21]);
        assert!(tamed[21] > 110.0 && tamed[21] < 130.0, "{}", tamed[21]);
        assert_eq!(super::tamed(&[5.0, 5.0, 5.0, 9.0]), [5.0, 5.0, 5.0, 9.0]);
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
}
