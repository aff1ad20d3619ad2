//! A client: which transaction comes next and when, the commands of its script one after the other, and what follows from
//! how they end. It knows neither a server nor how to wait: a driver does what each [`Step`] says, reports the result by the
//! method that the step names, and gets the next step. So all drivers run the same client, and it is tested without a server.
//!
//! The states and their order are those of `advanceConnectionState` in pgbench.c.

mod pace;
mod recorder;
mod stretches;
#[cfg(test)]
mod tests;
mod workload;

use bench_base::error::{SqlError, sqlstate};
use bench_script::{Action, ClientSeeds, Flow, Prng, Value, VariableId, Variables};

use crate::client::pace::Pace;
use crate::client::stretches::{Stretches, Turn};
use crate::client::workload::Choice;
use crate::feeder::RowSource;
use crate::schedule::Schedule;
use crate::transaction_log::Sampling;

pub use pace::Lateness;
pub use recorder::{Consequence, Outcome, Transaction, TransactionRecorder};
pub use stretches::Turns;
pub use workload::{ClientWorkload, Pauses, Program, Tolerance};

/// What a client begins with.
pub struct ClientStart {
    pub seeds: ClientSeeds,
    pub variables: Variables,
    /// For each program, variables that mean something else to it than to others of the mix.
    pub own: Vec<Vec<(VariableId, Value)>>,
    /// Transactions to run; `u64::MAX`: until the clock says so.
    pub transactions: u64,
    /// Whether transactions that are too late are skipped.
    pub skips: bool,
    /// Which of its transactions are logged; `None`: none of them.
    pub log: Option<Sampling>,
    /// Whether each transaction has a connection of its own; the first one has that of the client's begin.
    pub reconnects: bool,
    /// Whether it goes on when its connection is lost.
    pub survives: bool,
    /// How the arms of a duel take turns; programs are then pairs, each of the two arms.
    pub turns: Option<Turns>,
}

/// What a driver is to do next.
#[derive(Debug)]
pub enum Step {
    /// A transaction may begin. Then [`Client::next`].
    Between,
    /// The transactions that come are of this arm of the duel. Then [`Client::switched`].
    Switch { arm: usize },
    /// Wait until the clock shows this, or the run is stopped. Then [`Client::due`].
    Wait { until_ns: i64 },
    /// Open a connection for the transaction. Then [`Client::connected`] or [`Client::unconnected`].
    Connect,
    /// Execute the command of this program, a statement or one for pipelines; after an error nothing may be open any more.
    /// Then [`Client::executed`].
    Execute { program: usize, command: usize },
    /// Wait until the clock shows this, within a transaction. Then [`Client::slept`].
    Sleep { until_ns: i64 },
    /// Roll back whatever is open, because of this error. Then [`Client::failed`], with it or with one of the rollback.
    Abort(Box<SqlError>),
    /// Roll back whatever is open, because the script has ended. Then [`Client::left_open`].
    AbortAtEnd,
    /// The same transaction is tried once more. Then [`Client::retry`].
    Retry,
    /// The client is over; with the error that has ended it, which has been counted.
    End(Option<Box<SqlError>>),
}

/// One client.
pub struct Client {
    /// The values of its variables.
    pub variables: Variables,
    /// For `random()` and its like.
    random: Prng,
    /// As it was before the transaction: another try draws the same numbers.
    random_before: Prng,
    choice: Choice,
    /// In a duel.
    stretches: Option<Stretches>,
    own: Vec<Vec<(VariableId, Value)>>,
    pace: Option<Pace>,
    log: Option<Sampling>,
    left: u64,
    /// When the last transaction ended.
    now_ns: i64,
    /// The transaction under way.
    program: usize,
    /// Its row of each of the script's feeders, which another try has too.
    rows: Vec<u32>,
    due_ns: i64,
    start_ns: i64,
    /// It is due when it starts: there is neither a rate nor a pause before it.
    is_unpaced: bool,
    tries: u64,
    /// The command under way, and when it began.
    command: usize,
    command_start_ns: i64,
    /// It is an \elif or \else that was reached because the condition before it was false.
    otherwise: bool,
    /// Whether a block is open.
    in_block: bool,
    /// Whether the last transaction met an error.
    met_an_error: bool,
    reconnects: bool,
    survives: bool,
    is_connected: bool,
    /// The commands of this try so far: each one's place, and the nanoseconds it took.
    laps: Vec<(usize, u64)>,
}

impl Client {
    /// A client that has not run anything, at `now_ns`, with the arrivals under a rate. Transactions that the ledger does
    /// not count as measured are beyond those that were asked for. Its first step is [`Client::start`].
    pub fn new(
        workload: &ClientWorkload,
        beginning: ClientStart,
        schedule: Option<Schedule>,
        now_ns: i64,
    ) -> Self {
        let ClientStart { seeds, mut variables, own, transactions, skips, log, reconnects, survives, turns } =
            beginning;
        let commands = workload.programs.iter().map(|program| program.script.commands.len()).max();
        let feeds = workload.programs.iter().flat_map(|program| &program.feeds);
        feeds.flat_map(RowSource::variables).for_each(|variable| variables.feed(variable));
        Self {
            variables,
            random: seeds.functions,
            random_before: seeds.functions,
            choice: Choice::new(seeds.choice),
            stretches: turns.map(Stretches::new),
            own,
            pace: schedule.map(|schedule| Pace::new(schedule, skips)),
            log,
            left: transactions,
            now_ns,
            program: 0,
            rows: Vec::new(),
            due_ns: 0,
            start_ns: 0,
            is_unpaced: false,
            tries: 0,
            command: 0,
            command_start_ns: 0,
            otherwise: false,
            in_block: false,
            met_an_error: false,
            reconnects,
            survives,
            is_connected: true,
            laps: Vec::with_capacity(commands.unwrap_or_default()),
        }
    }

    /// The first step.
    pub fn start<L: TransactionRecorder>(&self, ledger: &L) -> Step {
        if self.left > 0 && self.now_ns < ledger.end_ns() { Step::Between } else { Step::End(None) }
    }

    /// After [`Step::Between`].
    #[inline]
    pub fn next<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        let pause_ns;
        (self.program, pause_ns) = self.choice.next(workload, self.stretches.is_some());
        self.is_unpaced = pause_ns.is_none() && self.pace.is_none();
        if let Some(pause_ns) = pause_ns {
            // What is late by then counts as latency, as under a rate.
            self.due_ns = self.now_ns.saturating_add(pause_ns);
            return Step::Wait { until_ns: self.due_ns.min(ledger.end_ns()) };
        }
        let Some(pace) = &mut self.pace else {
            // One reading of the clock ends a transaction and starts the next.
            self.start_at(self.now_ns);
            return self.take_turn(workload, ledger);
        };
        let script = self.program + self.stretches.as_ref().map_or(0, Stretches::arm);
        match pace.next_due(ledger, script, &mut self.left, &mut self.log) {
            None => Step::End(None),
            Some(due_ns) => {
                self.due_ns = due_ns;
                // A client with nothing more to do stays: the time without arrivals is part of the run.
                Step::Wait { until_ns: due_ns.min(ledger.end_ns()) }
            }
        }
    }

    #[inline]
    fn start_at(&mut self, now_ns: i64) {
        self.start_ns = now_ns;
        if self.is_unpaced {
            self.due_ns = now_ns;
        }
    }

    /// Begins the transaction; in a duel in the arm of the moment, to which the session may have to be switched.
    #[inline]
    fn take_turn<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        let Some(stretches) = &mut self.stretches else { return self.begin(workload, ledger) };
        match stretches.turn(self.start_ns, ledger) {
            Turn::Begin(arm) => return Step::Switch { arm },
            Turn::Wait { until_ns } => return Step::Wait { until_ns: until_ns.min(ledger.end_ns()) },
            Turn::Stay => self.program += stretches.take(),
        }
        self.begin(workload, ledger)
    }

    /// After [`Step::Switch`], which is no part of a transaction.
    pub fn switched<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.start_at(ledger.now_ns());
        self.program += self.stretches.as_mut().map_or(0, Stretches::take);
        self.begin(workload, ledger)
    }

    /// After [`Step::Wait`]; `came` is false when the run was stopped before.
    pub fn due<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        came: bool,
    ) -> Step {
        if !came || self.due_ns >= ledger.end_ns() {
            return Step::End(None);
        }
        self.start_at(ledger.now_ns());
        if self.start_ns >= ledger.end_ns() {
            // Due and not started: one of the backlog.
            if let Some(pace) = &mut self.pace {
                pace.put_back();
            }
            return Step::End(None);
        }
        self.take_turn(workload, ledger)
    }

    /// Transactions that it took from the arrivals, due before `end_ns`, and neither started nor skipped.
    pub fn backlog(&self, end_ns: i64) -> u64 {
        self.pace.as_ref().map_or(0, |pace| pace.backlog(end_ns))
    }

    #[inline]
    fn begin<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        if !self.is_connected {
            return Step::Connect;
        }
        if !self.take_rows(&workload.programs[self.program].feeds) {
            return Step::End(None);
        }
        self.random_before = self.random;
        self.tries = 1;
        self.begin_try(workload, ledger, self.start_ns)
    }

    #[inline]
    fn begin_try<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        now_ns: i64,
    ) -> Step {
        for (variable, value) in &self.own[self.program] {
            self.variables.set(*variable, value.clone());
        }
        self.set_rows(&workload.programs[self.program].feeds);
        self.laps.clear();
        self.command = 0;
        self.command_start_ns = now_ns;
        self.otherwise = false;
        self.in_block = false;
        self.go_on(workload, ledger)
    }

    /// Performs meta commands up to the next one that is the driver's, or to the end.
    #[inline]
    fn go_on<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        let program = &workload.programs[self.program];
        while let Some(command) = program.script.commands.get(self.command) {
            if matches!(command.action, Action::Sql(_) | Action::Pipeline(_)) {
                return Step::Execute { program: self.program, command: self.command };
            }
            if let Some(step) = self.perform(&command.action, program, ledger) {
                return step;
            }
        }
        if self.in_block { Step::AbortAtEnd } else { self.commit(ledger) }
    }

    /// Performs a meta command; the next step where that is not to go on with the next command.
    fn perform<L: TransactionRecorder>(
        &mut self,
        action: &Action,
        program: &Program,
        ledger: &mut L,
    ) -> Option<Step> {
        let place = program.first_command + self.command;
        let (script, number) = (self.program, self.command + 1);
        let mut debug =
            |line: &str| ledger.debug(&format!("debug(script={script},command={number}): {line}"));
        let flow = action.perform(self.otherwise, &mut self.variables, &mut self.random, &mut debug);
        ledger.performed(place, flow.is_ok());
        self.otherwise = false;
        let next = match flow {
            Ok(Flow::Next) => self.command + 1,
            Ok(Flow::Jump(command)) => command,
            Ok(Flow::Otherwise(command)) => {
                self.otherwise = true;
                command
            }
            Ok(Flow::Sleep(_)) if program.sleep_scale == 0.0 => self.command + 1,
            Ok(Flow::Sleep(length)) => {
                let length_ns = (length.as_nanos() as f64 * program.sleep_scale) as i64;
                return Some(Step::Sleep { until_ns: ledger.now_ns().saturating_add(length_ns) });
            }
            Err(error) => return Some(Step::Abort(Box::new(error.into()))),
        };
        self.lap(program, next, ledger);
        None
    }

    /// The command under way has ended, and the next one is this.
    #[inline]
    fn lap<L: TransactionRecorder>(&mut self, program: &Program, next: usize, ledger: &mut L) {
        let is_last = next >= program.script.commands.len();
        let now_ns = if is_last { ledger.end_clock() } else { ledger.now_ns() };
        let took_ns = (now_ns - self.command_start_ns).max(0).unsigned_abs();
        self.laps.push((program.first_command + self.command, took_ns));
        self.command = next;
        self.command_start_ns = now_ns;
    }

    /// After [`Step::Execute`]: whether a block is open, or the error, after which none is.
    #[inline]
    pub fn executed<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        result: Result<bool, SqlError>,
    ) -> Step {
        match result {
            Ok(in_block) => {
                self.in_block = in_block;
                self.lap(&workload.programs[self.program], self.command + 1, ledger);
                self.go_on(workload, ledger)
            }
            Err(error) => self.failed(workload, ledger, error),
        }
    }

    /// After [`Step::Sleep`]; `came` is false when the run was stopped before.
    pub fn slept<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        came: bool,
    ) -> Step {
        if !came {
            let message = "the run was stopped during a \\sleep";
            return Step::Abort(Box::new(SqlError::new(sqlstate::QUERY_CANCELED, message)));
        }
        self.lap(&workload.programs[self.program], self.command + 1, ledger);
        self.go_on(workload, ledger)
    }

    /// After [`Step::Abort`], or where else the command under way has failed.
    #[cold]
    pub fn failed<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        error: SqlError,
    ) -> Step {
        let goes_on = workload.programs[self.program].outlives(self.command, &error);
        let outcome = if goes_on { Outcome::Failed } else { Outcome::Aborted };
        self.end_try(workload, ledger, self.command, error, outcome)
    }

    /// After [`Step::AbortAtEnd`]: how the rollback went.
    #[cold]
    pub fn left_open<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        aborted: Result<(), SqlError>,
    ) -> Step {
        let message = "end of script reached without completing the last transaction";
        let program = &workload.programs[self.program];
        let last = program.script.commands.len() - 1;
        let (error, outcome) = match aborted {
            Ok(()) => (SqlError::new(sqlstate::ACTIVE_SQL_TRANSACTION, message), Outcome::LeftOpen),
            Err(error) if program.outlives(last, &error) => (error, Outcome::Failed),
            Err(error) => (error, Outcome::Aborted),
        };
        self.end_try(workload, ledger, last, error, outcome)
    }

    /// Counts a transaction that has ended; its end is the clock reading at the end of its last command.
    #[inline]
    fn commit<L: TransactionRecorder>(&mut self, ledger: &mut L) -> Step {
        let end_ns = self.command_start_ns;
        self.count_laps(ledger, end_ns);
        self.record(ledger, end_ns, Outcome::Committed);
        self.start(ledger)
    }

    /// A try has ended with an error of this command: the transaction is tried once more, or given up, which is
    /// [`Outcome::Failed`], or ends the client with any other outcome (`canRetryError` and `doRetry` in pgbench.c, and
    /// `canContinueOnError` of PostgreSQL 19).
    fn end_try<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        command: usize,
        error: SqlError,
        outcome: Outcome,
    ) -> Step {
        let end_ns = ledger.end_clock();
        let is_measured = self.count_laps(ledger, end_ns);
        let program = &workload.programs[self.program];
        let error = program.script.locate(command, error);
        let is_stopped = ledger.is_stopped();
        let give_up_ns = self.due_ns.saturating_add(ledger.limit_ns());
        let again = error.is_retryable()
            && self.tries < workload.max_tries
            && end_ns < ledger.end_ns().min(give_up_ns)
            && !is_stopped;
        if is_measured {
            ledger.command_failed(program.first_command + command, again);
        }
        if !(is_stopped && error.is_cancel()) {
            ledger.error(&error, if again { Consequence::Retried } else { Consequence::Failed });
        }
        if again {
            self.tries += 1;
            ledger.pass();
            return Step::Retry;
        }
        self.record(ledger, end_ns, outcome);
        if outcome == Outcome::Failed {
            return self.start(ledger);
        }
        Step::End(Some(Box::new(error)))
    }

    /// After [`Step::Retry`].
    #[cold]
    pub fn retry<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.random = self.random_before;
        let now_ns = ledger.now_ns();
        self.begin_try(workload, ledger, now_ns)
    }

    /// Counts how long the commands of a try took, if it ended while measuring.
    #[inline]
    fn count_laps<L: TransactionRecorder>(&self, ledger: &mut L, end_ns: i64) -> bool {
        let is_measured = ledger.is_measured(end_ns);
        if is_measured {
            self.laps.iter().for_each(|&(place, latency_ns)| ledger.lap(place, latency_ns));
        }
        is_measured
    }

    /// Counts a transaction that has ended.
    #[inline]
    fn record<L: TransactionRecorder>(&mut self, ledger: &mut L, end_ns: i64, outcome: Outcome) {
        let Self { program: script, due_ns, start_ns, tries, .. } = *self;
        let transaction = Transaction { script, due_ns, start_ns, end_ns, tries, outcome };
        let is_measured = ledger.record(&transaction);
        if is_measured && let Some(sampling) = &mut self.log {
            sampling.log(|entry| ledger.log(&transaction.entry(entry)));
        }
        self.met_an_error = tries > 1 || outcome != Outcome::Committed;
        self.is_connected &= !self.reconnects;
        self.now_ns = end_ns;
        self.left -= u64::from(is_measured);
    }

    /// Whether the last transaction met an error.
    pub fn met_an_error(&self) -> bool {
        self.met_an_error
    }
}

// Rows of feeders: each transaction takes one of each, which another try of it has again.
impl Client {
    /// Takes a row of each feeder for a transaction; false when one of them has no more.
    #[inline]
    fn take_rows(&mut self, feeds: &[RowSource]) -> bool {
        feeds.is_empty() || self.draw_rows(feeds)
    }

    fn draw_rows(&mut self, feeds: &[RowSource]) -> bool {
        self.rows.clear();
        let random = &mut self.random;
        self.rows.extend(feeds.iter().map_while(|feed| feed.draw(random)));
        let has_all = self.rows.len() == feeds.len();
        if !has_all {
            // What is due later is no backlog: there is nothing left to do it with.
            self.pace = None;
        }
        has_all
    }

    /// Gives the variables the values of the transaction's rows.
    #[inline]
    fn set_rows(&mut self, feeds: &[RowSource]) {
        for (feed, row) in feeds.iter().zip(&self.rows) {
            feed.set(*row, &mut self.variables);
        }
    }
}

// Where a client has to have a connection.
impl Client {
    /// After [`Step::Connect`]: there is a connection. The time that it took is not part of the transaction's, but of
    /// what a transaction under a rate starts too late (`CSTATE_START_TX` in pgbench.c).
    pub fn connected<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.is_connected = true;
        self.start_at(ledger.now_ns());
        self.begin(workload, ledger)
    }

    /// After [`Step::Connect`]: there will be no connection, because the run has been stopped, or because of this error,
    /// which has been counted.
    pub fn unconnected(&mut self, error: Option<Box<SqlError>>) -> Step {
        if let Some(pace) = &mut self.pace {
            pace.put_back();
        }
        Step::End(error)
    }

    /// Whether it has a connection, which the end of a transaction may have taken from it.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// The connection was lost within a transaction. `in_doubt`: what was sent and not answered may have committed it.
    /// A client that survives it counts the transaction, and needs a connection for the next one.
    #[cold]
    pub fn lost<L: TransactionRecorder>(
        &mut self,
        workload: &ClientWorkload,
        ledger: &mut L,
        error: SqlError,
        in_doubt: bool,
    ) -> Step {
        if !self.survives {
            return self.end_try(workload, ledger, self.command, error, Outcome::Aborted);
        }
        self.is_connected = false;
        let end_ns = ledger.end_clock();
        let is_measured = self.count_laps(ledger, end_ns);
        let program = &workload.programs[self.program];
        let error = if in_doubt { unknown(&error) } else { error };
        if is_measured {
            ledger.command_failed(program.first_command + self.command, false);
        }
        ledger.error(&program.script.locate(self.command, error), Consequence::Failed);
        self.record(ledger, end_ns, if in_doubt { Outcome::Unknown } else { Outcome::Failed });
        self.start(ledger)
    }

    /// The connection was lost between two transactions, with this error. Returns whether the client survives it.
    pub fn lost_between<L: TransactionRecorder>(&mut self, ledger: &mut L, error: &SqlError) -> bool {
        ledger.error(error, Consequence::Uncounted);
        self.is_connected &= !self.survives;
        self.survives
    }
}

/// The error of a transaction that may have been committed.
fn unknown(lost: &SqlError) -> SqlError {
    let message = format!("connection lost before the server confirmed the transaction: {}", lost.message);
    SqlError {
        detail: lost.detail.clone(),
        ..SqlError::new(sqlstate::TRANSACTION_RESOLUTION_UNKNOWN, message)
    }
}

/// How long a client waits before it tries to connect again, in nanoseconds: 50 ms, twice as long after each failure and
/// at most a second, less up to a half of it, by the client's number, so that they do not all come at once.
pub fn back_off_ns(failures: u32, client: u32) -> i64 {
    let longest_ns = (50_000_000_i64 << failures.min(5)).min(1_000_000_000);
    // Neighbours are far from each other (Knuth's multiplicative hash).
    let share = i64::from(client.wrapping_mul(2_654_435_769) >> 16);
    longest_ns - longest_ns / 2 * share / 65_536
}
