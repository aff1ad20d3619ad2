use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::screen::*;

/// Values of a round, or of all.
type Values = Vec<Option<f64>>;

/// Box and Muller's.
fn normal(random: &mut Pcg64) -> f64 {
    let (radius, angle): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Rounds of a design whose factors have these log effects; each round is 3 % faster than the one before.
fn measured(
    design: &[Vec<bool>],
    truth: &[f64],
    rounds: usize,
    mut noise: impl FnMut() -> f64,
) -> Vec<Values> {
    let of_row = |row: &Vec<bool>| -> f64 {
        row.iter().zip(truth).filter(|(level, _)| **level).map(|(_, effect)| effect).sum()
    };
    let mut run =
        |round: usize, row: &Vec<bool>| Some(1000.0 * (of_row(row) + 0.03 * round as f64 + noise()).exp());
    (0..rounds).map(|round| design.iter().map(|row| run(round, row)).collect()).collect()
}

#[test]
fn designs_are_balanced_and_orthogonal() {
    for factors in 1..=MOST_FACTORS {
        let design = design(factors);
        assert_eq!(design.len(), [8, 16, 24, 32][factors / 4], "{factors}");
        assert!(design.iter().all(|row| row.len() == factors));
        for one in 0..factors {
            assert_eq!(design.iter().filter(|row| row[one]).count() * 2, design.len(), "{factors}: {one}");
            for other in 0..one {
                let alike = design.iter().filter(|row| row[one] == row[other]).count();
                assert_eq!(alike * 2, design.len(), "{factors}: {one} and {other}");
            }
        }
        for row in &design {
            let opposite: Vec<bool> = row.iter().map(|level| !level).collect();
            assert!(design.contains(&opposite), "{factors}");
        }
    }
    assert_eq!(design(99), design(MOST_FACTORS));
    assert_eq!(design(0), vec![Vec::<bool>::new(); 8]);
}

#[test]
fn no_interaction_of_two_is_in_an_effect() {
    for factors in 1..=MOST_FACTORS {
        let design = design(factors);
        for factor in 0..factors {
            let all = aliases(&design, factor);
            assert!(all.iter().all(|alias| alias.factors.len() == 3), "{factors}: {factor}");
            assert!(all.iter().all(|alias| !alias.factors.contains(&factor)));
        }
    }
}

#[test]
fn aliases_of_small_designs_are_the_known_ones() {
    // All combinations.
    for factors in 1..=4 {
        assert!((0..factors).all(|factor| aliases(&design(factors), factor).is_empty()), "{factors}");
    }
    // Columns 1, 2, 4 and 5 of order 8: in each bit, an even number of them. 3 is in no such four.
    let found = aliases(&design(5), 0);
    assert_eq!(found.len(), 0, "{found:?}");
    let shares: Vec<(usize, Vec<usize>)> = (0..5)
        .flat_map(|factor| aliases(&design(5), factor).into_iter().map(move |alias| (factor, alias.factors)))
        .collect();
    let four = [(1, vec![2, 3, 4]), (2, vec![1, 3, 4]), (3, vec![1, 2, 4]), (4, vec![1, 2, 3])];
    assert_eq!(shares, four);
    // 2^(7-3) IV: 7 words of four, 4 of them with each factor; of order 12, all are thirds.
    assert!((0..7).all(|factor| aliases(&design(7), factor).len() == 4));
    let partial = aliases(&design(8), 0);
    assert!(!partial.is_empty());
    assert!(partial.iter().all(|alias| (alias.share.abs() - 1.0 / 3.0).abs() < 1e-12), "{partial:?}");
}

#[test]
fn missing_rows_bring_interactions_of_two() {
    let left: Vec<Vec<bool>> = design(5).into_iter().skip(1).collect();
    let found = aliases(&left, 0);
    assert!(found.iter().any(|alias| alias.factors.len() == 2));
    assert!(found.iter().all(|alias| alias.share.abs() <= 1.0));
    // Half of a fold-over is of resolution III: column 3 is 1 × 2, with the sign that false is minus.
    let half = &design(3)[..4];
    assert_eq!(aliases(half, 2), [Alias { factors: vec![0, 1], share: -1.0 }]);
    let one_level: Vec<Vec<bool>> = design(5).into_iter().filter(|row| row[0]).collect();
    assert_eq!(aliases(&one_level, 0), []);
    assert_eq!(aliases(&[], 0), []);
    assert_eq!(aliases(&[vec![true], vec![]], 0), []);
}

fn check(found: &Effects, truth: &[f64], without: Option<usize>) {
    for (factor, (effect, truth)) in found.effects.iter().zip(truth).enumerate() {
        assert_eq!(effect.is_none(), without == Some(factor), "{factor}");
        assert!(effect.is_none_or(|effect| (effect.value.ln() - truth).abs() < 1e-9), "{factor}");
    }
    assert_eq!(found.effects.len(), truth.len());
}

proptest! {
    #[test]
    fn effects_are_found_without_noise(
        truth in prop::collection::vec(-1.0..1.0, 1..=MOST_FACTORS),
        rounds in 1_usize..4,
        lost in any::<prop::sample::Index>(),
    ) {
        let design = design(truth.len());
        let mut values = measured(&design, &truth, rounds, || 0.0);
        check(&effects(&design, &values, 0.95).unwrap(), &truth, None);
        let lost = lost.index(truth.len());
        for round in &mut values {
            round.iter_mut().zip(&design).filter(|(_, row)| row[lost]).for_each(|(value, _)| *value = None);
        }
        match effects(&design, &values, 0.95) {
            None => prop_assert!(rounds == 1 || truth.len() == 1),
            Some(found) => check(&found, &truth, Some(lost)),
        }
    }

    /// Where single runs are missing, what can be told is right.
    #[test]
    fn effects_are_found_with_runs_missing(
        truth in prop::collection::vec(-1.0..1.0, 1..=MOST_FACTORS),
        missing in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let design = design(truth.len());
        let mut values = measured(&design, &truth, 3, || 0.0);
        for index in missing {
            let index = index.index(3 * design.len());
            values[index / design.len()][index % design.len()] = None;
        }
        if let Some(found) = effects(&design, &values, 0.95) {
            for (effect, truth) in found.effects.iter().zip(&truth) {
                prop_assert!(effect.is_none_or(|effect| (effect.value.ln() - truth).abs() < 1e-6));
            }
        }
    }

    /// Imported documents may say anything.
    #[test]
    fn nothing_panics(
        rows in prop::collection::vec(prop::collection::vec(any::<bool>(), 0..5), 0..9),
        values in prop::collection::vec(
            prop::collection::vec(prop::option::of(prop::num::f64::ANY), 0..10), 0..4),
        confidence in prop::num::f64::ANY,
        factor in 0_usize..6,
    ) {
        aliases(&rows, factor);
        effects(&rows, &values, confidence);
        effects(&design(3), &values, confidence);
        effects(&rows, &values, 0.95);
        effects(&design(3), &values, confidence.abs().fract());
    }
}

#[test]
fn what_cannot_be_told_is_none() {
    let design = design(2);
    let full = measured(&design, &[0.1, 0.2], 2, || 0.0);
    assert!(effects(&design, &[], 0.95).is_none());
    assert!(effects(&[], &full, 0.95).is_none());
    assert!(effects(&design, &[vec![None; 8], vec![Some(f64::NAN); 8]], 0.95).is_none());
    assert!(effects(&design, &[vec![Some(-1.0); 8], vec![Some(f64::INFINITY); 8]], 0.95).is_none());
    assert!(effects(&design, &full, 1.0).is_none());
    // A round of which nothing is there is none: this is the same as the first alone.
    assert_eq!(effects(&design, &[full[0].clone(), vec![None; 8]], 0.95), effects(&design, &full[..1], 0.95));
    let mut one = full[..1].to_vec();
    one[0][3] = None;
    assert!(effects(&design, &one, 0.95).is_none());
    // Two factors that always change together are not told from each other; the third is.
    let twins: Vec<Vec<bool>> = design.iter().map(|row| vec![row[0], row[0], row[1]]).collect();
    let found = effects(&twins, &full, 0.95).unwrap().effects;
    assert!(found[0].is_none() && found[1].is_none());
    assert!(found[2].is_some_and(|effect| (effect.value.ln() - 0.2).abs() < 1e-12));
}

#[test]
fn a_single_factor_without_its_second_level_is_none() {
    // Several rows are alike and complete, so there is an error, but nothing that it is one of.
    let design = design(1);
    let mut random = Pcg64::seed_from_u64(5);
    let mut values = measured(&design, &[0.1], 2, || 0.01 * normal(&mut random));
    for round in &mut values {
        round.iter_mut().zip(&design).filter(|(_, row)| row[0]).for_each(|(value, _)| *value = None);
    }
    assert!(effects(&design, &values, 0.95).is_none());
}

#[test]
fn errors_are_the_known_ones() {
    // Runs of a row differ by ±2 % about the rounds' difference, turn about: each is 1 % from row and round.
    let design = design(3);
    let sign = |row: usize| if row.is_multiple_of(2) { 0.01 } else { -0.01 };
    let of_round = |turn: f64| -> Values { (0..8).map(|row| Some((turn * sign(row)).exp())).collect() };
    let found = effects(&design, &[of_round(1.0), of_round(-1.0)], 0.95).unwrap();
    assert!((found.degrees - 7.0).abs() < 1e-12);
    let deviation = (16.0 * 1e-4 / 7.0_f64).sqrt();
    assert!((found.error - 2.0 * deviation / 4.0).abs() < 1e-12);
    // Student's 1 - 0.05 / 6 with 7 degrees of freedom is 3.128.
    let effect = found.effects[0].unwrap();
    assert!((effect.high.ln() - 3.1276 * found.error).abs() < 1e-4 * found.error, "{effect:?}");
    // The four odd contrasts of 8 rows are 0.4, 0, 0 and 0: Lenth's error is 0, with 4 / 3 degrees of
    // freedom.
    let found = effects(&design, &measured(&design, &[0.4, 0.0, 0.0], 1, || 0.0), 0.95).unwrap();
    assert!(found.error < 1e-12 && (found.degrees - 4.0 / 3.0).abs() < 1e-12);
}

/// So many that 95 % has a standard error of 0.5 %: of 400, one seed in 20 has less than 93 %.
const SCREENS: usize = 2000;

/// Of simulated screens of 8 factors, two of which matter: in how many all intervals hold the truth, and those of
/// factors that are equal do.
fn held(rounds: usize) -> [usize; 2] {
    let mut random = Pcg64::seed_from_u64(rounds as u64);
    let truth = [0.10, 0.0, 0.0, -0.06, 0.0, 0.0, 0.0, 0.0];
    let design = design(truth.len());
    let mut counts = [0; 2];
    for _ in 0..SCREENS {
        let values = measured(&design, &truth, rounds, || 0.03 * normal(&mut random));
        let found = effects(&design, &values, 0.95).unwrap();
        let holds = |(effect, truth): (&Option<Estimate>, f64)| {
            effect.is_some_and(|effect| effect.low.ln() <= truth && truth <= effect.high.ln())
        };
        let all = found.effects.iter().zip(truth);
        counts[0] += usize::from(all.clone().all(holds));
        counts[1] += usize::from(all.clone().filter(|(_, truth)| *truth == 0.0).all(holds));
    }
    counts
}

#[test]
fn intervals_hold_together() {
    for rounds in [1, 2] {
        let held = held(rounds);
        println!("{rounds}: {held:?} of {SCREENS}");
        assert!(held.iter().all(|held| *held * 100 >= SCREENS * 93), "{rounds}: {held:?}");
    }
}
