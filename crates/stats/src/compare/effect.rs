//! An effect on the scale of logarithms, and the interval that holds it.

use std::cmp::Ordering;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::resample::critical_value;

/// From so many values a sample on, the smallest deciding, the interval is bootstrapped: of fewer, resamples show
/// too little of what the values might have been.
const BOOTSTRAP_FROM: usize = 10;

/// From so many values a sample on, the smallest deciding, degrees of freedom are Welch's.
const WELCH_FROM: usize = 5;

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

    fn count(&self) -> usize {
        self.values.len()
    }
}

impl Effect {
    /// `None` where a sample has less than two values, or one that is not finite: no spread to go by.
    pub fn new(samples: Vec<Vec<f64>>) -> Option<Effect> {
        let usable = |values: &Vec<f64>| values.len() >= 2 && values.iter().all(|value| value.is_finite());
        samples.iter().all(usable).then(|| Effect { samples: samples.into_iter().map(Sample::new).collect() })
    }

    /// An effect of this size, as far spread as the values of one sample; `None` as for [`new`](Self::new).
    pub fn around(size: f64, values: Vec<f64>) -> Option<Effect> {
        let mut effect = Effect::new(vec![values]).filter(|_| size.is_finite())?;
        effect.samples[0].mean = size;
        Some(effect)
    }

    /// The effect as measured.
    pub fn value(&self) -> f64 {
        self.samples.iter().map(|sample| sample.mean).sum()
    }

    /// Half the width of the interval that holds the true effect with the confidence: Student's below ten values,
    /// from there on the studentised bootstrap's. 0 for values without any spread.
    pub fn margin(&self, confidence: f64) -> f64 {
        let smallest = self.samples.iter().map(Sample::count).min().unwrap_or_default();
        let critical = if smallest >= BOOTSTRAP_FROM { self.critical_value(confidence) } else { None };
        critical
            .map_or_else(|| self.student_margin(confidence), |critical| critical * self.error(Sample::count))
    }

    /// Half the width of Student's interval.
    pub fn student_margin(&self, confidence: f64) -> f64 {
        self.student(Sample::count, |student| student.inverse_cdf(0.5 + confidence / 2.0))
    }

    /// How far from a limit the effect must lie for an experiment of so many `runs` in each sample, as far spread,
    /// to put the end of Student's interval on the same side of that limit with the probability `power`.
    pub fn planned_margin(&self, runs: usize, confidence: f64, power: f64) -> f64 {
        self.student(
            |_| runs,
            |student| student.inverse_cdf(0.5 + confidence / 2.0) + student.inverse_cdf(power),
        )
    }

    /// So many standard errors as the quantiles say, where the samples have the counts.
    fn student(&self, count: impl Fn(&Sample) -> usize, quantiles: impl Fn(&StudentsT) -> f64) -> f64 {
        let error = self.error(&count);
        if error == 0.0 {
            return 0.0;
        }
        let student = StudentsT::new(0.0, 1.0, self.freedom(&count, error));
        student.map_or(f64::INFINITY, |student| quantiles(&student) * error)
    }

    /// Degrees of freedom: Welch, "The generalization of 'Student's' problem when several different population
    /// variances are involved", Biometrika 34 (1947), by Satterthwaite, "An approximate distribution of estimates of
    /// variance components", Biometrics Bulletin 2 (1946). Of one sample these are Student's own n − 1.
    ///
    /// With fewer than [`WELCH_FROM`] values in a sample they are that sample's n − 1, with which the interval never
    /// holds the truth less often than it says (Mickey & Brown, "Bounds on the distribution functions of the
    /// Behrens-Fisher statistic", Annals of Mathematical Statistics 37, 1966): Welch's rest on variances that so few
    /// values do not show. Of equal sides Welch's intervals at 95 % exclude 1 in 12 % of cases with 2 runs against 20
    /// and in 7 % with 3 against 20, these in 0 and 1 %; with unequal spreads in up to 12 %, these in at most 5 %.
    fn freedom(&self, count: impl Fn(&Sample) -> usize, error: f64) -> f64 {
        let smallest = self.samples.iter().map(&count).min().unwrap_or_default();
        if smallest < WELCH_FROM {
            return smallest as f64 - 1.0;
        }
        let terms = self.samples.iter().map(|sample| {
            let count = count(sample) as f64;
            (sample.variance / count / error / error).powi(2) / (count - 1.0)
        });
        1.0 / terms.sum::<f64>()
    }

    /// The standard error of the effect, where the samples have the counts.
    fn error(&self, count: impl Fn(&Sample) -> usize) -> f64 {
        self.samples.iter().map(|sample| sample.variance / count(sample) as f64).sum::<f64>().sqrt()
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
