//! A client: one session that runs the scripts' transactions in a loop.

use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

use bench_core::schedule::Schedule;
use bench_core::script::{ClientSeeds, Prng, Script, Symbols, Value, VariableId, Variables, parse};
use bench_core::spec::{Extent, Observation, RunSpec};
use bench_core::transaction_log::LogWriter;
use pgrx::pg_sys;

use super::pause::Alarm;
use super::program::{Failure, Program, State};
use super::variables;
use crate::engine::{Session, unserved};
use crate::error::SqlError;
use crate::observe::environment;
use crate::observe::waits::own_cpu_ns;
use crate::server::background_worker::WorkerKind;
use crate::server::guard::watch_fixtures;
use crate::server::guc;
use crate::server::process::{current_timestamp, my_pid, nap, now_ns, wake};
use crate::server::signals::OnTerminate;
use crate::server::wait::as_idle;
use crate::shm::{ClientState, Consequence, Outcome, Recorder, StopReason, Transaction, unclear, untracked};
use crate::worker::{WorkerContext, attach, leave_last_words};

/// Everything that one client runs with.
struct Client<'a> {
    state: State<'a>,
    programs: Vec<Program>,
    /// The weights of the programs, in their order; together above 0.
    weights: Vec<u32>,
    seeds: ClientSeeds,
    max_tries: u64,
}

/// How a transaction ended, apart from its outcome.
enum Verdict {
    Go(Outcome),
    /// An error that ends the client, as it would pgbench's, and what its transaction counts as.
    Fatal(SqlError, Outcome),
}

/// About a client's round trip. Without it the loser of a deadlock is back at the row before the
/// winner has been woken, and the two meet again, and again.
const BEFORE_RETRY: Duration = Duration::from_micros(200);

/// The server's entry into a client.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_client_main(segment: pg_sys::Datum) {
    let Some(context) = attach(segment, OnTerminate::AtInterrupt) else { return };
    let slot = context.segment.slot(context.index);
    slot.pid.store(my_pid(), Release);
    leave_last_words(&context);
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

/// Why a client ended before its time.
struct Ending {
    error: SqlError,
    /// Whether it is in the client's slot already.
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
    let session = Session::new(spec.options.results);
    prepare_session(&session, &spec)?;
    if context.index == 0 {
        header.unserved.store(unserved::on_by_default(), Relaxed);
        let is = |name: &str, value: &str| guc::current(name).as_deref() == Some(value);
        let bit = |name: &str, value: &str, bit: u32| if is(name, value) { bit } else { 0 };
        let untracked = bit("track_counts", "off", untracked::COUNTS)
            | bit("pg_stat_statements.track", "none", untracked::CALLS);
        header.untracked.store(untracked, Relaxed);
        // A run does not fail because it cannot be described.
        if let Ok(json) = environment::settings_json() {
            header.settings.set(&json);
        }
    }
    watch_fixtures(spec.tables().map(pg_sys::Oid::from)).map_err(internal)?;
    let mut client = compile(context, &spec, session)?;
    client.state.session.report_idle();
    slot.set_state(ClientState::Ready);
    wake(header.coordinator_pid.load(Relaxed));
    while header.gate.load(Acquire) == 0 {
        if header.stop() != StopReason::None {
            return Ok(());
        }
        nap(1000);
    }
    slot.set_state(ClientState::Running);
    let result = client.run(context, &spec);
    slot.ended_ns.store(now_ns(), Relaxed);
    slot.cpu_ns.store(own_cpu_ns(), Relaxed);
    let flushed = client.state.session.flush_statistics();
    client.state.session.report_idle();
    result.and(flushed.map_err(Ending::from))
}

/// The settings of the run, over those of the role and the database.
fn prepare_session(session: &Session, spec: &RunSpec) -> Result<(), SqlError> {
    let settings = &spec.options.settings;
    let given = |name: &str| settings.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("application_name") {
        session.set(c"application_name", c"pgbench_ext")?;
    }
    let schemas: Vec<&str> = spec.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
    if !schemas.is_empty() && !given("search_path") {
        let own = guc::current("search_path").unwrap_or_default();
        let path = guc::search_path_with(&schemas, &own);
        session.set(c"search_path", &text(&path)?)?;
    }
    for (name, value) in settings {
        session.set(&text(name)?, &text(value)?)?;
    }
    session.preload_libraries()
}

fn compile<'a>(context: &'a WorkerContext, spec: &RunSpec, session: Session) -> Result<Client<'a>, SqlError> {
    let mut symbols = Symbols::new();
    let scripts = spec
        .scripts
        .iter()
        .map(|script| parse(&script.name, &script.source, &mut symbols))
        .collect::<Result<Vec<Script>, _>>()?;
    let (seeds, values) = variables::initial_values(spec, context.index);
    let mut intern = |values: Vec<(String, Value)>| -> Vec<(VariableId, Value)> {
        values.into_iter().map(|(name, value)| (symbols.intern(&name), value)).collect()
    };
    let values = intern(values);
    let own: Vec<_> = spec
        .scripts
        .iter()
        .map(|script| intern(variables::own_values(spec, script, context.index)))
        .collect();
    let mut variables = Variables::new(symbols.len());
    for (id, value) in values {
        variables.set(id, value);
    }
    let counters = context.segment.commands(context.index);
    let alarm = Alarm::new(context.segment.header());
    let plans = if spec.observation == Observation::Off { &[] } else { context.segment.plans() };
    let mut state = State::new(session, symbols, variables, seeds.functions, counters, plans, alarm);
    let mut programs = Vec::with_capacity(scripts.len());
    let mut first_command = 0;
    for (index, (script, own)) in scripts.into_iter().zip(own).enumerate() {
        let commands = script.commands.len();
        let mode = spec.options.query_mode;
        let program =
            Program::compile(script, index, first_command, own, mode, &mut state, |place, traits| {
                let counter = &counters[place];
                let inside = |relation: &u32| spec.tables().any(|table| table == *relation);
                let relations = traits.and_then(|traits| traits.relations.as_ref());
                if !relations.is_some_and(|all| all.iter().all(inside)) {
                    counter.add_unclear(unclear::OUTSIDE);
                }
                if let Some(traits) = traits {
                    for (holds, bit) in [
                        (traits.takes_back, unclear::TAKES_BACK),
                        (traits.looks_at_ends, unclear::LOOKS_AT_ENDS),
                    ] {
                        if holds {
                            counter.add_unclear(bit);
                        }
                    }
                    counter.command_type.store(traits.command_type, Relaxed);
                    counter.query_id.store(traits.query_id, Relaxed);
                }
            })?;
        first_command += commands;
        programs.push(program);
    }
    let max_tries = match spec.options.max_tries {
        0 => u64::MAX,
        tries => u64::from(tries),
    };
    let weights = spec.scripts.iter().map(|script| script.weight).collect();
    Ok(Client { state, programs, weights, seeds, max_tries })
}

/// When the next transaction is to start.
enum Turn {
    /// Now, being due at this time.
    Start { due_ns: i64, start_ns: i64 },
    /// The run is over.
    End,
}

impl Client<'_> {
    /// The client's part of the run.
    fn run(&mut self, context: &WorkerContext, spec: &RunSpec) -> Result<(), Ending> {
        let limit_ns = spec.options.latency_limit_ms.map(|ms| (ms * 1e6) as i64);
        let log = context.segment.log(context.index);
        let log = log.map(|queue| LogWriter::new(queue, self.seeds.sample, spec.options.log_rate));
        let mut recorder = Recorder::new(&context.segment, context.index, limit_ns, log);
        let left = match spec.options.extent {
            Extent::Transactions(count) => count,
            Extent::Secs(_) => u64::MAX,
        };
        let timeline = context.segment.header().timeline.load();
        let measure_start_ns = timeline.measure_start_ns;
        let mut pace = spec.options.rate.map(|rate| {
            let clients = spec.options.clients;
            let schedule = Schedule::new(self.seeds.throttle, rate, clients, timeline.warmup_start_ns);
            Pace { schedule, limit_ns, measure_start_ns }
        });
        let result = self.run_transactions(context, &mut recorder, &mut pace, left, measure_start_ns);
        // A client that an error has ended leaves its share as well.
        if let (Some(pace), Extent::Secs(_)) = (pace, spec.options.extent) {
            context.segment.slot(context.index).backlog.add(pace.schedule.rest_until(recorder.end_ns()));
        }
        result
    }

    /// The loop. One reading of the clock ends a transaction and starts the next.
    fn run_transactions(
        &mut self,
        context: &WorkerContext,
        recorder: &mut Recorder,
        pace: &mut Option<Pace>,
        mut left: u64,
        measure_start_ns: i64,
    ) -> Result<(), Ending> {
        let mut now = now_ns();
        let mut met_an_error = false;
        while left > 0 && now < recorder.end_ns() {
            if met_an_error {
                // Citus' deadlock detector may send its victim a second cancel.
                self.state.session.serve_interrupts_of_idle()?;
            } else {
                self.state.session.serve_interrupts()?;
            }
            let script = choose(&mut self.seeds.choice, &self.weights);
            let turn = match pace {
                None => Turn::Start { due_ns: now, start_ns: now },
                Some(pace) => pace.next_turn(script, &self.state, recorder, &mut left)?,
            };
            let Turn::Start { due_ns, start_ns } = turn else { break };
            let give_up_ns = due_ns.saturating_add(recorder.limit_ns());
            let Tried { end_ns, tries, verdict } =
                self.try_until_over(context, recorder, script, start_ns, give_up_ns)?;
            let outcome = match &verdict {
                Verdict::Go(outcome) | Verdict::Fatal(_, outcome) => *outcome,
            };
            met_an_error = tries > 1 || outcome != Outcome::Committed;
            recorder.record(&Transaction { script, due_ns, start_ns, end_ns, tries, outcome });
            if let Verdict::Fatal(error, _) = verdict {
                // Its counts have reached the server even so.
                self.state.session.flush_statistics()?;
                return Err(Ending { error, counted: true });
            }
            // A warm-up's transactions are beyond those that were asked for.
            if end_ns >= measure_start_ns {
                left -= 1;
            }
            now = end_ns;
        }
        Ok(())
    }

    /// Runs a transaction, again and again after serialization failures and deadlocks while tries are
    /// left, the run goes on and it could still end before `give_up_ns` (`doRetry` in pgbench.c).
    #[inline]
    fn try_until_over(
        &mut self,
        context: &WorkerContext,
        recorder: &mut Recorder,
        script: usize,
        start_ns: i64,
        give_up_ns: i64,
    ) -> Result<Tried, SqlError> {
        let header = context.segment.header();
        let times = context.segment.times(context.index);
        let mut tries = 1;
        let mut try_start_ns = start_ns;
        loop {
            // As pgbench: another try draws the same random numbers.
            let random = self.state.random;
            let clock = || recorder.end_clock();
            let result = self.programs[script].transaction(&mut self.state, try_start_ns, clock);
            let end_ns = match &result {
                Ok(end_ns) => *end_ns,
                Err(_) => recorder.end_clock(),
            };
            let is_measured = recorder.is_measured(end_ns);
            if is_measured {
                for &(command, latency_ns) in &self.state.laps {
                    times[command].record(latency_ns);
                }
            }
            let Failure { command, error, left_open } = match result {
                Ok(_) => return Ok(Tried { end_ns, tries, verdict: Verdict::Go(Outcome::Committed) }),
                Err(failure) => failure,
            };
            let is_stopped = header.stop() != StopReason::None;
            let again = error.is_retryable()
                && tries < self.max_tries
                && end_ns < recorder.end_ns().min(give_up_ns)
                && !is_stopped;
            if is_measured {
                if again { &times[command].retried } else { &times[command].failed }.add(1);
            }
            if !(is_stopped && error.is_cancel()) {
                count_error(context, &error, if again { Consequence::Retried } else { Consequence::Failed });
            }
            if !error.is_retryable() {
                let outcome = if left_open { Outcome::LeftOpen } else { Outcome::Aborted };
                return Ok(Tried { end_ns, tries, verdict: Verdict::Fatal(error, outcome) });
            }
            if !again {
                return Ok(Tried { end_ns, tries, verdict: Verdict::Go(Outcome::Failed) });
            }
            tries += 1;
            recorder.pass();
            as_idle(|| std::thread::sleep(BEFORE_RETRY));
            self.state.random = random;
            self.state.session.serve_interrupts_of_idle()?;
            try_start_ns = now_ns();
        }
    }
}

/// A transaction with all of its tries.
struct Tried {
    end_ns: i64,
    tries: u64,
    verdict: Verdict,
}

/// A client's pace under a rate.
struct Pace {
    schedule: Schedule,
    /// Latency that no transaction is to exceed, ns.
    limit_ns: Option<i64>,
    measure_start_ns: i64,
}

impl Pace {
    /// Waits for the next transaction's time. Those that would be too late even if they took no time
    /// are skipped, as pgbench does it under a limit; they count as transactions of those that are
    /// `left`.
    fn next_turn(
        &mut self,
        script: usize,
        state: &State,
        recorder: &mut Recorder,
        left: &mut u64,
    ) -> Result<Turn, SqlError> {
        loop {
            let before = self.schedule.clone();
            let due_ns = self.schedule.next_ns();
            if let Some(limit_ns) = self.limit_ns {
                let now = recorder.end_clock();
                if due_ns < now - limit_ns && now < recorder.end_ns() {
                    recorder.skip(script, due_ns, now);
                    *left -= u64::from(now >= self.measure_start_ns);
                    if *left == 0 {
                        return Ok(Turn::End);
                    }
                    continue;
                }
                recorder.pass();
            }
            // A client with nothing more to do stays: the time without arrivals is part of the run.
            let until_ns = due_ns.min(recorder.end_ns());
            if !state.alarm.wait_until(until_ns, &state.session)? || due_ns >= recorder.end_ns() {
                return Ok(Turn::End);
            }
            let start_ns = now_ns();
            if start_ns >= recorder.end_ns() {
                // Due and not started: one of the backlog.
                self.schedule = before;
                return Ok(Turn::End);
            }
            return Ok(Turn::Start { due_ns, start_ns });
        }
    }
}

/// The script of the next transaction (`chooseScript` in pgbench.c): with one there is nothing to draw.
#[inline]
fn choose(random: &mut Prng, weights: &[u32]) -> usize {
    if weights.len() == 1 {
        return 0;
    }
    let total: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
    let mut drawn = random.int64_range(0, total - 1);
    for (index, &weight) in weights.iter().enumerate() {
        drawn -= i64::from(weight);
        if drawn < 0 {
            return index;
        }
    }
    weights.len() - 1
}

fn text(string: &str) -> Result<CString, SqlError> {
    CString::new(string).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(pgrx::PgSqlErrorCode::ERRCODE_INTERNAL_ERROR, error.to_string())
}

/// The kind of worker that a client is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_client_main",
    title: c"pgbench_ext client",
    noun: "client",
    returns_after_crash: false,
};
