//! The comparison of two arms' results: a session of the run's role executes each statement of a workload's scripts in arm a, in
//! arm b and in a again, with the same values and under one snapshot. Writes are rolled back at the end of their script.

use std::ffi::CString;
use std::sync::atomic::AtomicI64;
use std::time::{Duration, Instant};

use bench_base::error::{SqlError, UserError, sqlstate, unpack};
use bench_model::client::{
    Client, ClientStart, ClientWorkload, Consequence, Step, Transaction, TransactionRecorder,
};
use bench_model::spec::{ARMS, QueryMode, Results, RunSpec};
use bench_model::transaction_log::LogRecord;
use bench_questions::answers::{
    Answer, Comparison, Example, Execution, Kind, RecallSample, ShownRow, StatementAnswers, compare, overlap,
};
use bench_script::{Action, Sql, Value, Variables};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use crate::driver::session::{Session, StatementStats, Traits, Unprepared, raw, watch};
use crate::launch::role_session::{answer_as_client, kind};
use crate::run::client::statements::{Arms, ClientStatements, internal, with_setters};
use crate::run::client::{beginning, check_rights, explain, prepare_session, workload};
use crate::server::background_worker::WorkerKind;
use crate::server::signals::{is_limit, limited, of_statement};
use crate::shm::{CommandCounters, Segment};

/// The kind of worker that the session is.
pub const KIND: WorkerKind = kind(c"pgbench_ext_answers_main", c"pgbench_ext answers");

/// The number of differences of one statement whose cause is searched.
const MAX_SEARCHES: u64 = 3;

/// The options of bench.answers and bench.recall.
#[derive(Serialize, Deserialize)]
pub struct AnswerOptions {
    /// Of each statement.
    pub executions: i32,
    pub tolerance: f64,
    pub key: Option<String>,
    /// Of each statement.
    pub examples: i32,
    pub limit_secs: f64,
}

/// The tolerance of bench.answers by default: a relative difference.
pub const TOLERANCE: f64 = 1e-9;

impl AnswerOptions {
    /// The defaults of bench.answers, with this many executions of each statement.
    pub fn of(executions: i32) -> Self {
        Self { executions, tolerance: TOLERANCE, key: None, examples: 3, limit_secs: 60.0 }
    }
}

/// The question to the session.
#[derive(Serialize, Deserialize)]
pub struct Request {
    pub spec: RunSpec,
    pub options: AnswerOptions,
    /// For each script, whether its values must not be shown.
    pub masked: Vec<bool>,
    /// Set for bench.recall, where arm b does without the index.
    pub recall: Option<RecallRequest>,
}

/// The index whose recall is measured, and the settings to try.
#[derive(Serialize, Deserialize)]
pub struct RecallRequest {
    /// The index, and those of its partitions.
    pub indexes: Vec<u32>,
    /// Parameters of arm a; each combination is tried at each execution.
    pub combinations: Vec<Vec<(String, String)>>,
}

/// The session's answer.
#[derive(Serialize, Deserialize)]
pub struct SessionAnswer {
    pub statements: Vec<StatementAnswers>,
    /// The samples of each combination.
    pub samples: Vec<Vec<RecallSample>>,
}

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
    let Request { spec, options, .. } = request;
    check_rights(spec, 0)?;
    let session = Session::new(Results::Serialize);
    prepare_session(&session, spec)?;
    let arms = Arms::of(spec)?.ok_or_else(|| internal("a comparison without arms"))?;
    let is_shared = spec.options.duel.as_ref().is_some_and(|duel| !duel.arms[1].has_own_script());
    let lanes =
        (0..if is_shared { 1 } else { 2 }).map(|arm| Lane::new(spec, segment, arm, options.executions));
    let lanes = lanes.collect::<Result<Vec<Lane>, SqlError>>()?;
    let commands: usize =
        lanes[0].workload.programs.iter().map(|program| program.script.commands.len()).sum();
    let counters: Vec<CommandCounters> = (0..commands).map(|_| CommandCounters::default()).collect();
    let statements = ClientStatements::new(session, &counters, &[]);
    let combinations = request.recall.iter().flat_map(|recall| &recall.combinations);
    let combinations =
        combinations.map(|settings| with_setters(spec, settings)).collect::<Result<Vec<_>, _>>()?;
    let mut comparer = Comparer {
        request,
        samples: vec![Vec::new(); combinations.len()],
        combinations,
        combination: 0,
        took: Duration::ZERO,
        arms,
        statements,
        counters: &counters,
        classes: vec![Class::Meta; commands],
        answers: Vec::new(),
        answer_indexes: vec![None; commands],
        until: Instant::now() + Duration::from_secs_f64(options.limit_secs),
        is_over: false,
    };
    comparer.compile(&lanes[0])?;
    comparer.run(lanes)?;
    Ok(SessionAnswer { statements: comparer.answers, samples: comparer.samples })
}

/// The treatment of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Not a statement.
    Meta,
    /// Executed in both arms and compared.
    Query { reads_only: bool },
    /// Executed once: it may set what later statements need.
    Utility,
    /// BEGIN, COMMIT and so on: ignored, because everything runs in one transaction.
    TransactionControl,
    /// Several statements in one, which may contain transaction control: not executed.
    Compound,
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

/// The execution of an arm's scripts; one lane serves both arms if they have the same scripts.
struct Lane<'a> {
    workload: ClientWorkload<'a>,
    client: Client,
    /// Values before the first transaction, which are parts of identifiers in statements' texts.
    initial: Variables,
    own: Vec<Vec<(bench_script::VariableId, Value)>>,
    step: Step,
    /// The number of transactions begun.
    transactions: u64,
}

impl<'a> Lane<'a> {
    /// Executes each script of an arm `executions` times, all of them once before any is executed again.
    fn new(spec: &RunSpec, segment: &'a Segment, arm: usize, executions: i32) -> Result<Self, SqlError> {
        let mut workload = workload(spec, Some(segment))?;
        workload.is_deck = true;
        let mut scripts = 0;
        for (place, program) in workload.programs.iter_mut().enumerate() {
            program.pauses = None;
            program.weight = u32::from(place % ARMS.len() == arm && program.weight > 0);
            scripts += u64::from(program.weight);
        }
        let start = beginning(spec, 0, &mut workload.symbols);
        let (initial, own) = (start.variables.clone(), start.own.clone());
        let transactions = scripts * u64::from(executions.unsigned_abs());
        let start = ClientStart { turns: None, log: None, skips: false, transactions, ..start };
        let client = Client::new(&workload, start, None, 0);
        let step = client.start(&Recorder::default());
        Ok(Self { workload, client, initial, own, step, transactions: 0 })
    }

    /// Advances to the next statement, and returns its program and command, if there is one.
    fn next(&mut self) -> Result<Option<(usize, usize)>, SqlError> {
        let Self { workload, client, step, transactions, .. } = self;
        let recorder = &mut Recorder::default();
        loop {
            *step = match std::mem::replace(step, Step::Between) {
                Step::Between => {
                    *transactions += 1;
                    client.next(workload, recorder)
                }
                Step::Execute { program, command } => {
                    *step = Step::Execute { program, command };
                    return Ok(Some((program, command)));
                }
                Step::Switch { .. } => client.switched(workload, recorder),
                Step::Connect => client.connected(workload, recorder),
                Step::Wait { .. } => client.due(workload, recorder, true),
                Step::Sleep { .. } => client.slept(workload, recorder, true),
                Step::Abort(error) => client.failed(workload, recorder, *error),
                Step::AbortAtEnd => client.left_open(workload, recorder, Ok(())),
                Step::Retry => client.retry(workload, recorder),
                Step::End(None) => {
                    *step = Step::End(None);
                    return Ok(None);
                }
                Step::End(Some(error)) => return Err(*error),
            };
        }
    }

    /// Advances past the statement with its result. The client sees no open transaction.
    fn executed(&mut self, result: Result<(), SqlError>) {
        let step = self.client.executed(&self.workload, &mut Recorder::default(), result.map(|()| false));
        self.step = step;
    }

    fn sql(&self, (program, command): (usize, usize)) -> Option<&Sql> {
        match &self.workload.programs[program].script.commands[command].action {
            Action::Sql(sql) => Some(sql),
            _ => None,
        }
    }

    fn place(&self, (program, command): (usize, usize)) -> usize {
        self.workload.programs[program].first_command + command
    }
}

/// The execution and comparison of statements in both arms.
struct Comparer<'a> {
    request: &'a Request,
    arms: Arms,
    statements: ClientStatements<'a>,
    counters: &'a [CommandCounters],
    /// For each command.
    classes: Vec<Class>,
    /// For each command, the index of its statement in `answers`.
    answer_indexes: Vec<Option<usize>>,
    answers: Vec<StatementAnswers>,
    until: Instant,
    /// Whether the time limit has been reached.
    is_over: bool,
    /// The duration of the last execution.
    took: Duration,
    /// For recall, the combinations of arm a's parameters, the current one, and the samples of each.
    combinations: Vec<Vec<(CString, CString, pg_sys::Oid)>>,
    combination: usize,
    samples: Vec<Vec<RecallSample>>,
}

/// Program and command of a statement of each arm.
type Pair = [(usize, usize); 2];

impl Comparer<'_> {
    /// Prepares the statements of both arms, as the clients of a duel do.
    fn compile(&mut self, lane: &Lane) -> Result<(), SqlError> {
        let spec = &self.request.spec;
        let mut variables = lane.initial.clone();
        for ((program, own), script) in lane.workload.programs.iter().zip(&lane.own).zip(&spec.scripts) {
            let arm = script.arm.unwrap_or_default();
            self.arms.enter(&self.statements.session, arm)?;
            own.iter().for_each(|(variable, value)| variables.set(*variable, value.clone()));
            let mode = spec.options.query_mode_of(script);
            let commands = &program.script.commands;
            let classes = &mut self.classes[program.first_command..][..commands.len()];
            let compiled = self.statements.compile(program, mode, &variables, |place, traits| {
                let at = place - program.first_command;
                if let Action::Sql(sql) = &commands[at].action {
                    classes[at] = class_of(sql, mode, traits);
                }
            });
            compiled.map_err(|error| explain(error, spec, &spec.own_role(), &script.source))?;
            if arm > 0 {
                continue;
            }
            for (at, command) in commands.iter().enumerate() {
                let cause = match self.classes[program.first_command + at] {
                    Class::Meta | Class::TransactionControl => continue,
                    Class::Query { .. } => None,
                    Class::Utility => Some("a utility command, executed once"),
                    Class::Compound => Some("several statements in one, not executed"),
                };
                self.answer_indexes[program.first_command + at] = Some(self.answers.len());
                self.answers.push(StatementAnswers {
                    workload: script.name.strip_suffix(" [a]").unwrap_or(&script.name).to_owned(),
                    command: at as u32 + 1,
                    statement: command.source.clone(),
                    cause: cause.map(str::to_owned),
                    ..StatementAnswers::default()
                });
            }
        }
        Ok(())
    }

    /// Executes all statements in one transaction, with a subtransaction for each execution of a script.
    fn run(&mut self, mut lanes: Vec<Lane>) -> Result<(), SqlError> {
        let counters = CommandCounters::default();
        let begin = c"BEGIN ISOLATION LEVEL REPEATABLE READ, READ WRITE";
        let statistics = StatementStats { counters: &counters, plans: None };
        self.statements.session.execute_simple(begin, statistics)?;
        let mut transaction = 0;
        while !self.is_over
            && let Some(at_a) = lanes[0].next()?
        {
            if lanes[0].transactions != transaction {
                if transaction > 0 {
                    self.statements.session.end_subtransaction(false)?;
                }
                transaction = lanes[0].transactions;
                self.statements.session.begin_subtransaction()?;
            }
            let at_b = self.partner(&mut lanes, at_a)?;
            let result = self.perform(&mut lanes, at_a, at_b)?;
            // An error in arm a ends the script in both arms, as it ends a client's transaction.
            if let (Some(lane), Some(_)) = (lanes.get_mut(1), at_b) {
                lane.executed(result.clone());
            }
            lanes[0].executed(result);
            self.is_over |= Instant::now() >= self.until;
        }
        let cause = if self.is_over { "limit_secs was over" } else { "no execution came to it" };
        for statement in self.answers.iter_mut().filter(|one| one.executions == 0 && one.cause.is_none()) {
            statement.cause = Some(cause.to_owned());
        }
        raw::stay_in_transaction(false);
        self.statements.session.abort()
    }

    /// Returns arm b's counterpart of a query of arm a: its next query in the same transaction.
    fn partner(&self, lanes: &mut [Lane], at_a: (usize, usize)) -> Result<Option<(usize, usize)>, SqlError> {
        let is_query = |lane: &Lane, at| matches!(self.classes[lane.place(at)], Class::Query { .. });
        if !is_query(&lanes[0], at_a) {
            return Ok(None);
        }
        let [a, b] = lanes else { return Ok(Some((at_a.0 + 1, at_a.1))) };
        loop {
            let Some(at_b) = b.next()? else { return Ok(None) };
            if b.transactions > a.transactions {
                return Ok(None);
            }
            if b.transactions == a.transactions && is_query(b, at_b) {
                return Ok(Some(at_b));
            }
            // Other statements of arm b have no counterpart in arm a.
            b.executed(Ok(()));
        }
    }

    /// Executes a command of arm a and its partner. The inner error ends the script, the outer one the comparison.
    fn perform(
        &mut self,
        lanes: &mut [Lane],
        at_a: (usize, usize),
        at_b: Option<(usize, usize)>,
    ) -> Result<Result<(), SqlError>, SqlError> {
        let place = lanes[0].place(at_a);
        let Some(index) = self.answer_indexes[place] else { return Ok(Ok(())) };
        match (self.classes[place], at_b) {
            (Class::Query { reads_only: true }, Some(at_b)) if self.request.recall.is_some() => {
                self.measure_recall(lanes, [at_a, at_b])
            }
            (Class::Query { reads_only }, Some(at_b)) => self.compare(lanes, [at_a, at_b], reads_only, index),
            (Class::Utility | Class::Query { .. }, _) => {
                let result = self.execute(lanes, 0, at_a, true)?;
                if let Err(error) = &result {
                    let (state, message) = self.shown_error(error, at_a.0);
                    self.answers[index].cause =
                        Some(format!("not comparable: {state} {message}").trim_end().to_owned());
                } else if at_b.is_none() {
                    let cause = "arm b has no statement at this place";
                    self.answers[index].cause.get_or_insert_with(|| cause.to_owned());
                }
                Ok(result.map(drop))
            }
            _ => Ok(Ok(())),
        }
    }

    /// Executes a statement in a, in b and in a again, and keeps the effects of the last execution. `index` is its place in
    /// `answers`.
    fn compare(
        &mut self,
        lanes: &mut [Lane],
        pair: Pair,
        reads_only: bool,
        index: usize,
    ) -> Result<Result<(), SqlError>, SqlError> {
        let values: Vec<Variables> = lanes.iter().map(|lane| lane.client.variables.clone()).collect();
        let reset = |lanes: &mut [Lane]| {
            for (lane, values) in lanes.iter_mut().zip(&values) {
                lane.client.variables = values.clone();
            }
        };
        let a = self.execute(lanes, 0, pair[0], false)?;
        if lanes.len() == 1 {
            reset(lanes);
        }
        let b = self.execute(lanes, 1, pair[1], false)?;
        let variables_of_b = lanes.last().map(|lane| lane.client.variables.clone());
        let tolerance = self.request.options.tolerance;
        let compared = match (&a, &b) {
            (Ok(a), Ok(b)) => Some(compare(a, b, tolerance, self.request.options.key.as_deref())),
            _ => None,
        };
        reset(lanes);
        let again = self.execute(lanes, 0, pair[0], true)?;
        if let ([_, lane], Some(variables)) = (&mut *lanes, variables_of_b) {
            lane.client.variables = variables;
        }
        if self.is_over {
            return Ok(again.map(drop));
        }
        let is_retryable =
            |result: &Result<Answer, SqlError>| result.as_ref().is_err_and(SqlError::is_retryable);
        let is_stable = match (&a, &again) {
            (Ok(a), Ok(again)) => is_same(&compare(a, again, tolerance, None)),
            (Err(a), Err(again)) => a.sqlstate == again.sqlstate,
            _ => false,
        };
        let execution = match compared {
            _ if !is_stable || is_retryable(&a) || is_retryable(&b) => Execution::Unstable,
            Some(comparison) => Execution::Compared(comparison),
            None => Execution::Failed(
                [(&a, pair[0]), (&b, pair[1])]
                    .map(|(result, at)| result.as_ref().err().map(|error| self.shown_error(error, at.0))),
            ),
        };
        let cause = match (&execution, &a, &b) {
            (Execution::Compared(Comparison::Differs(_)), Ok(a), Ok(b))
                if a.is_arbitrary() || b.is_arbitrary() =>
            {
                Some(Cause::Choice)
            }
            (Execution::Compared(Comparison::Differs(_)), Ok(a), Ok(b)) if reads_only => {
                self.find_cause(lanes, &values, pair, [a, b], index)?
            }
            _ => None,
        };
        let shown = self.shown_values(&values[0], &lanes[0], pair[0]);
        let masked = self.request.masked[pair[0].0];
        let statement = &mut self.answers[index];
        if let Some(difference) = statement.add(execution) {
            let kind = statement.kind.get_or_insert(difference.kind);
            match cause {
                Some(Cause::Index(arm, index)) => statement.wrong_index = Some((arm, index)),
                Some(Cause::Parameter(name, is_rendering)) => {
                    if is_rendering {
                        *kind = Kind::Rendering;
                    }
                    statement.cause = Some(format!("parameter {name}"));
                }
                Some(Cause::Choice) => {
                    statement.cause =
                        Some("LIMIT or DISTINCT ON without an ORDER BY that decides".to_owned());
                    statement.advice = Some("Add columns to ORDER BY until it decides.".to_owned());
                }
                None => {}
            }
            if statement.examples.len() < self.request.options.examples.unsigned_abs() as usize {
                let are_types = difference.kind == Kind::Type;
                let mask = |row: ShownRow| if masked && !are_types { mask(row) } else { row };
                let rows = difference.rows.map(|row| row.map(mask));
                statement.examples.push(Example {
                    values: if masked { mask(shown) } else { shown },
                    rows,
                    are_types,
                });
            }
        }
        Ok(again.map(drop))
    }

    /// Returns the values of a statement's variables, each cut at 200 characters.
    fn shown_values(&self, values: &Variables, lane: &Lane, at: (usize, usize)) -> ShownRow {
        let mut shown = ShownRow::new();
        for variable in lane.sql(at).into_iter().flat_map(Sql::parameters) {
            let name = lane.workload.symbols.name(variable);
            if !shown.iter().any(|(known, _)| known == name) {
                let value = values.get(variable).filter(|value| !matches!(value, Value::Null));
                shown.push((name.to_owned(), value.map(|value| value.to_text().chars().take(200).collect())));
            }
        }
        shown
    }

    /// Returns an error's SQLSTATE and message; masked without the message, which may contain values.
    fn shown_error(&self, error: &SqlError, program: usize) -> (String, String) {
        let message = if self.request.masked[program] { String::new() } else { error.message.clone() };
        (unpack(error.sqlstate), message)
    }

    /// Executes a statement in an arm, in a subtransaction.
    fn execute(
        &mut self,
        lanes: &mut [Lane],
        arm: usize,
        at: (usize, usize),
        keep: bool,
    ) -> Result<Result<Answer, SqlError>, SqlError> {
        self.arms.enter(&self.statements.session, arm)?;
        for (name, value, setter) in
            self.combinations.get(self.combination).filter(|_| arm == 0).into_iter().flatten()
        {
            self.statements.session.set_with_rights_of(*setter, name, value)?;
        }
        self.arms.drop_nested_plans(&self.statements);
        let lane = arm.min(lanes.len() - 1);
        let Lane { workload, client, .. } = &mut lanes[lane];
        let place = workload.programs[at.0].first_command + at.1;
        let counters = &self.counters[place];
        let answer = self.observe(keep, counters, |statements| {
            statements.execute(workload, at.0, at.1, &mut client.variables)
        })?;
        if self.combinations.is_empty() {
            self.arms.leave(arm)?;
        }
        Ok(answer)
    }

    /// Runs `execute` in a subtransaction and returns its rows. The outer error ends the comparison.
    fn observe(
        &mut self,
        keep: bool,
        counters: &CommandCounters,
        execute: impl FnOnce(&mut ClientStatements) -> Result<(), SqlError>,
    ) -> Result<Result<Answer, SqlError>, SqlError> {
        self.statements.session.serve_interrupts_of_idle()?;
        // Whole milliseconds, as the timer counts, so that `limited` recognizes the end by the timer.
        let left_ms = self.until.saturating_duration_since(Instant::now()).as_millis().max(1);
        let left = Duration::from_millis(u64::try_from(left_ms).unwrap_or(u64::MAX));
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
        self.took = began.elapsed();
        self.statements.session.end_subtransaction(keep && result.is_ok())?;
        match result {
            Ok(()) => {
                answer.finish(counters.rows.get() - before);
                Ok(Ok(answer))
            }
            Err(error) => {
                self.is_over |= is_limit(&error);
                let error = SqlError { is_of_client, ..SqlError::from(error) };
                // A cancel without a statement_timeout is for the whole session.
                if error.is_cancel() && of_statement().is_none() { Err(error) } else { Ok(Err(error)) }
            }
        }
    }
}

// Recall: arm b returns the exact answer.

impl Comparer<'_> {
    /// Executes a query without the index, and then with each combination of parameters.
    fn measure_recall(&mut self, lanes: &mut [Lane], pair: Pair) -> Result<Result<(), SqlError>, SqlError> {
        let Some(recall) = &self.request.recall else { return Ok(Ok(())) };
        let values = lanes[0].client.variables.clone();
        let exact = match self.execute(lanes, 1, pair[1], false)? {
            Ok(exact) => exact,
            Err(error) => return Ok(Err(error)),
        };
        let key = self.request.options.key.as_deref();
        if let Some(key) = key.filter(|key| !exact.columns.iter().any(|column| column.name == *key)) {
            let message = format!("the result has no column \"{key}\"");
            return Err(SqlError::new(sqlstate::UNDEFINED_COLUMN, message));
        }
        let exact_ms = self.took.as_secs_f64() * 1e3;
        for combination in 0..self.combinations.len() {
            self.combination = combination;
            lanes[0].client.variables = values.clone();
            let is_last = combination + 1 == self.combinations.len();
            let answer = match self.execute(lanes, 0, pair[0], is_last)? {
                Ok(answer) => answer,
                Err(error) => return Ok(Err(error)),
            };
            let is_used = answer.indexes.iter().any(|index| recall.indexes.contains(index));
            if let Some(overlapping) = overlap(&exact, &answer, key).filter(|_| is_used) {
                self.samples[combination].push(RecallSample {
                    found: overlapping,
                    exact: exact.processed,
                    returned: answer.processed,
                    index_ms: self.took.as_secs_f64() * 1e3,
                    exact_ms,
                });
            }
        }
        Ok(Ok(()))
    }
}

fn is_same(comparison: &Comparison) -> bool {
    matches!(comparison, Comparison::Same | Comparison::Tied | Comparison::Close)
}

/// Replaces values that must not be shown.
fn mask(row: ShownRow) -> ShownRow {
    row.into_iter().map(|(name, value)| (name, value.map(|_| "(masked)".to_owned()))).collect()
}

/// The cause of a difference between answers.
enum Cause {
    /// The statement lets the server choose the rows.
    Choice,
    /// An arm, and an index without which it answers differently.
    Index(usize, u32),
    /// A parameter with whose value of arm a arm b answers like arm a, and whether it is one of [`RENDERING`].
    Parameter(String, bool),
}

/// Parameters that decide how values are written.
const RENDERING: [&str; 6] =
    ["timezone", "datestyle", "intervalstyle", "extra_float_digits", "bytea_output", "lc_monetary"];

impl Comparer<'_> {
    /// Searches the cause of a difference: executes a statement without each index that an arm used, and in arm b with arm a's
    /// value of each parameter.
    fn find_cause(
        &mut self,
        lanes: &[Lane],
        values: &[Variables],
        pair: Pair,
        answers: [&Answer; 2],
        index: usize,
    ) -> Result<Option<Cause>, SqlError> {
        let statement = &self.answers[index];
        if statement.differ >= MAX_SEARCHES || statement.cause.is_some() || statement.wrong_index.is_some() {
            return Ok(None);
        }
        let tolerance = self.request.options.tolerance;
        for (arm, own) in answers.into_iter().enumerate() {
            let mut indexes = own.indexes.clone();
            indexes.sort_unstable();
            indexes.dedup();
            for index in indexes {
                self.arms.enter(&self.statements.session, arm)?;
                self.arms.hide_also(arm, index.into());
                let without = self.execute_anew(lanes, values, arm, pair[arm])?;
                if without.is_ok_and(|without| !is_same(&compare(own, &without, tolerance, None))) {
                    return Ok(Some(Cause::Index(arm, index)));
                }
            }
        }
        let [a, _] = answers;
        for name in self.arms.differing() {
            self.arms.enter(&self.statements.session, 1)?;
            self.arms.set_as_other(&self.statements.session, 1, &name)?;
            let alike = self.execute_anew(lanes, values, 1, pair[1])?;
            if alike.is_ok_and(|alike| is_same(&compare(a, &alike, tolerance, None))) {
                let name = name.to_string_lossy().into_owned();
                let is_rendering = RENDERING.contains(&name.to_ascii_lowercase().as_str());
                return Ok(Some(Cause::Parameter(name, is_rendering)));
            }
        }
        Ok(None)
    }

    /// Executes a statement under the current settings, with a new plan.
    fn execute_anew(
        &mut self,
        lanes: &[Lane],
        values: &[Variables],
        arm: usize,
        at: (usize, usize),
    ) -> Result<Result<Answer, SqlError>, SqlError> {
        let lane = arm.min(lanes.len() - 1);
        let (lane, values) = (&lanes[lane], &values[lane]);
        let Some(sql) = lane.sql(at) else { return Err(internal("no statement to execute anew")) };
        let parameterized = sql.parameterized(&lane.initial)?;
        let mut statement = Unprepared::new(&parameterized.text, parameterized.parameters)?;
        let counters = CommandCounters::default();
        self.arms.drop_nested_plans(&self.statements);
        self.observe(false, &counters, |statements| {
            let statistics = StatementStats { counters: &counters, plans: None };
            statements.session.execute_unprepared(&mut statement, values, statistics)
        })
    }
}

/// A recorder that counts nothing and whose clock stands still, so that clients neither wait nor end by time.
#[derive(Default)]
struct Recorder {
    unused: AtomicI64,
}

impl TransactionRecorder for Recorder {
    fn now_ns(&mut self) -> i64 {
        0
    }
    fn end_clock(&mut self) -> i64 {
        0
    }
    fn pass(&mut self) {}
    fn end_ns(&self) -> i64 {
        i64::MAX
    }
    fn limit_ns(&self) -> i64 {
        i64::MAX
    }
    fn arrivals(&self) -> &AtomicI64 {
        &self.unused
    }
    fn stretch_ns(&self) -> &AtomicI64 {
        &self.unused
    }
    fn ramp_end_ns(&self) -> i64 {
        0
    }
    fn is_stopped(&self) -> bool {
        false
    }
    fn is_measured(&mut self, _: i64) -> bool {
        true
    }
    fn record(&mut self, _: &Transaction) -> bool {
        true
    }
    fn skip(&mut self, _: usize, _: i64) -> bool {
        true
    }
    fn log(&mut self, _: &LogRecord) {}
    fn lap(&mut self, _: usize, _: u64) {}
    fn command_failed(&mut self, _: usize, _: bool) {}
    fn performed(&mut self, _: usize, _: bool) {}
    fn error(&mut self, _: &SqlError, _: Consequence) {}
    fn debug(&mut self, _: &str) {}
}
