//! Pipelines: `\startpipeline`, `\syncpipeline`, `\endpipeline`, and where they may stand.
//!
//! Whether a pipeline is open is known only when a client comes to a command, as in pgbench: conditions may lead
//! around any of them.

use bench_base::error::{UserError, sqlstate};

use super::sql::Sql;

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

#[cfg(test)]
mod tests;
