//! SQL statements of scripts, and the substitution of their variables.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use bench_base::error::{UserError, sqlstate};
use bench_base::interrupts;

use crate::lexer::{MentionKind, StatementText};
use crate::text::{ScriptText, excerpt};
use crate::variables::{Symbols, VariableId, Variables, is_name_part};

/// The most parameters of a statement: the protocol counts them in 16 bits. pgbench's limit is 255, which applications'
/// statements exceed.
const MAX_PARAMETERS: usize = 65_535;

/// The longest statement in bytes: the server's MaxAllocSize, less the zero byte at its end.
const MAX_LENGTH: usize = 0x3fff_fffe;

/// too_many_arguments
const TOO_MANY_ARGUMENTS: &str = "54023";

/// A statement for the server, or several that `\;` joins to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Sql {
    /// The `\gset` or `\aset` behind it.
    pub capture: Option<ResultCapture>,
    /// As written, without the final semicolon and without the backslashes of `\;` and `\:`.
    text: String,
    /// Blanks and the final semicolon, see [`ending`](Self::ending).
    ending: Box<str>,
    /// In the order of the text.
    pub(crate) mentions: Vec<VariableMention>,
    is_compound: bool,
    is_empty: bool,
}

/// `\gset` or `\aset`: result columns become variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultCapture {
    /// Prefix of the variables' names, before the columns'; may be empty.
    pub prefix: String,
    /// `\aset`: all queries of a compound statement count and none needs a row. Otherwise `\gset`: only the last
    /// one counts, and must return exactly one row.
    pub every_query: bool,
}

/// A statement for the extended protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameterized {
    /// The statement with `$n` for variables, without the final semicolon.
    pub text: String,
    /// The variable of `$1` and so on: one for each mention, as in pgbench, because their types may differ.
    pub parameters: Vec<VariableId>,
}

/// A variable in a statement's text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct VariableMention {
    pub id: VariableId,
    pub kind: MentionKind,
    /// Byte offset of its colon in the script.
    pub at: usize,
    /// Its bytes in the statement's text, from the colon on.
    range: Range<usize>,
}

impl VariableMention {
    /// Returns the text that replaces the variable in simple query mode; `None` if it stays as written.
    fn value<'v>(&self, variables: &'v Variables) -> Option<Cow<'v, str>> {
        let value = variables.get(self.id)?;
        if !variables.is_fed(self.id) {
            return Some(value.to_text());
        }
        (self.kind == MentionKind::Parameter).then(|| Cow::Owned(value.to_literal()))
    }
}

/// Skips blanks and comments at a statement's front.
fn skip_comments(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        text = if text.starts_with("--") {
            text.split_once('\n').map_or("", |(_, rest)| rest)
        } else if text.starts_with("/*") {
            text.split_once("*/").map_or("", |(_, rest)| rest)
        } else {
            return text;
        };
    }
}

impl Sql {
    /// Whether the statement may commit something, judged by its text; errs on the side of true. `in_block`: the session is
    /// in a transaction block before it.
    pub fn may_commit(&self, mut in_block: bool) -> bool {
        for part in self.text.split(';') {
            let mut words = skip_comments(part)
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .filter(|word| !word.is_empty())
                .map(str::to_ascii_lowercase);
            match words.next().as_deref() {
                None => {}
                Some("begin" | "start") => in_block = true,
                Some("commit" | "end") => return true,
                Some("prepare") if words.next().as_deref() == Some("transaction") => return true,
                Some("rollback" | "abort") => in_block = false,
                Some(_) if !in_block => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// Builds the statement from its place in a script, and adds its variables to `symbols`.
    pub(crate) fn new(script: &str, statement: &StatementText, symbols: &mut Symbols) -> Sql {
        let start = statement.range.start;
        let mut text = String::with_capacity(statement.text_end - start);
        let mut copied = start;
        for &backslash in &statement.escapes {
            text.push_str(&script[copied..backslash]);
            copied = backslash + 1;
        }
        text.push_str(&script[copied..statement.text_end]);
        let length = crate::text::trim_end(&text).len();
        let blanks = text.len() - length;
        text.truncate(length);
        let ending = script[statement.text_end - blanks..statement.sent_end].into();

        let mut escapes = statement.escapes.iter().peekable();
        let mut removed = start;
        let mentions = statement.mentions.iter().map(|mention| {
            let colon = mention.name.start - 1;
            while escapes.next_if(|&&backslash| backslash < colon).is_some() {
                removed += 1;
            }
            VariableMention {
                id: symbols.intern(&script[mention.name.clone()]),
                kind: mention.kind,
                at: colon,
                range: colon - removed..mention.name.end - removed,
            }
        });
        let mentions = mentions.collect();
        let (is_compound, is_empty) = (statement.is_compound, !statement.has_content);
        Sql { capture: None, text, ending, mentions, is_compound, is_empty }
    }

    /// Returns the statement for the extended protocol, with `$n` for each variable where a value can stand. For a variable
    /// glued to an identifier, as in `tbl_:shard` or `"tbl_:shard"`, its value in `constants` becomes part of the text (in
    /// quotes only if it has one). Variables in comments and string constants, and colons written as `\:`, stay text.
    /// [`Script::check_parameterized`](crate::script::Script::check_parameterized) finds statements this does not work for.
    ///
    /// # Errors
    /// 22023 for a glued variable that is not among `constants`, or whose value is no part of an identifier.
    pub fn parameterized(&self, constants: &Variables) -> Result<Parameterized, UserError> {
        let mut text = String::with_capacity(self.text.len());
        let mut parameters = Vec::new();
        let mut copied = 0;
        for mention in &self.mentions {
            text.push_str(&self.text[copied..mention.range.start]);
            copied = mention.range.start;
            match mention.kind {
                MentionKind::Parameter => {
                    parameters.push(mention.id);
                    text.push_str(&format!("${}", parameters.len()));
                    copied = mention.range.end;
                }
                MentionKind::Glued => {
                    self.push_glued(mention, constants, &mut text)?;
                    copied = mention.range.end;
                }
                MentionKind::InIdentifier if constants.get(mention.id).is_some() => {
                    self.push_glued(mention, constants, &mut text)?;
                    copied = mention.range.end;
                }
                MentionKind::InIdentifier | MentionKind::Quoted | MentionKind::Inert => {}
            }
        }
        text.push_str(&self.text[copied..]);
        Ok(Parameterized { text, parameters })
    }

    /// Returns the parameters of [`parameterized`](Self::parameterized).
    pub fn parameters(&self) -> impl Iterator<Item = VariableId> {
        self.mentions
            .iter()
            .filter(|mention| mention.kind == MentionKind::Parameter)
            .map(|mention| mention.id)
    }

    /// Whether the text of [`parameterized`](Self::parameterized) depends on the constants.
    pub fn needs_constants(&self) -> bool {
        self.mentions.iter().any(|m| matches!(m.kind, MentionKind::Glued | MentionKind::InIdentifier))
    }

    fn push_glued(
        &self,
        mention: &VariableMention,
        constants: &Variables,
        text: &mut String,
    ) -> Result<(), UserError> {
        let name = &self.text[mention.range.start + 1..mention.range.end];
        let Some(value) = constants.get(mention.id) else {
            let message =
                format!("variable \"{name}\" attached to an identifier has no value before the run");
            return Err(UserError::invalid(message).hint(GLUED_HINT));
        };
        let value = value.to_text();
        if value.is_empty() || !value.bytes().all(|byte| is_name_part(byte) || byte == b'$') {
            let message =
                format!("value \"{value}\" of variable \"{name}\" cannot be a part of an identifier");
            return Err(UserError::invalid(message)
                .detail("It may consist of letters, digits, underscores and dollar signs.")
                .hint(GLUED_HINT));
        }
        text.push_str(&value);
        Ok(())
    }

    /// Appends to `out` the statement as `pgbench -M simple` sends it, without the final semicolon: variables that are
    /// set are replaced by their values everywhere, even in quotes and comments. Feeders' values are inserted as literals,
    /// and only where a value can stand.
    ///
    /// # Errors
    /// 54000 for a text above the server's limit of 1 GB, 53200 if memory for it cannot be allocated.
    pub fn substitute(&self, variables: &Variables, out: &mut String) -> Result<(), UserError> {
        let values = self.mentions.iter().filter_map(|mention| mention.value(variables));
        let length = values.fold(self.text.len(), |sum, value| sum.saturating_add(value.len()));
        if length > MAX_LENGTH {
            let message = format!("a statement must not be longer than {MAX_LENGTH} bytes, not {length}");
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        if out.try_reserve(length).is_err() {
            return Err(UserError::new(sqlstate::OUT_OF_MEMORY, "out of memory")
                .detail(format!("Failed on a statement of {length} bytes.")));
        }
        let mut copied = 0;
        for mention in &self.mentions {
            if let Some(value) = mention.value(variables) {
                out.push_str(&self.text[copied..mention.range.start]);
                out.push_str(&value);
                copied = mention.range.end;
            }
        }
        out.push_str(&self.text[copied..]);
        Ok(())
    }

    /// Checks that feeders' values stand only where a value can. With `in_text` they become literals: then the ends of
    /// string constants must not depend on `standard_conforming_strings`. `fed` says which variables feeders set.
    pub(crate) fn check_fed(
        &self,
        source: ScriptText,
        symbols: &Symbols,
        fed: &dyn Fn(VariableId) -> bool,
        in_text: bool,
    ) -> Result<(), UserError> {
        let has_escaped_quote = std::cell::LazyCell::new(|| self.text.contains("\\'"));
        for mention in self.mentions.iter().filter(|mention| fed(mention.id)) {
            interrupts::check_now_and_then();
            let name = symbols.name(mention.id);
            let error = |message: String| source.error(mention.at, sqlstate::SYNTAX_ERROR, message);
            match mention.kind {
                MentionKind::Glued | MentionKind::InIdentifier => {
                    let message =
                        format!("variable \"{name}\" of a feeder cannot be a part of an identifier");
                    return Err(error(message).hint("Use it where a value can stand."));
                }
                MentionKind::Quoted => {
                    let message =
                        format!("variable \"{name}\" of a feeder cannot stand inside a string constant");
                    return Err(error(message).hint(format!("Concatenate: 'text ' || :{name}.")));
                }
                MentionKind::Parameter if in_text && *has_escaped_quote => {
                    let message =
                        "a statement with a feeder's values must not have a backslash before a single quote";
                    return Err(error(message.to_owned())
                        .detail("Where the string constant ends depends on standard_conforming_strings.")
                        .hint("Write a quote as '', or use query_mode => 'extended'."));
                }
                MentionKind::Parameter | MentionKind::Inert => {}
            }
        }
        Ok(())
    }

    /// Returns the bytes behind the text that pgbench sends with it: blanks, and the final semicolon unless a meta command
    /// or the script's end ends the statement.
    pub fn ending(&self) -> &str {
        &self.ending
    }

    /// Whether the statement consists of semicolons and comments only.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Whether the statement contains a `\;`, which may make it several statements.
    pub fn is_compound(&self) -> bool {
        self.is_compound
    }

    /// Calls `visit` with each variable whose value the statement needs, in the order of the text.
    pub(crate) fn for_each_variable(&self, visit: &mut dyn FnMut(VariableId)) {
        let needed =
            |mention: &&VariableMention| matches!(mention.kind, MentionKind::Parameter | MentionKind::Glued);
        self.mentions.iter().filter(needed).for_each(|mention| visit(mention.id));
    }

    /// Returns the variables glued to identifiers.
    pub(crate) fn glued(&self) -> impl Iterator<Item = VariableId> {
        let glued = |mention: &&VariableMention| {
            matches!(mention.kind, MentionKind::Glued | MentionKind::InIdentifier)
        };
        self.mentions.iter().filter(glued).map(|mention| mention.id)
    }

    /// Checks that the statement works with parameters. `assigned` says which variables change during the run, `defined`
    /// which have a value before it.
    pub(crate) fn check_parameterized(
        &self,
        source: ScriptText,
        symbols: &Symbols,
        assigned: &dyn Fn(VariableId) -> bool,
        defined: &dyn Fn(VariableId) -> bool,
    ) -> Result<(), UserError> {
        for mention in &self.mentions {
            let name = symbols.name(mention.id);
            let error = |message| source.error(mention.at, sqlstate::SYNTAX_ERROR, message);
            match mention.kind {
                MentionKind::Glued | MentionKind::InIdentifier if assigned(mention.id) => {
                    let message = format!(
                        "variable \"{name}\" attached to an identifier must be constant over the run"
                    );
                    return Err(error(message).hint(GLUED_HINT));
                }
                MentionKind::Quoted if assigned(mention.id) || defined(mention.id) => {
                    let message =
                        format!("variable \"{name}\" inside a string constant cannot be a parameter");
                    let hint = format!("Use query_mode => 'simple', or concatenate: 'text ' || :{name}.");
                    return Err(error(message).hint(hint));
                }
                _ => {}
            }
        }
        let mut parameters = self
            .mentions
            .iter()
            .filter(|mention| mention.kind == MentionKind::Parameter)
            .skip(MAX_PARAMETERS);
        if let Some(mention) = parameters.next() {
            let message = format!(
                "statement has too many arguments (maximum is {MAX_PARAMETERS}): {}",
                excerpt(&self.text)
            );
            return Err(source.error(mention.at, TOO_MANY_ARGUMENTS, message));
        }
        Ok(())
    }
}

const GLUED_HINT: &str =
    "Set it in variables, or use query_mode => 'simple', which puts values into the text each time.";

/// Returns a hint if the error says that a statement cannot be prepared, or not with parameters for its variables: it may work
/// in pgbench, whose default is simple query mode. In other languages than English only a quoted `"$n"` is recognized.
pub fn hint_of_prepared(state: &str, message: &str) -> Option<&'static str> {
    let names_a_parameter =
        message.split("\"$").skip(1).any(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    match state {
        sqlstate::SYNTAX_ERROR if names_a_parameter || message.starts_with("cannot use a variable here") => {
            Some(PARAMETER_HINT)
        }
        sqlstate::SYNTAX_ERROR if message.starts_with("cannot insert multiple commands") => {
            Some(SEVERAL_HINT)
        }
        sqlstate::PROTOCOL_VIOLATION if message.starts_with("bind message supplies") => Some(PARAMETER_HINT),
        _ => None,
    }
}

const PARAMETER_HINT: &str = "A variable stands where the server takes no parameter. Use query_mode => 'simple', pgbench's default, which puts values into the text.";
const SEVERAL_HINT: &str =
    "\\; sends several statements at once. Use query_mode => 'simple', pgbench's default.";
