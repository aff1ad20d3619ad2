//! The statements of a client's scripts, and the arms of a duel in its session.

use std::cell::OnceCell;
use std::ffi::{CStr, CString};

use bench_base::error::{SqlError, sqlstate};
use bench_model::client::{ClientWorkload, Program};
use bench_model::spec::{ARMS, QueryMode, Results, RunSpec};
use bench_script::{Action, Parameterized, Sql, Variables, with_caret};
use pgrx::pg_sys;

use crate::driver::session::{Log, PreparedStatement, Session, StatementStats, Traits, Unprepared, plans};
use crate::guard::session_role::setter;
use crate::server::guc;
use crate::server::roles::current_role_oid;
use crate::server::transaction::transaction;
use crate::shm::{CommandCounters, CommandPlans};

/// How a command is executed.
enum CommandStep {
    Prepared(Box<PreparedStatement>),
    /// Prepared at its first execution: earlier commands may create or change the objects it needs.
    Deferred(Parameterized),
    Extended(Box<Unprepared>),
    Simple,
    /// Not a statement, or one that this client does not execute.
    Meta,
}

/// The statements of one client, and the session that executes them.
pub struct ClientStatements<'a> {
    pub session: Session,
    /// One for each command of the run.
    pub counters: &'a [CommandCounters],
    /// One for each command of the run; empty if no plans are collected.
    plans: &'a [CommandPlans],
    /// One for each command of the run.
    steps: Vec<CommandStep>,
    /// Buffer for a statement's text in simple mode, with a zero byte at its end.
    text: String,
}

impl<'a> ClientStatements<'a> {
    /// Starts without statements.
    pub fn new(session: Session, counters: &'a [CommandCounters], plans: &'a [CommandPlans]) -> Self {
        Self { session, counters, plans, steps: Vec::with_capacity(counters.len()), text: String::new() }
    }

    /// Prepares the statements of a script and appends them. `variables` are the values before the first transaction;
    /// `record` receives each statement's place and traits, `None` for unknown ones.
    ///
    /// # Errors
    /// The server's, with the place in the script.
    pub fn compile(
        &mut self,
        program: &Program,
        mode: QueryMode,
        variables: &Variables,
        mut record: impl FnMut(usize, Option<&Traits>),
    ) -> Result<(), SqlError> {
        let script = &program.script;
        let mut is_deferred = false;
        for (at, command) in script.commands.iter().enumerate() {
            self.steps.push(match &command.action {
                Action::Sql(sql) => {
                    let prepared = prepare(sql, mode, is_deferred, variables);
                    let (step, traits) = prepared.map_err(|error| script.locate(at, error))?;
                    // An unknown statement may be a utility command, which may create what later ones need.
                    is_deferred |= traits.as_ref().is_none_or(|traits| traits.changes_the_scene);
                    record(program.first_command + at, traits.as_ref());
                    step
                }
                // The branch may never be entered.
                Action::If { .. } => {
                    is_deferred = true;
                    CommandStep::Meta
                }
                _ => CommandStep::Meta,
            });
        }
        Ok(())
    }

    /// Appends the commands of a script that this client does not execute, so that places stay the same.
    pub fn skip(&mut self, program: &Program) {
        self.steps.extend(program.script.commands.iter().map(|_| CommandStep::Meta));
    }

    /// Returns the server's plan sources of the prepared statements.
    pub fn plan_sources(&self) -> impl Iterator<Item = *mut pg_sys::CachedPlanSource> + '_ {
        self.steps.iter().filter_map(|step| match step {
            CommandStep::Prepared(statement) => Some(statement.plan_source()),
            _ => None,
        })
    }

    /// Executes a command's statement, and sets variables for `\gset` and `\aset`.
    ///
    /// # Errors
    /// The server's, and those of `\gset` and `\aset`. An open transaction is rolled back.
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
                        // Texts in the server contain no zero byte.
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
                prepare_deferred(step, statistics)?;
                self.send(place, sql, variables, statistics)
            }
            CommandStep::Meta => Ok(()),
        }
    }
}

/// Prepares a deferred statement before its first execution.
#[cold]
fn prepare_deferred(step: &mut CommandStep, statistics: StatementStats) -> Result<(), SqlError> {
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

/// Prepares a statement, if only to learn its traits. With `is_deferred`, errors are ignored and the statement is prepared at
/// its first execution, as in pgbench since PostgreSQL 16, because earlier commands may create or change what it needs.
/// Otherwise errors are raised at once, so that a run that cannot work ends before it begins.
fn prepare(
    sql: &Sql,
    mode: QueryMode,
    is_deferred: bool,
    variables: &Variables,
) -> Result<(CommandStep, Option<Traits>), SqlError> {
    if mode == QueryMode::Simple {
        // The traits are known only for statements that could be prepared with parameters.
        let traits = sql
            .parameterized(variables)
            .ok()
            .filter(|_| !sql.is_compound())
            .and_then(|p| PreparedStatement::prepare(&p.text, &p.parameters, Log::Nothing).ok())
            // The statement that runs has constants instead of parameters, and so another query id.
            .map(|statement| Traits { query_id: 0, later_query_id: 0, ..statement.traits });
        return Ok((CommandStep::Simple, traits));
    }
    let parameterized = sql.parameterized(variables)?;
    let log = if is_deferred { Log::Nothing } else { Log::Errors };
    let statement = match PreparedStatement::prepare(&parameterized.text, &parameterized.parameters, log) {
        Ok(statement) => Some(statement),
        Err(_) if is_deferred => None,
        Err(error) => return Err(point_at(&parameterized.text, error)),
    };
    let traits = statement.as_ref().map(|statement| statement.traits.clone());
    let step = match (mode, statement) {
        (QueryMode::Extended, _) => {
            CommandStep::Extended(Box::new(Unprepared::new(&parameterized.text, parameterized.parameters)?))
        }
        (_, Some(statement)) if !is_deferred => CommandStep::Prepared(Box::new(statement)),
        _ => CommandStep::Deferred(parameterized),
    };
    Ok((step, traits))
}

/// Adds to an error's detail the line of the statement that its position points at, as psql shows it.
#[cold]
pub fn point_at(text: &str, error: SqlError) -> SqlError {
    let Some(index) = error.position.checked_sub(1) else { return error };
    // The position may be one past the last character.
    let offset = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index as usize);
    let Some(offset) = offset else { return error };
    let mut detail = with_caret(text, offset);
    if let Some(own_detail) = &error.detail {
        detail += "\n";
        detail += own_detail;
    }
    SqlError { detail: Some(detail), ..error }
}

/// The two arms of a duel in one client's session, with all that is switched between their stretches.
pub struct Arms {
    arms: [ArmOfSession; 2],
    /// Whether the arms differ in something that affects plans.
    plan_differently: bool,
}

struct ArmOfSession {
    /// Every parameter that one of the arms sets: name, value, and the role with whose rights it is set.
    settings: Vec<(CString, CString, pg_sys::Oid)>,
    /// The parameters' values as the server shows them in the arm's stretches.
    values: OnceCell<Vec<Option<String>>>,
    hidden: Vec<pg_sys::Oid>,
    results: Results,
}

impl Arms {
    /// Builds a run's arms over the session's current settings; `None` if the run is no duel.
    pub fn of(spec: &RunSpec) -> Result<Option<Self>, SqlError> {
        let Some(duel) = &spec.options.duel else { return Ok(None) };
        let arm = |arm: usize| {
            let settings = with_setters(spec, &duel.settings_of(arm, guc::current)?)?;
            let hidden = duel.arms[arm].hidden.iter().map(|&oid| oid.into()).collect();
            let results = duel.arms[arm].results.unwrap_or(spec.options.results);
            Ok::<_, SqlError>(ArmOfSession { settings, values: OnceCell::new(), hidden, results })
        };
        let arms = [arm(0)?, arm(1)?];
        let concerns_plans = |(name, value, _): &(CString, CString, _)| {
            guc::concerns_plans(name)
                && !arms[1].settings.iter().any(|(other, set, _)| (other, set) == (name, value))
        };
        let plan_differently =
            arms[0].hidden != arms[1].hidden || arms[0].settings.iter().any(concerns_plans);
        if plan_differently {
            plans::watch_nested();
        }
        Ok(Some(Self { arms, plan_differently }))
    }

    /// Drops plans of the other arm that functions, triggers and foreign keys have cached; true if there were any.
    pub fn drop_nested_plans(&self, statements: &ClientStatements) -> bool {
        self.plan_differently && plans::drop_shared(statements.plan_sources())
    }

    /// Switches the session to this arm.
    ///
    /// # Errors
    /// The server's for its parameters.
    pub fn enter(&self, session: &Session, arm: usize) -> Result<(), SqlError> {
        let ArmOfSession { settings, values, hidden, results } = &self.arms[arm];
        plans::hide_indexes(hidden);
        session.set_results(*results);
        for (name, value, setter) in settings {
            session.set_with_rights_of(*setter, name, value)?;
        }
        values.get_or_init(|| self.arms[arm].values_now());
        Ok(())
    }

    /// Returns the parameters that have different values in the arms.
    pub fn differing(&self) -> Vec<CString> {
        let [one, other] = &self.arms;
        let is_other = |(name, value): (&CString, &CString)| {
            !other.settings.iter().any(|(theirs, set, _)| (theirs, set) == (name, value))
        };
        let names = one.settings.iter().filter(|(name, value, _)| is_other((name, value)));
        names.map(|(name, ..)| name.clone()).collect()
    }

    /// Gives a parameter the other arm's value during a stretch of this arm.
    ///
    /// # Errors
    /// The server's.
    pub fn set_as_other(&self, session: &Session, arm: usize, name: &CStr) -> Result<(), SqlError> {
        let mut settings =
            self.arms[1 - arm].settings.iter().filter(|(theirs, ..)| theirs.as_c_str() == name);
        settings.try_for_each(|(name, value, setter)| session.set_with_rights_of(*setter, name, value))
    }

    /// Hides an index besides those that the arm hides.
    pub fn hide_also(&self, arm: usize, index: pg_sys::Oid) {
        let hidden: Vec<pg_sys::Oid> = self.arms[arm].hidden.iter().copied().chain([index]).collect();
        plans::hide_indexes(&hidden);
    }

    /// Checks at the end of a stretch that the arm's parameters still have their values.
    ///
    /// # Errors
    /// 55000 if a script has set one of them: the arm has measured something else.
    pub fn leave(&self, arm: usize) -> Result<(), SqlError> {
        let session_arm = &self.arms[arm];
        let Some(values) = session_arm.values.get() else { return Ok(()) };
        let now = session_arm.values_now();
        let names = session_arm.settings.iter().map(|(name, ..)| name);
        let Some((name, (value, now))) =
            names.zip(values.iter().zip(&now)).find(|(_, (value, now))| value != now)
        else {
            return Ok(());
        };
        let shown = |value: &Option<String>| value.clone().unwrap_or_default();
        let (name, arm) = (name.to_string_lossy(), ARMS[arm]);
        let message = format!("parameter \"{name}\" has lost the value that arm {arm} of the duel gives it");
        Err(SqlError {
            detail: Some(format!("It is '{}' instead of '{}' after a stretch.", shown(now), shown(value))),
            hint: Some("Take SET and set_config of this parameter out of the script.".to_owned()),
            ..SqlError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
        })
    }
}

impl ArmOfSession {
    fn values_now(&self) -> Vec<Option<String>> {
        self.settings.iter().map(|(name, ..)| name.to_str().ok().and_then(guc::current)).collect()
    }
}

/// Adds to each setting of a run the role with whose rights it is set.
///
/// # Errors
/// 42501 for parameters that no caller may set in other roles' sessions.
pub fn with_setters(
    spec: &RunSpec,
    settings: &[(String, String)],
) -> Result<Vec<(CString, CString, pg_sys::Oid)>, SqlError> {
    let own = current_role_oid();
    let with_setter = |(name, value): &(String, String)| -> Result<_, SqlError> {
        let setter = match &spec.caller {
            Some(caller) => transaction(|| setter(name, Some(caller)))?,
            None => own,
        };
        Ok((text(name)?, text(value)?, setter))
    };
    settings.iter().map(with_setter).collect()
}

/// Converts a text for the server.
pub fn text(string: &str) -> Result<CString, SqlError> {
    CString::new(string).map_err(internal)
}

/// Returns an error for a violated assumption of this extension.
pub fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(sqlstate::INTERNAL_ERROR, error.to_string())
}
