//! Pipelines: `\startpipeline`, `\syncpipeline`, `\endpipeline`, and where they may stand.
//!
//! Whether a pipeline is open is known only when a client comes to a command, as in pgbench: conditions may lead
//! around any of them.

use bench_base::error::{UserError, sqlstate};

use super::{Action, Script, Sql};

/// What a meta command does to a client's pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// `\startpipeline`: statements are sent from here on without waiting for their results.
    Start,
    /// `\syncpipeline`: what follows is executed even if what came before failed.
    Sync,
    /// `\endpipeline`: waits for the results.
    End,
}

/// Whether a client has a pipeline open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipelineMode {
    is_open: bool,
}

impl PipelineMode {
    /// Whether one is open.
    pub fn is_open(self) -> bool {
        self.is_open
    }

    /// Opens or closes it. `is_simple`: statements go by the simple protocol, query_mode 'simple'.
    ///
    /// # Errors
    /// 55000 for a pipeline within a pipeline, and for the end of none; 0A000 for one by the simple protocol.
    pub fn perform(&mut self, command: Pipeline, is_simple: bool) -> Result<(), UserError> {
        let wrong = |message| Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message));
        match command {
            Pipeline::Start if is_simple => {
                let message = "cannot use pipeline mode with the simple query protocol";
                return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                    .hint("Use query_mode => 'prepared' or 'extended'."));
            }
            Pipeline::Start if self.is_open => return wrong("already in pipeline mode"),
            Pipeline::Sync | Pipeline::End if !self.is_open => return wrong("not in pipeline mode"),
            Pipeline::Start => self.is_open = true,
            Pipeline::Sync => {}
            Pipeline::End => self.is_open = false,
        }
        Ok(())
    }

    /// Whether a statement may be sent now: one whose result is asked for may not be part of a pipeline.
    ///
    /// # Errors
    /// 55000 for a statement with `\gset` or `\aset`.
    pub fn check_statement(self, sql: &Sql) -> Result<(), UserError> {
        match &sql.capture {
            Some(capture) if self.is_open => {
                let command = if capture.every_query { "aset" } else { "gset" };
                let message = format!("\\{command} is not allowed in pipeline mode");
                Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message))
            }
            _ => Ok(()),
        }
    }

    /// Whether a script may end now.
    ///
    /// # Errors
    /// 55000 with a pipeline open.
    pub fn check_end(self) -> Result<(), UserError> {
        if !self.is_open {
            return Ok(());
        }
        let message = "end of script reached with pipeline open";
        Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("Each \\startpipeline needs its \\endpipeline, whichever way the script goes."))
    }
}

impl Script {
    /// For a client without a connection: the error of the first command for pipelines.
    ///
    /// # Errors
    /// 0A000, with the place in the script.
    pub fn check_without_connection(&self) -> Result<(), UserError> {
        let mut pipelines =
            self.commands.iter().zip(0..).filter_map(|(command, index)| match command.action {
                Action::Pipeline(pipeline) => Some((pipeline, index)),
                _ => None,
            });
        let Some((pipeline, index)) = pipelines.next() else { return Ok(()) };
        let name = match pipeline {
            Pipeline::Start => "startpipeline",
            Pipeline::Sync => "syncpipeline",
            Pipeline::End => "endpipeline",
        };
        let message = format!(
            "meta command \"\\{name}\" is not supported: a client inside the server has no connection to pipeline"
        );
        let error = UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint("Use driver => 'wire'.");
        Err(self.at(index, error))
    }

    /// The statements behind the `\startpipeline` with the index `start` and before the next `\endpipeline` in the
    /// text, each with its index: those that pgbench prepares before it begins the pipeline, because a Parse within it
    /// would take a snapshot before BEGIN ISOLATION LEVEL (`prepareCommandsInPipeline` in pgbench.c).
    pub fn statements_in_pipeline(&self, start: usize) -> impl Iterator<Item = (usize, &Sql)> {
        let is_end = |action: &Action| matches!(action, Action::Pipeline(Pipeline::End));
        self.commands
            .iter()
            .enumerate()
            .skip(start + 1)
            .take_while(move |(_, command)| !is_end(&command.action))
            .filter_map(|(index, command)| match &command.action {
                Action::Sql(sql) => Some((index, sql)),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests;
