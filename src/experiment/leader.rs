//! The leader of a sweep: a session of the calling role that starts one run after the other, each on its initial state. It
//! executes no user's statements and accesses no user's tables: hands and the runs' workers do.

use std::cell::Cell as StdCell;
use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Extent, Results, RunArguments, RunSpec};
use bench_questions::rehearsal::RATE_SHARE;
use bench_questions::sweep::{Resumption, SweepCell, SweepSpec, Variant};
use bench_results::rehearsal::{Rehearsal, RehearsalPlan, Undo};
use pgrx::pg_sys;

use super::changes::Changes;
use super::hand;
use super::parameters::{self, Restarts, State};
use super::rehearse::{Course, LOOK_MS as COURSE_LOOK_MS, dropped_columns};
use super::stops::{
    LOOK_MS, await_end, await_launched, await_launched_until, interruptibly, stop_error, stop_if_canceled,
};
use crate::driver::session::Session;
use crate::error::internal;
use crate::guard::session_role::check_stored_run_as;
use crate::launch::handle::LaunchHandle;
use crate::run::before;
use crate::run::feeders::RowLimit;
use crate::run::nodes::node_connectivity::NodePairs;
use crate::run::prepare::prepared::prepare;
use crate::run::prepare::start::launch;
use crate::run::server_parameters::{self, Reach, ServerParameters, put_back_own};
use crate::server::background_worker::{WorkerKind, may_return_after_crash, return_only_after_crash};
use crate::server::guc;
use crate::server::process::{forget_cancel, my_pid, now_ns, wake};
use crate::server::roles::superuser;
use crate::server::signals::{self, OnTerminate};
use crate::server::transaction::{durable_transaction, transaction};
use crate::shm::{DetachCallback, Header, RunState, Segment, StopReason, Work, ask_to_stop};
use crate::store::extension_owner::try_to_write;
use crate::store::{self, Changer, Planned, Wait};
use crate::worker::{WorkerContext, attach, connect_after_crash, drop_extension};

/// The worker kind of a sweep's leader.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_sweep_main",
    title: c"pgbench_ext sweep",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// The entry function of a sweep's leader.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_sweep_main(segment: pg_sys::Datum) {
    return_only_after_crash();
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else {
        return follow_crash(segment.value() as u32);
    };
    let header = context.segment.header();
    header.coordinator_pid.store(my_pid(), Release);
    context.segment.on_detach(&STOP);
    // The last one registered is called first.
    signals::register(&CLOSE_UNFINISHED);
    signals::register(&PUT_BACK_UNFINISHED);
    signals::register(&REVERT_UNFINISHED);
    if let Err(error) = lead(&context) {
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

/// Cleans up as a leader without a segment. Usually there is nothing to do: the caller ended before the leader started.
///
/// A sweep that began under this segment and has no end shows that a crash of the server ended an earlier leader: nothing else
/// starts it again ([`return_only_after_crash`]), and every other end is recorded. The configuration files then have their old
/// contents, or these are recorded, but the postmaster, which survives crashes, still has the sweep's values.
fn follow_crash(segment: u32) {
    if !may_return_after_crash() {
        return;
    }
    connect_after_crash();
    if transaction(|| store::is_unfinished(segment)) != Ok(true) {
        return;
    }
    server_parameters::put_back_or_warn(&mut Session::new(Results::Discard), None);
    guc::reload();
}

static STOP: DetachCallback = DetachCallback(|segment| segment.header().request_stop(StopReason::Abandoned));

thread_local! {
    /// The sweep to clean up if this process ends early.
    static UNFINISHED: StdCell<Option<Unfinished>> = const { StdCell::new(None) };
}

/// A sweep under way.
#[derive(Clone, Copy)]
struct Unfinished {
    sweep_id: i64,
    /// The sweep's segment.
    segment: u32,
    /// Whether its variants set server-wide parameters.
    changes_system: bool,
}

/// Records the end of a terminated leader's sweep. The current run is stopped when its segment is detached.
static CLOSE_UNFINISHED: signals::Callback = signals::Callback(|| {
    if let Some(Unfinished { sweep_id, changes_system, .. }) = UNFINISHED.take() {
        if changes_system {
            guc::reload();
        }
        let error = UserError::new(
            sqlstate::ADMIN_SHUTDOWN,
            "the sweep's leader was terminated by an administrator's command",
        );
        // If it cannot be written, the sweep counts as crashed.
        let _ = signals::put_in_order(|| {
            durable_transaction(|| store::finish_sweep(sweep_id, true, Some(&error)))
        });
    }
});

/// Restores server-wide parameters, before [`CLOSE_UNFINISHED`], which makes the server read the file even if this one fails.
static PUT_BACK_UNFINISHED: signals::Callback = signals::Callback(|| {
    if let Some(Unfinished { sweep_id, changes_system: true, .. }) = UNFINISHED.get() {
        // After a failure, the record of the old settings stays.
        let _ = signals::put_in_order(|| {
            let own = Changer::Sweep(sweep_id);
            server_parameters::put_back_forgotten(&mut Session::new(Results::Discard), Some(&own))
        });
    }
});

/// Reverts the change in force, before the two callbacks above.
static REVERT_UNFINISHED: signals::Callback = signals::Callback(|| {
    if let Some(Unfinished { segment, .. }) = UNFINISHED.get() {
        // Stop the current run first: its clients use the objects that are reverted.
        let run = Segment::peek(segment, |sweep| sweep.header().sweep.under_way.load(Acquire));
        if let Some(run) = run.filter(|run| *run != 0) {
            Segment::peek(run, |run| ask_to_stop(run.header(), StopReason::Requested));
        }
        hand::dismiss();
    }
});

fn lead(context: &WorkerContext) -> Result<(), UserError> {
    let spec: SweepSpec =
        serde_json::from_str(context.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let session = Session::new(Results::Discard);
    session.set_own(c"pgbench_ext sweep").map_err(UserError::from)?;
    if spec.options.changes_system() {
        transaction(server_parameters::exclude_others)?;
    }
    let sweep_id = match spec.resumes {
        None => durable_transaction(|| store::begin_sweep(&spec, &context.segment))?,
        Some(sweep_id) => {
            durable_transaction(|| store::take_up_sweep(sweep_id, &context.segment)).map(|()| sweep_id)?
        }
    };
    transaction(drop_extension::hold)?;
    UNFINISHED.set(Some(Unfinished {
        sweep_id,
        segment: context.segment.handle(),
        changes_system: spec.options.changes_system(),
    }));
    let system = ServerParameters::new(Changer::Sweep(sweep_id), parameters::names(&spec.options));
    let mut sweep = RunningSweep {
        context,
        spec: &spec,
        sweep_id,
        session,
        state: State::new(&spec.options),
        system,
        changes: Changes::new(sweep_id, &spec, context.segment.header())?,
        restarts: Restarts::new(sweep_id, &spec.options, &spec.resumption)?,
        has_checkpoint: false,
        pairs: NodePairs::Try,
    };
    sweep.put_back_forgotten();
    let result = sweep.make_runs();
    let waits = sweep.restarts.waits.take();
    // In any case restore the server's settings and revert the change of the database.
    let put_back = sweep.system.put_back(&mut sweep.session);
    let reverted = sweep.changes.revert_last();
    let put_back = reverted.clone().and(put_back);
    let stop = stop_error(context.segment.header());
    forget_cancel();
    // A failed revert takes precedence over other errors.
    let error = reverted.err().or(result.clone().and(put_back.clone()).err()).or(stop.clone());
    let canceled = stop.is_some() || spec.resumption == Resumption::GivesUp;
    let finished = match &waits {
        Some(wait) if error.is_none() => durable_transaction(|| store::wait_for_restart(sweep_id, wait)),
        wait => {
            let undo = |wait: &Wait| {
                put_back_own(&mut sweep.session, &Changer::Sweep(sweep_id), &wait.missing.saved)
            };
            let undone = wait.as_ref().map_or(Ok(()), undo);
            undone.and(write_end(&sweep.session, sweep_id, canceled, error.as_ref()))
        }
    };
    UNFINISHED.set(None);
    let raised = stop.filter(|_| context.segment.header().stop().is_raised());
    raised.map_or(Ok(()), Err).and(result).and(put_back).and(finished)
}

/// Writes the end of the sweep; if that fails for a while, writes it to the server's log.
fn write_end(
    session: &Session,
    sweep_id: i64,
    canceled: bool,
    error: Option<&UserError>,
) -> Result<(), UserError> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    session.set(c"lock_timeout", c"1s").map_err(UserError::from)?;
    let write = || durable_transaction(|| store::finish_sweep(sweep_id, canceled, error));
    let written = try_to_write(Instant::now(), || TIMEOUT, write);
    if let Err(reason) = &written
        && reason.sqlstate != sqlstate::UNDEFINED_OBJECT
    {
        let own = error.map_or("It had no error.".to_owned(), |error| format!("Its error: {error}."));
        crate::error::log(
            UserError::new(
                &reason.sqlstate,
                format!("could not record the end of sweep {sweep_id} in bench.sweeps: {}", reason.message),
            )
            .detail(own)
            .hint("bench.sweeps shows it as \"crashed\"; its runs are kept; bench.resume_sweep performs the others."),
        );
    }
    written
}

/// The order of a run.
pub(super) struct Order<'a> {
    pub place: i32,
    pub round: u32,
    pub variant: &'a Variant,
    pub arguments: RunArguments,
    /// Whether a checkpoint is made during the run.
    pub over_checkpoint: bool,
}

/// A sweep under way.
pub(super) struct RunningSweep<'a> {
    context: &'a WorkerContext,
    pub(super) spec: &'a SweepSpec,
    pub(super) sweep_id: i64,
    /// The leader's own session.
    session: Session,
    state: State,
    system: ServerParameters,
    changes: Changes<'a>,
    pub(super) restarts: Restarts,
    /// Whether a checkpoint was made within the last run.
    pub(super) has_checkpoint: bool,
    /// Before the next run.
    pairs: NodePairs,
}

impl<'a> RunningSweep<'a> {
    pub(super) fn header(&self) -> &Header {
        self.context.segment.header()
    }

    /// Restores, in a superuser's sweep, server-wide parameters that earlier ones have not restored.
    fn put_back_forgotten(&mut self) {
        if transaction(|| Ok(superuser())) == Ok(true) {
            server_parameters::put_back_or_warn(&mut self.session, Some(&Changer::Sweep(self.sweep_id)));
        }
    }

    fn make_runs(&mut self) -> Result<(), UserError> {
        if self.spec.resumption == Resumption::GivesUp {
            self.announce(0, 0);
            return Ok(());
        }
        if let Some(search) = &self.spec.options.search {
            let made = transaction(|| store::sweeps::trials(self.sweep_id))?;
            // The number of trials is not known in advance.
            self.announce(0, made.len() as u32);
            return self.search(search);
        }
        loop {
            let first = self.restarts.first_place();
            let planned = transaction(|| store::planned(self.sweep_id, first, &self.spec.options))?;
            let total = transaction(|| store::sweep_runs(self.sweep_id))?;
            self.announce(total, total - planned.len() as u32);
            if !self.make_planned(planned)? {
                return Ok(());
            }
            let options = &self.spec.options;
            if options.until.is_none()
                || durable_transaction(|| store::plan_further(self.sweep_id, options))? == 0
            {
                return Ok(());
            }
        }
    }

    /// Makes the planned runs; returns false if the sweep was stopped.
    fn make_planned(&mut self, planned: Vec<Planned>) -> Result<bool, UserError> {
        for Planned { place, cell } in planned {
            if self.header().stop() != StopReason::None {
                return Ok(false);
            }
            let spec = self.spec;
            let options = &spec.options;
            let (variant, seed) = (&options.setup.variants[cell.variant], options.seed_of_round(cell.round));
            match self.start_with(place, variant) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    durable_transaction(|| store::sweep_run_failed(self.sweep_id, place, &error))?;
                    self.count(place);
                    continue;
                }
            }
            let mut arguments = options.run_arguments(variant, cell.clients, Some(seed));
            if options.rehearsal().is_some() && variant.sql.is_some() && arguments.rates.is_none() {
                arguments.rate = Some(self.rehearsal_rate(arguments.rate)?);
            }
            let order = Order { place, round: cell.round, variant, arguments, over_checkpoint: false };
            if self.carry_out(order)?.is_none() {
                return Ok(false);
            }
            self.count(place);
        }
        Ok(true)
    }

    /// Makes sure that the server was started with a variant's parameters; returns false if the sweep must wait for a restart, or
    /// was stopped.
    fn start_with(&mut self, place: i32, variant: &Variant) -> Result<bool, UserError> {
        if !self.spec.options.needs_restarts() {
            return Ok(true);
        }
        let mut is_done = false;
        let result = self.interruptibly(|sweep| {
            // Both kinds of parameters share one record of old settings, so restore the others first.
            if !sweep.restarts.is_in_force(variant) {
                sweep.system.put_back(&mut sweep.session)?;
            }
            is_done = sweep.restarts.ensure_in_force(&mut sweep.session, place, variant)?;
            Ok(())
        });
        if self.header().stop() != StopReason::None { Ok(false) } else { result.map(|()| is_done) }
    }

    /// Publishes the sweep's id and its numbers of runs to waiting sessions.
    fn announce(&self, total: u32, done: u32) {
        let progress = &self.header().sweep;
        progress.total.store(total, Relaxed);
        progress.done.store(done, Relaxed);
        self.context.segment.announce(Work::Sweep(self.sweep_id));
        self.header().set_state(RunState::Running);
        wake(self.header().caller_pid.load(Relaxed));
    }

    /// Makes a run, and records the error if it failed or does not count. Returns whether it counts; `None` if the sweep was
    /// stopped.
    pub(super) fn carry_out(
        &mut self,
        order: Order<'a>,
    ) -> Result<Option<Result<i64, UserError>>, UserError> {
        let place = order.place;
        let made = self.make_run(order);
        if self.header().stop() != StopReason::None {
            return Ok(None);
        }
        if let Err(error) = &made {
            durable_transaction(|| store::sweep_run_failed(self.sweep_id, place, error))?;
        }
        Ok(Some(made))
    }

    /// Publishes that another run is over.
    pub(super) fn count(&self, place: i32) {
        let progress = &self.header().sweep;
        progress.last_place.store(place, Relaxed);
        progress.done.fetch_add(1, Release);
        wake(self.header().caller_pid.load(Relaxed));
    }

    /// Makes a single run, and returns its id.
    ///
    /// # Errors
    /// Those of a run that failed or does not count.
    fn make_run(&mut self, order: Order<'a>) -> Result<i64, UserError> {
        let Order { place, round, variant, arguments, over_checkpoint } = order;
        self.interruptibly(|sweep| {
            let header = sweep.context.segment.header();
            sweep.changes.revert_others(variant, round)?;
            sweep.system.set(&mut sweep.session, parameters::wanted(variant), Reach::New)?;
            sweep.state.load(variant, round, &|launched| await_launched(header, launched))?;
            match sweep.spec.options.rehearsal() {
                Some(_) => Ok(()),
                None => sweep.changes.apply(variant, round),
            }
        })?;
        let header = self.context.segment.header();
        let pairs = std::mem::replace(&mut self.pairs, NodePairs::Try);
        let mut prepared = transaction(|| {
            if self.spec.resumes.is_some() {
                check_stored_run_as(arguments.run_as.as_deref())?;
            }
            prepare(arguments.clone(), RowLimit::All, pairs)
        })
        .inspect_err(|e| stop_if_canceled(header, e))?;
        let run = &mut prepared.spec;
        run.options.before = self.spec.options.before.clone();
        run.sweep_id = Some(self.sweep_id);
        run.system = variant.system.clone();
        run.system.extend(variant.restart.clone());
        run.applied = variant.sql.as_ref().map(|sql| sql.apply.clone()).unwrap_or_default();
        if run.target.is_none() {
            run.observation = self.spec.observation;
        }
        run.horizon_held = self.spec.horizon_held;
        let rehearsal = self.spec.options.rehearsal().filter(|_| variant.sql.is_some());
        run.logged_from_ms = rehearsal.map_or(0.0, |plan| plan.wait_limit_secs * 1e3);
        // The session that waits for the sweep is idle during the run.
        run.starter.pid = header.caller_pid.load(Relaxed);
        let prepared = std::panic::AssertUnwindSafe(&prepared);
        let (run, [secrets, _]) = (&prepared.spec, &prepared.secrets);
        let launched = transaction(|| {
            let launched = launch(&prepared, my_pid())?;
            launched.segment.pin();
            launched.tie();
            Ok(launched)
        })
        .inspect_err(|e| stop_if_canceled(header, e))?;
        let after_ns = if over_checkpoint { checkpoint_ns(run) } else { None };
        let result = match rehearsal {
            Some(plan) => self.rehearse(place, &launched, plan, (variant, round), run),
            None => {
                let mut checkpoint = |session: &mut Session| before::checkpoint(session, run, secrets);
                self.follow(place, &launched, after_ns, &mut checkpoint)
            }
        };
        let run_id = launched.segment.run_id();
        launched.leave();
        result?;
        self.changes.check().and_then(|()| self.system.check()).inspect_err(|error| {
            // After a failure, the sweep's own record still has the error.
            let _ = durable_transaction(|| store::run_does_not_count(run_id, error));
        })?;
        if transaction(|| store::status(Work::Run(run_id))).is_ok_and(|status| status == "completed") {
            self.pairs = NodePairs::Known;
        }
        Ok(run_id)
    }

    /// Waits for a run's end, and calls `checkpoint` `after_ns` after the begin of its measurement. If the checkpoint fails, the
    /// run continues, and the server's log has the error.
    fn follow(
        &mut self,
        place: i32,
        launched: &LaunchHandle,
        mut after_ns: Option<i64>,
        checkpoint: &mut dyn FnMut(&mut Session) -> Result<bool, UserError>,
    ) -> Result<(), UserError> {
        let mut is_known = false;
        let (header, sweep_id) = (self.context.segment.header(), self.sweep_id);
        let session = &mut self.session;
        let has_checkpoint = &mut self.has_checkpoint;
        *has_checkpoint = false;
        await_launched_until(header, launched, LOOK_MS, &mut |launched| {
            let run_id = launched.segment.run_id();
            if !is_known && run_id != 0 {
                is_known = true;
                durable_transaction(|| store::sweep_run_started(sweep_id, place, run_id))?;
            }
            let has_come = |after_ns: &mut i64| {
                let begin_ns = launched.segment.header().timeline.load().measure_start_ns;
                begin_ns > 0 && now_ns() >= begin_ns + *after_ns
            };
            if after_ns.take_if(has_come).is_some() {
                match interruptibly(header, || checkpoint(session)) {
                    Err(error) if error.sqlstate != sqlstate::QUERY_CANCELED => crate::error::log(error),
                    made => *has_checkpoint = made?,
                }
            }
            Ok(false)
        })
    }

    /// Follows a run in the middle of which a variant's change is made, and undoes the change.
    fn rehearse(
        &mut self,
        place: i32,
        launched: &LaunchHandle,
        plan: &'a RehearsalPlan,
        (variant, round): (&'a Variant, u32),
        run: &RunSpec,
    ) -> Result<(), UserError> {
        let (header, sweep_id) = (self.context.segment.header(), self.sweep_id);
        let blocker =
            plan.blocker.as_ref().map(|text| self.changes.blocker_task(variant, round, text)).transpose()?;
        let columns_before = dropped_columns()?;
        let mut course = Course::new(plan, (variant, round), blocker);
        let mut is_known = false;
        let changes = &mut self.changes;
        let result = await_launched_until(header, launched, COURSE_LOOK_MS, &mut |launched| {
            let run_id = launched.segment.run_id();
            if !is_known && run_id != 0 {
                is_known = true;
                durable_transaction(|| store::sweep_run_started(sweep_id, place, run_id))?;
            }
            course.follow(&launched.segment, changes)?;
            if course.has_waited_for(header.caller_pid.load(Relaxed)) {
                header.request_stop(StopReason::BlockedByCaller);
            }
            Ok(false)
        });
        let record = course.finish(&launched.segment, run);
        let failure = changes.failure()?;
        if let Err(error) = result {
            if plan.undo == Undo::Reload {
                // Even if the sweep is stopped.
                self.state.reload(variant, &|launched| await_end(header, launched))?;
            }
            return Err(error);
        }
        changes.revert_rehearsed()?;
        if plan.undo == Undo::Reload {
            self.state.reload(variant, &|launched| await_launched(header, launched))?;
        }
        let left = dropped_columns()? - columns_before;
        let record = Rehearsal {
            sqlstate: failure.as_ref().map(|error| error.sqlstate.clone()),
            message: failure.map(|error| error.message),
            left: (left > 0).then(|| format!("dropped columns in the catalog: {left}")),
            ..record
        };
        durable_transaction(|| store::sweeps::note_rehearsal(sweep_id, &record))
    }

    /// Returns the rate of the runs in which a change is rehearsed: the given one, or a share of what the closed loop reached.
    ///
    /// # Errors
    /// 55000 if the closed loop was not completed.
    fn rehearsal_rate(&self, given: Option<f64>) -> Result<f64, UserError> {
        if let Some(rate) = given {
            return Ok(rate);
        }
        let (sweep_id, options) = (self.sweep_id, &self.spec.options);
        let completed = transaction(|| store::sweeps::completed_cells(sweep_id, options))?;
        let is_closed_loop =
            |(cell, _): &&(SweepCell, f64)| options.setup.variants[cell.variant].sql.is_none();
        let tps = completed.iter().find(is_closed_loop).map(|(_, tps)| *tps).filter(|tps| *tps > 0.0);
        tps.map(|tps| tps * RATE_SHARE).ok_or_else(|| {
            let message = "the closed loop that finds the rate was not completed";
            UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .hint("Pass the rate of the application: rate => transactions per second.")
        })
    }

    /// Runs work with statements of this session, which a stop cancels.
    fn interruptibly(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        let context = self.context;
        interruptibly(context.segment.header(), || work(self))
    }
}

/// The divisor of a run's time for the begin of a checkpoint: after a third, so that the rest shows its cost.
const CHECKPOINT_AFTER: i64 = 3;

/// Returns the time from the begin of a run's measurement to its checkpoint.
fn checkpoint_ns(spec: &RunSpec) -> Option<i64> {
    match spec.options.extent {
        Extent::Secs(secs) => Some((secs * 1e9) as i64 / CHECKPOINT_AFTER),
        _ => None,
    }
}
