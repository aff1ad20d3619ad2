//! The worker of one client of the engine, and its loop.

use std::sync::atomic::Ordering::*;
use std::time::Duration;

use bench_base::error::SqlError;
use bench_model::client::{Client, ClientStart, ClientWorkload, Consequence, Step, TransactionRecorder};
use bench_model::processor_samples::ProcessorSamples;
use bench_model::spec::{Extent, Observation, RunSpec};
use pgrx::pg_sys;

use super::preparation::{check_rights, compile, describe, prepare_session};
use super::statements::{Arms, ClientStatements, internal};
use super::workload::{beginning, start, workload};
use crate::driver::session::{Session, unsupported_settings};
use crate::server::background_worker::WorkerKind;
use crate::server::process::{
    as_idle, current_timestamp, fill_holes, my_pid, nap, now_ns, own_cpu_ns, own_switches, sleep_until,
    thread_cpu_ns, wait_idle, wake,
};
use crate::server::signals::OnTerminate;
use crate::shm::{ClientCounters, ClientState, Header, MeasuredSession, StopReason};
use crate::worker::{WorkerContext, attach_client, report_fatal_error};

/// The worker kind of clients.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_client_main",
    title: c"pgbench_ext client",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};

/// The pause before a retry, about a round trip of a client. Without it the loser of a deadlock would be back at the row before
/// the winner wakes, and cause the same deadlock again.
const BEFORE_RETRY: Duration = Duration::from_micros(200);

/// The entry function of a client's worker.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_client_main(segment: pg_sys::Datum) {
    let Some(context) = attach_client(segment, OnTerminate::AtInterrupt) else { return };
    let slot = context.segment.slot(context.index);
    slot.pid.store(my_pid(), Release);
    report_fatal_error(&context);
    let end = match work(&context) {
        Ok(()) => ClientState::Done,
        Err(Ending { error, counted }) => {
            let was_stopped = error.is_cancel() && context.segment.header().stop() != StopReason::None;
            if !was_stopped {
                if !counted {
                    count_error(&context, &error, Consequence::Uncounted);
                }
                context.segment.header().client_aborted();
            }
            ClientState::Aborted
        }
    };
    slot.set_state(end);
    wake(context.segment.header().coordinator_pid.load(Relaxed));
}

/// The error that ended a client early.
struct Ending {
    error: SqlError,
    /// Whether it has been counted in the client's slot.
    counted: bool,
}

impl From<SqlError> for Ending {
    fn from(error: SqlError) -> Self {
        Self { error, counted: false }
    }
}

fn count_error(context: &WorkerContext, error: &SqlError, consequence: Consequence) {
    let now = current_timestamp();
    context.segment.slot(context.index).count_error(error, now, consequence);
}

fn work(context: &WorkerContext) -> Result<(), Ending> {
    let header = context.segment.header();
    let slot = context.segment.slot(context.index);
    let spec: RunSpec = serde_json::from_str(context.segment.spec()).map_err(internal)?;
    check_rights(&spec, context.index)?;
    let session = Session::new(spec.options.results);
    prepare_session(&session, &spec)?;
    if context.index == 0 {
        header.unsupported.store(unsupported_settings::on_by_default(), Relaxed);
        describe(header);
    }
    let counters = context.segment.commands(context.index);
    let plans = if spec.observation == Observation::Off { &[] } else { context.segment.plans() };
    let mut workload = workload(&spec, Some(&context.segment))?;
    let executed = spec.executed_by(context.index);
    for (program, _) in workload.programs.iter_mut().zip(&executed).filter(|(_, is_executed)| !**is_executed)
    {
        program.weight = 0;
    }
    let beginning = beginning(&spec, context.index, &mut workload.symbols);
    let mut statements = ClientStatements::new(session, counters, plans);
    let arms = Arms::of(&spec)?;
    compile(&spec, &executed, &workload, &beginning, &mut statements, arms.as_ref())?;
    statements.session.report_idle();
    fill_holes();
    slot.set_state(ClientState::Ready);
    wake(header.coordinator_pid.load(Relaxed));
    while header.gate.load(Acquire) == 0 {
        if header.stop() != StopReason::None {
            return Ok(());
        }
        nap(1000);
    }
    slot.set_state(ClientState::Running);
    let result = run(context, &spec, &mut workload, beginning, &mut statements, arms.as_ref());
    slot.ended_ns.store(now_ns(), Relaxed);
    slot.cpu_ns.store(own_cpu_ns(), Relaxed);
    slot.switches.store(own_switches(), Relaxed);
    let flushed = statements.session.flush_statistics();
    statements.session.report_idle();
    result.and(flushed.map_err(Ending::from))
}

/// Runs the client after the gate has opened.
fn run(
    context: &WorkerContext,
    spec: &RunSpec,
    workload: &mut ClientWorkload,
    beginning: ClientStart,
    statements: &mut ClientStatements,
    arms: Option<&Arms>,
) -> Result<(), Ending> {
    let header = context.segment.header();
    let mut recorder = ClientCounters::new(&context.segment, context.index, spec.options.latency_limit_ms);
    recorder.begin();
    let mut client = start(spec, workload, beginning, header);
    let result = run_transactions(header, workload, &mut client, &mut recorder, statements, arms);
    // Recorded for a client ended by an error as well.
    if let Extent::Secs(_) = spec.options.extent {
        recorder.backlog(client.backlog(recorder.end_ns()));
    }
    result
}

/// Performs the client's steps until it ends.
fn run_transactions(
    header: &Header,
    workload: &mut ClientWorkload,
    client: &mut Client,
    recorder: &mut ClientCounters,
    statements: &mut ClientStatements,
    arms: Option<&Arms>,
) -> Result<(), Ending> {
    let alarm = Alarm::new(header);
    let mut samples = arms.and_then(|_| processor_samples(workload));
    let mut current_arm = None;
    let leave_arm = |arm: Option<usize>| match (arms, arm) {
        (Some(arms), Some(arm)) => arms.leave(arm),
        _ => Ok(()),
    };
    let mut step = client.start(recorder);
    loop {
        step = match step {
            Step::Between => {
                if client.met_an_error() {
                    // Citus' deadlock detector may send its victim a second cancel.
                    statements.session.serve_interrupts_of_idle()?;
                } else {
                    statements.session.serve_interrupts()?;
                }
                client.next(workload, recorder)
            }
            Step::Switch { arm } => {
                recorder.end_stretch();
                leave_arm(current_arm)?;
                arms.map_or(Ok(()), |arms| arms.enter(&statements.session, arm))?;
                let is_other = current_arm.replace(arm) != Some(arm);
                let settle = is_other && arms.is_some_and(|arms| arms.drop_nested_plans(statements));
                recorder.begin_stretch(MeasuredSession::Own, arm, settle);
                recorder.show_arm(arm);
                client.switched(workload, recorder)
            }
            // A worker needs no connection.
            Step::Connect => client.connected(workload, recorder),
            Step::Execute { program, command } => {
                let place = workload.programs[program].first_command + command;
                let samples = samples.as_mut().and_then(|samples| samples.is_read(place).then_some(samples));
                let before_ns = samples.is_some().then(thread_cpu_ns);
                let result = statements.execute(workload, program, command, &mut client.variables);
                if let (Some(samples), Some(before_ns), Ok(())) = (samples, before_ns, &result) {
                    let between_ns = (thread_cpu_ns() - before_ns).max(0).unsigned_abs();
                    recorder.cpu_lap(place, samples.record(place, between_ns));
                }
                client.executed(workload, recorder, result.map(|()| statements.session.in_block()))
            }
            Step::Wait { until_ns } => {
                let came = alarm.wait_until(until_ns, &statements.session)?;
                client.due(workload, recorder, came)
            }
            Step::Sleep { until_ns } => match alarm.wait_until(until_ns, &statements.session) {
                Ok(came) => client.slept(workload, recorder, came),
                Err(error) => Step::Abort(Box::new(error)),
            },
            Step::Abort(error) => {
                let error = statements.session.abort().err().unwrap_or(*error);
                client.failed(workload, recorder, error)
            }
            Step::AbortAtEnd => {
                let aborted = statements.session.abort();
                client.left_open(workload, recorder, aborted)
            }
            Step::Retry => {
                as_idle(|| std::thread::sleep(BEFORE_RETRY));
                statements.session.serve_interrupts_of_idle()?;
                client.retry(workload, recorder)
            }
            Step::End(None) => return leave_arm(current_arm).map_err(Ending::from),
            Step::End(Some(error)) => {
                // The transactions before the error must be in the server's statistics.
                statements.session.flush_statistics()?;
                return Err(Ending { error: *error, counted: true });
            }
        };
    }
}

/// The number of readings by which the cost of a reading is measured.
const TRIAL_READINGS: u32 = 1000;

/// Returns the sampler of a duel's processor times by statement; `None` on platforms without such a clock.
fn processor_samples(workload: &ClientWorkload) -> Option<ProcessorSamples> {
    let began_ns = thread_cpu_ns();
    let mut ended_ns = began_ns;
    for _ in 0..TRIAL_READINGS {
        ended_ns = thread_cpu_ns();
    }
    let reading_ns = (ended_ns - began_ns).max(0).unsigned_abs() / u64::from(TRIAL_READINGS);
    let commands = workload.programs.iter().map(|program| program.script.commands.len()).sum();
    (ended_ns > 0).then(|| ProcessorSamples::new(now_ns().cast_unsigned(), reading_ns, commands))
}

/// Above this rest of a wait the latch is used, which is exact to the millisecond; below it, a sleep.
const BY_LATCH_NS: i64 = 2_000_000;

/// The waits of a client, which end early when its run is stopped.
pub struct Alarm<'a> {
    header: &'a Header,
}

impl<'a> Alarm<'a> {
    /// Creates the waits for clients of the run with this header.
    pub fn new(header: &'a Header) -> Self {
        Self { header }
    }

    /// Waits until the clock shows `until_ns`; returns false if the run was stopped before.
    ///
    /// # Errors
    /// That of a termination or another interrupt; an open transaction is rolled back. A cancel has no effect.
    pub fn wait_until(&self, until_ns: i64, session: &Session) -> Result<bool, SqlError> {
        let mut is_idle = false;
        loop {
            session.serve_interrupts_of_idle()?;
            if self.header.stop() != StopReason::None {
                return Ok(false);
            }
            let left_ns = until_ns.saturating_sub(now_ns());
            if left_ns <= 0 {
                return Ok(true);
            }
            if left_ns > BY_LATCH_NS {
                if !is_idle {
                    session.report_idle();
                    is_idle = true;
                }
                wait_idle((left_ns - BY_LATCH_NS / 2) / 1_000_000);
            } else {
                as_idle(|| sleep_until(until_ns));
            }
        }
    }
}
