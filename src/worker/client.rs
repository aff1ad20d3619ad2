//! A client: one session that runs the script's transactions in a loop.

use std::ffi::CString;
use std::sync::atomic::Ordering::*;
use std::time::Duration;

use bench_core::script::{Command, Script, Symbols, Value, VariableId, Variables, parse};
use bench_core::script::{Prng, client_generator};
use bench_core::spec::{Extent, RunSpec};
use pgrx::pg_sys;
use serde_json::Value as Json;

use super::{OnTerminate, Post, nap, now_ns, report_for_duty, wake};
use crate::engine::{Session, SqlError, Statement, unserved};
use crate::shm::{ClientState, CommandCounters, Outcome, Recorder, StopReason};

/// A command of a script, ready to run.
enum Step {
    Sql(Box<Statement>),
    Set(bench_core::script::Set),
}

/// A script as this client runs it.
struct Program {
    steps: Vec<Step>,
}

/// Everything that one client runs with.
struct Client<'a> {
    session: Session,
    programs: Vec<Program>,
    variables: Variables,
    random: Prng,
    commands: &'a [CommandCounters],
    max_tries: u64,
}

/// How a transaction ended, apart from its outcome.
enum Verdict {
    Go(Outcome),
    /// An error that ends the client, as it would pgbench's.
    Fatal(SqlError),
}

/// About a client's round trip. Without it the loser of a deadlock is back at the row before the
/// winner has been woken, and the two meet again, and again.
const BEFORE_RETRY: Duration = Duration::from_micros(200);

/// The server's entry into a client.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_client_main(segment: pg_sys::Datum) {
    let post = report_for_duty(segment, OnTerminate::Die);
    let slot = post.segment.slot(post.index);
    // SAFETY: this process's own pid.
    slot.pid.store(unsafe { pg_sys::MyProcPid }, Release);
    let end = match work(&post) {
        Ok(()) => ClientState::Done,
        Err(error) => {
            if !(error.is_cancel() && post.segment.header().stop() != StopReason::None) {
                count_error(&post, &error);
            }
            ClientState::Aborted
        }
    };
    slot.set_state(end);
    wake(post.segment.header().coordinator_pid.load(Relaxed));
}

fn count_error(post: &Post, error: &SqlError) {
    // SAFETY: reads the clock.
    let now = unsafe { pg_sys::GetCurrentTimestamp() };
    post.segment.slot(post.index).count_error(error.sqlstate, &error.message, now);
}

fn work(post: &Post) -> Result<(), SqlError> {
    let header = post.segment.header();
    let slot = post.segment.slot(post.index);
    let spec: RunSpec = serde_json::from_str(post.segment.spec()).map_err(internal)?;
    let session = Session::new(spec.options.results);
    prepare_session(&session, &spec)?;
    if post.index == 0 {
        header.unserved.store(unserved::on_by_default(), Relaxed);
        let is = |name: &str, value: &str| crate::settings::current(name).as_deref() == Some(value);
        let untracked =
            u32::from(is("track_counts", "off")) | (u32::from(is("pg_stat_statements.track", "none")) << 1);
        header.untracked.store(untracked, Relaxed);
    }
    let mut client = compile(post, &spec, session)?;
    client.session.report_idle();
    slot.set_state(ClientState::Ready);
    wake(header.coordinator_pid.load(Relaxed));
    while header.gate.load(Acquire) == 0 {
        if header.stop() != StopReason::None {
            return Ok(());
        }
        nap(1000);
    }
    slot.set_state(ClientState::Running);
    let result = client.run(post, &spec);
    slot.ended_ns.store(now_ns(), Relaxed);
    let flushed = client.session.flush_statistics();
    client.session.report_idle();
    result.and(flushed)
}

/// The settings of the run, over those of the role and the database.
fn prepare_session(session: &Session, spec: &RunSpec) -> Result<(), SqlError> {
    let settings = &spec.options.settings;
    let given = |name: &str| settings.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("application_name") {
        session.set(c"application_name", c"pgbench_ext")?;
    }
    if let Some(fixture) = &spec.fixture
        && !given("search_path")
    {
        let path = crate::settings::search_path_with(&fixture.schema);
        session.set(c"search_path", &text(&path)?)?;
    }
    for (name, value) in settings {
        session.set(&text(name)?, &text(value)?)?;
    }
    session.preload_libraries()
}

fn compile<'a>(post: &'a Post, spec: &RunSpec, session: Session) -> Result<Client<'a>, SqlError> {
    let mut symbols = Symbols::default();
    let scripts = spec
        .scripts
        .iter()
        .map(|script| parse(&script.name, &script.source, &mut symbols))
        .collect::<Result<Vec<Script>, _>>()
        .map_err(SqlError::from)?;
    let defined = crate::workload::initial_values(spec, post.index);
    let ids: Vec<(VariableId, Value)> =
        defined.into_iter().map(|(name, value)| (symbols.intern(&name), value)).collect();
    let mut variables = Variables::new(symbols.len());
    for (id, value) in ids {
        variables.set(id, value);
    }
    let commands = post.segment.commands(post.index);
    let mut counters = commands.iter();
    let mut programs = Vec::with_capacity(scripts.len());
    for script in scripts {
        let mut steps = Vec::with_capacity(script.commands.len());
        for command in script.commands {
            let counter = counters.next().ok_or_else(|| internal("more commands than counters"))?;
            steps.push(match command {
                Command::Set(set) => Step::Set(set),
                Command::Sql(sql) => {
                    let statement = Statement::prepare(&sql)?;
                    counter.command_type.store(statement.command_type, Relaxed);
                    counter.query_id.store(statement.query_id, Relaxed);
                    let inside = |relation| spec.fixture.iter().any(|f| f.tables.contains(relation));
                    if !statement.relations.as_ref().is_some_and(|all| all.iter().all(inside)) {
                        counter.outside.store(1, Relaxed);
                    }
                    Step::Sql(Box::new(statement))
                }
            });
        }
        programs.push(Program { steps });
    }
    let random = client_generator(spec.seed.cast_unsigned(), post.index);
    let max_tries = match spec.options.max_tries {
        0 => u64::MAX,
        tries => u64::from(tries),
    };
    Ok(Client { session, programs, variables, random, commands, max_tries })
}

impl Client<'_> {
    /// The loop. One reading of the clock ends a transaction and starts the next.
    fn run(&mut self, post: &Post, spec: &RunSpec) -> Result<(), SqlError> {
        let header = post.segment.header();
        let mut recorder = Recorder::new(&post.segment, post.index);
        let mut left = match spec.options.extent {
            Extent::Transactions(count) => count,
            Extent::Secs(_) => u64::MAX,
        };
        let measure_start_ns = header.timeline.load().measure_start_ns;
        let mut start_ns = now_ns();
        while left > 0 && start_ns < recorder.end_ns() {
            let mut tries = 1;
            let verdict = loop {
                self.session.serve_interrupts()?;
                // As pgbench: another try sees the same random numbers and variables.
                let random = self.random;
                let variables = (self.max_tries > 1).then(|| self.variables.clone());
                match self.transaction(0) {
                    Ok(()) => break Verdict::Go(Outcome::Committed),
                    Err(error) if error.is_retryable() => {
                        count_error(post, &error);
                        let over = now_ns() >= recorder.end_ns();
                        if tries >= self.max_tries || over || header.stop() != StopReason::None {
                            break Verdict::Go(Outcome::Failed);
                        }
                        tries += 1;
                        std::thread::sleep(BEFORE_RETRY);
                        self.random = random;
                        if let Some(variables) = variables {
                            self.variables = variables;
                        }
                    }
                    Err(error) => break Verdict::Fatal(error),
                }
            };
            let end_ns = now_ns();
            match verdict {
                Verdict::Go(outcome) => recorder.record(0, start_ns, end_ns, tries, outcome),
                Verdict::Fatal(error) => {
                    recorder.record(0, start_ns, end_ns, tries, Outcome::Failed);
                    // Its counts have reached the server even so.
                    self.session.flush_statistics()?;
                    return Err(error);
                }
            }
            // A warm-up's transactions are beyond those that were asked for.
            if end_ns >= measure_start_ns {
                left -= 1;
            }
            start_ns = end_ns;
        }
        Ok(())
    }

    /// One transaction of a script: all of its commands, in order.
    #[inline]
    fn transaction(&mut self, script: usize) -> Result<(), SqlError> {
        for (step, counters) in self.programs[script].steps.iter_mut().zip(self.commands) {
            match step {
                Step::Sql(statement) => self.session.execute(statement, &self.variables, counters)?,
                Step::Set(set) => match set.expression.evaluate(&self.variables, &mut self.random) {
                    Ok(value) => {
                        self.variables.set(set.target, value);
                        counters.executions.add(1);
                    }
                    Err(error) => {
                        counters.errors.add(1);
                        self.session.abort()?;
                        return Err(error.into());
                    }
                },
            }
        }
        if self.session.in_block() {
            self.session.abort()?;
            return Err(SqlError {
                sqlstate: pgrx::PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION as i32,
                message: "end of script reached without completing the last transaction".to_owned(),
            });
        }
        Ok(())
    }
}

/// A variable's value as it stands in the JSON of `variables`.
pub fn value_of(json: &Json) -> Value {
    match json {
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Null | Json::Array(_) | Json::Object(_) => Value::Null,
    }
}

fn text(string: &str) -> Result<CString, SqlError> {
    CString::new(string).map_err(internal)
}

fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError { sqlstate: pgrx::PgSqlErrorCode::ERRCODE_INTERNAL_ERROR as i32, message: error.to_string() }
}

/// The kind of worker that a client is.
pub const KIND: super::Kind = super::Kind { entry: c"pgbench_ext_client_main", title: c"pgbench_ext client" };
