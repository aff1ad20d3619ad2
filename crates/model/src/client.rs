//! A client as a state machine: it chooses transactions and their start, and steps through their scripts' commands. It neither
//! talks to a server nor waits: a driver performs each [`Step`], reports the result by the method that the step names, and gets
//! the next step. So all drivers share one client, which is tested without a server.
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

/// The initial state and options of a client.
pub struct ClientStart {
    pub seeds: ClientSeeds,
    pub variables: Variables,
    /// For each program, values of variables that differ between the programs of a mix.
    pub own: Vec<Vec<(VariableId, Value)>>,
    /// Transactions to run; `u64::MAX`: until the end of the run.
    pub transactions: u64,
    /// Whether transactions that are too late are skipped.
    pub skips: bool,
    /// Sampling of logged transactions; `None`: none are logged.
    pub log: Option<Sampling>,
    /// Whether each transaction uses a new connection; the first one uses the client's initial connection.
    pub reconnects: bool,
    /// Whether the client reconnects after it has lost its connection.
    pub survives: bool,
    /// How the arms of a duel alternate; programs are then pairs, one of each arm.
    pub turns: Option<Turns>,
}

/// What a driver does next.
#[derive(Debug)]
pub enum Step {
    /// Start a transaction. Then [`Client::next`].
    Between,
    /// Switch the session to this arm of the duel. Then [`Client::switched`].
    Switch { arm: usize },
    /// Wait until this time or until the run is stopped. Then [`Client::due`].
    Wait { until_ns: i64 },
    /// Open a connection for the transaction. Then [`Client::connected`] or [`Client::unconnected`].
    Connect,
    /// Execute a statement or pipeline command of this program; after an error, leave no transaction open. Then
    /// [`Client::executed`].
    Execute { program: usize, command: usize },
    /// Wait until this time, within a transaction. Then [`Client::slept`].
    Sleep { until_ns: i64 },
    /// Roll back because of this error. Then [`Client::failed`] with it, or with the rollback's own error.
    Abort(Box<SqlError>),
    /// Roll back because the script has ended in a transaction block. Then [`Client::left_open`].
    AbortAtEnd,
    /// Try the same transaction again. Then [`Client::retry`].
    Retry,
    /// The client has ended; the error, if any, has been counted.
    End(Option<Box<SqlError>>),
}

/// A client.
pub struct Client {
    /// The values of its variables.
    pub variables: Variables,
    /// The generator of `random()` and the like.
    random: Prng,
    /// The generator before the transaction, so that another try draws the same numbers.
    random_before: Prng,
    choice: Choice,
    /// Present in a duel.
    stretches: Option<Stretches>,
    own: Vec<Vec<(VariableId, Value)>>,
    pace: Option<Pace>,
    log: Option<Sampling>,
    left: u64,
    /// When the last transaction ended.
    now_ns: i64,
    /// The current transaction.
    program: usize,
    /// Its row of each of the script's feeders; another try uses the same.
    rows: Vec<u32>,
    due_ns: i64,
    start_ns: i64,
    /// The transaction is due when it starts, as there is neither a rate nor a pause before it.
    is_unpaced: bool,
    tries: u64,
    /// The current command, and its start.
    command: usize,
    command_start_ns: i64,
    /// The command is an \elif or \else, reached because the condition before it was false.
    otherwise: bool,
    /// The session is in a transaction block.
    in_block: bool,
    /// The last transaction had an error.
    met_an_error: bool,
    reconnects: bool,
    survives: bool,
    is_connected: bool,
    /// The finished commands of this try: place and nanoseconds.
    laps: Vec<(usize, u64)>,
}

impl Client {
    /// Creates a client at `now_ns`, with a schedule under a rate. Its first step is [`Client::start`]. Only measured transactions
    /// count towards `ClientStart::transactions`.
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

    /// Returns the first step.
    pub fn start<L: TransactionRecorder>(&self, ledger: &L) -> Step {
        if self.left > 0 && self.now_ns < ledger.end_ns() { Step::Between } else { Step::End(None) }
    }

    /// Continues after [`Step::Between`].
    #[inline]
    pub fn next<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        let pause_ns;
        (self.program, pause_ns) = self.choice.next(workload, self.stretches.is_some());
        self.is_unpaced = pause_ns.is_none() && self.pace.is_none();
        if let Some(pause_ns) = pause_ns {
            // As under a rate, a late start counts as latency.
            self.due_ns = self.now_ns.saturating_add(pause_ns);
            return Step::Wait { until_ns: self.due_ns.min(ledger.end_ns()) };
        }
        let Some(pace) = &mut self.pace else {
            // The end of the last transaction is the start of this one: one reading of the clock.
            self.start_at(self.now_ns);
            return self.take_turn(workload, ledger);
        };
        let script = self.program + self.stretches.as_ref().map_or(0, Stretches::arm);
        match pace.next_due(ledger, script, &mut self.left, &mut self.log) {
            None => Step::End(None),
            Some(due_ns) => {
                self.due_ns = due_ns;
                // A client without further arrivals waits for the end of the run.
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

    /// Starts the transaction; in a duel in the current arm, possibly after a switch of the session.
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

    /// Continues after [`Step::Switch`], whose time is not part of a transaction.
    pub fn switched<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.start_at(ledger.now_ns());
        self.program += self.stretches.as_mut().map_or(0, Stretches::take);
        self.begin(workload, ledger)
    }

    /// Continues after [`Step::Wait`]; `came` is false if the run was stopped before.
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
            // Due and not started, so part of the backlog.
            if let Some(pace) = &mut self.pace {
                pace.put_back();
            }
            return Step::End(None);
        }
        self.take_turn(workload, ledger)
    }

    /// Returns the number of transactions taken from the arrivals, due before `end_ns`, and neither started nor skipped.
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

    /// Performs meta commands up to the next command for the driver, or to the end of the script.
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

    /// Performs a meta command. Returns a step unless the script continues with the next command.
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

    /// Records the time of the current command and moves to the next.
    #[inline]
    fn lap<L: TransactionRecorder>(&mut self, program: &Program, next: usize, ledger: &mut L) {
        let is_last = next >= program.script.commands.len();
        let now_ns = if is_last { ledger.end_clock() } else { ledger.now_ns() };
        let took_ns = (now_ns - self.command_start_ns).max(0).unsigned_abs();
        self.laps.push((program.first_command + self.command, took_ns));
        self.command = next;
        self.command_start_ns = now_ns;
    }

    /// Continues after [`Step::Execute`]; the result says whether the session is in a transaction block.
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

    /// Continues after [`Step::Sleep`]; `came` is false if the run was stopped before.
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

    /// Continues after [`Step::Abort`], or after any other error of the current command.
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

    /// Continues after [`Step::AbortAtEnd`] with the rollback's result.
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

    /// Counts a committed transaction, which ends with its last command.
    #[inline]
    fn commit<L: TransactionRecorder>(&mut self, ledger: &mut L) -> Step {
        let end_ns = self.command_start_ns;
        self.count_laps(ledger, end_ns);
        self.record(ledger, end_ns, Outcome::Committed);
        self.start(ledger)
    }

    /// Ends a try after an error of this command. Retries the transaction, or counts it with `outcome`, which ends the client unless
    /// it is [`Outcome::Failed`] (`canRetryError` and `doRetry` in pgbench.c, and `canContinueOnError` of PostgreSQL 19).
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

    /// Continues after [`Step::Retry`].
    #[cold]
    pub fn retry<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.random = self.random_before;
        let now_ns = ledger.now_ns();
        self.begin_try(workload, ledger, now_ns)
    }

    /// Counts the times of a try's commands if it is measured. Returns whether it is.
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
            sampling.log(|entry| transaction.entry(entry), |entry| ledger.log(entry));
        }
        self.met_an_error = tries > 1 || outcome != Outcome::Committed;
        self.is_connected &= !self.reconnects;
        self.now_ns = end_ns;
        self.left -= u64::from(is_measured);
    }

    /// Returns whether the last transaction had an error.
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
            // Without rows, later arrivals are no backlog.
            self.pace = None;
        }
        has_all
    }

    /// Sets the variables to the values of the transaction's rows.
    #[inline]
    fn set_rows(&mut self, feeds: &[RowSource]) {
        for (feed, row) in feeds.iter().zip(&self.rows) {
            feed.set(*row, &mut self.variables);
        }
    }
}

// Clients over connections.
impl Client {
    /// Continues after [`Step::Connect`] has succeeded. The time to connect is not part of the transaction's own, but counts as
    /// lag under a rate (`CSTATE_START_TX` in pgbench.c).
    pub fn connected<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.is_connected = true;
        self.start_at(ledger.now_ns());
        self.begin(workload, ledger)
    }

    /// Ends the client after [`Step::Connect`] has failed, because the run was stopped or of this error, already counted.
    pub fn unconnected(&mut self, error: Option<Box<SqlError>>) -> Step {
        if let Some(pace) = &mut self.pace {
            pace.put_back();
        }
        Step::End(error)
    }

    /// Returns whether the client has a connection; it may lose it at the end of a transaction.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Handles a connection lost within a transaction. `in_doubt`: an unanswered message may have committed it. A surviving client
    /// counts the transaction and reconnects for the next one.
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

    /// Counts a connection lost between two transactions. Returns whether the client survives it.
    pub fn lost_between<L: TransactionRecorder>(&mut self, ledger: &mut L, error: &SqlError) -> bool {
        ledger.error(error, Consequence::Uncounted);
        self.is_connected &= !self.survives;
        self.survives
    }
}

/// Returns the error for a transaction that may have been committed.
fn unknown(lost: &SqlError) -> SqlError {
    let message = format!("connection lost before the server confirmed the transaction: {}", lost.message);
    SqlError {
        detail: lost.detail.clone(),
        ..SqlError::new(sqlstate::TRANSACTION_RESOLUTION_UNKNOWN, message)
    }
}

/// Returns how long a client waits before it reconnects, in nanoseconds: 50 ms, doubled after each failure up to a second, less
/// up to half of it by the client's number, so that clients do not all connect at once.
pub fn back_off_ns(failures: u32, client: u32) -> i64 {
    let longest_ns = (50_000_000_i64 << failures.min(5)).min(1_000_000_000);
    // Knuth's multiplicative hash spreads consecutive numbers.
    let share = i64::from(client.wrapping_mul(2_654_435_769) >> 16);
    longest_ns - longest_ns / 2 * share / 65_536
}
