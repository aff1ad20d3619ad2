//! Both arms in one session of the run's role, under one snapshot.

use std::ffi::CString;
use std::time::Instant;

use bench_base::error::{SqlError, UserError};
use bench_model::client::Program;
use bench_model::spec::{QueryMode, Results, RunSpec, ScriptSpec};
use bench_questions::answers::{Answer, Kind};
use bench_script::{Action, Sql, Variables};
use pgrx::pg_sys;

use super::comparer::{Call, Class, Clock, Driver, Outcome, Probe, compare_all};
use super::lane::Lane;
use super::request::{Request, SessionAnswer};
use crate::driver::session::{Session, StatementStats, Traits, Unprepared, raw, watch};
use crate::launch::role_session::{answer_as_client, kind};
use crate::run::client::statements::{Arms, ClientStatements, internal, text, with_setters};
use crate::run::client::{check_rights, explain, prepare_session, workload};
use crate::server::background_worker::WorkerKind;
use crate::server::signals::{is_limit, limited, of_statement};
use crate::shm::{CommandCounters, Segment};

/// The kind of worker that the session is.
pub const KIND: WorkerKind = kind(c"pgbench_ext_answers_main", c"pgbench_ext answers");

/// The server's entry into the session.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_answers_main(segment: pg_sys::Datum) {
    answer_as_client(segment, |request: Request, segment| {
        raw::stay_in_transaction(true);
        Ok(execute_all(&request, segment)?)
    });
}

fn execute_all(request: &Request, segment: &Segment) -> Result<SessionAnswer, SqlError> {
    let spec = &request.spec;
    check_rights(spec, 0)?;
    let session = Session::new(Results::Serialize);
    prepare_session(&session, spec)?;
    let arms = Arms::of(spec)?.ok_or_else(|| internal("a comparison without arms"))?;
    let programs = workload(spec, None)?.programs;
    let commands: usize = programs.iter().map(|program| program.script.commands.len()).sum();
    let counters: Vec<CommandCounters> = (0..commands).map(|_| CommandCounters::default()).collect();
    let combinations = request.recall.iter().flat_map(|recall| &recall.combinations);
    let driver = SessionDriver {
        spec,
        arms,
        statements: ClientStatements::new(session, &counters, &[]),
        counters: &counters,
        combinations: combinations
            .map(|settings| with_setters(spec, settings))
            .collect::<Result<Vec<_>, _>>()?,
        combination: 0,
    };
    compare_all(request, segment, driver)
}

fn class_of(sql: &Sql, mode: QueryMode, traits: Option<&Traits>) -> Class {
    match traits {
        _ if sql.is_compound() => Class::Compound,
        Some(traits) if traits.command_type != pg_sys::CmdType::CMD_UTILITY => {
            Class::Query { reads_only: traits.command_type == pg_sys::CmdType::CMD_SELECT }
        }
        Some(traits) if traits.changes_the_scene => Class::Utility,
        Some(_) => Class::TransactionControl,
        None if mode == QueryMode::Simple => Class::Compound,
        // It cannot be prepared yet; utility commands can.
        None => Class::Query { reads_only: false },
    }
}

/// A session that switches between the arms.
struct SessionDriver<'a> {
    spec: &'a RunSpec,
    arms: Arms,
    statements: ClientStatements<'a>,
    counters: &'a [CommandCounters],
    /// For recall, the combinations of arm a's parameters, and the current one.
    combinations: Vec<Vec<(CString, CString, pg_sys::Oid)>>,
    combination: usize,
}

impl Driver for SessionDriver<'_> {
    fn has_own_sessions(&self) -> bool {
        false
    }

    fn compile(
        &mut self,
        program: &Program,
        script: &ScriptSpec,
        variables: &Variables,
        classes: &mut [Class],
    ) -> Result<(), SqlError> {
        self.arms.enter(&self.statements.session, script.arm.unwrap_or_default())?;
        let spec = self.spec;
        let mode = spec.options.query_mode_of(script);
        let compiled = self.statements.compile(program, mode, variables, |place, traits| {
            let at = place - program.first_command;
            if let Action::Sql(sql) = &program.script.commands[at].action {
                classes[at] = class_of(sql, mode, traits);
            }
        });
        compiled.map_err(|error| explain(error, spec, &spec.own_role(), &script.source))
    }

    fn begin(&mut self) -> Result<(), SqlError> {
        let counters = CommandCounters::default();
        let begin = c"BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE";
        let statistics = StatementStats { counters: &counters, plans: None };
        self.statements.session.execute_simple(begin, statistics)
    }

    fn begin_script(&mut self) -> Result<(), SqlError> {
        self.statements.session.begin_subtransaction()
    }

    fn end_script(&mut self) -> Result<(), SqlError> {
        self.statements.session.end_subtransaction(false)
    }

    fn end(&mut self, _: &Clock) -> Result<(), SqlError> {
        raw::stay_in_transaction(false);
        self.statements.session.abort()
    }

    fn execute(&mut self, lane: &mut Lane, call: Call, clock: &mut Clock) -> Outcome<Answer> {
        let Call { arm, at, keeps, probe } = call;
        let session = &self.statements.session;
        self.arms.enter(session, arm)?;
        match probe {
            Some(Probe::Index(_, index)) => self.arms.hide_also(arm, (*index).into()),
            Some(Probe::Parameter(name)) => self.arms.set_as_other(session, arm, &text(name)?)?,
            Some(Probe::IndexScans(_)) => {}
            None => {
                let combination = self.combinations.get(self.combination).filter(|_| arm == 0);
                for (name, value, setter) in combination.into_iter().flatten() {
                    session.set_with_rights_of(*setter, name, value)?;
                }
            }
        }
        self.arms.drop_nested_plans(&self.statements);
        let counters = &self.counters[lane.place(at)];
        let sql = lane.sql(at).filter(|_| probe.is_some());
        let anew = sql.map(|sql| sql.parameterized(&lane.initial)).transpose()?;
        let anew = anew.map(|sql| Unprepared::new(&sql.text, sql.parameters)).transpose()?;
        let Lane { workload, client, .. } = lane;
        let answer = self.observe(keeps, counters, clock, |statements| match anew {
            Some(mut statement) => {
                let statistics = StatementStats { counters, plans: None };
                statements.session.execute_unprepared(&mut statement, &client.variables, statistics)
            }
            None => statements.execute(workload, at.0, at.1, &mut client.variables),
        })?;
        if probe.is_none() && self.combinations.is_empty() {
            self.arms.leave(arm)?;
        }
        Ok(answer)
    }

    fn probes(&self, answers: [&Answer; 2]) -> Vec<Probe> {
        let mut probes = Vec::new();
        for (arm, answer) in answers.into_iter().enumerate() {
            let mut indexes = answer.indexes.clone();
            indexes.sort_unstable();
            indexes.dedup();
            probes.extend(indexes.into_iter().map(|index| Probe::Index(arm, index)));
        }
        let parameters = self.arms.differing();
        probes.extend(parameters.iter().map(|name| Probe::Parameter(name.to_string_lossy().into_owned())));
        probes
    }

    fn other_cause(&self, _: Kind) -> Option<String> {
        None
    }

    fn use_combination(&mut self, combination: usize) {
        self.combination = combination;
    }
}

impl SessionDriver<'_> {
    /// Runs `execute` in a subtransaction and returns its rows. The outer error ends the comparison.
    fn observe(
        &mut self,
        keeps: bool,
        counters: &CommandCounters,
        clock: &mut Clock,
        execute: impl FnOnce(&mut ClientStatements) -> Result<(), SqlError>,
    ) -> Outcome<Answer> {
        self.statements.session.serve_interrupts_of_idle()?;
        // In whole milliseconds, as the timer counts, so that `limited` recognizes the end by the timer.
        let left = clock.left();
        self.statements.session.begin_subtransaction()?;
        let before = counters.rows.get();
        watch::begin();
        let began = Instant::now();
        // Kept through the conversion: errors of the client itself, such as \gset without a row, end it.
        let mut is_of_client = false;
        let result = limited(left, || {
            execute(&mut self.statements).map_err(|error| {
                is_of_client = error.is_of_client;
                UserError::from(error)
            })
        });
        let mut answer = watch::end();
        clock.took = began.elapsed();
        self.statements.session.end_subtransaction(keeps && result.is_ok())?;
        match result {
            Ok(()) => {
                answer.finish(counters.rows.get() - before);
                Ok(Ok(answer))
            }
            Err(error) => {
                clock.is_over |= is_limit(&error);
                let error = SqlError { is_of_client, ..SqlError::from(error) };
                // A cancel without a statement_timeout is for the whole session.
                if error.is_cancel() && of_statement().is_none() { Err(error) } else { Ok(Err(error)) }
            }
        }
    }
}
