//! Where a client has to have a connection.

use super::{Client, Ledger, Step, Workload};
use crate::error::SqlError;

impl Client {
    /// After [`Step::Connect`]: there is a connection. The time that it took is not part of the transaction's, but of
    /// what a transaction under a rate starts too late (`CSTATE_START_TX` in pgbench.c).
    pub fn connected<L: Ledger>(&mut self, workload: &Workload, ledger: &mut L) -> Step {
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
}
