//! The universal scalability law: how throughput grows and falls with concurrency.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)) (Gunther 2007, "Guerrilla Capacity Planning", ch. 4–6; 2008,
//! arXiv:0808.1431), fitted by least squares of TPS, not of their ratio to the curve: these give the peak near the top
//! rungs their weight, and the published figures. Haas's PostgreSQL 9.1 peaks at 19.5 clients so with a free σ and at
//! 22.0 with σ ≥ 0, while relative squares put it at 23.5. σ and κ are held at zero or above, since negative
//! contention or crosstalk has no meaning.
//!
//! Fitted are the means of rungs, each of which counts once. A rung misses the curve by an effect of its own beside
//! the scatter of its rounds (where its clients ran, how its tables were cached), which more rounds do not lessen:
//! taken as points of their own, rounds would make the intervals too short. With three rungs the curve goes through
//! all, and nothing is left to tell an interval by; four leave one degree of freedom, and wide intervals.
//!
//! Simulated, intervals of 95 % hold the truth so often, where the effects of rungs are 3 % and the noise of rounds is
//! 1 % (both lognormal, 27,000 sweeps a line: σ 0.02 to 0.1, κ 1e-4 to 5e-3, 5 to 10 rungs from 1 to 128 clients); in
//! brackets with all rounds as points and the delta method for the peak, which was the way before:
//!
//! | rounds | σ             | κ             | peak, where told | peak told in  |
//! |--------|---------------|---------------|------------------|---------------|
//! | 1      | 0.969 (0.969) | 0.957 (0.957) | 0.954 (0.944)    | 0.814 (0.862) |
//! | 3      | 0.969 (0.656) | 0.955 (0.655) | 0.952 (0.674)    | 0.817 (0.971) |
//! | 5      | 0.968 (0.503) | 0.953 (0.516) | 0.948 (0.533)    | 0.822 (0.984) |
//!
//! Without effects of rungs all of these are from 0.953 to 0.970, and a peak is told in 0.983 to 0.999.

#[cfg(test)]
mod tests;

use rmpfit::{MPConfig, MPFitter, MPPar, MPResult, MPSide};
use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor, StudentsT};

use crate::Estimate;

/// Rungs that fitting takes: one more than there are parameters.
const LEAST_RUNGS: usize = 4;
/// A curve that misses the rungs by more than this fraction of their mean, root mean square, does not describe them.
/// A limit for the coefficient of determination would not do: that is small wherever TPS hardly depends on the
/// clients, however well the curve says so.
const MOST_DISTANCE: f64 = 0.1;
/// Significance at which the rounds' scatter no longer explains such a distance.
const LACK_OF_FIT: f64 = 0.01;
/// A peak whose interval reaches beyond so many times the last rung is no prediction.
const FARTHEST_PEAK: f64 = 2.0;

/// What is said of a fit; written down as the words that users read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(into = "&'static str")]
pub enum FitVerdict {
    /// The curve describes the rungs, and has its peak within or not far beyond them, the whole interval of it.
    Fits,
    /// It describes them, and tells no peak: the peak's interval reaches beyond twice the last rung, as it does where
    /// crosstalk may be zero, or throughput only falls.
    NoPeak,
    /// Less than four numbers of clients, of which no interval can be told, or such as do not determine the curve.
    /// Nothing is reported.
    NotEnoughRungs,
    /// The curve misses the rungs' means by more than 10 % of their mean, root mean square. Where there were two
    /// rounds or more, only if their scatter does not explain it: the F test for lack of fit at 1 % (Draper & Smith
    /// 1998, "Applied Regression Analysis", ch. 2).
    DoesNotFit,
}

impl FitVerdict {
    /// The words users read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::NoPeak => "no peak",
            Self::NotEnoughRungs => "not enough rungs",
            Self::DoesNotFit => "does not fit",
        }
    }
}

impl From<FitVerdict> for &'static str {
    fn from(verdict: FitVerdict) -> Self {
        verdict.as_str()
    }
}

/// X(N) = λN / (1 + σ(N − 1) + κN(N − 1)). The intervals are of 95 %, and cut at 0: where σ or κ is 0,
/// theirs reaches upwards only, and those of the others take into account how far that is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Scalability {
    /// λ, TPS of one client; null, like the others, if it could not be estimated.
    pub lambda: Option<Estimate>,
    /// σ, contention.
    pub sigma: Option<Estimate>,
    /// κ, crosstalk.
    pub kappa: Option<Estimate>,
    /// Number of clients at the peak throughput; its interval is not symmetric.
    pub peak_clients: Option<Estimate>,
    /// TPS at the peak.
    pub peak_tps: Option<Estimate>,
    /// Coefficient of determination, of TPS.
    pub r2: Option<f64>,
    /// `fits`; `no peak`: the runs follow the law, but the interval of the peak reaches beyond twice the last rung, or
    /// TPS only falls; `not enough rungs`: fewer than four; `does not fit`.
    pub verdict: FitVerdict,
}

impl Scalability {
    fn nothing(verdict: FitVerdict) -> Self {
        Self { lambda: None, sigma: None, kappa: None, peak_clients: None, peak_tps: None, r2: None, verdict }
    }

    /// TPS of the curve at a number of clients; `None` below one client and where nothing was fitted.
    pub fn tps(&self, clients: f64) -> Option<f64> {
        let law = Law { lambda: self.lambda?.value, sigma: self.sigma?.value, kappa: self.kappa?.value };
        (clients >= 1.0).then(|| law.tps(clients))
    }
}

/// Fits the law to (clients, TPS) of runs; several of one number of clients count as their mean, in any order. Points are
/// left out whose clients are less than one or whose TPS is negative, or that are not finite.
pub fn fit(points: &[(f64, f64)]) -> Scalability {
    let mut points: Vec<(f64, f64)> = points
        .iter()
        .copied()
        .filter(|(clients, tps)| clients.is_finite() && *clients >= 1.0 && tps.is_finite() && *tps >= 0.0)
        .collect();
    // Sorted, so that the order in which runs came does not change how sums are rounded.
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let rungs: Vec<&[(f64, f64)]> = points.chunk_by(|one, other| one.0 == other.0).collect();
    if rungs.len() < LEAST_RUNGS {
        return Scalability::nothing(FitVerdict::NotEnoughRungs);
    }
    if points.iter().all(|point| point.1 == 0.0) {
        return Scalability::nothing(FitVerdict::DoesNotFit);
    }
    let means: Vec<(f64, f64)> = rungs.iter().map(|rung| (rung[0].0, mean(rung))).collect();
    let solved = solve(&means);
    let Some((law, errors)) = solved.and_then(|solved| Some((solved.law, Errors::of(&solved, &means)?)))
    else {
        return Scalability::nothing(FitVerdict::NotEnoughRungs);
    };
    let farthest = FARTHEST_PEAK * means[means.len() - 1].0;
    let peak = peak(&law, &errors, &means, farthest);
    let verdict = match peak {
        _ if misses(&law, &rungs) => FitVerdict::DoesNotFit,
        Some(_) => FitVerdict::Fits,
        None => FitVerdict::NoPeak,
    };
    let peak_clients = peak.filter(|_| verdict == FitVerdict::Fits);
    Scalability {
        lambda: Some(errors.estimate(law.lambda, [1.0, 0.0, 0.0])),
        sigma: Some(errors.estimate(law.sigma, [0.0, 1.0, 0.0])),
        kappa: Some(errors.estimate(law.kappa, [0.0, 0.0, 1.0])),
        peak_clients,
        // That the peak moves does not count: X is level there.
        peak_tps: peak_clients.map(|peak| errors.estimate(law.tps(peak.value), law.gradient(peak.value))),
        r2: r2(&law, &points),
        verdict,
    }
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
}

/// 1 − (squares left by the curve) / (squares about the mean).
fn r2(law: &Law, points: &[(f64, f64)]) -> Option<f64> {
    let mean = mean(points);
    let left: f64 = points.iter().map(|(clients, tps)| (tps - law.tps(*clients)).powi(2)).sum();
    let all: f64 = points.iter().map(|(_, tps)| (tps - mean).powi(2)).sum();
    (all > 0.0).then(|| 1.0 - left / all)
}

/// Whether the curve does not describe the rungs, as [`FitVerdict::DoesNotFit`] has it.
fn misses(law: &Law, rungs: &[&[(f64, f64)]]) -> bool {
    let count = rungs.len() as f64;
    let level = rungs.iter().map(|rung| mean(rung)).sum::<f64>() / count;
    let distances = || rungs.iter().map(|rung| (mean(rung) - law.tps(rung[0].0)).powi(2));
    if (distances().sum::<f64>() / count).sqrt() <= MOST_DISTANCE * level {
        return false;
    }
    let runs: usize = rungs.iter().map(|rung| rung.len()).sum();
    if runs < 2 * rungs.len() {
        return true;
    }
    let lack: f64 = distances().zip(rungs).map(|(distance, rung)| distance * rung.len() as f64).sum();
    let scatter: f64 =
        rungs.iter().flat_map(|rung| rung.iter().map(|point| (point.1 - mean(rung)).powi(2))).sum();
    let (lack_freedom, scatter_freedom) = (count - 3.0, runs as f64 - count);
    let ratio = (lack / lack_freedom) / (scatter / scatter_freedom);
    match FisherSnedecor::new(lack_freedom, scatter_freedom) {
        Ok(fisher) if ratio.is_finite() => fisher.sf(ratio) < LACK_OF_FIT,
        // Rounds that are all alike explain nothing.
        _ => true,
    }
}

/// Where the search begins, of contention and crosstalk, beside their absence: so coarse that any ladder has one near.
const STARTS: [f64; 8] = [1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0];

/// λ, σ and κ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Law {
    pub lambda: f64,
    pub sigma: f64,
    pub kappa: f64,
}

impl Law {
    /// X(N), in the unit of λ.
    pub fn tps(&self, clients: f64) -> f64 {
        self.lambda * clients / self.slowdown(clients)
    }

    /// By how much each client is slower than if it were alone.
    fn slowdown(&self, clients: f64) -> f64 {
        1.0 + self.sigma * (clients - 1.0) + self.kappa * clients * (clients - 1.0)
    }

    /// Clients at the peak, sqrt((1 − σ) / κ); `None` where X grows, or falls, from one client on.
    pub fn peak(&self) -> Option<f64> {
        let clients = ((1.0 - self.sigma) / self.kappa).sqrt();
        (clients >= 1.0 && clients.is_finite()).then_some(clients)
    }

    /// Derivatives of X(N) by λ, σ and κ.
    pub fn gradient(&self, clients: f64) -> [f64; 3] {
        let slowdown = self.slowdown(clients);
        let by_sigma = -self.tps(clients) * (clients - 1.0) / slowdown;
        [clients / slowdown, by_sigma, by_sigma * clients]
    }
}

/// The law that describes points, and how their errors move its parameters.
#[derive(Clone, Debug)]
pub struct Solution {
    pub law: Law,
    /// (JᵀJ)⁻¹ of the Jacobian J at the solution.
    pub inverse: [[f64; 3]; 3],
}

/// Points (clients, TPS) and how to search.
struct ProfileSearch<'a> {
    points: &'a [(f64, f64)],
    parameters: [MPPar; 3],
    /// Clients at the peak, where κ is to follow from σ so that the peak is there.
    peak: Option<f64>,
    config: MPConfig,
}

impl ProfileSearch<'_> {
    fn law(&self, parameters: &[f64]) -> Law {
        let (lambda, sigma) = (parameters[0], parameters[1]);
        Law { lambda, sigma, kappa: self.peak.map_or(parameters[2], |peak| (1.0 - sigma) / (peak * peak)) }
    }
}

impl MPFitter for ProfileSearch<'_> {
    fn eval(&mut self, parameters: &[f64], deviates: &mut [f64]) -> MPResult<()> {
        let law = self.law(parameters);
        for (deviate, (clients, tps)) in deviates.iter_mut().zip(self.points) {
            *deviate = law.tps(*clients) - tps;
        }
        Ok(())
    }

    fn number_of_points(&self) -> usize {
        self.points.len()
    }

    fn config(&self) -> &MPConfig {
        &self.config
    }

    fn parameters(&self) -> &[MPPar] {
        &self.parameters
    }

    fn jacobian(
        &mut self,
        parameters: &[f64],
        deviates: &mut [f64],
        derivatives: &mut [Option<Vec<f64>>],
    ) -> MPResult<()> {
        let law = self.law(parameters);
        for (parameter, column) in derivatives.iter_mut().enumerate() {
            for (derivative, (clients, _)) in column.iter_mut().flatten().zip(self.points) {
                let mut gradient = law.gradient(*clients);
                if let Some(peak) = self.peak {
                    gradient[1] -= gradient[2] / (peak * peak);
                }
                *derivative = gradient[parameter];
            }
        }
        self.eval(parameters, deviates)
    }
}

/// The law with the least squares of TPS among those whose parameters are not negative; `None` where the points, of
/// which one TPS must be positive, do not determine it. By MPFIT, which is MINPACK's Levenberg–Marquardt with bounds
/// (Moré 1978, "The Levenberg-Marquardt algorithm", LNM 630; Markwardt 2009, ASP Conference Series 411).
pub fn solve(points: &[(f64, f64)]) -> Option<Solution> {
    // The largest is brought to 1, where the search is the same for any unit.
    let scale = points.iter().fold(0.0, |most: f64, point| most.max(point.1));
    let scaled: Vec<(f64, f64)> = points.iter().map(|(clients, tps)| (*clients, tps / scale)).collect();
    let start = start(&scaled);
    let mut parameters = [start.lambda, start.sigma, start.kappa];
    let parameter =
        |limited_low| MPPar { limited_low, limit_low: 0.0, side: MPSide::User, ..MPPar::default() };
    let mut search =
        ProfileSearch { points: &scaled, parameters: [true; 3].map(parameter), peak: None, config: config() };
    search.mpfit(&mut parameters).ok()?;
    // Without bounds and without a step: a parameter at its bound has its part in the others' uncertainty too.
    search.config.max_iter = 0;
    search.parameters = [false; 3].map(parameter);
    let covariance = search.mpfit(&mut parameters).ok()?.covar;
    let lambda = parameters[0];
    let inverse = [0, 1, 2].map(|row| [0, 1, 2].map(|column| covariance[3 * row + column]));
    let determined =
        lambda > 0.0 && (0..3).all(|index| inverse[index][index] > 0.0 && inverse[index][index].is_finite());
    // Back to the given unit: X and λ have it, σ and κ have none.
    let units = [scale, 1.0, 1.0];
    determined.then(|| Solution {
        law: Law { lambda: lambda * scale, ..search.law(&parameters) },
        inverse: [0, 1, 2].map(|row| {
            [0, 1, 2].map(|column| inverse[row][column] * units[row] * units[column] / (scale * scale))
        }),
    })
}

fn config() -> MPConfig {
    MPConfig { ftol: 1e-14, xtol: 1e-12, gtol: 1e-12, ..MPConfig::default() }
}

/// The least sum of squares, in TPS squared, that a law leaves whose peak is at so many clients, with λ and σ as
/// [`solve`] would have them; `None` where the search fails. `near` is where it begins.
pub fn squares_with_peak(points: &[(f64, f64)], near: &Law, peak: f64) -> Option<f64> {
    let scale = near.lambda;
    let scaled: Vec<(f64, f64)> = points.iter().map(|(clients, tps)| (*clients, tps / scale)).collect();
    let mut parameters = [1.0, near.sigma, 0.0];
    let of_lambda = MPPar { limited_low: true, side: MPSide::User, ..MPPar::default() };
    let of_sigma = MPPar { limited_up: true, limit_up: 1.0, ..of_lambda };
    let of_kappa = MPPar { fixed: true, ..of_lambda };
    let mut search = ProfileSearch {
        points: &scaled,
        parameters: [of_lambda, of_sigma, of_kappa],
        peak: Some(peak),
        config: config(),
    };
    let squares = search.mpfit(&mut parameters).ok()?.best_norm * scale * scale;
    squares.is_finite().then_some(squares)
}

/// The best of a coarse grid over σ and κ; λ, in which the law is linear, follows from each.
fn start(points: &[(f64, f64)]) -> Law {
    let mut best = (f64::INFINITY, Law { lambda: 1.0, sigma: 0.0, kappa: 0.0 });
    let values = || std::iter::once(0.0).chain(STARTS);
    for (sigma, kappa) in values().flat_map(|sigma| values().map(move |kappa| (sigma, kappa))) {
        let unit = Law { lambda: 1.0, sigma, kappa };
        let products: f64 = points.iter().map(|(clients, tps)| tps * unit.tps(*clients)).sum();
        let squares: f64 = points.iter().map(|(clients, _)| unit.tps(*clients).powi(2)).sum();
        let law = Law { lambda: products / squares, ..unit };
        let left: f64 = points.iter().map(|(clients, tps)| (law.tps(*clients) - tps).powi(2)).sum();
        if left < best.0 {
            best = (left, law);
        }
    }
    best.1
}

/// Confidence of the intervals, as a fraction.
const CONFIDENCE: f64 = 0.95;
/// Steps of a search for a bound, which ends much sooner.
const MOST_STEPS: usize = 60;
/// A bound is found when the logarithm of clients is known to so much.
const TOLERANCE: f64 = 1e-7;

/// The errors of a solution's parameters, linearised at the solution, where a point's TPS is shaken in proportion to
/// its level: with X the curve at the points, J its Jacobian and C = (JᵀJ)⁻¹, the covariance of the parameters is
/// s² C Jᵀ X² J C (the sandwich of e.g. Seber & Wild 1989, "Nonlinear Regression", ch. 2). The usual s² C would hold
/// where every TPS is shaken alike; simulated as here, its intervals of the peak's TPS hold the truth in 80 to 92 %.
/// The sandwich's intervals hold it in 93 to 97 %, and in more where the shaking is alike after all, or where σ is at its bound.
pub struct Errors {
    /// (JᵀJ)⁻¹ of the solution.
    inverse: [[f64; 3]; 3],
    covariance: [[f64; 3]; 3],
    /// Student's t of the residuals' degrees of freedom.
    quantile: f64,
}

impl Errors {
    /// The errors of a solution for points (clients, TPS); `None` where too few points are left to judge by.
    pub fn of(solution: &Solution, points: &[(f64, f64)]) -> Option<Self> {
        let law = &solution.law;
        let unscaled = sandwich(solution, points);
        // Each residual is divided by the root of the curve. Divided by the curve itself, residuals of the first rungs
        // would count most, where least squares leave the curve loose; undivided, only residuals of the top would count.
        // A residual's expected square is its own error's, less the share of it and of others' that the curve follows.
        let (mut found, mut expected) = (0.0, 0.0);
        for (clients, tps) in points {
            let (level, gradient) = (law.tps(*clients), law.gradient(*clients));
            let leverage = product(&gradient, &apply(&solution.inverse, &gradient));
            found += (tps - level).powi(2) / level;
            expected +=
                level * (1.0 - 2.0 * leverage) + product(&gradient, &apply(&unscaled, &gradient)) / level;
        }
        let variance = found / expected;
        let quantile =
            StudentsT::new(0.0, 1.0, points.len() as f64 - 3.0).ok()?.inverse_cdf(0.5 + CONFIDENCE / 2.0);
        (expected > 0.0 && variance.is_finite()).then(|| Self {
            inverse: solution.inverse,
            covariance: unscaled.map(|row| row.map(|entry| entry * variance)),
            quantile,
        })
    }

    /// A figure that is not negative, whose derivatives by λ, σ and κ are given, with its interval: the delta method.
    pub fn estimate(&self, value: f64, derivatives: [f64; 3]) -> Estimate {
        let variance = product(&derivatives, &apply(&self.covariance, &derivatives));
        let margin = self.quantile * variance.max(0.0).sqrt();
        Estimate { value, low: (value - margin).max(0.0), high: value + margin }
    }

    /// By how much, in TPS squared, the sum of squares may grow where a figure, whose derivatives are given, is held
    /// elsewhere, for that to lie in the figure's interval. Were every TPS shaken alike with variance s², it would be
    /// t² s²; here s² is the figure's variance by [`Self::estimate`] in units of that by (JᵀJ)⁻¹ (Kent 1982, "Robust
    /// properties of likelihood ratio tests", Biometrika 69).
    pub fn allowance(&self, derivatives: [f64; 3]) -> f64 {
        let variance = |covariance| product(&derivatives, &apply(covariance, &derivatives));
        self.quantile.powi(2) * (variance(&self.covariance) / variance(&self.inverse)).max(0.0)
    }
}

/// Clients at the peak, with the profile interval: all peaks that laws have which leave hardly more squares than the
/// law does (e.g. Bates & Watts 1988, "Nonlinear Regression Analysis and Its Applications", ch. 6). Since the peak
/// is far from linear in σ and κ, the interval is longer above than below. `None` where the law has no peak, or the
/// interval reaches beyond `farthest` clients, as it does where κ may be zero.
pub fn peak(law: &Law, errors: &Errors, points: &[(f64, f64)], farthest: f64) -> Option<Estimate> {
    let value = law.peak().filter(|peak| *peak < farthest)?;
    let derivatives = [0.0, -value / (2.0 * (1.0 - law.sigma)), -value / (2.0 * law.kappa)];
    let allowance = errors.allowance(derivatives);
    let least: f64 = points.iter().map(|(clients, tps)| (law.tps(*clients) - tps).powi(2)).sum();
    // Negative within the interval. Roots are close to linear in the logarithm of the peak.
    let beyond = |peak: f64| {
        let more = squares_with_peak(points, law, peak.exp())? - least;
        Some(more.max(0.0).sqrt() - allowance.sqrt())
    };
    let within = value.ln();
    let (low, high) = (beyond(0.0)?, beyond(farthest.ln())?);
    if high <= 0.0 || !allowance.is_finite() {
        return None;
    }
    let at_value = -allowance.sqrt();
    let high = root((within, at_value), (farthest.ln(), high), beyond)?.exp();
    let low = if low <= 0.0 { 1.0 } else { root((within, at_value), (0.0, low), beyond)?.exp() };
    Some(Estimate { value, low: low.min(value), high: high.max(value) })
}

/// Where a function is zero between two places at which its signs differ: by false position, where the end that stays
/// counts half (the Illinois method; Dowell & Jarratt 1971, BIT 11).
fn root(mut one: (f64, f64), mut other: (f64, f64), function: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    for _ in 0..MOST_STEPS {
        let between = (one.0 * other.1 - other.0 * one.1) / (other.1 - one.1);
        let value = function(between)?;
        if (between - other.0).abs() < TOLERANCE || value == 0.0 {
            return Some(between);
        }
        if (value > 0.0) == (other.1 > 0.0) {
            one.1 /= 2.0;
        } else {
            one = other;
        }
        other = (between, value);
    }
    Some(other.0)
}

/// C Jᵀ X² J C.
fn sandwich(solution: &Solution, points: &[(f64, f64)]) -> [[f64; 3]; 3] {
    let mut sum = [[0.0; 3]; 3];
    for (clients, _) in points {
        let moved = shaken(&solution.law, &solution.inverse, *clients);
        for (row, by) in sum.iter_mut().zip(moved) {
            row.iter_mut().zip(moved).for_each(|(entry, other)| *entry += by * other);
        }
    }
    sum
}

/// By how much the parameters move where a point is off by its whole TPS.
fn shaken(law: &Law, inverse: &[[f64; 3]; 3], clients: f64) -> [f64; 3] {
    apply(inverse, &law.gradient(clients)).map(|moved| moved * law.tps(clients))
}

fn apply(matrix: &[[f64; 3]; 3], vector: &[f64; 3]) -> [f64; 3] {
    matrix.map(|row| product(&row, vector))
}

fn product(one: &[f64; 3], other: &[f64; 3]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}
