use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use statrs::distribution::Normal;

use super::*;

#[test]
fn designs_are_balanced_and_clear_of_interactions_of_two() {
    for factors in 1..=MOST_FACTORS {
        let design = design(factors);
        assert_eq!(design.len(), 2 * order_of(factors), "{factors}");
        for one in 0..factors {
            assert_eq!(design.iter().filter(|row| row[one]).count() * 2, design.len(), "{factors}: {one}");
            for other in 0..one {
                let alike = design.iter().filter(|row| row[one] == row[other]).count();
                assert_eq!(alike * 2, design.len(), "{factors}: {one} and {other}");
            }
            assert!(aliases(&design, one).iter().all(|alias| alias.factors.len() == 3), "{factors}: {one}");
        }
    }
    // All 16 combinations of 4 settings.
    assert_eq!(aliases(&design(4), 0), []);
}

#[test]
fn a_design_that_lost_a_level_has_interactions_of_two_in_its_effects() {
    let left: Vec<Vec<bool>> = design(9).into_iter().filter(|row| row[0]).collect();
    assert!((1..9).any(|factor| aliases(&left, factor).iter().any(|alias| alias.factors.len() == 2)));
}

/// Values of a design whose factors have these logarithms, with normal noise.
fn simulated(
    design: &[Vec<bool>],
    truth: &[f64],
    rounds: usize,
    sigma: f64,
    random: &mut Pcg64,
) -> Vec<Vec<Option<f64>>> {
    let normal = Normal::new(0.0, 1.0).unwrap();
    let mut noise = || sigma * normal.inverse_cdf((random.next_u64() >> 11) as f64 / 2f64.powi(53) + 1e-17);
    (0..rounds)
        .map(|round| {
            let of = |row: &Vec<bool>| -> f64 {
                row.iter().zip(truth).map(|(level, effect)| if *level { *effect } else { 0.0 }).sum()
            };
            design.iter().map(|row| Some((of(row) + round as f64 / 50.0 + noise()).exp() * 1000.0)).collect()
        })
        .collect()
}

#[test]
fn effects_are_found_exactly_also_without_a_level() {
    let mut random = Pcg64::seed_from_u64(1);
    let truth = [0.1, 0.0, -0.05, 0.0, 0.02];
    let design = design(5);
    let mut values = simulated(&design, &truth, 2, 1e-9, &mut random);
    let check = |values: &[Vec<Option<f64>>], without: Option<usize>| {
        let found = effects(&design, values, 0.95).unwrap().effects;
        for (place, (effect, truth)) in found.iter().zip(truth).enumerate() {
            match effect {
                None => assert_eq!(Some(place), without),
                Some(effect) => assert!((effect.value.ln() - truth).abs() < 1e-6, "{place}"),
            }
        }
    };
    check(&values, None);
    for round in &mut values {
        round.iter_mut().zip(&design).filter(|(_, row)| row[3]).for_each(|(value, _)| *value = None);
    }
    check(&values, Some(3));
    assert!(effects(&design, &[], 0.95).is_none());
    assert!(effects(&design, &[vec![None; design.len()]], 0.95).is_none());
    let odd = vec![vec![Some(f64::NAN); design.len()], vec![Some(-1.0); design.len()]];
    assert!(effects(&design, &odd, 0.95).is_none());
}

/// How many of so many simulated screens of 8 settings, two of which matter, have all truths in their intervals.
fn held(rounds: usize, screens: usize) -> usize {
    let mut random = Pcg64::seed_from_u64(rounds as u64);
    let truth = [0.10, 0.0, 0.0, -0.06, 0.0, 0.0, 0.0, 0.0];
    let design = design(truth.len());
    let is_held = |_: &usize| {
        let values = simulated(&design, &truth, rounds, 0.03, &mut random);
        let found = effects(&design, &values, 0.95).unwrap().effects;
        found.iter().zip(truth).all(|(effect, truth)| {
            effect.is_some_and(|effect| effect.low.ln() <= truth && truth <= effect.high.ln())
        })
    };
    (0..screens).filter(is_held).count()
}

#[test]
fn intervals_hold_together() {
    let held = [1, 2, 3].map(|rounds| held(rounds, 400));
    assert!(held.iter().all(|held| *held >= 372), "{held:?} of 400");
}
