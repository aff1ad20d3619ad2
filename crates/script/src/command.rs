//! The commands of a script, and what meta commands do: how conditions branch, how long clients sleep, and where pipelines
//! may stand. Whether one is open is known only when a client comes to a command, as in pgbench: conditions may lead around
//! any of them.

#[cfg(test)]
mod tests;

use std::time::Duration;

use bench_base::error::{UserError, sqlstate};

use crate::expression::Expression;
use crate::random::Prng;
use crate::sql::Sql;
use crate::text::trim_start;
use crate::variables::{Value, VariableId, Variables};

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
    pub(crate) fn for_each_variable_read(&self, visit: &mut dyn FnMut(VariableId)) {
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

/// A command that does not fit the others.
pub(crate) struct ConditionError {
    /// Its number for pgbench, counted from 1; one more than there are if the script's end came too early.
    pub number: usize,
    /// The index of the command to point at.
    pub index: usize,
    /// What is wrong.
    pub message: &'static str,
}

/// Fills in where the conditional commands of a script go on (`CheckConditional` in pgbench.c).
///
/// # Errors
/// The first command that does not fit.
pub(crate) fn link(commands: &mut [Command]) -> Result<(), ConditionError> {
    // For each \if that is open, the indexes of its \if, its \elifs and its \else so far.
    let mut open: Vec<Vec<usize>> = Vec::new();
    for index in 0..commands.len() {
        let error = |message| ConditionError { number: index + 1, index, message };
        let (without_if, after_else) = match &commands[index].action {
            Action::If { .. } => {
                open.push(vec![index]);
                continue;
            }
            Action::Elif { .. } => ("\\elif without matching \\if", Some("\\elif after \\else")),
            Action::Else { .. } => ("\\else without matching \\if", Some("\\else after \\else")),
            Action::Endif => ("\\endif without matching \\if", None),
            Action::Sql(_) | Action::Set { .. } | Action::Sleep(_) | Action::Pipeline(_) => continue,
        };
        let Some(branches) = open.last_mut() else { return Err(error(without_if)) };
        let last = branches.last().and_then(|&last| commands.get_mut(last));
        match last.map(|command| &mut command.action) {
            Some(Action::If { otherwise, .. } | Action::Elif { otherwise, .. }) => *otherwise = index,
            _ => {
                if let Some(message) = after_else {
                    return Err(error(message));
                }
            }
        }
        if after_else.is_some() {
            branches.push(index);
            continue;
        }
        for branch in open.pop().unwrap_or_default() {
            if let Action::Elif { end, .. } | Action::Else { end } = &mut commands[branch].action {
                *end = index;
            }
        }
    }
    match open.last().and_then(|branches| branches.first()) {
        None => Ok(()),
        Some(&index) => {
            let number = commands.len() + 1;
            Err(ConditionError { number, index, message: "\\if without matching \\endif" })
        }
    }
}

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

/// `\sleep`: how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    pub(crate) time: Time,
    pub(crate) unit: Unit,
}

/// A number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    Constant(u64),
    /// The name is for messages.
    Variable {
        id: VariableId,
        name: Box<str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

/// More than a century. A clock's time can be added to it in any unit.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(u32::MAX as u64);

impl Sleep {
    /// How long to sleep, never less than nothing (`evaluateSleep` in pgbench.c).
    pub(crate) fn duration(&self, variables: &Variables) -> Result<Duration, UserError> {
        let number = match &self.time {
            Time::Constant(number) => *number,
            Time::Variable { id, name } => match variables.get(*id) {
                Some(Value::Integer(value)) => u64::try_from(*value).unwrap_or(0),
                Some(value) => sleep_time(name, &value.to_text())?,
                None => {
                    let message = format!("sleep: undefined variable \"{name}\"");
                    return Err(UserError::new(sqlstate::UNDEFINED_COLUMN, message));
                }
            },
        };
        let duration = match self.unit {
            Unit::Microseconds => Duration::from_micros(number),
            Unit::Milliseconds => Duration::from_millis(number),
            Unit::Seconds => Duration::from_secs(number),
        };
        Ok(duration.min(LONGEST_SLEEP))
    }

    /// The variable that it reads, if there is one.
    pub(crate) fn variable(&self) -> Option<VariableId> {
        match self.time {
            Time::Constant(_) => None,
            Time::Variable { id, .. } => Some(id),
        }
    }
}

/// What the text of the variable `name` is as a time: the number at its front, as for C's `atoi`.
fn sleep_time(name: &str, text: &str) -> Result<u64, UserError> {
    let number = trim_start(text);
    let number = &number[..integer_length(number)];
    let is_zero = !number.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if is_zero && !text.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("sleep: invalid sleep time \"{text}\" for variable \"{name}\"");
        return Err(UserError::invalid(message));
    }
    Ok(integer(number))
}

/// The length of the sign and the digits at the front of a text.
pub fn integer_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    sign + text.bytes().skip(sign).take_while(u8::is_ascii_digit).count()
}

/// What a sign and digits amount to: 0 for negative numbers and for none, the largest number for larger ones.
pub fn integer(text: &str) -> u64 {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || digits.starts_with('-') { 0 } else { digits.parse().unwrap_or(u64::MAX) }
}
