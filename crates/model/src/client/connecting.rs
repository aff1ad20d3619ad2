//! Where a client has to have a connection.

use bench_base::error::{SqlError, sqlstate};

use super::{Client, ClientWorkload, Consequence, Outcome, Step, TransactionRecorder};

impl Client {
    /// After [`Step::Connect`]: there is a connection. The time that it took is not part of the transaction's, but of
    /// what a transaction under a rate starts too late (`CSTATE_START_TX` in pgbench.c).
    pub fn connected<L: TransactionRecorder>(&mut self, workload: &ClientWorkload, ledger: &mut L) -> Step {
        self.is_connected = true;
        self.start_ns = ledger.now_ns();
        if self.pace.is_none() {
            self.due_ns = self.start_ns;
        }
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
