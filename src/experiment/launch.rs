//! The launch of sweeps, and the search for a capacity.

use std::sync::atomic::Ordering::*;
use std::time::Instant;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::Nodes;
use bench_model::spec::RunOptions;
use bench_questions::capacity::{CapacitySearch, NextTrial, Purpose, answers, next, outcome_of};
use bench_questions::sweep::{Resumption, SweepArguments, SweepOptions, SweepSpec};
use bench_results::Document;

use super::leader::{KIND, Order, RunningSweep};
use super::{changes, parameters};
use crate::error::{OrRaise, notice, warn};
use crate::launch::checks;
use crate::launch::handle::{LaunchHandle, Watch, releasable_or_warn};
use crate::load::fixture::LoadSpec;
use crate::load::prepare::choose_jobs;
use crate::run::before;
use crate::run::feeders::RowLimit;
use crate::run::nodes::node_connectivity::NodePairs;
use crate::run::prepare::prepared::{PreparedRun, prepare};
use crate::run::prepare::sessions::{slots_of, tell_role};
use crate::run::prepare::{settings, start};
use crate::server::background_worker::{self, WorkerKind};
use crate::server::database;
use crate::server::process::{my_pid, random_seed};
use crate::server::roles::{self, current_role_oid};
use crate::server::transaction::{durable_transaction, rolled_back, transaction};
use crate::shm::{Segment, SegmentShape, StopReason, Work};
use crate::store::{self, sweeps};

/// Parses the arguments of a sweep, and checks all of its runs.
fn plan(arguments: SweepArguments) -> Result<SweepSpec, UserError> {
    let mut pulse = || {
        pgrx::check_for_interrupts!();
    };
    let options = SweepOptions::new(arguments, random_seed(), &mut pulse)?;
    let options = SweepOptions { loaded: parameters::loaded(&options)?, ..options };
    check(&options)?;
    Ok(spec_of(options, None))
}

/// Returns the leader's specification; `resumes` is the sweep that it continues.
pub fn spec_of(options: SweepOptions, resumes: Option<i64>) -> SweepSpec {
    SweepSpec {
        options,
        resumes,
        resumption: Resumption::default(),
        observation: settings::observation(),
        horizon_held: false,
        role: roles::current_role(),
        role_oid: current_role_oid().to_u32(),
        database_oid: database::oid().to_u32(),
    }
}

/// Checks the options of a sweep, and all of its runs.
pub fn check(options: &SweepOptions) -> Result<(), UserError> {
    let most = most_clients(options);
    let needed = slots(options)?;
    let own = own_slots(options);
    // With clients on several nodes, each node checks its own limit.
    if needed > own {
        checks::check(u64::from(most) + own)?;
    }
    background_worker::check_slots(needed, KIND.noun)?;
    parameters::check(options)?;
    changes::check(options)?;
    let mut is_told = false;
    let mut pairs = NodePairs::Try;
    for variant in &options.setup.variants {
        pgrx::check_for_interrupts!();
        // The objects that its clients need are created only then.
        if variant.duel.is_some() && variant.sql.is_some() {
            before::check(&options.before, &roles::current())?;
        } else if variant.load.is_empty() {
            let arguments = options.run_arguments(variant, most, None);
            let PreparedRun { spec: run, secrets, .. } = prepare(arguments, RowLimit::First, pairs)?;
            pairs = NodePairs::Known;
            if run.cluster.is_some() {
                let needed = slots_of(&run.options, run.cluster.as_ref()) + own;
                background_worker::check_slots(needed, KIND.noun)?;
            }
            before::check_run(&options.before, &run, &secrets[0])?;
            // Once, for all runs.
            if !std::mem::replace(&mut is_told, true) {
                tell_role(&run)?;
                start::tell_risks(&run, &options.before, false)?;
            }
        } else {
            before::check(&options.before, &roles::current())?;
            let load = parameters::load_of(options, variant)?;
            let spec = LoadSpec::new(&load.fixture, load.rows, 1, &load.options)?;
            choose_jobs(load.jobs, spec.counted_ids())?;
        }
    }
    Ok(())
}

/// Returns the sweep's own worker slots: the leader's, and those of the hands for a change and a rehearsal's blocker.
fn own_slots(options: &SweepOptions) -> u64 {
    let blocks = options.rehearsal().is_some_and(|plan| plan.blocker.is_some());
    1 + u64::from(options.applies_sql()) + u64::from(blocks)
}

fn most_clients(options: &SweepOptions) -> u32 {
    options.setup.clients.iter().copied().max().unwrap_or(1)
}

/// Returns the most slots that a run takes on this node, plus the sweep's own; without those of clients on several nodes.
fn slots(options: &SweepOptions) -> Result<u64, UserError> {
    let most = most_clients(options);
    let mut needed = 0;
    for variant in &options.setup.variants {
        let run = RunOptions::new(options.run_arguments(variant, most, None))?;
        if run.nodes == Nodes::Local {
            needed = needed.max(slots_of(&run, None));
        }
    }
    Ok(needed + own_slots(options))
}

/// Starts the leader.
fn launch(spec: &SweepSpec) -> Result<LaunchHandle, UserError> {
    // The handle adds the leader itself.
    let others = u32::try_from(slots(&spec.options)? - 1).unwrap_or(u32::MAX);
    let json = serde_json::to_string(spec).unwrap_or_default();
    let segment = Segment::create(SegmentShape::LEADER, &json, &[]);
    segment.header().caller_pid.store(my_pid(), Relaxed);
    let kind = WorkerKind { returns_after_crash: spec.options.changes_system(), ..KIND };
    LaunchHandle::start(segment, kind, spec.database_oid, spec.role_oid, others)
}

/// Runs the sweep that answers a question, waits for it with NOTICEs, and returns its id.
///
/// # Errors
/// Those of the arguments, and of a sweep that did not begin.
pub fn answer(arguments: SweepArguments) -> Result<i64, UserError> {
    let mut spec = plan(arguments)?;
    let releasable = releasable_or_warn(
        "Meanwhile, dead rows cannot be removed, which slows update workloads. Make the call a separate top-level statement, or use bench.start_sweep.",
    );
    spec.horizon_held = releasable.is_none();
    let launched = launch(&spec)?;
    launched.tie();
    let mut reporter = SweepReporter::new();
    let mut watch = Watch::new(None, true);
    let result = launched.wait(releasable, |segment| {
        reporter.report(segment);
        look_at_run(segment, &mut watch);
        false
    });
    let sweep_id = launched.segment.sweep_id();
    launched.leave();
    result.map_err(|error| match error.sqlstate == sqlstate::QUERY_CANCELED && error.hint.is_none() {
        true => error.hint(format!(
            "The runs belong to sweep {sweep_id}: SELECT bench.resume_sweep({sweep_id}) performs the missing ones."
        )),
        false => error,
    })?;
    warn_of_status(sweep_id)?;
    warn_of_width(sweep_id, &spec)?;
    Ok(sweep_id)
}

/// Checks that the clients of a sweep's run do not wait for a lock of this session, as for its leader.
pub fn look_at_run(segment: &Segment, watch: &mut Watch) {
    let under_way = segment.header().sweep.under_way.load(Acquire);
    if Segment::peek(under_way, |run| watch.is_in_the_way_at_times(run)) == Some(true) {
        watch.give_way(segment);
    }
}

/// Raises a WARNING if a sweep is not completed.
fn warn_of_status(sweep_id: i64) -> Result<(), UserError> {
    let status = store::handle_of(Work::Sweep(sweep_id))?.status;
    if let Some(wait) = store::waited_for(sweep_id)? {
        notice(
            format!("sweep {sweep_id} waits for a restart of the server, for variant \"{}\"", wait.variant),
            format!(
                "{}; then SELECT bench.resume_sweep({sweep_id}). scripts/restarting does both until the sweep is completed.",
                wait.command
            ),
        );
    } else if status != "completed" {
        warn(
            format!("sweep {sweep_id} is {status}"),
            format!(
                "See SELECT * FROM bench.sweep_runs WHERE sweep_id = {sweep_id}; bench.resume_sweep({sweep_id}) \
                 performs the missing runs."
            ),
        );
    }
    Ok(())
}

/// Raises a WARNING if the maximum number of rounds did not give the requested precision of each mean.
fn warn_of_width(sweep_id: i64, spec: &SweepSpec) -> Result<(), UserError> {
    let Some(until) = &spec.options.until else { return Ok(()) };
    let Some(reached) = store::reached(sweep_id, &spec.options)?.filter(|reached| *reached > until.within)
    else {
        return Ok(());
    };
    let percent = |share: f64| format!("±{:.1} %", share * 100.0);
    warn(
        format!(
            "the rounds make each mean precise to within {}, not {}",
            percent(reached),
            percent(until.within)
        ),
        "Use longer runs (secs), or find what differs between them: bench.calibrate.",
    );
    Ok(())
}

/// Starts the sweep that answers a question, and returns its id as soon as it has one.
///
/// # Errors
/// As [`answer`].
pub fn start(arguments: SweepArguments) -> Result<i64, UserError> {
    start_spec(&plan(arguments)?)
}

/// As [`start`], for a planned sweep.
pub fn start_spec(spec: &SweepSpec) -> Result<i64, UserError> {
    let launched = launch(spec)?;
    // Until the sweep has an id, the end of this call ends it.
    launched.tie();
    let (result, sweep_id) = launched.until_known();
    result.map(|()| sweep_id)
}

/// The NOTICEs of a sweep under way.
struct SweepReporter {
    began: Instant,
    /// Runs done when the sweep began or was resumed, and at the last look.
    first: Option<u32>,
    done: u32,
}

impl SweepReporter {
    fn new() -> Self {
        Self { began: Instant::now(), first: None, done: 0 }
    }

    fn report(&mut self, segment: &Segment) {
        if segment.sweep_id() == 0 {
            return;
        }
        let progress = &segment.header().sweep;
        let (done, total) = (progress.done.load(Acquire), progress.total.load(Relaxed));
        let first = *self.first.get_or_insert(done);
        if done <= self.done.max(first) {
            self.done = done;
            return;
        }
        self.done = done;
        let each = self.began.elapsed().as_secs_f64() / f64::from(done - first);
        // A lock on the results until the sweep's end would block sessions that need a stronger one, and its runs behind them.
        let place = progress.last_place.load(Relaxed);
        let last = rolled_back(|| store::sweep_run_line(segment.sweep_id(), place)).or_raise();
        // How many runs a search makes is not known.
        let left = total.checked_sub(done).map(|left| each * f64::from(left));
        match left {
            Some(left) => pgrx::notice!("progress: {done} of {total} runs, {left:.0} s left; {last}"),
            None => pgrx::notice!("progress: run {done} done; {last}"),
        }
    }
}

// The search for a capacity: trials, each of which determines the next.

impl RunningSweep<'_> {
    /// Makes trials until the search is over, and records its answers. An interrupted search continues after its last trial.
    ///
    /// # Errors
    /// That of a trial that failed or does not count: later trials would depend on it.
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

    /// Makes one trial; returns `None` if the search was stopped.
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
        // A target's checkpoint is not among the run's events.
        outcome.checkpoints = outcome.checkpoints.max(u32::from(self.has_checkpoint));
        durable_transaction(|| sweeps::keep_outcome(self.sweep_id, place, &outcome))?;
        self.count(place);
        Ok(Some(()))
    }
}

/// Whether a run shows by clients that ended with errors that its rate is not sustained. A closed loop shows nothing about rates.
fn is_limited_by_errors(document: &Document, purpose: Purpose) -> bool {
    let was_measured = document.summary.secs.is_some_and(|secs| secs > 0.0);
    let aborted = document.summary.aborted.unwrap_or_default();
    purpose != Purpose::Estimate && document.run.status == "incomplete" && was_measured && aborted > 0
}
