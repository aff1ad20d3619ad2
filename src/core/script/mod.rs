//! pgbench's script language: SQL statements with `:variables`, and meta commands behind a backslash.
//!
//! [`parse`] turns a script into [`Command`]s once; running them needs no text any more. Statements reach the
//! server with `$1`, `$2` … in place of variables, and `\set` expressions are trees that [`Expression::evaluate`]
//! walks.

mod blanks;
mod evaluate;
mod expression;
mod lexer;
mod position;
mod prng;
mod variables;

use std::ops::Range;

pub use expression::Expression;
pub use prng::{Prng, client_generator};
pub use variables::{Symbols, Value, VariableId, Variables, is_variable_name};

use crate::error::{UserError, sqlstate};
use blanks::{separator_length, trim_end};
use lexer::Piece;
use position::Source;

/// A parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// As the user calls it; it appears in messages.
    pub name: String,
    /// The whole text, as written.
    pub source: String,
    /// In the order of the text, at least one.
    pub commands: Vec<Command>,
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A statement for the server.
    Sql(Sql),
    /// `\set`.
    Set(Set),
}

/// A statement for the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Sql {
    /// The line it begins at, counted from 1.
    pub line: u32,
    /// As written, with its semicolon, without what is blank or comment before it (but for block comments, which
    /// may be hints).
    pub source: String,
    /// For the server: `$n` for each variable, and no semicolon.
    pub text: String,
    /// The variables: `$1` is `parameters[0]`; one for each mention.
    pub parameters: Vec<VariableId>,
}

/// `\set target expression`.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// The line it begins at, counted from 1.
    pub line: u32,
    /// As written, from the backslash on.
    pub source: String,
    /// The variable that it sets.
    pub target: VariableId,
    /// What to.
    pub expression: Expression,
}

impl Command {
    /// The line the command begins at, counted from 1.
    pub fn line(&self) -> u32 {
        match self {
            Command::Sql(sql) => sql.line,
            Command::Set(set) => set.line,
        }
    }

    /// The command as the user wrote it, for display.
    pub fn text(&self) -> &str {
        match self {
            Command::Sql(sql) => &sql.source,
            Command::Set(set) => &set.source,
        }
    }

    /// Calls `visit` with each variable that the command reads.
    fn for_each_variable_read(&self, visit: &mut dyn FnMut(VariableId)) {
        match self {
            Command::Sql(sql) => sql.parameters.iter().copied().for_each(visit),
            Command::Set(set) => set.expression.for_each_variable(visit),
        }
    }
}

impl Script {
    /// The first variable, and the line of the command that reads it, that neither `defined` knows nor any `\set`
    /// of the script sets, be it before or after. `symbols` are those that the script was parsed with.
    pub fn undefined_variables(
        &self,
        symbols: &Symbols,
        defined: &dyn Fn(VariableId) -> bool,
    ) -> Option<(u32, VariableId)> {
        let mut set_here = vec![false; symbols.len()];
        for command in &self.commands {
            if let Command::Set(set) = command
                && let Some(flag) = set_here.get_mut(set.target.index())
            {
                *flag = true;
            }
        }
        let is_defined = |id: VariableId| set_here.get(id.index()) == Some(&true) || defined(id);
        self.commands.iter().find_map(|command| {
            let mut first_undefined = None;
            command.for_each_variable_read(&mut |id| {
                if first_undefined.is_none() && !is_defined(id) {
                    first_undefined = Some((command.line(), id));
                }
            });
            first_undefined
        })
    }
}

/// Parses the script `name`, whose text is `source`. Its variables become part of `symbols`.
///
/// # Errors
/// 42601 for a syntax error or a script without commands, 0A000 for what pgbench knows but this does not yet,
/// 22003 and 54001 as an expression's. Their details name script, line and column, and show the line.
pub fn parse(name: &str, source: &str, symbols: &mut Symbols) -> Result<Script, UserError> {
    let place = Source { name, text: source };
    let commands = lexer::split(place)?
        .into_iter()
        .map(|piece| match piece {
            Piece::Sql { range, text_end, variables } => {
                Ok(Command::Sql(sql(place, range, text_end, &variables, symbols)))
            }
            Piece::Meta(range) => meta_command(place, range, symbols),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if commands.is_empty() {
        let message = format!("empty command list for script \"{name}\"");
        return Err(UserError::new(sqlstate::SYNTAX_ERROR, message)
            .hint("Write at least one SQL statement or meta command."));
    }
    Ok(Script { name: name.to_owned(), source: source.to_owned(), commands })
}

/// The statement in the bytes `range` of a script, with `$n` for its variables.
fn sql(
    place: Source,
    range: Range<usize>,
    text_end: usize,
    variables: &[Range<usize>],
    symbols: &mut Symbols,
) -> Sql {
    let mut text = String::with_capacity(range.len());
    let mut parameters = Vec::new();
    let mut copied = range.start;
    for name in variables {
        // As pgbench, one parameter for each mention: their types may differ.
        parameters.push(symbols.intern(&place.text[name.clone()]));
        // The colon stands before the name.
        text.push_str(&place.text[copied..name.start - 1]);
        text.push_str(&format!("${}", parameters.len()));
        copied = name.end;
    }
    text.push_str(trim_end(&place.text[copied..text_end]));
    Sql { line: place.line_of(range.start), source: place.text[range].to_owned(), text, parameters }
}

/// pgbench's meta commands that are still to come (`getMetaCommand` in pgbench.c).
const META_COMMANDS_NOT_YET_SUPPORTED: [&str; 12] = [
    "setshell",
    "shell",
    "sleep",
    "if",
    "elif",
    "else",
    "endif",
    "gset",
    "aset",
    "startpipeline",
    "endpipeline",
    "syncpipeline",
];

/// The meta command in the bytes `range` of a script, which begin with its backslash.
fn meta_command(place: Source, range: Range<usize>, symbols: &mut Symbols) -> Result<Command, UserError> {
    let name = word(place.text, range.start + 1..range.end);
    let command = &place.text[name.clone()];
    if command.eq_ignore_ascii_case("set") {
        return set(place, range, name.end, symbols).map(Command::Set);
    }
    Err(if META_COMMANDS_NOT_YET_SUPPORTED.iter().any(|other| command.eq_ignore_ascii_case(other)) {
        let message = format!("meta command \"\\{command}\" is not supported yet");
        place.error(range.start, sqlstate::FEATURE_NOT_SUPPORTED, message)
    } else {
        place.error(range.start, sqlstate::SYNTAX_ERROR, format!("invalid command \"\\{command}\""))
    })
}

/// The `\set` in the bytes `range`, whose arguments begin at `arguments`.
fn set(
    place: Source,
    range: Range<usize>,
    arguments: usize,
    symbols: &mut Symbols,
) -> Result<Set, UserError> {
    let target = word(place.text, arguments..range.end);
    let name = &place.text[target.clone()];
    if name.is_empty() {
        let message = "missing argument in command \"\\set\"";
        return Err(place.error(target.start, sqlstate::SYNTAX_ERROR, message));
    }
    if !is_variable_name(name) {
        let message = format!("invalid variable name \"{name}\"");
        return Err(place.error(target.start, sqlstate::SYNTAX_ERROR, message));
    }
    let expression = Expression::parse(place, target.end..range.end, symbols)?;
    let line = place.line_of(range.start);
    let source = trim_end(&place.text[range]).to_owned();
    Ok(Set { line, source, target: symbols.intern(name), expression })
}

/// The first word in the bytes `range` of a script, empty and at the end if there is none. Words are separated by
/// blanks and line continuations.
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
