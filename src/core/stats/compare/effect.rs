//! An effect on the scale of logarithms, and the interval that holds it.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::stats::resample::critical_value;

/// From so many values a sample on, the smallest deciding, the interval is bootstrapped: of fewer, resamples show
/// too little of what the values might have been.
const BOOTSTRAP_FROM: usize = 10;

/// The sum of the means of independent samples: ln candidate and −ln baseline for groups of runs, the one sample of
/// ln candidate / baseline for pairs.
pub struct Effect {
    samples: Vec<Sample>,
}

struct Sample {
    values: Vec<f64>,
    mean: f64,
    /// Unbiased.
    variance: f64,
}

impl Sample {
    fn new(values: Vec<f64>) -> Sample {
        let (count, first) = (values.len() as f64, values[0]);
        // From differences, so that equal values have a variance of exactly 0.
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Sample { values, mean, variance }
    }
}

impl Effect {
    /// `None` where a sample has less than two values, or one that is not finite: no spread to go by.
    pub fn new(samples: Vec<Vec<f64>>) -> Option<Effect> {
        let usable = |values: &Vec<f64>| values.len() >= 2 && values.iter().all(|value| value.is_finite());
        samples.iter().all(usable).then(|| Effect { samples: samples.into_iter().map(Sample::new).collect() })
    }

    /// The effect as measured.
    pub fn value(&self) -> f64 {
        self.samples.iter().map(|sample| sample.mean).sum()
    }

    /// Half the width of the interval that holds the true effect with the confidence: Student's below ten values,
    /// from there on the studentised bootstrap's. 0 for values without any spread.
    pub fn margin(&self, confidence: f64) -> f64 {
        let smallest = self.samples.iter().map(|sample| sample.values.len()).min().unwrap_or_default();
        let critical = if smallest >= BOOTSTRAP_FROM { self.critical_value(confidence) } else { None };
        critical.map_or_else(|| self.student_margin(0, confidence), |critical| critical * self.error(0))
    }

    /// Half the width of Student's interval, if there were so many `more` values in each sample, as far spread.
    ///
    /// Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    /// Biometrika 34 (1947); the degrees of freedom by Satterthwaite, "An approximate distribution of estimates of
    /// variance components", Biometrics Bulletin 2 (1946). Of one sample these are Student's own n − 1.
    pub fn student_margin(&self, more: usize, confidence: f64) -> f64 {
        let error = self.error(more);
        if error == 0.0 {
            return 0.0;
        }
        let terms = self.samples.iter().map(|sample| {
            let count = (sample.values.len() + more) as f64;
            (sample.variance / count / error / error).powi(2) / (count - 1.0)
        });
        match StudentsT::new(0.0, 1.0, 1.0 / terms.sum::<f64>()) {
            Ok(student) => student.inverse_cdf(0.5 + confidence / 2.0) * error,
            Err(_) => f64::INFINITY,
        }
    }

    /// The standard error of the effect, if there were so many `more` values in each sample.
    fn error(&self, more: usize) -> f64 {
        let variance = |sample: &Sample| sample.variance / (sample.values.len() + more) as f64;
        self.samples.iter().map(variance).sum::<f64>().sqrt()
    }

    /// The bootstrap's critical value. Neither the values' order nor which side is called the baseline is to matter,
    /// whatever the generator draws: the samples are put into one order, and under one of the two signs.
    fn critical_value(&self, confidence: f64) -> Option<f64> {
        let centred = |sign: f64| {
            let centre = |sample: &Sample| {
                let mut values: Vec<f64> =
                    sample.values.iter().map(|value| sign * (value - sample.mean)).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let mut samples: Vec<Vec<f64>> = self.samples.iter().map(centre).collect();
            samples.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
            samples
        };
        let (forward, backward) = (centred(1.0), centred(-1.0));
        critical_value(if forward <= backward { &forward } else { &backward }, confidence)
    }
}
