//! Two-level screening designs: which of many settings matter, by runs of few combinations of them.
//!
//! R. L. Plackett and J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33 (1946),
//! folded over (Box, Hunter and Hunter, "Statistics for Experimenters"): with every combination its opposite
//! is run, too, so that no interaction of two factors is in a factor's effect (resolution IV).

#[cfg(test)]
mod tests;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Estimate;
use crate::robust::median;

/// The most factors of a design: more of them take more than 32 rows.
pub const MOST_FACTORS: usize = 15;

/// The orders of the Hadamard matrices that designs are made of.
const ORDERS: [usize; 4] = [4, 8, 12, 16];

/// The first row of Plackett and Burman's design of order 12; ten others are its rotations, the last is minus
/// alone.
const OF_12: [bool; 11] = [true, true, false, true, true, true, false, false, false, true, false];

/// Correlations below this are rounding.
const NO_CORRELATION: f64 = 1e-9;

/// A factor that keeps less of its variance beside the others than this, per run, is one with them.
const NO_WEIGHT: f64 = 1e-9;

/// Degrees of freedom from which on Student's quantiles are taken as those of so many.
const MOST_DEGREES: f64 = 1e4;

/// The columns of a Hadamard matrix, row by row; the first column is constant.
fn hadamard(order: usize) -> Vec<Vec<bool>> {
    let sign = |row: usize, column: usize| match (order, column) {
        (12, 0) => true,
        (12, _) => row < 11 && OF_12[(column + 10 - row) % 11],
        // Sylvester's: the sign is the parity of the bits that row and column share.
        _ => (row & column).count_ones() % 2 == 1,
    };
    (0..order).map(|row| (0..order).map(|column| sign(row, column)).collect()).collect()
}

/// The smallest order that has a column for each factor besides the constant one.
fn order_of(factors: usize) -> usize {
    ORDERS.into_iter().find(|order| *order > factors).unwrap_or(ORDERS[3])
}

/// The rows, and after them their opposites.
fn folded(half: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let opposite = half.iter().map(|row| row.iter().map(|level| !level).collect());
    half.iter().cloned().chain(opposite).collect()
}

/// The combinations to run: rows of the factors' levels, false for level a and true for level b. Any two
/// factors have each pair of levels in as many rows. Factors beyond [`MOST_FACTORS`] have no column.
///
/// The first columns of the matrix are the choice with the fewest interactions of three factors in effects:
/// so it is for each number of factors by enumeration of all choices, of order 12 by the sum of squared
/// shares.
pub fn design(factors: usize) -> Vec<Vec<bool>> {
    let chosen = |row: Vec<bool>| row.into_iter().skip(1).take(factors).collect();
    folded(&hadamard(order_of(factors)).into_iter().map(chosen).collect::<Vec<Vec<bool>>>())
}

/// How many factors all rows have a level of.
fn factors_of(design: &[Vec<bool>]) -> usize {
    design.iter().map(Vec::len).min().unwrap_or_default()
}

/// An interaction that a design cannot tell from a factor's effect, or not wholly.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The columns of its two or three factors, in rising order.
    pub factors: Vec<usize>,
    /// Its correlation with the factor, from -1 to 1.
    pub share: f64,
}

/// The interactions of two and of three others that are in the effect of `factor`, in a design that may lack
/// rows. None for a factor that the rows have one level of: it has no effect to be told.
pub fn aliases(design: &[Vec<bool>], factor: usize) -> Vec<Alias> {
    let count = factors_of(design);
    if factor >= count {
        return Vec::new();
    }
    let contrast = |columns: &[usize]| -> Vec<f64> {
        let sign = |row: &Vec<bool>| columns.iter().filter(|column| !row[**column]).count() % 2 == 0;
        design.iter().map(|row| if sign(row) { 1.0 } else { -1.0 }).collect()
    };
    let own = contrast(&[factor]);
    let others: Vec<usize> = (0..count).filter(|other| *other != factor).collect();
    let mut found = Vec::new();
    let mut look = |factors: &[usize]| {
        let share = correlation(&own, &contrast(factors));
        if share.abs() > NO_CORRELATION {
            found.push(Alias { factors: factors.to_vec(), share });
        }
    };
    for (place, one) in others.iter().enumerate() {
        for (next, two) in others.iter().enumerate().skip(place + 1) {
            look(&[*one, *two]);
            others[next + 1..].iter().for_each(|three| look(&[*one, *two, *three]));
        }
    }
    found
}

/// Pearson's; 0 where one of them is constant.
fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let centred = |values: &[f64]| -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| value - mean).collect()
    };
    let (one, other) = (centred(one), centred(other));
    let squares = product(&one, &one) * product(&other, &other);
    if squares > 0.0 { product(&one, &other) / squares.sqrt() } else { 0.0 }
}

fn product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// What the factors of a design do.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// The ratio b / a of each factor, by column; `None` where the runs do not tell it.
    pub effects: Vec<Option<Estimate>>,
    /// The standard error of ln(b / a), were all runs of all rounds there: those of factors are greater where
    /// some are missing.
    pub error: f64,
    /// The degrees of freedom of that error.
    pub degrees: f64,
}

/// Effects by `values[round][row]`: figures of runs in any unit, `None` where a run is missing. Figures that
/// are not positive and finite count as missing, rounds without any run as not made.
///
/// Least squares of ln(value) on rounds and factors. Runs of two and more rounds are as sure as runs of the
/// same row are alike, see [`pure_error`]; those of one by [`of_contrasts`], which takes a run of every row
/// of a [`design`]. All intervals hold together with the confidence (Bonferroni), of Student's quantiles.
/// `None` where no effect can be told, or not how sure it is.
pub fn effects(design: &[Vec<bool>], values: &[Vec<Option<f64>>], confidence: f64) -> Option<Effects> {
    let logarithm =
        |value: &Option<f64>| value.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
    let of_round = |round: &Vec<Option<f64>>| -> Vec<Option<f64>> {
        (0..design.len()).map(|row| round.get(row).and_then(logarithm)).collect()
    };
    let rounds: Vec<Vec<Option<f64>>> =
        values.iter().map(of_round).filter(|round| round.iter().any(Option::is_some)).collect();
    let (error, degrees) = match rounds.as_slice() {
        [] => return None,
        [round] => of_contrasts(design, round)?,
        rounds => {
            let (deviation, degrees) = pure_error(rounds)?;
            (2.0 * deviation / ((design.len() * rounds.len()) as f64).sqrt(), degrees)
        }
    };
    let fit = Fit::of(design, &rounds);
    let told: Vec<Option<Told>> = (0..factors_of(design)).map(|factor| fit.told(factor)).collect();
    let count = told.iter().flatten().count();
    if count == 0 {
        return None;
    }
    let critical = student(degrees, (1.0 - confidence) / (2.0 * count as f64))?;
    // What a factor of the complete design has, as both levels are in half of its runs.
    let full = (design.len() * rounds.len()) as f64 / 4.0;
    let estimate = |told: Told| {
        let margin = critical * error * (full / told.weight).sqrt();
        let [low, value, high] = [told.effect - margin, told.effect, told.effect + margin].map(f64::exp);
        Estimate { value, low, high }
    };
    Some(Effects { effects: told.into_iter().map(|told| told.map(estimate)).collect(), error, degrees })
}

/// Student's quantile that is exceeded with the probability `beyond`, of at most a half; `None` without a
/// degree of freedom, and where it is not finite.
fn student(degrees: f64, beyond: f64) -> Option<f64> {
    if !(beyond > 0.0 && beyond <= 0.5 && degrees >= 1.0) {
        return None;
    }
    // More make a difference of 0.01 %; the library's quantiles are less exact there, and from 1e9 on its
    // search for them does not end.
    let student = StudentsT::new(0.0, 1.0, degrees.min(MOST_DEGREES)).ok()?;
    let quantile = student.inverse_cdf(1.0 - beyond);
    quantile.is_finite().then_some(quantile)
}

/// The standard deviation of a run's logarithm, and its degrees of freedom: what is left of the rows that all
/// rounds have after row and round (two-way, additive).
fn pure_error(rounds: &[Vec<Option<f64>>]) -> Option<(f64, f64)> {
    let rows = rounds.iter().map(Vec::len).min()?;
    let complete: Vec<Vec<f64>> =
        (0..rows).filter_map(|row| rounds.iter().map(|round| round[row]).collect()).collect();
    let degrees = (complete.len() as f64 - 1.0) * (rounds.len() as f64 - 1.0);
    if degrees < 1.0 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let of_round = |round: usize| complete.iter().map(|row| row[round]).sum::<f64>() / complete.len() as f64;
    let of_rounds: Vec<f64> = (0..rounds.len()).map(of_round).collect();
    let middle = mean(&of_rounds);
    let squares = |row: &Vec<f64>| -> f64 {
        let of_row = mean(row);
        let left = row.iter().zip(&of_rounds).map(|(value, of_round)| value - of_row - of_round + middle);
        left.map(|left| left * left).sum()
    };
    Some(((complete.iter().map(squares).sum::<f64>() / degrees).sqrt(), degrees))
}

/// Lenth's pseudo standard error of a log effect, and its degrees of freedom, a third of the contrasts: R. V.
/// Lenth, "Quick and Easy Analysis of Unreplicated Factorials", Technometrics 31 (1989). By all odd
/// contrasts, which no interaction of two factors is in: those of the factors and of the matrix' other
/// columns, the constant one, which the fold-over turns, among them. `None` where a row is missing, or the
/// rows are not those of a [`design`].
fn of_contrasts(rows: &[Vec<bool>], values: &[Option<f64>]) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    let factors = factors_of(rows);
    if rows != design(factors) {
        return None;
    }
    let columns = folded(&hadamard(order_of(factors)));
    let contrast = |column: usize| {
        let signed =
            values.iter().zip(&columns).map(|(value, row)| if row[column] { *value } else { -value });
        (signed.sum::<f64>() * 2.0 / values.len() as f64).abs()
    };
    let contrasts: Vec<f64> = (0..order_of(factors)).map(contrast).collect();
    let initial = 1.5 * median(&contrasts)?;
    let small: Vec<f64> = contrasts.iter().copied().filter(|contrast| *contrast <= 2.5 * initial).collect();
    Some((1.5 * median(&small)?, contrasts.len() as f64 / 3.0))
}

/// The normal equations of log values on factors, coded as ±1/2, within rounds: with the rounds' means taken
/// off both, the rounds are fitted already.
struct Fit {
    /// A row for each factor: its products with all factors, and the one with the values.
    equations: Vec<Vec<f64>>,
    runs: usize,
}

/// What is told of a factor.
struct Told {
    /// ln(b / a).
    effect: f64,
    /// The sum of squares that its coded column has beside rounds and other factors: the effect's variance is
    /// that of a run divided by it.
    weight: f64,
}

impl Fit {
    fn of(design: &[Vec<bool>], rounds: &[Vec<Option<f64>>]) -> Fit {
        let factors = factors_of(design);
        let mut fit = Fit { equations: vec![vec![0.0; factors + 1]; factors], runs: 0 };
        for round in rounds {
            let coded = |row: &Vec<bool>, value: f64| -> Vec<f64> {
                let levels = row[..factors].iter().map(|level| if *level { 0.5 } else { -0.5 });
                levels.chain([value]).collect()
            };
            let mut runs: Vec<Vec<f64>> = design
                .iter()
                .zip(round)
                .filter_map(|(row, value)| value.map(|value| coded(row, value)))
                .collect();
            for column in 0..=factors {
                let mean = runs.iter().map(|run| run[column]).sum::<f64>() / runs.len() as f64;
                runs.iter_mut().for_each(|run| run[column] -= mean);
            }
            for run in &runs {
                for (equation, own) in fit.equations.iter_mut().zip(run) {
                    equation.iter_mut().zip(run).for_each(|(sum, other)| *sum += own * other);
                }
            }
            fit.runs += runs.len();
        }
        fit
    }

    /// The factor's part, by elimination of all others. `None` where its column is one with rounds and
    /// others: it has one level, or always changes along with another. Others that are one with each other do
    /// no harm.
    fn told(&self, factor: usize) -> Option<Told> {
        let none = NO_WEIGHT * self.runs as f64;
        let mut equations = self.equations.clone();
        for pivot in (0..equations.len()).filter(|pivot| *pivot != factor) {
            let taken = equations[pivot].clone();
            // Nothing is left of it: the matrix has no negative eigenvalue, so the row is one of zeros then.
            if taken[pivot] <= none {
                continue;
            }
            for (_, equation) in equations.iter_mut().enumerate().filter(|(row, _)| *row != pivot) {
                let part = equation[pivot] / taken[pivot];
                equation.iter_mut().zip(&taken).for_each(|(value, taken)| *value -= part * taken);
            }
        }
        let (weight, right) = (equations[factor][factor], equations[factor].last()?);
        (weight > none).then(|| Told { effect: right / weight, weight })
    }
}
