//! Meta commands: what may stand in their lines, and what they do.

use std::ops::Range;
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};

use super::blanks::{separator_length, trim_start};
use super::expression::Expression;
use super::pipeline::Pipeline;
use super::position::ScriptText;
use super::prng::Prng;
use super::sql::ResultCapture;
use super::variables::{Symbols, Value, VariableId, Variables, is_variable_name};
use super::{Action, Flow};

/// `\sleep`: how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    time: Time,
    unit: Unit,
}

/// A number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Time {
    Constant(u64),
    /// The name is for messages.
    Variable {
        id: VariableId,
        name: Box<str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

/// More than a century. A clock's time can be added to it in any unit.
const LONGEST_SLEEP: Duration = Duration::from_secs(u32::MAX as u64);

/// What a meta command's line turns out to be.
pub(super) enum Meta {
    /// A command of its own; where it branches to is still open.
    Action(Action),
    /// A part of the command before it.
    Capture(ResultCapture),
}

/// The meta command in the bytes `range` of a script, which begin with its backslash; `None` if there is nothing
/// behind that (`process_backslash_command` in pgbench.c).
///
/// # Errors
/// 42601 for a syntax error, 0A000 for a shell command, and an expression's.
pub(super) fn parse(
    source: ScriptText,
    range: Range<usize>,
    symbols: &mut Symbols,
) -> Result<Option<Meta>, UserError> {
    let name = word(source.text, range.start + 1..range.end);
    if name.is_empty() {
        return Ok(None);
    }
    let start = range.start;
    let mut line = MetaLine { source, start, command: &source.text[name.clone()], rest: name.end..range.end };
    let action = match &*line.command.to_ascii_lowercase() {
        "set" => line.set(symbols)?,
        "if" => Action::If { condition: line.expression(symbols)?, otherwise: 0 },
        "elif" => Action::Elif { condition: line.expression(symbols)?, otherwise: 0, end: 0 },
        "else" => line.bare(Action::Else { end: 0 })?,
        "endif" => line.bare(Action::Endif)?,
        "startpipeline" => line.bare(Action::Pipeline(Pipeline::Start))?,
        "syncpipeline" => line.bare(Action::Pipeline(Pipeline::Sync))?,
        "endpipeline" => line.bare(Action::Pipeline(Pipeline::End))?,
        "sleep" => Action::Sleep(line.sleep(symbols)?),
        "gset" => return line.capture(false).map(|capture| Some(Meta::Capture(capture))),
        "aset" => return line.capture(true).map(|capture| Some(Meta::Capture(capture))),
        "shell" | "setshell" => {
            return Err(line.not_supported("the server does not run shell commands for a workload"));
        }
        _ => return Err(line.error(start, "invalid command")),
    };
    Ok(Some(Meta::Action(action)))
}

/// A meta command's line.
struct MetaLine<'a> {
    source: ScriptText<'a>,
    /// Byte offset of its backslash.
    start: usize,
    /// The command's name, as written.
    command: &'a str,
    /// What has not been looked at yet.
    rest: Range<usize>,
}

impl<'a> MetaLine<'a> {
    /// Takes the next word and its place.
    fn word(&mut self) -> Option<(usize, &'a str)> {
        let word = word(self.source.text, self.rest.clone());
        self.rest.start = word.end;
        (!word.is_empty()).then(|| (word.start, &self.source.text[word]))
    }

    /// An error in pgbench's form.
    fn error(&self, at: usize, message: &str) -> UserError {
        let message = format!("{message} in command \"{}\"", self.command);
        self.source.error(at, sqlstate::SYNTAX_ERROR, message)
    }

    fn missing_argument(&self) -> UserError {
        self.error(self.rest.end, "missing argument")
    }

    fn not_supported(&self, reason: &str) -> UserError {
        let message = format!("meta command \"\\{}\" is not supported: {reason}", self.command);
        self.source.error(self.start, sqlstate::FEATURE_NOT_SUPPORTED, message)
    }

    /// A command without arguments.
    fn bare(&mut self, action: Action) -> Result<Action, UserError> {
        match self.word() {
            None => Ok(action),
            Some((at, _)) => Err(self.error(at, "unexpected argument")),
        }
    }

    /// What is left, as an expression.
    fn expression(&self, symbols: &mut Symbols) -> Result<Expression, UserError> {
        Expression::parse(self.source, self.rest.clone(), symbols)
    }

    fn set(&mut self, symbols: &mut Symbols) -> Result<Action, UserError> {
        let Some((at, name)) = self.word() else { return Err(self.missing_argument()) };
        if !is_variable_name(name) {
            return Err(self.invalid_name(at, name));
        }
        let expression = self.expression(symbols)?;
        Ok(Action::Set { target: symbols.intern(name), expression })
    }

    fn invalid_name(&self, at: usize, name: &str) -> UserError {
        self.source.error(at, sqlstate::SYNTAX_ERROR, format!("invalid variable name \"{name}\""))
    }

    /// `\gset` or `\aset`.
    fn capture(&mut self, every_query: bool) -> Result<ResultCapture, UserError> {
        let prefix = self.word();
        if let Some((at, _)) = self.word() {
            return Err(self.error(at, "too many arguments"));
        }
        match prefix {
            Some((at, prefix)) if !is_variable_name(prefix) => {
                let message = format!("invalid variable name prefix \"{prefix}\"");
                Err(self.source.error(at, sqlstate::SYNTAX_ERROR, message))
            }
            prefix => {
                let prefix = prefix.map_or("", |(_, prefix)| prefix).to_owned();
                Ok(ResultCapture { prefix, every_query })
            }
        }
    }

    fn sleep(&mut self, symbols: &mut Symbols) -> Result<Sleep, UserError> {
        let Some((at, time)) = self.word() else { return Err(self.missing_argument()) };
        let mut unit = self.word();
        if let Some((at, _)) = self.word() {
            return Err(self.error(at, "too many arguments"));
        }
        let time = if let Some(name) = time.strip_prefix(':') {
            if !is_variable_name(name) {
                return Err(self.invalid_name(at, name));
            }
            Time::Variable { id: symbols.intern(name), name: name.into() }
        } else {
            // The unit may follow the number without a blank.
            let number = integer_length(time);
            if number < time.len() {
                if unit.is_some() || !time[..number].ends_with(|last: char| last.is_ascii_digit()) {
                    let message = format!("invalid sleep time, must be an integer ({time})");
                    return Err(self.error(at, &message));
                }
                unit = Some((at + number, &time[number..]));
            }
            Time::Constant(integer(&time[..number]))
        };
        let unit = match unit {
            None => Unit::Seconds,
            Some((_, text)) if text.eq_ignore_ascii_case("us") => Unit::Microseconds,
            Some((_, text)) if text.eq_ignore_ascii_case("ms") => Unit::Milliseconds,
            Some((_, text)) if text.eq_ignore_ascii_case("s") => Unit::Seconds,
            Some((at, text)) => {
                let message = format!("unrecognized time unit, must be us, ms or s ({text})");
                return Err(self.error(at, &message));
            }
        };
        Ok(Sleep { time, unit })
    }
}

impl Sleep {
    /// How long to sleep, never less than nothing (`evaluateSleep` in pgbench.c).
    fn duration(&self, variables: &Variables) -> Result<Duration, UserError> {
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
    pub(super) fn variable(&self) -> Option<VariableId> {
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
fn integer_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    sign + text.bytes().skip(sign).take_while(u8::is_ascii_digit).count()
}

/// What a sign and digits amount to: 0 for negative numbers and for none, the largest number for larger ones.
fn integer(text: &str) -> u64 {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || digits.starts_with('-') { 0 } else { digits.parse().unwrap_or(u64::MAX) }
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

/// The first word in the bytes `range` of a script, empty and at the end if there is none. Words are separated
/// by blanks and line continuations.
fn word(text: &str, range: Range<usize>) -> Range<usize> {
    let separator_length = |at: usize| separator_length(&text.as_bytes()[at..]);
    let mut start = range.start;
    while start < range.end
        && let Some(length) = separator_length(start)
    {
        start += length;
    }
    let end = (start..range.end).find(|&at| separator_length(at).is_some()).unwrap_or(range.end);
    start.min(end)..end
}

#[cfg(test)]
mod tests;
