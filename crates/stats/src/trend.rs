//! How fast a series rises or falls, and how sure that is.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::parts;

/// Batches that the series is cut into. Neighbouring values are alike, the means of batches of them hardly
/// (the method of batch means, Law & Kelton, "Simulation Modeling and Analysis"); ten leave eight degrees of freedom.
pub const BATCHES: usize = 10;

/// A slope with an interval that holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The least-squares line's slope, per unit of x.
    pub slope: f64,
    /// Its standard error.
    pub error: f64,
    /// The line's value at the first x.
    pub at_first: f64,
    /// The line's value at the last x.
    pub at_last: f64,
    /// The residuals' degrees of freedom.
    freedom: f64,
}

impl Slope {
    /// Half the width of the interval that holds the slope with the confidence (0 to 1), by Student's t.
    pub fn margin(&self, confidence: f64) -> f64 {
        match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) => student.inverse_cdf(0.5 + confidence / 2.0) * self.error,
            Err(_) => f64::INFINITY,
        }
    }
}

/// The slope of the means of ten batches of consecutive points `(x, y)`; `None` for less than 20 points or where all
/// have the same x.
pub fn slope(points: &[(f64, f64)]) -> Option<Slope> {
    if points.len() < 2 * BATCHES {
        return None;
    }
    let means: Vec<(f64, f64)> = parts(points, BATCHES)
        .map(|chunk| {
            let count = chunk.len() as f64;
            let sum = chunk.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
            (sum.0 / count, sum.1 / count)
        })
        .collect();
    let count = BATCHES as f64;
    let mean_x = means.iter().map(|mean| mean.0).sum::<f64>() / count;
    let mean_y = means.iter().map(|mean| mean.1).sum::<f64>() / count;
    let spread_x: f64 = means.iter().map(|mean| (mean.0 - mean_x).powi(2)).sum();
    let slope = means.iter().map(|mean| (mean.0 - mean_x) * (mean.1 - mean_y)).sum::<f64>() / spread_x;
    let residuals: f64 = means.iter().map(|mean| (mean.1 - mean_y - slope * (mean.0 - mean_x)).powi(2)).sum();
    let freedom = count - 2.0;
    let error = (residuals / freedom / spread_x).sqrt();
    let at = |x: f64| mean_y + slope * (x - mean_x);
    (slope.is_finite() && error.is_finite()).then(|| Slope {
        slope,
        error,
        at_first: at(points[0].0),
        at_last: at(points[points.len() - 1].0),
        freedom,
    })
}

/// The sum of the squares by which values differ from what is expected of their indexes.
pub fn squares_from(values: &[f64], expected: impl Fn(f64) -> f64) -> f64 {
    values.iter().enumerate().map(|(index, value)| (value - expected(index as f64)).powi(2)).sum()
}

/// The sum of the values' squared differences from their least-squares line.
pub fn squares_from_line(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let (mean_x, mean_y) = ((count - 1.0) / 2.0, values.iter().sum::<f64>() / count);
    let products = values.iter().enumerate().map(|(index, value)| (index as f64 - mean_x) * (value - mean_y));
    // The squared differences of 0, 1, … n − 1 from their mean add up to n (n² − 1) / 12.
    let slope = products.sum::<f64>() * 12.0 / (count * (count * count - 1.0));
    squares_from(values, |x| mean_y + slope * (x - mean_x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_leaves_no_squares_and_a_step_does() {
        let line: Vec<f64> = (0..20).map(|x| 3.0 + 2.0 * f64::from(x)).collect();
        assert!(squares_from_line(&line) < 1e-9);
        // 0, 0, 1, 1: the line rises by 0.4 from -0.1.
        assert!((squares_from_line(&[0.0, 0.0, 1.0, 1.0]) - 0.2).abs() < 1e-12);
    }

    fn points(length: usize, slope: f64) -> Vec<(f64, f64)> {
        (0..length).map(|x| (x as f64, 100.0 + slope * x as f64 + ((x * 7919) % 11) as f64)).collect()
    }

    #[test]
    fn a_slope_lies_in_its_interval() {
        for planted in [-0.5, 0.0, 0.5] {
            let found = slope(&points(200, planted)).unwrap();
            assert!((found.slope - planted).abs() <= found.margin(0.99), "{planted}: {found:?}");
            assert!(found.margin(0.95) < found.margin(0.99));
        }
    }

    #[test]
    fn the_interval_is_that_of_student() {
        // The 97.5 % quantile with 8 degrees of freedom, from any table.
        let found = slope(&points(200, 0.0)).unwrap();
        assert!((found.margin(0.95) / found.error - 2.306).abs() < 0.001);
    }

    #[test]
    fn too_few_points_or_one_place_have_no_slope() {
        assert_eq!(slope(&points(19, 1.0)), None);
        assert_eq!(slope(&[(1.0, 2.0); 50]), None);
        assert_eq!(slope(&[(f64::NAN, 2.0); 50]), None);
    }
}
