//! The control flow of an arm's scripts, without their statements.

use std::sync::atomic::AtomicI64;

use bench_base::error::SqlError;
use bench_model::client::{
    Client, ClientStart, ClientWorkload, Consequence, Step, Transaction, TransactionRecorder,
};
use bench_model::spec::{ARMS, RunSpec};
use bench_model::transaction_log::LogRecord;
use bench_script::{Action, Sql, Value, VariableId, Variables};

use crate::run::client::{beginning, workload};
use crate::shm::Segment;

/// The execution of an arm's scripts; one lane serves both arms if they have the same scripts.
pub struct Lane<'a> {
    pub workload: ClientWorkload<'a>,
    pub client: Client,
    /// Values before the first transaction, which are parts of identifiers in statements' texts.
    pub initial: Variables,
    pub own: Vec<Vec<(VariableId, Value)>>,
    step: Step,
    /// The number of transactions begun.
    pub transactions: u64,
}

impl<'a> Lane<'a> {
    /// Executes each script of an arm `executions` times, all of them once before any is executed again.
    pub fn new(spec: &RunSpec, segment: &'a Segment, arm: usize, executions: i32) -> Result<Self, SqlError> {
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
    pub fn next(&mut self) -> Result<Option<(usize, usize)>, SqlError> {
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
    pub fn executed(&mut self, result: Result<(), SqlError>) {
        let step = self.client.executed(&self.workload, &mut Recorder::default(), result.map(|()| false));
        self.step = step;
    }

    /// Returns the number of all scripts' commands.
    pub fn commands(&self) -> usize {
        self.workload.programs.iter().map(|program| program.script.commands.len()).sum()
    }

    /// Returns a command's statement.
    pub fn sql(&self, (program, command): (usize, usize)) -> Option<&Sql> {
        match &self.workload.programs[program].script.commands[command].action {
            Action::Sql(sql) => Some(sql),
            _ => None,
        }
    }

    /// Returns a command's place among those of all scripts.
    pub fn place(&self, (program, command): (usize, usize)) -> usize {
        self.workload.programs[program].first_command + command
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
