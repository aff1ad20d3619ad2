//! The statements of a client's scripts: prepared once, then executed one at a time.

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

// The two arms of a duel in one client's session: what is switched between their stretches.

/// Both arms.
pub struct Arms {
    arms: [ArmOfSession; 2],
    /// Whether the planner may plan the same statement otherwise in the other arm.
    plan_differently: bool,
}

struct ArmOfSession {
    /// Every parameter that one of the arms sets, with the role with whose rights it is set.
    settings: Vec<(CString, CString, pg_sys::Oid)>,
    /// What the server says of these parameters in the arm's stretches.
    values: OnceCell<Vec<Option<String>>>,
    hidden: Vec<pg_sys::Oid>,
    results: Results,
}

impl Arms {
    /// Those of a run, over the settings that the session has now; `None` where the run is no duel.
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

    /// Drops the plans that functions, triggers and foreign keys have kept of the other arm, if there are any; whether there were.
    pub fn drop_nested_plans(&self, statements: &ClientStatements) -> bool {
        self.plan_differently && plans::drop_shared(statements.plan_sources())
    }

    /// What the session does from here on is of this arm.
    ///
    /// # Errors
    /// The server's, where it does not take a parameter.
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

    /// The parameters that have different values in the arms.
    pub fn differing(&self) -> Vec<CString> {
        let [one, other] = &self.arms;
        let is_other = |(name, value): (&CString, &CString)| {
            !other.settings.iter().any(|(theirs, set, _)| (theirs, set) == (name, value))
        };
        let names = one.settings.iter().filter(|(name, value, _)| is_other((name, value)));
        names.map(|(name, ..)| name.clone()).collect()
    }

    /// Gives a parameter the value of the other arm, in the stretch of this one.
    ///
    /// # Errors
    /// The server's.
    pub fn set_as_other(&self, session: &Session, arm: usize, name: &CStr) -> Result<(), SqlError> {
        let mut settings =
            self.arms[1 - arm].settings.iter().filter(|(theirs, ..)| theirs.as_c_str() == name);
        settings.try_for_each(|(name, value, setter)| session.set_with_rights_of(*setter, name, value))
    }

    /// Hides an index beside those that the arm does without.
    pub fn hide_also(&self, arm: usize, index: pg_sys::Oid) {
        let hidden: Vec<pg_sys::Oid> = self.arms[arm].hidden.iter().copied().chain([index]).collect();
        plans::hide_indexes(&hidden);
    }

    /// Looks at the parameters where a stretch of this arm ends.
    ///
    /// # Errors
    /// 55000 where a script has set one of them: the arm has measured something else.
    pub fn leave(&self, arm: usize) -> Result<(), SqlError> {
        let of_arm = &self.arms[arm];
        let Some(values) = of_arm.values.get() else { return Ok(()) };
        let now = of_arm.values_now();
        let names = of_arm.settings.iter().map(|(name, ..)| name);
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

/// Settings of a run, each with the role with whose rights it is set.
///
/// # Errors
/// 42501 for what no caller sets in other roles' sessions.
pub fn with_setters(
    spec: &RunSpec,
    settings: &[(String, String)],
) -> Result<Vec<(CString, CString, pg_sys::Oid)>, SqlError> {
    let own = current_role_oid();
    let found = |(name, value): &(String, String)| -> Result<_, SqlError> {
        let setter = match &spec.caller {
            Some(caller) => transaction(|| setter(name, Some(caller)))?,
            None => own,
        };
        Ok((text(name)?, text(value)?, setter))
    };
    settings.iter().map(found).collect()
}

/// A text for the server.
pub fn text(string: &str) -> Result<CString, SqlError> {
    CString::new(string).map_err(internal)
}

/// An error in what this project assumes of itself.
pub fn internal(error: impl std::fmt::Display) -> SqlError {
    SqlError::new(sqlstate::INTERNAL_ERROR, error.to_string())
}
