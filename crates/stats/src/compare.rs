//! Whether one group of runs differs from another.
//!
//! A run gives one value. The samples within it are correlated, so that their number says nothing of how well its
//! mean is known: the run is the unit, and the spread is that between runs. Ratios are estimated by differences of
//! logarithms, which makes them the same whichever side is called the baseline.

mod effect;

use super::estimate::Estimate;
use super::mean;

pub(super) use effect::Effect;

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

#[cfg(test)]
mod simulations;
#[cfg(test)]
mod tests;
