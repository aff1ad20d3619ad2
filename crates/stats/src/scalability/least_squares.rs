//! The law's parameters by least squares of TPS.

use rmpfit::{MPConfig, MPFitter, MPPar, MPResult, MPSide};

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
