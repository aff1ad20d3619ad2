//! What follows on a command that has failed.

use bench_base::error::SqlError;
use bench_model::client::Step;
use bench_protocol::TransactionStatus;
use bench_script::{Action, Pipeline, PipelineMode};

use super::super::shared::JobState;
use super::{Connection, Next, WaitsFor};

impl Connection<'_> {
    #[cold]
    pub(super) fn point_at(&self, error: SqlError, place: (usize, usize), shared: &JobState) -> SqlError {
        match &self.client {
            Some(client) => shared.point_at(error, &client.variables, place),
            None => error,
        }
    }

    /// The command under way has failed: what is open is rolled back, where the client may go on after it.
    pub(super) fn failed(
        &mut self,
        (program, command): (usize, usize),
        error: SqlError,
        shared: &mut JobState,
    ) -> Next {
        let of = &shared.workload.programs[program];
        shared.counters[of.first_command + command].errors.add(1);
        let in_pipeline = matches!(of.script.commands[command].action, Action::Pipeline(Pipeline::End));
        self.pipeline = PipelineMode::default();
        if !of.outlives(command, &error) {
            let step = self.fail(error, shared);
            return self.go_on(step, shared);
        }
        self.session.capture(false);
        if in_pipeline {
            self.session.discard_until_sync();
            self.waits = WaitsFor::Discarded(Box::new(error));
            self.flush();
            return Next::Server;
        }
        match self.roll_back(error, shared) {
            Some(step) => self.go_on(step, shared),
            None => Next::Server,
        }
    }

    /// Rolls back what is open after this error; the next step, unless the server has to answer first.
    pub(super) fn roll_back(&mut self, error: SqlError, shared: &mut JobState) -> Option<Step> {
        if self.session.status() != TransactionStatus::Idle && self.session.query("ROLLBACK").is_ok() {
            self.waits = WaitsFor::RolledBack(Box::new(error));
            self.flush();
            return None;
        }
        Some(self.fail(error, shared))
    }

    pub(super) fn fail(&mut self, error: SqlError, shared: &mut JobState) -> Step {
        match &mut self.client {
            Some(client) => client.failed(&shared.workload, &mut shared.recorder, error),
            None => Step::End(None),
        }
    }
}
