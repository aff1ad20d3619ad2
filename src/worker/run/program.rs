//! A script as one client runs it: compiled once, then a transaction at a time.

use std::ffi::CStr;

use bench_core::error::{UserError, sqlstate};
use bench_core::script::{
    Action, Capture, Command, Flow, Parameterized, Prng, Script, Sql, Symbols, Value, VariableId, Variables,
    is_variable_name, with_caret,
};
use bench_core::spec::QueryMode;

use super::pause::Alarm;
use crate::engine::{Book, CapturedQuery, Log, MAX_CAPTURED, Session, Statement, Traits, Unprepared};
use crate::error::SqlError;
use crate::server::process::now_ns;
use crate::shm::{CommandCounters, CommandPlans};

/// How a command is executed.
enum Step {
    Prepared(Box<Statement>),
    /// To be prepared when it comes to it: what it needs may not exist before, or be another.
    Deferred(Parameterized),
    Extended(Box<Unprepared>),
    Simple,
    /// By the script language itself.
    Meta,
}

/// A script, ready to run.
pub struct Program {
    script: Script,
    /// Its place among the scripts of the run.
    index: usize,
    /// Its first command's place among the commands of the run.
    first_command: usize,
    steps: Vec<Step>,
    /// Variables that mean something else to this script than to others of the mix.
    own: Vec<(VariableId, Value)>,
}

/// What a client's transactions read and change.
pub struct State<'a> {
    pub session: Session,
    pub symbols: Symbols,
    pub variables: Variables,
    pub random: Prng,
    /// One for each command of the run.
    pub counters: &'a [CommandCounters],
    /// One for each command of the run; empty where nobody asks for plans.
    plans: &'a [CommandPlans],
    /// The commands of this try so far, each with the nanoseconds it took.
    pub laps: Vec<(usize, u64)>,
    /// Ends a `\sleep` early.
    pub alarm: Alarm<'a>,
    /// A statement's text in simple mode, with a zero byte at its end.
    text: String,
}

/// Why a try did not come to its end.
pub struct Failure {
    /// The command's place among the commands of the run.
    pub command: usize,
    pub error: SqlError,
    /// The script ended within a block.
    pub left_open: bool,
}

impl<'a> State<'a> {
    /// What a client begins with.
    pub fn new(
        session: Session,
        symbols: Symbols,
        variables: Variables,
        random: Prng,
        counters: &'a [CommandCounters],
        plans: &'a [CommandPlans],
        alarm: Alarm<'a>,
    ) -> Self {
        let laps = Vec::with_capacity(counters.len());
        Self { session, symbols, variables, random, counters, plans, laps, alarm, text: String::new() }
    }

    /// Where it is written what becomes of a command of the run.
    #[inline]
    fn book(&self, place: usize) -> Book<'a> {
        Book { counters: &self.counters[place], plans: self.plans.get(place) }
    }
}

impl Program {
    /// Prepares a script's statements. `state` holds the variables' values before the first
    /// transaction; `tell` is given what can be told of each statement.
    ///
    /// # Errors
    /// The server's, with the place in the script.
    pub fn compile(
        script: Script,
        index: usize,
        first_command: usize,
        own: Vec<(VariableId, Value)>,
        mode: QueryMode,
        state: &mut State,
        mut tell: impl FnMut(usize, Option<&Traits>),
    ) -> Result<Self, SqlError> {
        for (variable, value) in &own {
            state.variables.set(*variable, value.clone());
        }
        let mut steps = Vec::with_capacity(script.commands.len());
        let mut waits = false;
        for (at, command) in script.commands.iter().enumerate() {
            steps.push(match &command.action {
                Action::Sql(sql) => {
                    let (step, traits) =
                        prepare(sql, mode, waits, state).map_err(|e| locate(&script, at, e))?;
                    // What is not known may be a utility, and a utility may create what others need.
                    waits |= traits.as_ref().is_none_or(|traits| traits.changes_the_scene);
                    tell(first_command + at, traits.as_ref());
                    step
                }
                // Nobody knows whether its branch will ever be entered.
                Action::If { .. } => {
                    waits = true;
                    Step::Meta
                }
                _ => Step::Meta,
            });
        }
        Ok(Self { script, index, first_command, steps, own })
    }

    /// Runs one transaction, which started at `start_ns`: all of the commands that its conditions
    /// lead to. Returns when it ended, by `end_clock`.
    ///
    /// # Errors
    /// The first error. Whatever was open is rolled back.
    #[inline]
    pub fn transaction(
        &mut self,
        state: &mut State,
        start_ns: i64,
        mut end_clock: impl FnMut() -> i64,
    ) -> Result<i64, Failure> {
        state.laps.clear();
        for (variable, value) in &self.own {
            state.variables.set(*variable, value.clone());
        }
        let mut lap_start_ns = start_ns;
        let mut at = 0;
        let mut otherwise = false;
        while let Some(step) = self.steps.get_mut(at) {
            let command = &self.script.commands[at];
            let place = self.first_command + at;
            let next = match step {
                Step::Meta => perform(command, (self.index, at), otherwise, place, state),
                _ => execute(step, command, state.book(place), state).map(|()| Next::at(at + 1)),
            };
            let next = match next {
                Ok(next) => next,
                Err(error) => {
                    return Err(Failure {
                        command: place,
                        error: locate(&self.script, at, error),
                        left_open: false,
                    });
                }
            };
            at = next.command.unwrap_or(at + 1);
            otherwise = next.otherwise;
            let now_ns = if at < self.steps.len() { now_ns() } else { end_clock() };
            state.laps.push((place, (now_ns - lap_start_ns).max(0).unsigned_abs()));
            lap_start_ns = now_ns;
        }
        if state.session.in_block() {
            let error = SqlError::new(
                pgrx::PgSqlErrorCode::ERRCODE_ACTIVE_SQL_TRANSACTION,
                "end of script reached without completing the last transaction",
            );
            let aborted = state.session.abort();
            let left_open = aborted.is_ok();
            let error = aborted.err().unwrap_or(error);
            let last = self.steps.len() - 1;
            let error = locate(&self.script, last, error);
            return Err(Failure { command: self.first_command + last, error, left_open });
        }
        Ok(lap_start_ns)
    }
}

/// Where a transaction goes on.
struct Next {
    /// `None`: with the next command.
    command: Option<usize>,
    /// Because a condition was false.
    otherwise: bool,
}

impl Next {
    fn at(command: usize) -> Self {
        Self { command: Some(command), otherwise: false }
    }
}

/// Prepares a statement, or sees whether it could be. With `waits` it is prepared when the script comes to it, as by
/// pgbench since PostgreSQL 16: what comes before may create what it needs, or change it. Otherwise an error is one at
/// once, so that a run that cannot work ends before it begins.
fn prepare(
    sql: &Sql,
    mode: QueryMode,
    waits: bool,
    state: &mut State,
) -> Result<(Step, Option<Traits>), SqlError> {
    if mode == QueryMode::Simple {
        // What it does can be told only if it is a statement with parameters as well.
        let traits = sql
            .parameterized(&state.variables)
            .ok()
            .filter(|_| !sql.is_compound())
            .and_then(|p| Statement::prepare(&p.text, &p.parameters, Log::Nothing).ok())
            // Its values are constants there, and so it has another identifier.
            .map(|statement| Traits { query_id: 0, ..statement.traits });
        return Ok((Step::Simple, traits));
    }
    let parameterized = sql.parameterized(&state.variables)?;
    let log = if waits { Log::Nothing } else { Log::Errors };
    let statement = match Statement::prepare(&parameterized.text, &parameterized.parameters, log) {
        Ok(statement) => Some(statement),
        Err(_) if waits => None,
        Err(error) => return Err(point_at(&parameterized.text, error)),
    };
    let traits = statement.as_ref().map(|statement| statement.traits.clone());
    let step = match (mode, statement) {
        (QueryMode::Extended, _) => {
            Step::Extended(Box::new(Unprepared::new(&parameterized.text, parameterized.parameters)?))
        }
        (_, Some(statement)) if !waits => Step::Prepared(Box::new(statement)),
        _ => Step::Deferred(parameterized),
    };
    Ok((step, traits))
}

/// Executes a statement and keeps what `\gset` and `\aset` ask for.
#[inline]
fn execute(step: &mut Step, command: &Command, book: Book, state: &mut State) -> Result<(), SqlError> {
    let Action::Sql(sql) = &command.action else { return Ok(()) };
    if let Step::Deferred(parameterized) = step {
        match Statement::prepare(&parameterized.text, &parameterized.parameters, Log::Errors) {
            Ok(statement) => *step = Step::Prepared(Box::new(statement)),
            Err(error) => {
                book.counters.errors.add(1);
                return Err(point_at(&parameterized.text, error));
            }
        }
    }
    if sql.capture.is_some() {
        state.session.capture(true);
    }
    let result = match step {
        Step::Prepared(statement) => state.session.execute(statement, &state.variables, book),
        Step::Extended(statement) => state.session.execute_unprepared(statement, &state.variables, book),
        Step::Simple => {
            state.text.clear();
            match sql.substitute(&state.variables, &mut state.text) {
                Ok(()) => {
                    // No text of the server's contains a zero byte.
                    state.text.push('\0');
                    let text = CStr::from_bytes_until_nul(state.text.as_bytes()).unwrap_or(c"");
                    let result = state.session.execute_simple(text, book);
                    result.map_err(|error| point_at(state.text.trim_end_matches('\0'), error))
                }
                Err(error) => {
                    book.counters.errors.add(1);
                    Err(state.session.abort().err().unwrap_or(error.into()))
                }
            }
        }
        Step::Deferred(_) | Step::Meta => Ok(()),
    };
    let Some(capture) = &sql.capture else { return result };
    state.session.capture(false);
    result?;
    let State { session, symbols, variables, .. } = state;
    let kept = session.with_captured(|queries| keep(queries, capture, session, symbols, variables));
    kept.map_err(|error| {
        book.counters.errors.add(1);
        session.abort().err().unwrap_or(error)
    })
}

/// Puts results into variables (`readCommandResponse` in pgbench.c).
fn keep(
    queries: &[CapturedQuery],
    capture: &Capture,
    session: &Session,
    symbols: &mut Symbols,
    variables: &mut Variables,
) -> Result<(), SqlError> {
    if queries.iter().any(|query| query.is_too_large) {
        let message = "a row for \\gset or \\aset is too large";
        return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
            .detail(format!("The limit is {MAX_CAPTURED} bytes."))
            .into());
    }
    let last_of_many = queries.len().saturating_sub(1);
    let kept = if capture.every_query { queries } else { &queries[last_of_many..] };
    if !capture.every_query
        && let Some(query) = kept.first()
        && query.rows != 1
    {
        let message = format!("expected one row, got {}", query.rows);
        return Err(UserError::new(sqlstate::CARDINALITY_VIOLATION, message).into());
    }
    let mut store = |column: &[u8], value: &[u8]| -> Result<(), SqlError> {
        let name = format!("{}{}", capture.prefix, session.to_server_encoding(column)?);
        if !is_variable_name(&name) {
            let message = format!("error storing into variable {name}");
            return Err(UserError::new(sqlstate::SYNTAX_ERROR, message)
                .detail("A variable's name consists of letters, digits and underscores, and does not start with a digit.")
                .into());
        }
        variables.set(symbols.intern(&name), Value::Text(session.to_server_encoding(value)?.into()));
        Ok(())
    };
    let mut result = Ok(());
    for query in kept.iter().filter(|query| query.rows > 0) {
        query.for_each_column(|column, value| {
            if result.is_ok() {
                result = store(column, value);
            }
        });
    }
    result
}

/// Performs a meta command; where to go on.
#[inline]
fn perform(
    command: &Command,
    (script, at): (usize, usize),
    otherwise: bool,
    place: usize,
    state: &mut State,
) -> Result<Next, SqlError> {
    let mut log = |line: &str| pgrx::log!("debug(script={script},command={}): {line}", at + 1);
    let flow = command.action.perform(otherwise, &mut state.variables, &mut state.random, &mut log);
    let flow = match flow {
        Ok(Flow::Sleep(length)) => state.alarm.sleep(length, &state.session).map(|()| Flow::Next),
        Ok(flow) => Ok(flow),
        Err(error) => Err(error.into()),
    };
    match flow {
        Ok(flow) => {
            state.counters[place].executions.add(1);
            Ok(match flow {
                Flow::Next | Flow::Sleep(_) => Next { command: None, otherwise: false },
                Flow::Jump(command) => Next::at(command),
                Flow::Otherwise(command) => Next { command: Some(command), otherwise: true },
            })
        }
        Err(error) => {
            state.counters[place].errors.add(1);
            Err(state.session.abort().err().unwrap_or(error))
        }
    }
}

/// The error with the line of the statement that the server points at, as psql shows it.
#[cold]
fn point_at(text: &str, error: SqlError) -> SqlError {
    let Some(at) = error.position.checked_sub(1) else { return error };
    // One past the last character is a place too.
    let at = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(at as usize);
    let Some(at) = at else { return error };
    let mut detail = with_caret(text, at);
    if let Some(more) = &error.detail {
        detail += "\n";
        detail += more;
    }
    SqlError { detail: Some(detail), ..error }
}

/// The error with its place in the script.
#[cold]
fn locate(script: &Script, at: usize, error: SqlError) -> SqlError {
    let located = script.at(
        at,
        UserError { sqlstate: String::new(), message: error.message, detail: error.detail, hint: None },
    );
    SqlError { message: located.message, detail: located.detail, ..error }
}
