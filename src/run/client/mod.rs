//! A client: one session that runs the scripts' transactions in a loop.

pub mod arms;
pub mod statements;
pub mod timed_wait;
pub mod variables;

use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

use bench_base::error::{SqlError, sqlstate};
use bench_model::client::{
    Client, ClientStart, ClientWorkload, Consequence, Pauses, Program, Step, Tolerance, TransactionRecorder,
};
use bench_model::feeder;
use bench_model::feeder::RowSource;
use bench_model::schedule::Schedule;
use bench_model::spec::{Extent, Observation, OnDisconnect, RunOptions, RunSpec};
use bench_model::transaction_log::Sampling;
use bench_script::{Symbols, Value, VariableId, Variables, parse};
use pgrx::pg_sys;

use crate::driver::session::{Session, Traits, unsupported_settings};
use crate::guard::planner_hook::Judged;
use crate::guard::planner_hook::watch_fixtures;
use crate::guard::trust::statement;
use crate::observe::environment;
use crate::server::background_worker::WorkerKind;
use crate::server::guc;
use crate::server::process::{current_timestamp, my_pid, nap, now_ns, own_cpu_ns, own_switches, wake};
use crate::server::signals::OnTerminate;
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::server::wait::as_idle;
use crate::shm::{
    ClientCounters, ClientState, CommandCounters, Header, Segment, StopReason, unclear, untracked,
};
use crate::worker::{WorkerContext, attach_client, report_fatal_error};
use arms::Arms;
use statements::ClientStatements;
use timed_wait::Alarm;

/// About a client's round trip. Without it the loser of a deadlock is back at the row before the
/// winner has been woken, and the two meet again, and again.
const BEFORE_RETRY: Duration = Duration::from_micros(200);

/// The server's entry into a client.
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
        header.unsupported.store(unsupported_settings::on_by_default(), Relaxed);
        describe(header);
    }
    watch_fixtures(spec.tables().map(pg_sys::Oid::from)).map_err(internal)?;
    if spec.scripts.iter().any(|script| script.captured) {
        judge(&session)?;
    }
    let counters = context.segment.commands(context.index);
    let plans = if spec.observation == Observation::Off { &[] } else { context.segment.plans() };
    let mut workload = workload(&spec, Some(&context.segment))?;
    let executed = spec.executed_by(context.index);
    for (program, _) in workload.programs.iter_mut().zip(&executed).filter(|(_, is)| !**is) {
        program.weight = 0;
    }
    let beginning = beginning(&spec, context.index, &mut workload.symbols);
    let mut statements = ClientStatements::new(session, counters, plans);
    let arms = Arms::of(&spec)?;
    compile(&spec, &executed, &workload, &beginning, &mut statements, arms.as_ref())?;
    statements.session.report_idle();
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

/// From here on, what a role with special rights executes is judged by whom it belongs to. Its search_path stays what it is
/// now, whatever schemas others make: names are looked up where they were judged.
fn judge(session: &Session) -> Result<(), SqlError> {
    let path = transaction(|| {
        Judged::new()?.for_good();
        if statement::judged().is_none() {
            return Ok(None);
        }
        let sql = "SELECT /* pgbench_ext */ coalesce(pg_catalog.string_agg(pg_catalog.quote_ident(s), ', '), 'pg_catalog') \
                   FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) AS s";
        fetch::<String>(sql, &[])
    })?;
    path.map_or(Ok(()), |path| session.set(c"search_path", &text(&path)?))
}

/// Leaves in the header what is known of the clients' sessions by their settings.
pub fn describe(header: &Header) {
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

/// The settings of the run, over those of the role and the database. Returns the search_path, where that is the run's.
pub fn prepare_session(session: &Session, spec: &RunSpec) -> Result<Option<String>, SqlError> {
    let settings = &spec.options.settings;
    let given = |name: &str| settings.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("application_name") {
        session.set(c"application_name", c"pgbench_ext")?;
    }
    let schemas: Vec<&str> = spec.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
    let mut path = None;
    if !schemas.is_empty() && !given("search_path") {
        let own = guc::current("search_path").unwrap_or_default();
        let whole = guc::search_path_with(&schemas, &own);
        session.set(c"search_path", &text(&whole)?)?;
        path = Some(whole);
    }
    for (name, value) in settings {
        session.set(&text(name)?, &text(value)?)?;
    }
    session.preload_libraries()?;
    Ok(path)
}

/// The scripts of a run, with the rows of their feeders, where it has a segment.
pub fn workload<'a>(spec: &RunSpec, segment: Option<&'a Segment>) -> Result<ClientWorkload<'a>, SqlError> {
    let mut symbols = Symbols::new();
    let mut first_command = 0;
    let mut programs = Vec::with_capacity(spec.scripts.len());
    for script in &spec.scripts {
        let weight = script.weight;
        let tolerance = match (spec.options.continue_on_error, script.captured) {
            (true, _) => Tolerance::Statements,
            (false, true) => Tolerance::Data,
            (false, false) => Tolerance::None,
        };
        let pauses = script.terminal.map(|times| Pauses::of_secs(times.keying_secs, times.think_secs));
        let script = parse(&script.name, &script.source, &mut symbols)?;
        let commands = script.commands.len();
        programs.push(Program { script, feeds: Vec::new(), weight, pauses, first_command, tolerance });
        first_command += commands;
    }
    let rows = segment.map_or(Some(Vec::new()), |segment| feeder::unpack(segment.fed()));
    let rows = rows.ok_or_else(|| internal("the rows of the feeders are damaged"))?;
    for (number, (rows, segment)) in rows.into_iter().zip(segment.into_iter().cycle()).enumerate() {
        let script = rows.script;
        let Some(program) = programs.get_mut(script) else { continue };
        // What the run itself is given wins, and what no script reads need not be set.
        let find = |name: &str| symbols.lookup(name).filter(|_| !spec.options.variables.contains_key(name));
        let source = RowSource::new(rows, segment.taken(number as u32), spec.stride(), find);
        program.feeds.push(source.clone());
        let is_shared = spec.options.duel.as_ref().is_some_and(|duel| !duel.arms[1].has_own_script());
        if let Some(other_arm) = programs.get_mut(script + 1).filter(|_| is_shared) {
            other_arm.feeds.push(source);
        }
    }
    let max_tries = match spec.options.max_tries {
        0 => u64::MAX,
        tries => u64::from(tries),
    };
    let is_deck = spec.scripts.iter().all(|script| script.is_dealt);
    Ok(ClientWorkload { programs, is_deck, is_duel: spec.options.duel.is_some(), symbols, max_tries })
}

/// What a client of a run begins with, before the gate has opened.
pub fn beginning(spec: &RunSpec, client: u32, symbols: &mut Symbols) -> ClientStart {
    let (seeds, values) = variables::initial_values(spec, client);
    let mut intern = |values: Vec<(String, Value)>| -> Vec<(VariableId, Value)> {
        values.into_iter().map(|(name, value)| (symbols.intern(&name), value)).collect()
    };
    let values = intern(values);
    let own = spec.scripts.iter().map(|script| intern(variables::own_values(spec, script, client))).collect();
    let mut variables = Variables::new(symbols.len());
    for (id, value) in values {
        variables.set(id, value);
    }
    let RunOptions { extent, latency_limit_ms, log_rate, .. } = spec.options;
    ClientStart {
        seeds,
        variables,
        own,
        transactions: match extent {
            Extent::Transactions(count) => count,
            Extent::Secs(_) => u64::MAX,
        },
        skips: latency_limit_ms.is_some(),
        log: (log_rate > 0.0).then(|| Sampling::new(client, seeds.sample, log_rate)),
        reconnects: spec.options.reconnect,
        survives: spec.options.on_disconnect == OnDisconnect::Reconnect,
        arm: spec.options.duel.as_ref().and_then(|duel| duel.arm_of(client)),
    }
}

/// The arrivals of a run with a rate, whose warm-up begins at `start_ns`.
pub fn schedule(spec: &RunSpec, start_ns: i64) -> Option<Schedule> {
    let seed = spec.seed.cast_unsigned();
    if let Some(rates) = &spec.options.rates {
        let warmup_ns = (spec.options.warmup_secs.unwrap_or_default() * 1e9) as i64;
        return Some(Schedule::varying(seed, rates.clone(), start_ns, warmup_ns));
    }
    spec.options.rate.map(|rate| Schedule::new(seed, rate, start_ns))
}

/// A client of a run, when the gate has opened and the time line is in place.
pub fn start(spec: &RunSpec, workload: &ClientWorkload, beginning: ClientStart, header: &Header) -> Client {
    let timeline = header.timeline.load();
    let schedule = schedule(spec, timeline.warmup_start_ns);
    Client::new(workload, beginning, schedule, now_ns())
}

/// Prepares all statements of a run whose clients are not in here, and leaves in the counters what can be told of each.
pub fn examine(spec: &RunSpec, session: Session, counters: &[CommandCounters]) -> Result<(), SqlError> {
    let mut workload = workload(spec, None)?;
    let beginning = beginning(spec, 0, &mut workload.symbols);
    compile(
        spec,
        &spec.executed_by(0),
        &workload,
        &beginning,
        &mut ClientStatements::new(session, counters, &[]),
        None,
    )
}

/// Prepares all statements, and leaves in the client's counters what can be told of each.
fn compile(
    spec: &RunSpec,
    executed: &[bool],
    workload: &ClientWorkload,
    beginning: &ClientStart,
    statements: &mut ClientStatements,
    arms: Option<&Arms>,
) -> Result<(), SqlError> {
    let counters = statements.counters;
    let mut variables = beginning.variables.clone();
    let programs = workload.programs.iter().zip(&beginning.own).zip(executed);
    for (((program, own), is_executed), script) in programs.zip(&spec.scripts) {
        if let (Some(arms), Some(arm)) = (arms, script.arm) {
            arms.enter(&statements.session, arm)?;
        }
        if !is_executed {
            statements.skip(program);
            continue;
        }
        for (variable, value) in own {
            variables.set(*variable, value.clone());
        }
        let mode = spec.options.query_mode_of(script);
        statements.compile(program, mode, &variables, |place, traits| {
            tell(&counters[place], spec, traits);
        })?;
    }
    Ok(())
}

/// Leaves in a command's counters what can be told of its statement.
fn tell(counter: &CommandCounters, spec: &RunSpec, traits: Option<&Traits>) {
    let inside = |relation: &u32| spec.tables().any(|table| table == *relation);
    let relations = traits.and_then(|traits| traits.relations.as_ref());
    if !relations.is_some_and(|all| all.iter().all(inside)) {
        counter.add_unclear(unclear::OUTSIDE);
    }
    if let Some(traits) = traits {
        for (holds, bit) in
            [(traits.takes_back, unclear::TAKES_BACK), (traits.looks_at_ends, unclear::LOOKS_AT_ENDS)]
        {
            if holds {
                counter.add_unclear(bit);
            }
        }
        counter.command_type.store(traits.command_type, Relaxed);
        counter.query_id.store(traits.query_id, Relaxed);
        counter.later_query_id.store(traits.later_query_id, Relaxed);
    }
}

/// The client's part of the run.
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
    // A client that an error has ended leaves its share as well.
    if let Extent::Secs(_) = spec.options.extent {
        recorder.backlog(client.backlog(recorder.end_ns()));
    }
    result
}

/// The loop.
fn run_transactions(
    header: &Header,
    workload: &mut ClientWorkload,
    client: &mut Client,
    recorder: &mut ClientCounters,
    statements: &mut ClientStatements,
    arms: Option<&Arms>,
) -> Result<(), Ending> {
    let alarm = Alarm::new(header);
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
                arms.map_or(Ok(()), |arms| arms.enter(&statements.session, arm))?;
                recorder.begin_stretch(arm);
                client.switched(workload, recorder)
            }
            // A worker is its own session.
            Step::Connect => client.connected(workload, recorder),
            Step::Execute { program, command } => {
                let result = statements.execute(workload, program, command, &mut client.variables);
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
            Step::End(None) => return Ok(()),
            Step::End(Some(error)) => {
                // Its counts have reached the server even so.
                statements.session.flush_statistics()?;
                return Err(Ending { error: *error, counted: true });
            }
        };
    }
}

/// A text for the server.
pub fn text(string: &str) -> Result<CString, SqlError> {
    CString::new(string).map_err(internal)
}

/// An error in what this project assumes of itself.
pub fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(sqlstate::INTERNAL_ERROR, error.to_string())
}

/// The kind of worker that a client is.
pub const KIND: WorkerKind = WorkerKind {
    entry: c"pgbench_ext_client_main",
    title: c"pgbench_ext client",
    noun: "client",
    connects: true,
    returns_after_crash: false,
};
