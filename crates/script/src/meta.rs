//! The parser of meta commands.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bench_base::error::{UserError, sqlstate};

use crate::command::{Action, Pipeline, Sleep, Time, Unit, integer, integer_length};
use crate::expression::Expression;
use crate::sql::ResultCapture;
use crate::text::{ScriptText, separator_length};
use crate::variables::{Symbols, is_variable_name};

/// A parsed meta command.
pub(crate) enum Meta {
    /// A command of its own; its jump targets are not set yet.
    Action(Action),
    /// `\gset` or `\aset`, part of the command before it.
    Capture(ResultCapture),
}

/// Parses the meta command in the bytes `range` of a script, which begin with its backslash; `None` if nothing
/// follows it (`process_backslash_command` in pgbench.c).
///
/// # Errors
/// 42601 for a syntax error, 0A000 for a shell command, and those of expressions.
pub(crate) fn parse(
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
    /// The bytes not parsed yet.
    rest: Range<usize>,
}

impl<'a> MetaLine<'a> {
    /// Takes the next word and its byte offset.
    fn word(&mut self) -> Option<(usize, &'a str)> {
        let word = word(self.source.text, self.rest.clone());
        self.rest.start = word.end;
        (!word.is_empty()).then(|| (word.start, &self.source.text[word]))
    }

    /// Returns an error in pgbench's form.
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

    /// Returns `action` if the command has no arguments.
    fn bare(&mut self, action: Action) -> Result<Action, UserError> {
        match self.word() {
            None => Ok(action),
            Some((at, _)) => Err(self.error(at, "unexpected argument")),
        }
    }

    /// Parses the rest of the line as an expression.
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

    /// Parses the argument of `\gset` or `\aset`.
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

/// Returns the first word in the bytes `range` of a script, empty and at the end if there is none. Words are separated
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
