//! Chooses the next trial of a capacity search.
//!
//! Follows multiple loss ratio search (RFC 9971, MLRsearch): each rate is tried several times and passes if at most half of its
//! trials fail (the exceed ratio). The answer is the greatest passing rate below the least failing one; a still higher rate may
//! pass by chance or by caching. Trials of one objective serve the others. The search brackets the answer from below by steps of
//! [`STEP_UP`], then bisects the logarithm of the rate.

use bench_base::number::mean;
use bench_results::Document;
use bench_results::experiment::{CapacitySearch, Limit, Purpose, TrialOutcome};
use bench_stats::histogram::percentile_of;
use bench_stats::of_logarithms;
use bench_stats::trend::slope;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The operating rate as a share of the highest sustained one: Google's SRE workbook and most capacity plans keep about 30 % in
/// reserve.
pub const OPERATING_SHARE: f64 = 0.7;

/// The highest rate of bench.run; a search that reaches it ends without having found a limit.
const HIGHEST_RATE: f64 = 1e6;

/// The first rate as a share of the closed loop's throughput, low enough to approach the answer from below.
const FIRST_SHARE: f64 = 0.5;
/// Factors by which rates rise until one fails, and fall until one passes.
const STEP_UP: f64 = 1.5;
const STEP_DOWN: f64 = 2.25;
/// The least rate tried, as a share of the closed loop's throughput.
const LEAST_SHARE: f64 = 1.0 / 1024.0;

/// The rate of the overload as a multiple of the closed loop's throughput.
const OVERLOAD: f64 = 1.1;

/// Whether a rate meets an objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateVerdict {
    Passes,
    Fails,
    /// Another trial is needed.
    Open,
}

/// The rates of a round that enclose an objective's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bracket {
    /// The greatest that passes below `fails`.
    pub passes: Option<f64>,
    /// The least that fails.
    pub fails: Option<f64>,
}

impl Bracket {
    /// Returns whether a rate lies strictly inside.
    fn holds(&self, rate: f64) -> bool {
        self.passes.is_none_or(|passes| rate > passes) && self.fails.is_none_or(|fails| rate < fails)
    }
}

/// Returns the trial to make after these; `None` if the search is over.
pub fn next(search: &CapacitySearch, trials: &[Trial]) -> Option<NextTrial> {
    for round in 1..=search.rounds {
        let round = Round::new(search, trials, round);
        if let Some(step) = round.next() {
            return Some(step);
        }
    }
    let rounds = rounds_of(search, trials);
    let last = rounds.last()?;
    last.next_return().or_else(|| next_operating(search, &rounds))
}

/// Groups the trials by round.
pub(crate) fn rounds_of<'a>(search: &'a CapacitySearch, trials: &'a [Trial]) -> Vec<Round<'a>> {
    (1..=search.rounds).map(|round| Round::new(search, trials, round)).collect()
}

/// Returns the next trial at an objective's operating rate, which end a search.
fn next_operating(search: &CapacitySearch, rounds: &[Round]) -> Option<NextTrial> {
    let last = rounds.last()?;
    search.objectives().into_iter().find_map(|limit_ms| {
        let brackets: Vec<Bracket> = rounds.iter().map(|round| round.bracket(limit_ms)).collect();
        let rate = operating_rate(sustained(&brackets)?.0);
        if last.operating(rate).is_some() { None } else { last.step(Purpose::Operating, Some(rate)) }
    })
}

/// Returns the operating rate for a sustained rate.
pub(crate) fn operating_rate(rate: f64) -> f64 {
    rounded(OPERATING_SHARE * rate)
}

/// The trials of a round.
pub(crate) struct Round<'a> {
    search: &'a CapacitySearch,
    round: u32,
    trials: Vec<&'a Trial>,
}

impl<'a> Round<'a> {
    pub fn new(search: &'a CapacitySearch, trials: &'a [Trial], round: u32) -> Self {
        Self { search, round, trials: trials.iter().filter(|trial| trial.step.round == round).collect() }
    }

    /// Returns the trials of a purpose.
    pub fn trials_for(&self, purpose: Purpose) -> impl Iterator<Item = &'a Trial> {
        self.trials.iter().copied().filter(move |trial| trial.step.purpose == purpose)
    }

    fn step(&self, purpose: Purpose, rate: Option<f64>) -> Option<NextTrial> {
        Some(NextTrial { round: self.round, purpose, rate })
    }

    /// Returns times with the least load, and in the closed loop.
    pub fn reference(&self) -> Reference {
        let rated = self
            .trials_for(Purpose::Trial)
            .filter_map(|trial| Some((trial.step.rate?, trial.outcome.service_ms?)));
        // A single rate has none with less load to compare with.
        let is_light = self.rates().len() > 1;
        Reference {
            light_ms: rated.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, ms)| ms).filter(|_| is_light),
            closed_ms: self.trials_for(Purpose::Estimate).next().and_then(|trial| trial.outcome.latency_ms),
        }
    }

    /// Returns the verdict on a rate by the outcomes of its trials.
    fn verdict<'b>(
        &self,
        outcomes: impl Iterator<Item = &'b TrialOutcome>,
        limit_ms: Option<f64>,
    ) -> RateVerdict {
        let (mut made, mut failed) = (0, 0);
        for outcome in outcomes {
            made += 1;
            failed += u32::from(limit_of(outcome, self.search, limit_ms, Reference::default()).is_some());
        }
        let trials = self.search.trials;
        if 2 * failed > trials {
            RateVerdict::Fails
        } else if 2 * (failed + trials.saturating_sub(made)) <= trials {
            RateVerdict::Passes
        } else {
            RateVerdict::Open
        }
    }

    fn rate_verdict(&self, rate: f64, limit_ms: Option<f64>, purpose: Purpose) -> RateVerdict {
        let trials = self.trials_for(purpose).filter(|trial| trial.step.rate == Some(rate));
        self.verdict(trials.map(|trial| &trial.outcome), limit_ms)
    }

    /// Returns the rates tried, ascending, except those so low that no transaction was due.
    fn rates(&self) -> Vec<f64> {
        let trials = self.trials_for(Purpose::Trial).filter(|trial| trial.outcome.due > 0);
        let mut rates: Vec<f64> = trials.filter_map(|trial| trial.step.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates
    }

    /// Returns the bracket of an objective's answer by the decided rates.
    pub fn bracket(&self, limit_ms: Option<f64>) -> Bracket {
        let mut bracket = Bracket::default();
        for rate in self.rates() {
            match self.rate_verdict(rate, limit_ms, Purpose::Trial) {
                RateVerdict::Passes => bracket.passes = Some(rate),
                RateVerdict::Fails => return Bracket { fails: Some(rate), ..bracket },
                RateVerdict::Open => {}
            }
        }
        bracket
    }

    /// Returns the round's next trial, before any overload.
    fn next(&self) -> Option<NextTrial> {
        let Some(estimate) = self.trials_for(Purpose::Estimate).next() else {
            return self.step(Purpose::Estimate, None);
        };
        let most = estimate.outcome.tps;
        if most <= 0.0 {
            return None;
        }
        let (limit_ms, bracket, rate) = self.search.objectives().into_iter().find_map(|limit_ms| {
            let bracket = self.bracket(limit_ms);
            Some((limit_ms, bracket, self.next_rate(bracket, most)?))
        })?;
        // A rate that the last trial left undecided comes first.
        let last = self.trials_for(Purpose::Trial).last().and_then(|trial| trial.step.rate).filter(|rate| {
            bracket.holds(*rate) && self.rate_verdict(*rate, limit_ms, Purpose::Trial) == RateVerdict::Open
        });
        self.step(Purpose::Trial, last.or(Some(rate)))
    }

    /// Returns the rate to try next in a bracket; `None` if it is narrow enough, or there is no answer.
    fn next_rate(&self, bracket: Bracket, most: f64) -> Option<f64> {
        let rate = match bracket {
            Bracket { passes: None, fails: None } => FIRST_SHARE * most,
            Bracket { passes: Some(passes), fails: None } => {
                if passes >= HIGHEST_RATE {
                    return None;
                }
                (passes * STEP_UP).min(HIGHEST_RATE)
            }
            Bracket { passes: None, fails: Some(fails) } => {
                let rate = fails / STEP_DOWN;
                let is_silent =
                    |trial: &Trial| trial.outcome.due == 0 && trial.step.rate >= Some(rounded(rate));
                if rate < LEAST_SHARE * most || self.trials_for(Purpose::Trial).any(is_silent) {
                    return None;
                }
                rate
            }
            Bracket { passes: Some(passes), fails: Some(fails) } => {
                if fails <= passes * (1.0 + self.search.margin) {
                    return None;
                }
                (passes * fails).sqrt()
            }
        };
        Some(rounded(rate))
    }

    /// Returns the next trial after the last round: an overload, then the answers again from the highest down.
    fn next_return(&self) -> Option<NextTrial> {
        let brackets: Vec<(Option<f64>, Bracket)> =
            self.search.objectives().into_iter().map(|limit_ms| (limit_ms, self.bracket(limit_ms))).collect();
        brackets.iter().find_map(|(_, bracket)| bracket.passes)?;
        if self.trials_for(Purpose::Overload).next().is_none() {
            let most = self.trials_for(Purpose::Estimate).next()?.outcome.tps;
            let fails = brackets.iter().filter_map(|(_, bracket)| bracket.fails);
            let rate = fails.fold(OVERLOAD * most, f64::max).min(HIGHEST_RATE);
            return self.step(Purpose::Overload, Some(rounded(rate)));
        }
        brackets.into_iter().rev().find_map(|(limit_ms, bracket)| {
            let rate = self.return_rate(bracket)?;
            let is_open = self.rate_verdict(rate, limit_ms, Purpose::Return) == RateVerdict::Open;
            if is_open { self.step(Purpose::Return, Some(rate)) } else { None }
        })
    }

    /// Returns the rate to try again after the overload, below the answer, which may fail by chance.
    fn return_rate(&self, bracket: Bracket) -> Option<f64> {
        Some(rounded(bracket.passes? / (1.0 + self.search.margin)))
    }

    /// Returns whether an objective's answer no longer passes after an overload; `None` while undecided.
    pub fn has_hysteresis(&self, limit_ms: Option<f64>) -> Option<bool> {
        let rate = self.return_rate(self.bracket(limit_ms))?;
        match self.rate_verdict(rate, limit_ms, Purpose::Return) {
            RateVerdict::Passes => Some(false),
            RateVerdict::Fails => Some(true),
            RateVerdict::Open => None,
        }
    }

    /// Returns the trial at an operating rate.
    pub fn operating(&self, rate: f64) -> Option<&'a Trial> {
        self.trials_for(Purpose::Operating).find(|trial| trial.step.rate == Some(rate))
    }

    /// Returns the trials of the least failing rate, or the closed loop if it completed no transaction.
    pub fn failing(&self, bracket: Bracket) -> impl Iterator<Item = &'a Trial> {
        let purpose = if bracket.fails.is_some() { Purpose::Trial } else { Purpose::Estimate };
        self.trials_for(purpose).filter(move |trial| {
            trial.step.rate == bracket.fails && (bracket.fails.is_some() || trial.outcome.done == 0)
        })
    }

    /// Returns the trials of the rates that bound the answer.
    pub fn bounding(&self, bracket: Bracket) -> impl Iterator<Item = &'a Trial> {
        self.trials_for(Purpose::Trial).filter(move |trial| {
            trial.step.rate.is_some() && [bracket.passes, bracket.fails].contains(&trial.step.rate)
        })
    }
}

/// Rounds a rate to four digits, finer than any margin.
fn rounded(rate: f64) -> f64 {
    format!("{rate:.3e}").parse().unwrap_or(rate)
}

/// Returns the mean sustained rate of all rounds, and the factor to either end of its 95 % interval; `None` if a round has no
/// answer, as the mean of the others would be too high.
pub(crate) fn sustained(brackets: &[Bracket]) -> Option<(f64, f64)> {
    let rates: Vec<f64> = brackets.iter().map(|bracket| bracket.passes).collect::<Option<_>>()?;
    match rates.as_slice() {
        [] => None,
        [rate] => Some((*rate, 1.0)),
        rates => {
            let (mean, margin) = mean_of_logarithms(rates);
            Some((mean.exp(), margin.exp()))
        }
    }
}

/// Returns the mean of the logarithms, and half the width of its 95 % interval by Student's t.
fn mean_of_logarithms(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let (mean, variance) = of_logarithms(values);
    let margin = match StudentsT::new(0.0, 1.0, count - 1.0) {
        Ok(student) => student.inverse_cdf(0.975) * (variance / count).sqrt(),
        Err(_) => f64::INFINITY,
    };
    (mean, margin)
}

// A trial is a run at an offered rate.

/// A trial to make.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NextTrial {
    /// From 1.
    pub round: u32,
    pub purpose: Purpose,
    /// Transactions per second; `None`: a closed loop.
    pub rate: Option<f64>,
}

/// A trial that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub step: NextTrial,
    /// The run's place in its sweep.
    pub place: u32,
    pub outcome: TrialOutcome,
}

/// The share of due transactions that must be completed.
const LEAST_DONE: f64 = 0.99;

/// Growth of the schedule's lag in seconds per second, which equals the share of transactions not served. Stricter than
/// [`LEAST_DONE`], as growth shows before the end.
const LAG_GROWTH: f64 = 0.005;

/// The confidence that the growth needs.
const CONFIDENCE: f64 = 0.99;

/// The busy share of clients' time from which transactions wait for a client.
const BUSY: f64 = 0.7;

/// The idle share of processors' time from which a server counts as idle.
const IDLE: f64 = 0.25;

/// Service time, as a multiple of that with little load, from which the server suffers from the load.
const SUFFERS: f64 = 1.25;

/// Times to compare a trial's with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reference {
    /// Service time of a transaction with the least load.
    pub light_ms: Option<f64>,
    /// The latency percentile in a closed loop, with all clients busy and no waiting for one.
    pub closed_ms: Option<f64>,
}

/// Returns the outcome of a run that completed, or whose clients were ended by errors.
pub fn outcome_of(document: &Document, percentile: f64) -> TrialOutcome {
    let summary = &document.summary;
    let lost = [Some(summary.failed), summary.aborted, summary.unknown];
    let failed = lost.into_iter().flatten().fold(0, u64::saturating_add);
    let buckets = document.latencies.iter().map(|bucket| (bucket.low_ms, bucket.high_ms, bucket.count));
    let tps = summary.tps.unwrap_or_default();
    let service_ms =
        summary.latency_avg_ms.map(|all| (all - summary.lag_avg_ms.unwrap_or_default()).max(0.0));
    TrialOutcome {
        tps,
        latency_ms: percentile_of(buckets, percentile),
        due: document.due(),
        done: summary.transactions,
        failed,
        lag_growth: lag_growth(document),
        service_ms,
        busy: service_ms.map(|ms| tps * ms / 1e3 / document.all_clients() as f64),
        cpu_idle: mean(&document.samples.cpu_idle),
        checkpoints: document.events.iter().filter(|event| event.kind == "checkpoint").count() as u32,
        ended_early: document.run.status != "completed",
    }
}

/// Returns why a rate is not sustained under a limit of the latency; `None` if it is.
pub fn limit_of(
    outcome: &TrialOutcome,
    search: &CapacitySearch,
    limit_ms: Option<f64>,
    reference: Reference,
) -> Option<Limit> {
    let due = outcome.due as f64;
    if outcome.ended_early || outcome.failed as f64 > search.max_failed * due {
        return Some(Limit::Errors);
    }
    let is_behind =
        (outcome.done as f64) < LEAST_DONE * due || outcome.due == 0 || outcome.lag_growth.is_some();
    let is_late = limit_ms.is_some_and(|limit| outcome.latency_ms.is_none_or(|ms| ms > limit));
    match (is_behind, is_late) {
        (false, false) => None,
        _ if clients_are_the_limit(outcome, limit_ms, reference) => Some(Limit::Clients),
        (true, _) => Some(Limit::Throughput),
        (false, true) => Some(Limit::Latency),
    }
}

/// Returns whether more clients would raise throughput: transactions wait for a client, processors are idle, and service
/// times are no longer than with little load and within the limit with all clients busy.
fn clients_are_the_limit(outcome: &TrialOutcome, limit_ms: Option<f64>, reference: Reference) -> bool {
    let (Some(busy), Some(service), Some(light)) = (outcome.busy, outcome.service_ms, reference.light_ms)
    else {
        return false;
    };
    let would_do = limit_ms.is_none_or(|limit| reference.closed_ms.is_some_and(|ms| ms <= limit));
    busy >= BUSY && outcome.cpu_idle.is_none_or(|idle| idle >= IDLE) && service <= SUFFERS * light && would_do
}

/// Returns the significant growth of the schedule's lag in seconds per second.
fn lag_growth(document: &Document) -> Option<f64> {
    let samples = &document.samples;
    let points: Vec<(f64, f64)> = samples
        .elapsed
        .iter()
        .zip(&samples.lag_avg_ms)
        .filter_map(|(elapsed, lag)| Some(((*elapsed)?, (*lag)? / 1e3)))
        .collect();
    let slope = slope(&points)?;
    (slope.slope >= LAG_GROWTH && slope.slope > slope.margin(CONFIDENCE)).then_some(slope.slope)
}
