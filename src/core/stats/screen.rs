//! Two-level screening designs: which of many settings matter, by few runs of combinations.
//!
//! R. L. Plackett and J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33 (1946), each folded
//! over, so that main effects are clear of interactions of two (Box, Hunter and Hunter, "Statistics for Experimenters").

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Estimate;
use super::robust::median;

/// More factors than this take more than 32 runs.
pub const MOST_FACTORS: usize = 15;

/// The orders of the matrices that designs are made of.
const ORDERS: [usize; 4] = [4, 8, 12, 16];

/// The first row of Plackett and Burman's design of order 12; the others are its rotations, and one of minus alone.
const OF_12: [bool; 11] = [true, true, false, true, true, true, false, false, false, true, false];

/// The columns of a Hadamard matrix but the constant one, row by row.
fn matrix(order: usize) -> Vec<Vec<bool>> {
    let row = |row: usize| -> Vec<bool> {
        match order {
            12 if row == 11 => vec![false; 11],
            12 => (0..11).map(|column| OF_12[(column + 11 - row) % 11]).collect(),
            // Sylvester's: the sign is the parity of the bits that row and column share.
            _ => (1..order).map(|column| (row & column).count_ones() % 2 == 1).collect(),
        }
    };
    (0..order).map(row).collect()
}

fn order_of(factors: usize) -> usize {
    ORDERS.into_iter().find(|order| *order > factors).unwrap_or(ORDERS[3])
}

/// The combinations to be run: rows of the factors' levels, false for the first. Every combination's opposite is one, too.
/// No more than [`MOST_FACTORS`].
pub fn design(factors: usize) -> Vec<Vec<bool>> {
    let cut = |row: &Vec<bool>| row.iter().take(factors).copied().collect::<Vec<bool>>();
    let half: Vec<Vec<bool>> = matrix(order_of(factors)).iter().map(cut).collect();
    let opposite = half.iter().map(|row| row.iter().map(|level| !level).collect());
    half.iter().cloned().chain(opposite).collect()
}

/// An interaction that an effect cannot be told from.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// Two or three factors, by their columns.
    pub factors: Vec<usize>,
    /// Which part of the interaction is in the effect, -1 to 1.
    pub share: f64,
}

/// The interactions of two and three other factors that are in the main effect of one, in a design that may lack rows.
pub fn aliases(design: &[Vec<bool>], factor: usize) -> Vec<Alias> {
    let count = design.first().map_or(0, Vec::len);
    let others: Vec<usize> = (0..count).filter(|other| *other != factor).collect();
    let sign = |row: &Vec<bool>, column: usize| if row[column] { 1.0 } else { -1.0 };
    let mut found = Vec::new();
    let mut look = |factors: Vec<usize>| {
        let product = |row: &Vec<bool>| factors.iter().map(|column| sign(row, *column)).product::<f64>();
        let sum: f64 = design.iter().map(|row| sign(row, factor) * product(row)).sum();
        let share = sum / design.len() as f64;
        if share.abs() > 1e-9 {
            found.push(Alias { factors, share });
        }
    };
    for (place, one) in others.iter().enumerate() {
        for (next, two) in others.iter().enumerate().skip(place + 1) {
            look(vec![*one, *two]);
            others.iter().skip(next + 1).for_each(|three| look(vec![*one, *two, *three]));
        }
    }
    found
}

/// What the factors of a design do.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// Ratio of the second level to the first, by factor; `None` for one of which a level is missing.
    pub effects: Vec<Option<Estimate>>,
}

/// The effects by the values of each round, row by row: positive, `None` where a run is missing. Least squares of their
/// logarithms on rounds and factors. How far runs of the same combination differ from round to round says how sure they are;
/// of a single round, what is left of all contrasts (R. V. Lenth, "Quick and Easy Analysis of Unreplicated Factorials",
/// Technometrics 31 (1989)). All intervals hold together with the confidence (Bonferroni). `None` where nothing says how sure
/// effects are.
pub fn effects(design: &[Vec<bool>], values: &[Vec<Option<f64>>], confidence: f64) -> Option<Effects> {
    let logarithm =
        |value: &Option<f64>| value.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
    let values: Vec<Vec<Option<f64>>> =
        values.iter().map(|round| round.iter().map(logarithm).collect()).collect();
    let factors = design.first().map_or(0, Vec::len);
    let has_level = |column: usize, level: bool| {
        values
            .iter()
            .any(|round| design.iter().zip(round).any(|(row, value)| row[column] == level && value.is_some()))
    };
    let told: Vec<usize> =
        (0..factors).filter(|&column| has_level(column, true) && has_level(column, false)).collect();
    let fit = Fit::of(design, &values, &told)?;
    let (error, degrees) = match values.len() {
        0 => return None,
        1 => {
            let (error, degrees) = of_contrasts(design, &values[0])?;
            // Of an effect; that of a single run is greater by the root of the runs per level and effect.
            (error * (design.len() as f64 / 4.0).sqrt(), degrees)
        }
        _ => pure_error(&values)?,
    };
    let student = StudentsT::new(0.0, 1.0, degrees).ok()?;
    let critical = student.inverse_cdf(1.0 - (1.0 - confidence) / (2.0 * told.len() as f64));
    let estimate = |place: usize| {
        let (effect, half) = (fit.effects[place], critical * error * fit.variances[place].max(0.0).sqrt());
        Estimate { value: effect.exp(), low: (effect - half).exp(), high: (effect + half).exp() }
    };
    let of = |column| told.iter().position(|told| *told == column).map(estimate);
    Some(Effects { effects: (0..factors).map(of).collect() })
}

/// The standard deviation of a run about its combination and its round, by the combinations that all rounds have; and its
/// degrees of freedom.
fn pure_error(values: &[Vec<Option<f64>>]) -> Option<(f64, f64)> {
    let rows = values.iter().map(Vec::len).min()?;
    let complete: Vec<Vec<f64>> = (0..rows)
        .filter_map(|row| values.iter().map(|round| round[row]).collect::<Option<Vec<f64>>>())
        .collect();
    let (count, rounds) = (complete.len() as f64, values.len() as f64);
    let degrees = (count - 1.0) * (rounds - 1.0);
    if degrees < 1.0 {
        return None;
    }
    let of_round = |round: usize| complete.iter().map(|row| row[round]).sum::<f64>() / count;
    let means: Vec<f64> = (0..values.len()).map(of_round).collect();
    let mean = means.iter().sum::<f64>() / rounds;
    let squares: f64 = complete
        .iter()
        .map(|row| {
            let of_row = row.iter().sum::<f64>() / rounds;
            row.iter()
                .zip(&means)
                .map(|(value, of_round)| (value - of_row - of_round + mean).powi(2))
                .sum::<f64>()
        })
        .sum();
    Some(((squares / degrees).sqrt(), degrees))
}

/// Lenth's pseudo standard error of an effect, by all contrasts of a complete design; and its degrees of freedom.
fn of_contrasts(design: &[Vec<bool>], values: &[Option<f64>]) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    let order = design.len() / 2;
    let matrix = matrix(order);
    if matrix.len() != order || values.len() != design.len() {
        return None;
    }
    let contrast = |column: usize| {
        let of_half = |half: &[f64], turn: f64| -> f64 {
            half.iter()
                .zip(&matrix)
                .map(|(value, row)| if row[column] { value * turn } else { -value * turn })
                .sum()
        };
        ((of_half(&values[..order], 1.0) + of_half(&values[order..], -1.0)) / order as f64).abs()
    };
    let contrasts: Vec<f64> = (0..order - 1).map(contrast).collect();
    let initial = 1.5 * median(&contrasts)?;
    let small: Vec<f64> = contrasts.iter().copied().filter(|contrast| *contrast <= 2.5 * initial).collect();
    Some((1.5 * median(&small)?, contrasts.len() as f64 / 3.0))
}

/// Effects by least squares.
struct Fit {
    /// Logarithms of ratios.
    effects: Vec<f64>,
    /// Of each effect, by that of a run.
    variances: Vec<f64>,
}

impl Fit {
    /// On rounds and these factors; `None` where the runs do not tell them from each other.
    fn of(design: &[Vec<bool>], values: &[Vec<Option<f64>>], told: &[usize]) -> Option<Self> {
        let rounds: Vec<usize> =
            (0..values.len()).filter(|round| values[*round].iter().any(Option::is_some)).collect();
        let size = rounds.len() + told.len();
        let mut sums = vec![vec![0.0; size]; size];
        let mut right = vec![0.0; size];
        for (place, round) in rounds.iter().enumerate() {
            for (row, value) in design.iter().zip(&values[*round]) {
                let Some(value) = value else { continue };
                let mut terms = vec![0.0; size];
                terms[place] = 1.0;
                for (term, column) in terms[rounds.len()..].iter_mut().zip(told) {
                    *term = if row[*column] { 0.5 } else { -0.5 };
                }
                for (one, sums) in terms.iter().zip(&mut sums) {
                    sums.iter_mut().zip(&terms).for_each(|(sum, other)| *sum += one * other);
                }
                right.iter_mut().zip(&terms).for_each(|(sum, term)| *sum += term * value);
            }
        }
        let inverse = inverse(sums)?;
        let effects = inverse[rounds.len()..]
            .iter()
            .map(|row| row.iter().zip(&right).map(|(one, other)| one * other).sum())
            .collect();
        Some(Self { effects, variances: (rounds.len()..size).map(|place| inverse[place][place]).collect() })
    }
}

/// The inverse of a matrix by Gauss and Jordan, the greatest of a column first; `None` of one that has none.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let size = matrix.len();
    let mut inverse: Vec<Vec<f64>> =
        (0..size).map(|row| (0..size).map(|column| f64::from(u8::from(row == column))).collect()).collect();
    for column in 0..size {
        let greatest = |row: &usize| matrix[*row][column].abs();
        let pivot = (column..size).max_by(|one, other| greatest(one).total_cmp(&greatest(other)))?;
        if matrix[pivot][column].abs() < 1e-9 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = matrix[column][column];
        for row in [&mut matrix[column], &mut inverse[column]] {
            row.iter_mut().for_each(|value| *value /= scale);
        }
        let (of_matrix, of_inverse) = (matrix[column].clone(), inverse[column].clone());
        for row in (0..size).filter(|row| *row != column) {
            let factor = matrix[row][column];
            matrix[row].iter_mut().zip(&of_matrix).for_each(|(value, of)| *value -= factor * of);
            inverse[row].iter_mut().zip(&of_inverse).for_each(|(value, of)| *value -= factor * of);
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests;
