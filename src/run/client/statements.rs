//! The statements of a client's scripts: prepared once, then executed one at a time.

use std::ffi::CStr;

use bench_base::error::SqlError;
use bench_model::client::{ClientWorkload, Program};
use bench_model::spec::QueryMode;
use bench_script::{Action, Parameterized, Sql, Variables, with_caret};
use pgrx::pg_sys;

use crate::driver::session::{Log, PreparedStatement, Session, StatementStats, Traits, Unprepared};
use crate::shm::{CommandCounters, CommandPlans};

/// How a command is executed.
enum CommandStep {
    Prepared(Box<PreparedStatement>),
    /// To be prepared when it comes to it: what it needs may not exist before, or be another.
    Deferred(Parameterized),
    Extended(Box<Unprepared>),
    Simple,
    /// By the script language itself.
    Meta,
}

/// The statements of one client, and the session that executes them.
pub struct ClientStatements<'a> {
    pub session: Session,
    /// One for each command of the run.
    pub counters: &'a [CommandCounters],
    /// One for each command of the run; empty where nobody asks for plans.
    plans: &'a [CommandPlans],
    /// One for each command of the run.
    steps: Vec<CommandStep>,
    /// A statement's text in simple mode, with a zero byte at its end.
    text: String,
}

impl<'a> ClientStatements<'a> {
    /// None yet.
    pub fn new(session: Session, counters: &'a [CommandCounters], plans: &'a [CommandPlans]) -> Self {
        Self { session, counters, plans, steps: Vec::with_capacity(counters.len()), text: String::new() }
    }

    /// Prepares the statements of a script, which come after those before. `variables` are the values before the first
    /// transaction; `tell` is given what can be told of each statement, and its place.
    ///
    /// # Errors
    /// The server's, with the place in the script.
    pub fn compile(
        &mut self,
        program: &Program,
        mode: QueryMode,
        variables: &Variables,
        mut tell: impl FnMut(usize, Option<&Traits>),
    ) -> Result<(), SqlError> {
        let script = &program.script;
        let mut waits = false;
        for (at, command) in script.commands.iter().enumerate() {
            self.steps.push(match &command.action {
                Action::Sql(sql) => {
                    let prepared = prepare(sql, mode, waits, variables);
                    let (step, traits) = prepared.map_err(|error| script.locate(at, error))?;
                    // What is not known may be a utility, and a utility may create what others need.
                    waits |= traits.as_ref().is_none_or(|traits| traits.changes_the_scene);
                    tell(program.first_command + at, traits.as_ref());
                    step
                }
                // Nobody knows whether its branch will ever be entered.
                Action::If { .. } => {
                    waits = true;
                    CommandStep::Meta
                }
                _ => CommandStep::Meta,
            });
        }
        Ok(())
    }

    /// Leaves room for the statements of a script that this client does not execute.
    pub fn skip(&mut self, program: &Program) {
        self.steps.extend(program.script.commands.iter().map(|_| CommandStep::Meta));
    }

    /// What the server keeps of those that are prepared.
    pub fn plan_sources(&self) -> impl Iterator<Item = *mut pg_sys::CachedPlanSource> + '_ {
        self.steps.iter().filter_map(|step| match step {
            CommandStep::Prepared(statement) => Some(statement.plan_source()),
            _ => None,
        })
    }

    /// Executes a command's statement and keeps what `\gset` and `\aset` ask for.
    ///
    /// # Errors
    /// The server's, and those of what is to be kept. Whatever was open is rolled back.
    #[inline]
    pub fn execute(
        &mut self,
        workload: &mut ClientWorkload,
        program: usize,
        command: usize,
        variables: &mut Variables,
    ) -> Result<(), SqlError> {
        let ClientWorkload { programs, symbols, .. } = workload;
        let program = &programs[program];
        let Action::Sql(sql) = &program.script.commands[command].action else { return Ok(()) };
        let place = program.first_command + command;
        let statistics = StatementStats { counters: &self.counters[place], plans: self.plans.get(place) };
        let Some(capture) = &sql.capture else { return self.send(place, sql, variables, statistics) };
        self.session.capture(true);
        let result = self.send(place, sql, variables, statistics);
        self.session.capture(false);
        result?;
        let session = &self.session;
        let kept = session.with_captured(|captured| {
            captured.keep(capture, |text| session.to_server_encoding(text), symbols, variables)
        });
        kept.map_err(|error| {
            statistics.counters.errors.add(1);
            session.abort().err().unwrap_or(error)
        })
    }

    #[inline]
    fn send(
        &mut self,
        place: usize,
        sql: &Sql,
        variables: &Variables,
        statistics: StatementStats,
    ) -> Result<(), SqlError> {
        let Self { session, steps, text, .. } = self;
        match &mut steps[place] {
            CommandStep::Prepared(statement) => session.execute(statement, variables, statistics),
            CommandStep::Extended(statement) => session.execute_unprepared(statement, variables, statistics),
            CommandStep::Simple => {
                text.clear();
                match sql.substitute(variables, text) {
                    Ok(()) => {
                        // No text of the server's contains a zero byte.
                        text.push('\0');
                        let statement = CStr::from_bytes_until_nul(text.as_bytes()).unwrap_or(c"");
                        let result = session.execute_simple(statement, statistics);
                        result.map_err(|error| point_at(text.trim_end_matches('\0'), error))
                    }
                    Err(error) => {
                        statistics.counters.errors.add(1);
                        Err(session.abort().err().unwrap_or(error.into()))
                    }
                }
            }
            step @ CommandStep::Deferred(_) => {
                prepare_at_last(step, statistics)?;
                self.send(place, sql, variables, statistics)
            }
            CommandStep::Meta => Ok(()),
        }
    }
}

/// Prepares a statement that the script has come to.
#[cold]
fn prepare_at_last(step: &mut CommandStep, statistics: StatementStats) -> Result<(), SqlError> {
    if let CommandStep::Deferred(parameterized) = step {
        match PreparedStatement::prepare(&parameterized.text, &parameterized.parameters, Log::Errors) {
            Ok(statement) => *step = CommandStep::Prepared(Box::new(statement)),
            Err(error) => {
                statistics.counters.errors.add(1);
                return Err(point_at(&parameterized.text, error));
            }
        }
    }
    Ok(())
}

/// Prepares a statement, or sees whether it could be. With `waits` it is prepared when the script comes to it, as by
/// pgbench since PostgreSQL 16: what comes before may create what it needs, or change it. Otherwise an error is one at
/// once, so that a run that cannot work ends before it begins.
fn prepare(
    sql: &Sql,
    mode: QueryMode,
    waits: bool,
    variables: &Variables,
) -> Result<(CommandStep, Option<Traits>), SqlError> {
    if mode == QueryMode::Simple {
        // What it does can be told only if it is a statement with parameters as well.
        let traits = sql
            .parameterized(variables)
            .ok()
            .filter(|_| !sql.is_compound())
            .and_then(|p| PreparedStatement::prepare(&p.text, &p.parameters, Log::Nothing).ok())
            // Its values are constants there, and so it has another identifier.
            .map(|statement| Traits { query_id: 0, later_query_id: 0, ..statement.traits });
        return Ok((CommandStep::Simple, traits));
    }
    let parameterized = sql.parameterized(variables)?;
    let log = if waits { Log::Nothing } else { Log::Errors };
    let statement = match PreparedStatement::prepare(&parameterized.text, &parameterized.parameters, log) {
        Ok(statement) => Some(statement),
        Err(_) if waits => None,
        Err(error) => return Err(point_at(&parameterized.text, error)),
    };
    let traits = statement.as_ref().map(|statement| statement.traits.clone());
    let step = match (mode, statement) {
        (QueryMode::Extended, _) => {
            CommandStep::Extended(Box::new(Unprepared::new(&parameterized.text, parameterized.parameters)?))
        }
        (_, Some(statement)) if !waits => CommandStep::Prepared(Box::new(statement)),
        _ => CommandStep::Deferred(parameterized),
    };
    Ok((step, traits))
}

/// The error with the line of the statement that the server points at, as psql shows it.
#[cold]
pub fn point_at(text: &str, error: SqlError) -> SqlError {
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
