//! The commands of a script, and what meta commands do.

use std::time::Duration;

use bench_base::error::UserError;

use super::expression::Expression;
use super::pipeline::Pipeline;
use super::prng::Prng;
use super::sleep::Sleep;
use super::sql::Sql;
use super::variables::{VariableId, Variables};

/// One step of a script. Its index among a script's commands, plus 1, is the number that pgbench gives it:
/// `\gset` and `\aset` are parts of their statements, but a semicolon alone counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The line it begins at, counted from 1.
    pub line: u32,
    /// As written, for display: a statement with its semicolon, without what is blank or comment before it (but
    /// for block comments, which may be hints); a meta command from its backslash on.
    pub source: String,
    /// What it does.
    pub action: Action,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A statement for the server.
    Sql(Sql),
    /// `\set`.
    Set {
        /// The variable that it sets.
        target: VariableId,
        /// What to.
        expression: Expression,
    },
    /// `\sleep`.
    Sleep(Sleep),
    /// `\if`.
    If {
        /// Whether to enter the branch.
        condition: Expression,
        /// Where to go on if not: the index of the next `\elif`, `\else` or `\endif`.
        otherwise: usize,
    },
    /// `\elif`.
    Elif {
        /// Whether to enter the branch, if those before it were not.
        condition: Expression,
        /// Where to go on if not, as for `\if`.
        otherwise: usize,
        /// The index of the `\endif`.
        end: usize,
    },
    /// `\else`.
    Else {
        /// The index of the `\endif`.
        end: usize,
    },
    /// `\endif`.
    Endif,
    /// `\startpipeline`, `\syncpipeline` or `\endpipeline`.
    Pipeline(Pipeline),
}

/// What comes after a meta command. All jumps go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Next,
    /// The command of this index, as if it were the next one.
    Jump(usize),
    /// The command of this index, because a condition was false: an `\elif` there is to be evaluated, an `\else`
    /// to be entered.
    Otherwise(usize),
    /// The next command, after this time.
    Sleep(Duration),
}

impl Command {
    /// Calls `visit` with each variable whose value the command needs.
    pub(super) fn for_each_variable_read(&self, visit: &mut dyn FnMut(VariableId)) {
        match &self.action {
            Action::Sql(sql) => sql.for_each_variable(visit),
            Action::Set { expression, .. } => expression.for_each_variable(visit),
            Action::If { condition, .. } | Action::Elif { condition, .. } => {
                condition.for_each_variable(visit);
            }
            Action::Sleep(sleep) => sleep.variable().into_iter().for_each(visit),
            Action::Else { .. } | Action::Endif | Action::Pipeline(_) => {}
        }
    }
}

impl Action {
    /// Performs a meta command; for a statement, and for pipelines, it does nothing. `otherwise` says whether it was reached by
    /// [`Flow::Otherwise`]. `debug` is called with what `debug()` in expressions shows.
    ///
    /// # Errors
    /// An expression's; for `\sleep` 42703 for a variable that was never set, and 22023 for one that is no
    /// number.
    pub fn perform(
        &self,
        otherwise: bool,
        variables: &mut Variables,
        random: &mut Prng,
        debug: &mut dyn FnMut(&str),
    ) -> Result<Flow, UserError> {
        match self {
            Action::Set { target, expression } => {
                let value = expression.evaluate(variables, random, debug)?;
                variables.set(*target, value);
                Ok(Flow::Next)
            }
            Action::Sleep(sleep) => sleep.duration(variables).map(Flow::Sleep),
            // In sequence it ends the branch before it.
            Action::Elif { end, .. } | Action::Else { end } if !otherwise => Ok(Flow::Jump(*end)),
            Action::If { condition, otherwise } | Action::Elif { condition, otherwise, .. } => {
                let is_true = condition.is_true(variables, random, debug)?;
                Ok(if is_true { Flow::Next } else { Flow::Otherwise(*otherwise) })
            }
            Action::Sql(_) | Action::Pipeline(_) | Action::Else { .. } | Action::Endif => Ok(Flow::Next),
        }
    }
}
