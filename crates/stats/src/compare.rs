//! Whether one group of runs differs from another.
//!
//! A run gives one value. The samples within it are correlated, so that their number says nothing of how well its
//! mean is known: the run is the unit, and the spread is that between runs. Ratios are estimated by differences of
//! logarithms, which makes them the same whichever side is called the baseline.

#[cfg(test)]
mod simulations;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{Estimate, mean};

/// More runs a side than this are nobody's next step: there is no advice beyond.
pub const MOST_RUNS: u32 = 1000;

/// The advised runs show a difference as great as the one found with this probability, and that there is none worth
/// telling, where both ends of the interval have to keep to the margin, with 0.8.
const POWER: f64 = 0.9;

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As throughput.
    Higher,
    /// As latency.
    Lower,
}

/// What is said of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    /// The whole interval lies within the margin.
    Same,
    Inconclusive,
}

impl Verdict {
    /// The word users read.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// How to judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Ratios between 1 - margin and 1 + margin are the same for the user's purpose.
    pub margin: f64,
    /// The interval's confidence, as a fraction: 0.95, or more where several metrics are looked at.
    pub confidence: f64,
    pub better: Better,
}

impl Terms {
    /// What an interval of the ratio says. One within the margin is the same even where it excludes 1: the
    /// difference is real, and too small to matter.
    pub fn verdict(&self, ratio: &Estimate) -> Verdict {
        let (above, below) = match self.better {
            Better::Higher => (Verdict::Faster, Verdict::Slower),
            Better::Lower => (Verdict::Slower, Verdict::Faster),
        };
        if ratio.low >= 1.0 - self.margin && ratio.high <= 1.0 + self.margin {
            Verdict::Same
        } else if ratio.low > 1.0 {
            above
        } else if ratio.high < 1.0 {
            below
        } else {
            Verdict::Inconclusive
        }
    }
}

/// A comparison's result.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupComparison {
    /// Mean of the baseline's runs.
    pub baseline: f64,
    pub candidate: f64,
    /// Candidate / baseline, the geometric means' ratio, with its interval at the terms' confidence; `None` where
    /// there is no interval to be had: one run on a side, or a value that is not positive.
    pub ratio: Option<Estimate>,
    pub verdict: Verdict,
    /// What to do about a verdict that is inconclusive: start anew with so many runs a side (or pairs), which give a
    /// verdict in at least four of five cases, should effect and spread be what they are here. `None` where there is
    /// no interval, and where even [`MOST_RUNS`] would not.
    ///
    /// Anew, since an interval holds the truth as often as it says only where the number of runs does not depend on
    /// what they show (Armitage, McPherson & Rowe, "Repeated significance tests on accumulating data", JRSS A 132,
    /// 1969). Of simulated sides that are equal, with 3 to 8 runs at first, 2 to 5 % from run to run and a margin of
    /// 2 %, 1 to 5 % get a false verdict at first, 7 to 10 % where runs are added as advised until there is a verdict,
    /// and 6 to 8 % where the comparison starts anew until there is one: each by itself keeps to its 5 %.
    pub runs: Option<u32>,
}

/// Compares two groups of runs, each with one value per run. The interval is Student's with the smaller side's degrees
/// of freedom below five runs on a side, Welch's below ten, from there on that of the studentised bootstrap.
pub fn groups(baseline: &[f64], candidate: &[f64], terms: Terms) -> GroupComparison {
    judge(mean(baseline), mean(candidate), between(baseline, candidate), terms)
}

/// The effect between two groups.
fn between(baseline: &[f64], candidate: &[f64]) -> Option<Effect> {
    let logarithms = |values: &[f64], sign: f64| values.iter().map(|value| sign * value.ln()).collect();
    Effect::new(vec![logarithms(baseline, -1.0), logarithms(candidate, 1.0)])
}

/// Compares runs that were made in pairs, (baseline, candidate), side by side: what is common to both of a pair has
/// no part in the interval. That is Student's below ten pairs, from there on that of the studentised bootstrap.
pub fn pairs(pairs: &[(f64, f64)], terms: Terms) -> GroupComparison {
    let (baseline, candidate): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ratios = pairs.iter().map(|(baseline, candidate)| candidate.ln() - baseline.ln()).collect();
    judge(mean(&baseline), mean(&candidate), Effect::new(vec![ratios]), terms)
}

/// Compares the means of the arms of one run, whose ratio has this logarithm: `moved` is what each of its batches contributes to
/// it. A batch has many transactions and so is near a normal distribution, and Student's interval reaches as far out as repeated
/// looks need it.
pub fn batches(means: [f64; 2], logarithm: f64, moved: Vec<f64>, terms: Terms) -> GroupComparison {
    let effect = Effect::around(logarithm, moved);
    let margin = effect.as_ref().map_or(0.0, |effect| effect.student_margin(terms.confidence));
    decide(means[0], means[1], effect, margin, terms)
}

/// A comparison among several that hold together.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedTogether {
    pub of: GroupComparison,
    /// Of its interval.
    pub confidence: f64,
}

/// Compares many pairs of groups, so that all verdicts are right together with the terms' confidence. The most certain one is
/// judged at the level divided by their number, the next one by the number of the others, and so on, until one is not decided
/// at its level: from there on all are judged at that (Holm, "A simple sequentially rejective multiple test procedure",
/// Scandinavian Journal of Statistics 6, 1979; that directions are right as well is shown for independent ones: Shaffer,
/// Annals of Statistics 8, 1980). Intervals are Student's, which reach as far out as that needs.
pub fn groups_together(groups: &[(Vec<f64>, Vec<f64>)], terms: Terms) -> Vec<ComparedTogether> {
    let effects: Vec<Option<Effect>> =
        groups.iter().map(|(baseline, candidate)| between(baseline, candidate)).collect();
    let confidence_of = |tests: usize| 1.0 - (1.0 - terms.confidence) / tests.max(1) as f64;
    let is_decided = |effect: &Effect, tests: usize| {
        let margin = effect.student_margin(confidence_of(tests));
        terms.verdict(&ratio(effect.value(), margin)) != Verdict::Inconclusive
    };
    let mut open: Vec<usize> = (0..effects.len()).filter(|place| effects[*place].is_some()).collect();
    let mut tests = vec![open.len(); effects.len()];
    while let Some(next) = open
        .iter()
        .position(|place| effects[*place].as_ref().is_some_and(|effect| is_decided(effect, open.len())))
    {
        tests[open[next]] = open.len();
        open.swap_remove(next);
    }
    open.iter().for_each(|place| tests[*place] = open.len());
    let all = groups.iter().zip(effects).zip(tests);
    all.map(|(((baseline, candidate), effect), tests)| {
        let terms = Terms { confidence: confidence_of(tests), ..terms };
        let margin = effect.as_ref().map_or(0.0, |effect| effect.student_margin(terms.confidence));
        let of = decide(mean(baseline), mean(candidate), effect, margin, terms);
        ComparedTogether { of, confidence: terms.confidence }
    })
    .collect()
}

fn judge(baseline: f64, candidate: f64, effect: Option<Effect>, terms: Terms) -> GroupComparison {
    let margin = effect.as_ref().map_or(0.0, |effect| effect.margin(terms.confidence));
    decide(baseline, candidate, effect, margin, terms)
}

/// What an effect that is known to `margin` says.
fn decide(
    baseline: f64,
    candidate: f64,
    effect: Option<Effect>,
    margin: f64,
    terms: Terms,
) -> GroupComparison {
    let Some(effect) = effect else {
        return GroupComparison {
            baseline,
            candidate,
            ratio: None,
            verdict: Verdict::Inconclusive,
            runs: None,
        };
    };
    let ratio = ratio(effect.value(), margin);
    let verdict = terms.verdict(&ratio);
    let runs = if verdict == Verdict::Inconclusive { runs(&effect, terms) } else { None };
    GroupComparison { baseline, candidate, ratio: Some(ratio), verdict, runs }
}

/// The fewest runs a side that decide, as [`GroupComparison::runs`] has it.
fn runs(effect: &Effect, terms: Terms) -> Option<u32> {
    let decide = |runs: u32| {
        let margin = effect.planned_margin(runs as usize, terms.confidence, POWER);
        terms.verdict(&ratio(effect.value(), margin)) != Verdict::Inconclusive
    };
    fewest(decide)
}

/// The fewest runs a side that are enough; `None` where even [`MOST_RUNS`] are not.
fn fewest(is_enough: impl Fn(u32) -> bool) -> Option<u32> {
    if !is_enough(MOST_RUNS) {
        return None;
    }
    // An interval narrows with every run, so that what is enough once is enough ever after.
    let (mut too_few, mut enough) = (1, MOST_RUNS);
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if is_enough(middle) { enough = middle } else { too_few = middle }
    }
    Some(enough)
}

/// The least difference, as a fraction, that a comparison of so many `runs` a side shows with the probability 0.9, where
/// runs are spread as these equal ones are; `None` for less than two of them, or one that is not positive.
pub fn detectable(equal: &[f64], runs: usize, confidence: f64) -> Option<f64> {
    Some(shown(&between_equal(equal)?, runs, confidence))
}

/// The fewest runs a side of a comparison that shows a `difference`, a fraction, as [`detectable`] has it; `None` where even
/// [`MOST_RUNS`] do not, or where the runs have no spread to go by.
pub fn runs_to_detect(equal: &[f64], difference: f64, confidence: f64) -> Option<u32> {
    let effect = between_equal(equal)?;
    fewest(|runs| shown(&effect, runs as usize, confidence) <= difference)
}

/// The effect between two sides that are spread as these equal runs.
fn between_equal(equal: &[f64]) -> Option<Effect> {
    let logarithms: Vec<f64> = equal.iter().map(|value| value.ln()).collect();
    Effect::new(vec![logarithms.clone(), logarithms])
}

fn shown(effect: &Effect, runs: usize, confidence: f64) -> f64 {
    effect.planned_margin(runs, confidence, POWER).exp_m1()
}

/// The ratio of a difference of logarithms.
fn ratio(effect: f64, margin: f64) -> Estimate {
    Estimate { value: effect.exp(), low: (effect - margin).exp(), high: (effect + margin).exp() }
}

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

// The studentised bootstrap: how far an estimate strays from the truth, in its own standard errors, found by drawing the
// measured values again and again.

/// Resamples drawn, B. (B + 1) α is whole at 95 % and at 98.75 %, so that the quantile is the value of a resample
/// (Davison & Hinkley, "Bootstrap Methods and their Application", 1997, section 2.4).
const RESAMPLES: usize = 1999;

/// Fixed, so that the same values give the same answer each time; any number does.
const SEED: u64 = 20_060_827;

/// What |estimate* − estimate| / standard error* stays below with the confidence, where the estimate is the sum of
/// the means of independent samples, the standard error is Welch's, and the star marks a resample. Each sample must
/// have been centred on its mean.
///
/// Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, section 12.5; with the sign left out as Hall, "On
/// symmetric bootstrap confidence intervals", Journal of the Royal Statistical Society B 50 (1988). With the sign
/// kept, and a tail cut off at either end, an interval of runs that are equal but skewed excludes 1 in 6 to 9 % of
/// cases instead of 5.
///
/// `None` where resamples all of whose values are equal, and which have no standard error, reach up to the quantile:
/// too few of the values differ.
pub fn critical_value(centred: &[Vec<f64>], confidence: f64) -> Option<f64> {
    let mut generator = Pcg32::seed_from_u64(SEED);
    let mut errors: Vec<f64> = (0..RESAMPLES).map(|_| studentised(centred, &mut generator)).collect();
    // Downwards, to the wider interval; what 1 − 0.95 lost by rounding is no reason to.
    let beyond = ((RESAMPLES + 1) as f64 * (1.0 - confidence) + 1e-6) as usize;
    let (_, critical, _) = errors.select_nth_unstable_by(RESAMPLES - beyond.max(1), f64::total_cmp);
    Some(*critical).filter(|critical| critical.is_finite())
}

/// The studentised error of one resample, without its sign; infinite where it has no spread.
fn studentised(centred: &[Vec<f64>], generator: &mut Pcg32) -> f64 {
    let (mut error, mut variance) = (0.0, 0.0);
    for sample in centred {
        let count = sample.len() as f64;
        // Differences from one of the values: those of equal values are exactly 0.
        let first = sample[generator.random_range(0..sample.len())];
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 1..sample.len() {
            let difference = sample[generator.random_range(0..sample.len())] - first;
            sum += difference;
            squares += difference * difference;
        }
        error += first + sum / count;
        variance += (squares - sum * sum / count).max(0.0) / (count - 1.0) / count;
    }
    if error == 0.0 { 0.0 } else { error.abs() / variance.sqrt() }
}
