//! The runs of a sweep whose runs are trials of a search.

use bench_model::cluster::Nodes;
use bench_model::spec::{DEFAULT_SECS, Extent, RunArguments};

use super::ask::SweepOptions;
use crate::capacity::{NextTrial, Purpose};

/// So much longer than a trial is the run at an operating rate, which a checkpoint falls into.
const OPERATING_LENGTH: f64 = 3.0;

/// Samples that a trial is to have: the trend of its lag takes 20 of them ([`bench_stats::trend::slope`]), of which some may
/// be without a transaction. None is shorter than so many seconds.
const LEAST_SAMPLES: f64 = 40.0;
const LEAST_INTERVAL_SECS: f64 = 0.1;

/// The first run of a search.
const FIRST: NextTrial = NextTrial { round: 1, purpose: Purpose::Estimate, rate: None };

/// Seconds of a trial from which on the first run of a search warms up until its throughput is steady, which takes as long.
const STEADY_FROM_SECS: f64 = 5.0;

impl SweepOptions {
    /// Measured seconds of a trial.
    fn trial_secs(&self) -> f64 {
        self.setup.secs.unwrap_or(DEFAULT_SECS)
    }

    /// The arguments of bench.run for a trial of the sweep's search, at its place among the runs.
    pub fn trial_arguments(&self, step: &NextTrial, place: u32) -> RunArguments {
        let is_long = step.purpose == Purpose::Operating;
        let secs = if is_long { OPERATING_LENGTH * self.trial_secs() } else { self.trial_secs() };
        let of_run = self.run_arguments(
            &self.setup.variants[0],
            self.setup.clients[0],
            Some(self.seed_of_round(place)),
        );
        let sample_interval = if self.setup.run.contains_key("sample_interval") {
            of_run.sample_interval
        } else {
            let least = (secs / LEAST_SAMPLES).max(LEAST_INTERVAL_SECS);
            Some(Extent::Secs(secs).sample_interval_secs().min(least))
        };
        RunArguments {
            rate: step.rate,
            secs: Some(secs),
            warmup: if *step == FIRST { self.first_warmup_secs() } else { self.setup.warmup },
            sample_interval,
            ..of_run
        }
    }

    /// The warm-up of a search's first run where its runs have none: what a cold server does in its first trials would bound
    /// the answer for good. Short trials are no measure that a warm-up until throughput is steady would be worth.
    fn first_warmup_secs(&self) -> Option<f64> {
        match self.setup.warmup {
            Some(0.0) if self.trial_secs() < STEADY_FROM_SECS => Some(self.trial_secs()),
            Some(0.0) if self.nodes == Nodes::Local.as_str() => None,
            Some(0.0) => Some(self.trial_secs()),
            given => given,
        }
    }
}
