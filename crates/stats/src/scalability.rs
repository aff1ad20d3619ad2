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

mod intervals;
mod least_squares;

use schemars::JsonSchema;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::estimate::Estimate;
use intervals::Errors;
use least_squares::Law;

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
    let solved = least_squares::solve(&means);
    let Some((law, errors)) = solved.and_then(|solved| Some((solved.law, Errors::of(&solved, &means)?)))
    else {
        return Scalability::nothing(FitVerdict::NotEnoughRungs);
    };
    let farthest = FARTHEST_PEAK * means[means.len() - 1].0;
    let peak = intervals::peak(&law, &errors, &means, farthest);
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

#[cfg(test)]
mod tests;
