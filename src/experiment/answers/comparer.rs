//! The comparison of two arms' results: each statement of a workload's scripts is executed in arm a, in arm b and in a again, with
//! the same values and in one transaction of each session. Writes are rolled back at the end of their script.

use std::time::{Duration, Instant};

use bench_base::error::{SqlError, sqlstate, unpack};
use bench_model::client::Program;
use bench_model::spec::{ARMS, ScriptSpec};
use bench_questions::answers::{
    Answer, Comparison, Example, Execution, Kind, RecallSample, ShownRow, StatementAnswers, compare,
    other_collations, overlap, reads_clock,
};
use bench_script::{Sql, Value, Variables};

use super::lane::Lane;
use super::request::{Request, SessionAnswer};
use crate::shm::Segment;

/// The number of differences of one statement whose cause is searched.
const MAX_SEARCHES: u64 = 3;

/// The treatment of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Not a statement.
    Meta,
    /// Executed in both arms and compared.
    Query { reads_only: bool },
    /// Executed once in each session: it may set what later statements need.
    Utility,
    /// BEGIN, COMMIT and so on: ignored, because everything runs in one transaction.
    TransactionControl,
    /// Several statements in one, which may contain transaction control: not executed.
    Compound,
}

/// Program and command of a statement.
pub type Place = (usize, usize);

/// Places of a statement of each arm.
type Pair = [Place; 2];

/// A statement's result, or its error; the outer error ends the comparison.
pub type Outcome<T> = Result<Result<T, SqlError>, SqlError>;

/// A change under which a statement is executed again to find the cause of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// An arm without an index.
    Index(usize, u32),
    /// An arm without index scans.
    IndexScans(usize),
    /// Arm b with arm a's value of a parameter.
    Parameter(String),
}

impl Probe {
    fn arm(&self) -> usize {
        match self {
            Self::Index(arm, _) | Self::IndexScans(arm) => *arm,
            Self::Parameter(_) => 1,
        }
    }
}

/// An execution of a statement in an arm.
#[derive(Clone, Copy, Debug)]
pub struct Call<'p> {
    pub arm: usize,
    pub at: Place,
    /// Whether its effects last until the end of the script.
    pub keeps: bool,
    pub probe: Option<&'p Probe>,
}

/// Parameters that decide how values are written.
pub const RENDERING: [&str; 6] =
    ["TimeZone", "DateStyle", "IntervalStyle", "extra_float_digits", "bytea_output", "lc_monetary"];

/// The time of a comparison.
pub struct Clock {
    until: Instant,
    /// The limit has been reached.
    pub is_over: bool,
    /// The duration of the last execution.
    pub took: Duration,
}

impl Clock {
    /// Starts a comparison with this limit.
    pub fn new(limit_secs: f64) -> Self {
        let until = Instant::now() + Duration::from_secs_f64(limit_secs);
        Self { until, is_over: false, took: Duration::ZERO }
    }

    /// Returns whether the shortest time that can be limited is left, or none.
    pub fn is_past(&self) -> bool {
        self.left() <= Duration::from_millis(1)
    }

    /// Returns the time that is left, in whole milliseconds and at least one.
    pub fn left(&self) -> Duration {
        let left_ms = self.until.saturating_duration_since(Instant::now()).as_millis().max(1);
        Duration::from_millis(u64::try_from(left_ms).unwrap_or(u64::MAX))
    }
}

/// Executes statements of both arms.
pub trait Driver {
    /// Whether each arm has a session of its own, which does not see the other's writes.
    fn has_own_sessions(&self) -> bool;

    /// Classifies the commands of a script, given the variables' initial values.
    fn compile(
        &mut self,
        program: &Program,
        script: &ScriptSpec,
        variables: &Variables,
        classes: &mut [Class],
    ) -> Result<(), SqlError>;

    /// Begins the transaction.
    fn begin(&mut self) -> Result<(), SqlError>;

    /// Begins a subtransaction, in which a script is executed.
    fn begin_script(&mut self) -> Result<(), SqlError>;

    /// Rolls a script's subtransaction back.
    fn end_script(&mut self) -> Result<(), SqlError>;

    /// Ends the transaction.
    fn end(&mut self, clock: &Clock) -> Result<(), SqlError>;

    /// Executes a statement with a lane's variables, in a subtransaction; under a probe's change with a new plan.
    fn execute(&mut self, lane: &mut Lane, call: Call, clock: &mut Clock) -> Outcome<Answer>;

    /// Returns what may explain a difference between two answers, in the order of attempts.
    fn probes(&self, answers: [&Answer; 2]) -> Vec<Probe>;

    /// Returns what else differs between the arms' servers, for a difference in this kind that no probe explains.
    fn other_cause(&self, kind: Kind) -> Option<String>;

    /// Sets arm a's parameters, for recall.
    fn use_combination(&mut self, combination: usize);
}

/// The execution and comparison of statements in both arms.
pub struct Comparer<'a, D> {
    request: &'a Request,
    driver: D,
    clock: Clock,
    /// For each command.
    classes: Vec<Class>,
    /// For each command, the index of its statement in `answers`.
    answer_indexes: Vec<Option<usize>>,
    answers: Vec<StatementAnswers>,
    /// For recall, the samples of each combination of parameters.
    samples: Vec<Vec<RecallSample>>,
}

/// Executes and compares a workload's statements.
///
/// # Errors
/// The server's; those of statements are answers, except of the client itself, such as `\gset` without a row.
pub fn compare_all(
    request: &Request,
    segment: &Segment,
    driver: impl Driver,
) -> Result<SessionAnswer, SqlError> {
    let Request { spec, options, recall, .. } = request;
    // One lane serves both arms if they have the same scripts.
    let is_shared = spec.options.duel.as_ref().is_some_and(|duel| !duel.arms[1].has_own_script());
    let arms = if is_shared { 1 } else { ARMS.len() };
    let lanes = (0..arms).map(|arm| Lane::new(spec, segment, arm, options.executions));
    let lanes = lanes.collect::<Result<Vec<Lane>, SqlError>>()?;
    let commands = lanes[0].commands();
    let mut comparer = Comparer {
        request,
        driver,
        clock: Clock::new(options.limit_secs),
        classes: vec![Class::Meta; commands],
        answer_indexes: vec![None; commands],
        answers: Vec::new(),
        samples: vec![Vec::new(); recall.as_ref().map_or(0, |recall| recall.combinations.len())],
    };
    comparer.compile(&lanes[0])?;
    comparer.run(lanes)?;
    Ok(SessionAnswer { statements: comparer.answers, samples: comparer.samples })
}

impl<D: Driver> Comparer<'_, D> {
    /// Prepares the statements of both arms, as the clients of a duel do.
    fn compile(&mut self, lane: &Lane) -> Result<(), SqlError> {
        let spec = &self.request.spec;
        let mut variables = lane.initial.clone();
        for ((program, own), script) in lane.workload.programs.iter().zip(&lane.own).zip(&spec.scripts) {
            own.iter().for_each(|(variable, value)| variables.set(*variable, value.clone()));
            let classes = &mut self.classes[program.first_command..][..program.script.commands.len()];
            self.driver.compile(program, script, &variables, classes)?;
            if script.arm != Some(0) {
                continue;
            }
            for (at, command) in program.script.commands.iter().enumerate() {
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
        self.driver.begin()?;
        let mut transaction = 0;
        while !self.clock.is_over
            && let Some(at_a) = lanes[0].next()?
        {
            if lanes[0].transactions != transaction {
                if transaction > 0 {
                    self.driver.end_script()?;
                }
                transaction = lanes[0].transactions;
                self.driver.begin_script()?;
            }
            let at_b = self.partner(&mut lanes, at_a)?;
            let result = self.perform(&mut lanes, at_a, at_b)?;
            // An error in arm a ends the script in both arms, as it ends a client's transaction.
            if let (Some(lane), Some(_)) = (lanes.get_mut(1), at_b) {
                lane.executed(result.clone());
            }
            lanes[0].executed(result);
            self.clock.is_over |= self.clock.is_past();
        }
        let cause = if self.clock.is_over { "limit_secs was over" } else { "no execution came to it" };
        for statement in self.answers.iter_mut().filter(|one| one.executions == 0 && one.cause.is_none()) {
            statement.cause = Some(cause.to_owned());
        }
        self.driver.end(&self.clock)
    }

    /// Returns arm b's counterpart of a query of arm a: its next query in the same transaction.
    fn partner(&mut self, lanes: &mut [Lane], at_a: Place) -> Result<Option<Place>, SqlError> {
        if !matches!(self.class(&lanes[0], at_a), Class::Query { .. }) {
            return Ok(None);
        }
        let [a, b] = lanes else { return Ok(Some((at_a.0 + 1, at_a.1))) };
        loop {
            let Some(at_b) = b.next()? else { return Ok(None) };
            if b.transactions > a.transactions {
                return Ok(None);
            }
            let class = self.class(b, at_b);
            if b.transactions == a.transactions && matches!(class, Class::Query { .. }) {
                return Ok(Some(at_b));
            }
            // Other statements of arm b have no counterpart in arm a.
            if class == Class::Utility && self.driver.has_own_sessions() {
                let call = Call { arm: 1, at: at_b, keeps: true, probe: None };
                self.driver.execute(b, call, &mut self.clock)?.ok();
            }
            b.executed(Ok(()));
        }
    }

    fn class(&self, lane: &Lane, at: Place) -> Class {
        self.classes[lane.place(at)]
    }

    /// Executes a command of arm a and its partner. The inner error ends the script, the outer one the comparison.
    fn perform(&mut self, lanes: &mut [Lane], at_a: Place, at_b: Option<Place>) -> Outcome<()> {
        let place = lanes[0].place(at_a);
        let Some(index) = self.answer_indexes[place] else { return Ok(Ok(())) };
        match (self.classes[place], at_b) {
            (Class::Query { reads_only: true }, Some(at_b)) if self.request.recall.is_some() => {
                self.measure_recall(lanes, [at_a, at_b])
            }
            (Class::Query { reads_only }, Some(at_b)) => self.compare(lanes, [at_a, at_b], reads_only, index),
            (class @ (Class::Utility | Class::Query { .. }), _) => {
                let result = self.execute(lanes, 0, at_a, true)?;
                if class == Class::Utility && lanes.len() == 1 && self.driver.has_own_sessions() {
                    self.execute(lanes, 1, (at_a.0 + 1, at_a.1), true)?.ok();
                }
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

    /// Executes a statement in a, in b and in a again, and keeps the effects of each session's last execution. `index` is its place
    /// in `answers`.
    fn compare(&mut self, lanes: &mut [Lane], pair: Pair, reads_only: bool, index: usize) -> Outcome<()> {
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
        let b = self.execute(lanes, 1, pair[1], self.driver.has_own_sessions())?;
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
        if self.clock.is_over {
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
            Some(Comparison::Differs(_))
                if self.driver.has_own_sessions() && reads_clock(&self.answers[index].statement) =>
            {
                Execution::Unstable
            }
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
            (Execution::Compared(Comparison::Differs(difference)), Ok(a), Ok(b)) if reads_only => {
                self.find_cause(lanes, &values, pair, [a, b], (index, difference.kind))?
            }
            _ => None,
        };
        self.count(execution, cause, (&*lanes, &values), pair, index);
        Ok(again.map(drop))
    }

    /// Adds an execution to a statement's answers.
    fn count(
        &mut self,
        execution: Execution,
        cause: Option<Cause>,
        (lanes, values): (&[Lane], &[Variables]),
        pair: Pair,
        index: usize,
    ) {
        let shown = shown_values(&values[0], &lanes[0], pair[0]);
        let masked = self.request.masked[pair[0].0];
        let statement = &mut self.answers[index];
        let Some(difference) = statement.add(execution) else { return };
        let kind = statement.kind.get_or_insert(difference.kind);
        match cause {
            Some(Cause::Probe(Probe::Index(arm, index))) => statement.wrong_index = Some((arm, index)),
            Some(Cause::Probe(Probe::IndexScans(arm))) => {
                statement.cause = Some(format!("without index scans, arm {} answers differently", ARMS[arm]));
                statement.advice = Some("Check the table's indexes with amcheck, then REINDEX.".to_owned());
            }
            Some(Cause::Probe(Probe::Parameter(name))) => {
                if RENDERING.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
                    *kind = Kind::Rendering;
                }
                statement.cause = Some(format!("parameter {name}"));
            }
            Some(Cause::Choice) => {
                statement.cause = Some("LIMIT or DISTINCT ON without an ORDER BY that decides".to_owned());
                statement.advice = Some("Add columns to ORDER BY until it decides.".to_owned());
            }
            Some(Cause::Others(text)) => statement.cause = Some(text),
            None => {}
        }
        if statement.examples.len() < self.request.options.examples.unsigned_abs() as usize {
            let are_types = difference.kind == Kind::Type;
            let mask = |row: ShownRow| if masked && !are_types { mask(row) } else { row };
            let rows = difference.rows.map(|row| row.map(mask));
            let values = if masked { self::mask(shown) } else { shown };
            statement.examples.push(Example { values, rows, are_types });
        }
    }

    /// Returns an error's SQLSTATE and message; masked without the message, which may contain values.
    fn shown_error(&self, error: &SqlError, program: usize) -> (String, String) {
        let message = if self.request.masked[program] { String::new() } else { error.message.clone() };
        (unpack(error.sqlstate), message)
    }

    fn execute(&mut self, lanes: &mut [Lane], arm: usize, at: Place, keeps: bool) -> Outcome<Answer> {
        self.call(lanes, Call { arm, at, keeps, probe: None })
    }

    fn call(&mut self, lanes: &mut [Lane], call: Call) -> Outcome<Answer> {
        if self.clock.is_over {
            return Ok(Err(SqlError::new(sqlstate::QUERY_CANCELED, "limit_secs was over")));
        }
        let lane = call.arm.min(lanes.len() - 1);
        self.driver.execute(&mut lanes[lane], call, &mut self.clock)
    }

    /// Searches the cause of a difference of the statement with this index: executes it under each of the driver's probes. An arm
    /// that answers differently without an index has a wrong one; a parameter with whose value of arm a arm b answers like arm a
    /// explains the difference.
    fn find_cause(
        &mut self,
        lanes: &mut [Lane],
        values: &[Variables],
        pair: Pair,
        answers: [&Answer; 2],
        (index, kind): (usize, Kind),
    ) -> Result<Option<Cause>, SqlError> {
        let statement = &self.answers[index];
        if statement.differ >= MAX_SEARCHES || statement.cause.is_some() || statement.wrong_index.is_some() {
            return Ok(None);
        }
        let tolerance = self.request.options.tolerance;
        for probe in self.driver.probes(answers) {
            let arm = probe.arm();
            let lane = arm.min(lanes.len() - 1);
            let is_parameter = matches!(probe, Probe::Parameter(_));
            let after = std::mem::replace(&mut lanes[lane].client.variables, values[lane].clone());
            let call = Call { arm, at: pair[arm], keeps: false, probe: Some(&probe) };
            let changed = self.call(lanes, call)?;
            lanes[lane].client.variables = after;
            let reference = answers[if is_parameter { 0 } else { arm }];
            let is_alike = |changed: &Answer| is_same(&compare(reference, changed, tolerance, None));
            if changed.is_ok_and(|changed| is_alike(&changed) == is_parameter) {
                return Ok(Some(Cause::Probe(probe)));
            }
        }
        // Other statements need no other cause.
        let other = match lanes {
            [a, b] => {
                let text =
                    |lane: &Lane, at| lane.sql(at).map(|sql| sql.parameterized(&lane.initial)).transpose();
                let texts = text(a, pair[0])?.zip(text(b, pair[1])?);
                let collations = texts.and_then(|(a, b)| other_collations(&a.text, &b.text));
                collations.map(|[a, b]| format!("collation {a} in arm a, {b} in arm b"))
            }
            _ => self.driver.other_cause(kind),
        };
        Ok(other.map(Cause::Others))
    }

    /// Executes a query without the index, which returns the exact answer, and then with each combination of parameters.
    fn measure_recall(&mut self, lanes: &mut [Lane], pair: Pair) -> Outcome<()> {
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
        let exact_ms = self.clock.took.as_secs_f64() * 1e3;
        for combination in 0..self.samples.len() {
            self.driver.use_combination(combination);
            lanes[0].client.variables = values.clone();
            let is_last = combination + 1 == self.samples.len();
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
                    index_ms: self.clock.took.as_secs_f64() * 1e3,
                    exact_ms,
                });
            }
        }
        Ok(Ok(()))
    }
}

/// The cause of a difference between answers.
enum Cause {
    /// The statement lets the server choose the rows.
    Choice,
    /// The change that showed it.
    Probe(Probe),
    /// What else distinguishes the statements or the servers.
    Others(String),
}

fn is_same(comparison: &Comparison) -> bool {
    matches!(comparison, Comparison::Same | Comparison::Tied | Comparison::Close)
}

/// Replaces values that must not be shown.
fn mask(row: ShownRow) -> ShownRow {
    row.into_iter().map(|(name, value)| (name, value.map(|_| "(masked)".to_owned()))).collect()
}

/// Returns the values of a statement's variables, each cut at 200 characters.
fn shown_values(values: &Variables, lane: &Lane, at: Place) -> ShownRow {
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
