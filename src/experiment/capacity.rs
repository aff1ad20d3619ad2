//! The search for a capacity: trials, each of which decides on the next.

use bench_base::error::{UserError, sqlstate};
use bench_questions::capacity::{CapacitySearch, NextTrial, Purpose, answers, next, outcome_of};
use bench_results::Document;

use super::leader::{Order, RunningSweep};
use crate::server::transaction::{durable_transaction, transaction};
use crate::shm::StopReason;
use crate::store::{self, sweeps};

impl RunningSweep<'_> {
    /// Makes trials until the search is over, and writes down what it has shown. A search that was broken off goes on after
    /// the trials that it has.
    ///
    /// # Errors
    /// Why a trial was not made or does not count: what comes after it would rest on nothing.
    pub(super) fn search(&mut self, search: &CapacitySearch) -> Result<(), UserError> {
        while self.header().stop() == StopReason::None {
            let trials = transaction(|| sweeps::trials(self.sweep_id))?;
            let Some(step) = next(search, &trials) else {
                let answers = answers(search, &trials);
                return durable_transaction(|| sweeps::keep_answers(self.sweep_id, &answers));
            };
            let Some(()) = self.make_trial(search, &step)? else { break };
        }
        Ok(())
    }

    /// Makes one trial; `None` where the search has been stopped meanwhile.
    fn make_trial(&mut self, search: &CapacitySearch, step: &NextTrial) -> Result<Option<()>, UserError> {
        let spec = self.spec;
        let options = &spec.options;
        let place =
            durable_transaction(|| sweeps::plan_trial(self.sweep_id, step, options.setup.clients[0]))?;
        let order = Order {
            place,
            round: step.round,
            variant: &options.setup.variants[0],
            arguments: options.trial_arguments(step, place.unsigned_abs()),
            over_checkpoint: step.purpose == Purpose::Operating,
        };
        let Some(made) = self.carry_out(order)? else { return Ok(None) };
        let run_id = made?;
        let document = transaction(|| store::document(run_id))?;
        if document.run.status != "completed" && !is_limited_by_errors(&document, step.purpose) {
            let error = UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("trial {run_id} is {}", document.run.status),
            )
            .hint(format!(
                "See SELECT bench.report({run_id}); bench.resume_sweep({}) repeats it.",
                self.sweep_id
            ));
            return Err(error);
        }
        let mut outcome = outcome_of(&document, search.percentile);
        // One on another server is not among the run's events.
        outcome.checkpoints = outcome.checkpoints.max(u32::from(self.has_checkpoint));
        durable_transaction(|| sweeps::keep_outcome(self.sweep_id, place, &outcome))?;
        self.count(place);
        Ok(Some(()))
    }
}

/// Whether a run tells that its rate is not sustained, as errors have ended clients. A closed loop in which they do so tells
/// nothing of rates.
fn is_limited_by_errors(document: &Document, purpose: Purpose) -> bool {
    let was_measured = document.summary.secs.is_some_and(|secs| secs > 0.0);
    let aborted = document.summary.aborted.unwrap_or_default();
    purpose != Purpose::Estimate && document.run.status == "incomplete" && was_measured && aborted > 0
}
