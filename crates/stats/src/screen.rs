//! Two-level screening designs: runs of a few combinations of settings show which settings matter.
//!
//! R. L. Plackett and J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33 (1946),
//! folded over (Box, Hunter and Hunter, "Statistics for Experimenters"): each combination is run together with
//! its opposite, which keeps two-factor interactions out of the factors' effects (resolution IV).

#[cfg(test)]
mod tests;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Estimate;
use crate::robust::median;

/// The most factors of a design; more would need more than 32 rows.
pub const MOST_FACTORS: usize = 15;

/// The orders of the Hadamard matrices that designs are built from.
const ORDERS: [usize; 4] = [4, 8, 12, 16];

/// The first row of Plackett and Burman's design of order 12. Ten rows are its rotations; the last has only low
/// levels.
const FIRST_ROW_12: [bool; 11] = [true, true, false, true, true, true, false, false, false, true, false];

/// Smaller correlations are rounding errors.
const MIN_CORRELATION: f64 = 1e-9;

/// A factor whose weight per run is smaller is a linear combination of rounds and other factors.
const MIN_WEIGHT: f64 = 1e-9;

/// Student's quantiles hardly change beyond these degrees of freedom, by 0.01 %. statrs is less exact there, and its
/// search does not end from 1e9 on.
const MAX_DEGREES: f64 = 1e4;

/// Lenth: 1.5 times the median of normally distributed absolute contrasts estimates their standard deviation.
const LENTH_SCALE: f64 = 1.5;

/// Lenth: contrasts beyond this many initial estimates count as effects, not as noise.
const LENTH_CUTOFF: f64 = 2.5;

/// Lenth: contrasts per degree of freedom of the estimate.
const LENTH_CONTRASTS_PER_DEGREE: f64 = 3.0;

/// Returns the rows of a Hadamard matrix; its first column is constant.
fn hadamard(order: usize) -> Vec<Vec<bool>> {
    let sign = |row: usize, column: usize| match (order, column) {
        (12, 0) => true,
        (12, _) => row < 11 && FIRST_ROW_12[(column + 10 - row) % 11],
        // Sylvester's construction: the sign is the parity of the bits that row and column share.
        _ => (row & column).count_ones() % 2 == 1,
    };
    (0..order).map(|row| (0..order).map(|column| sign(row, column)).collect()).collect()
}

/// Returns the smallest order that has a column for each factor besides the constant one.
fn smallest_order(factors: usize) -> usize {
    ORDERS.into_iter().find(|order| *order > factors).unwrap_or(ORDERS[3])
}

/// Returns the rows, followed by their opposites.
fn fold_over(half: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let opposite = half.iter().map(|row| row.iter().map(|level| !level).collect());
    half.iter().cloned().chain(opposite).collect()
}

/// Returns the combinations to run: rows of the factors' levels, false for level a and true for level b. Each
/// pair of levels of any two factors is in equally many rows. Factors beyond [`MOST_FACTORS`] get no column.
///
/// The factors take the first columns of the matrix: enumeration of all choices, for each number of factors,
/// shows that these mix the fewest three-factor interactions into effects (order 12: by the sum of squared
/// shares).
pub fn design(factors: usize) -> Vec<Vec<bool>> {
    let levels = |row: Vec<bool>| row.into_iter().skip(1).take(factors).collect();
    fold_over(&hadamard(smallest_order(factors)).into_iter().map(levels).collect::<Vec<Vec<bool>>>())
}

/// Returns the number of factors that all rows have a level for.
fn factor_count(design: &[Vec<bool>]) -> usize {
    design.iter().map(Vec::len).min().unwrap_or_default()
}

/// An interaction that is wholly or partly mixed into a factor's effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The columns of its two or three factors, in rising order.
    pub factors: Vec<usize>,
    /// Its correlation with the factor, from -1 to 1.
    pub share: f64,
}

/// Returns the interactions of two and three other factors that are mixed into the effect of `factor`, in a
/// design that may lack rows. Empty for a factor with one level, as it has no effect.
pub fn aliases(design: &[Vec<bool>], factor: usize) -> Vec<Alias> {
    let count = factor_count(design);
    if factor >= count {
        return Vec::new();
    }
    let contrast = |columns: &[usize]| -> Vec<f64> {
        let sign = |row: &Vec<bool>| columns.iter().filter(|column| !row[**column]).count() % 2 == 0;
        design.iter().map(|row| if sign(row) { 1.0 } else { -1.0 }).collect()
    };
    let own = contrast(&[factor]);
    let others: Vec<usize> = (0..count).filter(|other| *other != factor).collect();
    let mut aliases = Vec::new();
    let mut check = |factors: &[usize]| {
        let share = correlation(&own, &contrast(factors));
        if share.abs() > MIN_CORRELATION {
            aliases.push(Alias { factors: factors.to_vec(), share });
        }
    };
    for (place, one) in others.iter().enumerate() {
        for (next, two) in others.iter().enumerate().skip(place + 1) {
            check(&[*one, *two]);
            others[next + 1..].iter().for_each(|three| check(&[*one, *two, *three]));
        }
    }
    aliases
}

/// Returns Pearson's correlation; 0 if one series is constant.
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

/// The effects of a design's factors.
#[derive(Clone, Debug, PartialEq)]
pub struct Effects {
    /// The ratio b / a of each factor, by column; `None` if the runs do not determine it.
    pub effects: Vec<Option<Estimate>>,
    /// The standard error of ln(b / a) in a complete design; missing runs make a factor's own greater.
    pub error: f64,
    /// The degrees of freedom of that error.
    pub degrees: f64,
}

/// Estimates effects from `values[round][row]`: results of runs in any unit, `None` for a missing run. Values that
/// are not positive and finite count as missing; rounds without any value are ignored.
///
/// Fits ln(value) on rounds and factors by least squares. The error comes from the spread within rows with two
/// or more rounds ([`pure_error`]), else from [`lenth_error`], which needs every row of a [`design`]. Intervals use
/// Student's quantiles and hold jointly with the confidence (Bonferroni). `None` if no effect or no error can be
/// estimated.
pub fn effects(design: &[Vec<bool>], values: &[Vec<Option<f64>>], confidence: f64) -> Option<Effects> {
    let logarithm =
        |value: &Option<f64>| value.filter(|value| *value > 0.0 && value.is_finite()).map(f64::ln);
    let logarithms = |round: &Vec<Option<f64>>| -> Vec<Option<f64>> {
        (0..design.len()).map(|row| round.get(row).and_then(logarithm)).collect()
    };
    let rounds: Vec<Vec<Option<f64>>> =
        values.iter().map(logarithms).filter(|round| round.iter().any(Option::is_some)).collect();
    let (error, degrees) = match rounds.as_slice() {
        [] => return None,
        [round] => lenth_error(design, round)?,
        rounds => {
            let (deviation, degrees) = pure_error(rounds)?;
            // An effect is the difference of two means of half of the runs each.
            (2.0 * deviation / ((design.len() * rounds.len()) as f64).sqrt(), degrees)
        }
    };
    let fit = Fit::new(design, &rounds);
    let factors: Vec<Option<FactorEstimate>> =
        (0..factor_count(design)).map(|factor| fit.estimate(factor)).collect();
    let count = factors.iter().flatten().count();
    if count == 0 {
        return None;
    }
    let critical = student_quantile(degrees, (1.0 - confidence) / (2.0 * count as f64))?;
    // In a complete design, the sum of squares of levels coded as ±1/2.
    let full_weight = (design.len() * rounds.len()) as f64 / 4.0;
    let interval = |FactorEstimate { effect, weight }| {
        let margin = critical * error * (full_weight / weight).sqrt();
        let [low, value, high] = [effect - margin, effect, effect + margin].map(f64::exp);
        Estimate { value, low, high }
    };
    Some(Effects {
        effects: factors.into_iter().map(|factor| factor.map(interval)).collect(),
        error,
        degrees,
    })
}

/// Returns the quantile of Student's distribution that is exceeded with the probability `beyond`, at most 0.5;
/// `None` without a degree of freedom, or if it is not finite.
fn student_quantile(degrees: f64, beyond: f64) -> Option<f64> {
    if !(beyond > 0.0 && beyond <= 0.5 && degrees >= 1.0) {
        return None;
    }
    let student = StudentsT::new(0.0, 1.0, degrees.min(MAX_DEGREES)).ok()?;
    let quantile = student.inverse_cdf(1.0 - beyond);
    quantile.is_finite().then_some(quantile)
}

/// Returns the standard deviation of a run's logarithm and its degrees of freedom: the residuals of a two-way additive
/// model of row and round, over the rows that all rounds have.
fn pure_error(rounds: &[Vec<Option<f64>>]) -> Option<(f64, f64)> {
    let rows = rounds.iter().map(Vec::len).min()?;
    let complete: Vec<Vec<f64>> =
        (0..rows).filter_map(|row| rounds.iter().map(|round| round[row]).collect()).collect();
    let degrees = (complete.len() as f64 - 1.0) * (rounds.len() as f64 - 1.0);
    if degrees < 1.0 {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let round_mean =
        |round: usize| complete.iter().map(|row| row[round]).sum::<f64>() / complete.len() as f64;
    let round_means: Vec<f64> = (0..rounds.len()).map(round_mean).collect();
    let grand_mean = mean(&round_means);
    let squares = |row: &Vec<f64>| -> f64 {
        let row_mean = mean(row);
        let residuals = row
            .iter()
            .zip(&round_means)
            .map(|(value, round_mean)| value - row_mean - round_mean + grand_mean);
        residuals.map(|residual| residual * residual).sum()
    };
    Some(((complete.iter().map(squares).sum::<f64>() / degrees).sqrt(), degrees))
}

/// Returns Lenth's pseudo standard error of a log effect and its degrees of freedom: R. V. Lenth, "Quick and Easy
/// Analysis of Unreplicated Factorials", Technometrics 31 (1989). It uses the contrasts of all columns of the
/// matrix, also the constant one, whose sign the fold-over reverses: none contains a two-factor interaction. `None`
/// if a row is missing, or the rows are not those of a [`design`].
fn lenth_error(rows: &[Vec<bool>], values: &[Option<f64>]) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    let factors = factor_count(rows);
    if rows != design(factors) {
        return None;
    }
    let order = smallest_order(factors);
    let columns = fold_over(&hadamard(order));
    let contrast = |column: usize| {
        let signed =
            values.iter().zip(&columns).map(|(value, row)| if row[column] { *value } else { -value });
        (signed.sum::<f64>() * 2.0 / values.len() as f64).abs()
    };
    let contrasts: Vec<f64> = (0..order).map(contrast).collect();
    let cutoff = LENTH_CUTOFF * LENTH_SCALE * median(&contrasts)?;
    let noise: Vec<f64> = contrasts.iter().copied().filter(|contrast| *contrast <= cutoff).collect();
    Some((LENTH_SCALE * median(&noise)?, contrasts.len() as f64 / LENTH_CONTRASTS_PER_DEGREE))
}

/// The normal equations of log values on factors, coded as ±1/2. Subtracting each round's means from both fits the
/// rounds beforehand.
struct Fit {
    /// A row for each factor: its products with all factors, and the one with the values.
    equations: Vec<Vec<f64>>,
    runs: usize,
}

/// A factor's least squares estimate.
struct FactorEstimate {
    /// ln(b / a).
    effect: f64,
    /// The sum of squares of its coded column that rounds and other factors do not explain; the effect's variance is
    /// a run's divided by it.
    weight: f64,
}

impl Fit {
    fn new(design: &[Vec<bool>], rounds: &[Vec<Option<f64>>]) -> Fit {
        let factors = factor_count(design);
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

    /// Estimates a factor's effect by eliminating all others. `None` if its column is a linear combination of rounds
    /// and other factors: it has one level, or always changes along with another. Such dependence among the others
    /// does no harm.
    fn estimate(&self, factor: usize) -> Option<FactorEstimate> {
        let min_weight = MIN_WEIGHT * self.runs as f64;
        let mut equations = self.equations.clone();
        for pivot in (0..equations.len()).filter(|pivot| *pivot != factor) {
            let pivot_row = equations[pivot].clone();
            // The matrix has no negative eigenvalue: a diagonal element of 0 means a row of zeros.
            if pivot_row[pivot] <= min_weight {
                continue;
            }
            for (_, equation) in equations.iter_mut().enumerate().filter(|(row, _)| *row != pivot) {
                let multiple = equation[pivot] / pivot_row[pivot];
                equation.iter_mut().zip(&pivot_row).for_each(|(value, other)| *value -= multiple * other);
            }
        }
        let (weight, right) = (equations[factor][factor], equations[factor].last()?);
        (weight > min_weight).then(|| FactorEstimate { effect: right / weight, weight })
    }
}
