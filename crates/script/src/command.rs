//! The commands of a script, and the execution of meta commands: conditions, sleeps, and pipelines. As in pgbench, pipeline
//! commands are checked during execution: a condition may skip any of them.

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
    /// The command as written, for display: a statement from its first word or block comment (which may be a hint) to
    /// its semicolon, or a meta command from its backslash on.
    pub source: String,
    pub action: Action,
}

/// The action of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A statement for the server.
    Sql(Sql),
    /// `\set`.
    Set { target: VariableId, expression: Expression },
    /// `\sleep`.
    Sleep(Sleep),
    /// `\if`.
    If {
        condition: Expression,
        /// The index of the next `\elif`, `\else` or `\endif`, where execution goes on if the condition is false.
        otherwise: usize,
    },
    /// `\elif`.
    Elif {
        condition: Expression,
        /// As for `\if`.
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

/// The continuation after a meta command. All jumps go forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next command.
    Next,
    /// The command of this index, as if it were the next one.
    Jump(usize),
    /// The command of this index, after a false condition: an `\elif` there is evaluated, an `\else` entered.
    Otherwise(usize),
    /// The next command, after this pause.
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
    /// Performs a meta command; does nothing for statements and pipeline commands. `otherwise`: the command was reached by
    /// [`Flow::Otherwise`]. `debug` receives the output of `debug()` in expressions.
    ///
    /// # Errors
    /// Those of expressions; for `\sleep` 42703 for a variable that was never set, 22023 for one that is no number.
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
            // Reached at the end of the branch before it.
            Action::Elif { end, .. } | Action::Else { end } if !otherwise => Ok(Flow::Jump(*end)),
            Action::If { condition, otherwise } | Action::Elif { condition, otherwise, .. } => {
                let is_true = condition.is_true(variables, random, debug)?;
                Ok(if is_true { Flow::Next } else { Flow::Otherwise(*otherwise) })
            }
            Action::Sql(_) | Action::Pipeline(_) | Action::Else { .. } | Action::Endif => Ok(Flow::Next),
        }
    }
}

/// A conditional command without its counterpart.
pub(crate) struct ConditionError {
    /// The command's number in pgbench's message, counted from 1; for a missing `\endif` the number of commands plus 1.
    pub number: usize,
    /// The index of the command to point at.
    pub index: usize,
    pub message: &'static str,
}

/// Sets the jump targets of a script's conditional commands (`CheckConditional` in pgbench.c).
///
/// # Errors
/// The first conditional command without its counterpart.
pub(crate) fn link(commands: &mut [Command]) -> Result<(), ConditionError> {
    // For each open \if, the indexes of it, its \elifs and its \else so far.
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

/// A meta command for pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// `\startpipeline`: statements behind it are sent without waiting for their results.
    Start,
    /// `\syncpipeline`: statements behind it are executed even if earlier ones failed.
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

    /// Performs a pipeline command. `is_simple`: the script has query_mode 'simple'.
    ///
    /// # Errors
    /// 55000 for a pipeline within a pipeline, and for an end or a sync without one; 0A000 with the simple protocol.
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

    /// Checks that a statement may be sent now.
    ///
    /// # Errors
    /// 55000 for a statement with `\gset` or `\aset` in a pipeline.
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

    /// Checks that the script may end now.
    ///
    /// # Errors
    /// 55000 if a pipeline is open.
    pub fn check_end(self) -> Result<(), UserError> {
        if !self.is_open {
            return Ok(());
        }
        let message = "end of script reached with pipeline open";
        Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("Each \\startpipeline needs its \\endpipeline, whichever way the script goes."))
    }
}

/// The time of a `\sleep`.
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

/// The longest sleep, more than a century: the sum of it and a clock's time fits in every unit.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(u32::MAX as u64);

impl Sleep {
    /// Returns how long to sleep; 0 for negative numbers (`evaluateSleep` in pgbench.c).
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

    /// Returns the variable that the time comes from, if there is one.
    pub(crate) fn variable(&self) -> Option<VariableId> {
        match self.time {
            Time::Constant(_) => None,
            Time::Variable { id, .. } => Some(id),
        }
    }
}

/// Reads the text of the variable `name` as a number, as C's `atoi` does.
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

/// Returns the length of the sign and the digits at the front of a text.
pub fn integer_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    sign + text.bytes().skip(sign).take_while(u8::is_ascii_digit).count()
}

/// Reads a sign and digits as a number: 0 for negative numbers and for an empty text, saturating at the largest number.
pub fn integer(text: &str) -> u64 {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || digits.starts_with('-') { 0 } else { digits.parse().unwrap_or(u64::MAX) }
}
