//! Splitting a script into SQL statements and meta commands, and finding the variables that statements mention.
//!
//! The rules are psql's (src/fe_utils/psqlscan.l), which pgbench uses, with standard_conforming_strings on: a
//! semicolon outside quotes, comments, parentheses and the BEGIN ATOMIC … END of a routine ends a statement, and
//! so does a backslash outside quotes and comments, which begins a meta command that ends with its line. A
//! semicolon alone is a statement, and so is a block comment; a comment to the end of the line is not.

#[cfg(test)]
mod tests;

use std::ops::Range;

use bench_base::error::{UserError, sqlstate};
use bench_base::interrupts;

use crate::text::{ScriptText, continuation_length, is_blank, trim_end};
use crate::variables::{is_name_part, is_name_start};

/// The words of the longest statement beginning that matters: CREATE OR REPLACE FUNCTION.
const BEGINNING_LENGTH: usize = 4;

/// A part of a script that becomes one command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandText {
    /// One statement, or several that `\;` joins.
    Sql(StatementText),
    /// A meta command, from its backslash to the end of its line, or of the last line that continues it.
    Meta(Range<usize>),
}

/// A statement. All positions are byte offsets into the script, on character boundaries.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StatementText {
    /// From its first character, or the first of a block comment before it, to its semicolon.
    pub range: Range<usize>,
    /// The end of its text, before the semicolon.
    pub text_end: usize,
    /// The end of the bytes that pgbench sends: behind the semicolon, or before the meta command or the script's end.
    pub sent_end: usize,
    /// Its variables, in the order of the text.
    pub mentions: Vec<PossibleVariable>,
    /// The backslashes of `\;` and `\:`, which are no part of its text, in order.
    pub escapes: Vec<usize>,
    /// Whether it contains a `\;`.
    pub is_compound: bool,
    /// Whether it contains anything but comments and semicolons.
    pub has_content: bool,
}

/// A part of a statement that looks like a variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PossibleVariable {
    /// The name, without the colon before it.
    pub name: Range<usize>,
    pub kind: MentionKind,
}

/// The place of a variable in a statement. Simple query mode replaces variables anywhere; a parameter can stand
/// only where a value can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MentionKind {
    /// Where a value can stand.
    Parameter,
    /// Directly behind an identifier, of which its value becomes a part.
    Glued,
    /// Inside a quoted identifier, of which its value becomes a part if it has one before the run.
    InIdentifier,
    /// Inside a string constant.
    Quoted,
    /// Inside a comment, or with its colon escaped.
    Inert,
}

/// Splits a script into commands.
///
/// # Errors
/// 42601 for an unterminated quote or comment.
pub(crate) fn split(source: ScriptText) -> Result<Vec<CommandText>, UserError> {
    let mut scanner = Scanner {
        source,
        bytes: source.text.as_bytes(),
        at: 0,
        start: None,
        statement: StatementText::default(),
        open_parentheses: 0,
        routine: Routine::default(),
        identifier_end: None,
    };
    let mut pieces = Vec::new();
    while scanner.at < scanner.bytes.len() {
        interrupts::check_now_and_then();
        let start = scanner.at;
        match scanner.token()? {
            ScriptToken::Blank => {}
            ScriptToken::Comment => scanner.extend_from(start),
            ScriptToken::Other => {
                scanner.extend_from(start);
                scanner.statement.has_content = true;
            }
            ScriptToken::End => {
                scanner.extend_from(start);
                pieces.extend(scanner.finish(start, scanner.at, scanner.at));
            }
            ScriptToken::Backslash => {
                pieces.extend(scanner.finish_unterminated(start));
                scanner.skip_meta_command();
                pieces.push(CommandText::Meta(start..scanner.at));
            }
        }
    }
    pieces.extend(scanner.finish_unterminated(scanner.bytes.len()));
    Ok(pieces)
}

/// The kinds of tokens that [`split`] distinguishes.
enum ScriptToken {
    /// White space, or a comment to the end of the line.
    Blank,
    /// A block comment or an escaped semicolon: part of a statement, but no content.
    Comment,
    /// The semicolon that ends a statement.
    End,
    Backslash,
    /// Anything else: words, numbers, operators, quoted texts, variables.
    Other,
}

struct Scanner<'a> {
    source: ScriptText<'a>,
    bytes: &'a [u8],
    at: usize,
    /// The start of the statement being collected, if there is one.
    start: Option<usize>,
    statement: StatementText,
    // As in psql, a meta command inside parentheses or a routine's body does not end them.
    open_parentheses: usize,
    routine: Routine,
    /// The end of the last identifier: a variable that begins there is glued to it.
    identifier_end: Option<usize>,
}

impl Scanner<'_> {
    /// Begins the statement at `start` unless it has begun.
    fn extend_from(&mut self, start: usize) {
        self.start.get_or_insert(start);
    }

    /// Returns the statement collected so far, if there is one, with its text up to `text_end`.
    fn finish(&mut self, text_end: usize, end: usize, sent_end: usize) -> Option<CommandText> {
        let start = self.start.take()?;
        let statement = std::mem::take(&mut self.statement);
        Some(CommandText::Sql(StatementText { range: start..end, text_end, sent_end, ..statement }))
    }

    /// Returns the statement collected so far, if there is one, ended by a meta command or the script's end at `limit`.
    fn finish_unterminated(&mut self, limit: usize) -> Option<CommandText> {
        let start = self.start?;
        let end = start + trim_end(&self.source.text[start..limit]).len();
        self.finish(end, end, limit)
    }

    /// Returns the byte `ahead` places on; past the end 0, which no text in PostgreSQL contains.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Moves past all bytes for which `accept` is true.
    fn skip_while(&mut self, accept: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|&byte| accept(byte)) {
            self.at += 1;
        }
    }

    /// Moves past the next token and returns its kind.
    fn token(&mut self) -> Result<ScriptToken, UserError> {
        match (self.peek(0), self.peek(1)) {
            (byte, _) if is_blank(byte) => {
                self.skip_while(is_blank);
                return Ok(ScriptToken::Blank);
            }
            (b'-', b'-') => return Ok(self.line_comment()),
            (b'/', b'*') => return self.block_comment(),
            (b'\'', _) => return self.string(0, false),
            (b'e' | b'E', b'\'') => return self.string(1, true),
            (b'b' | b'B' | b'x' | b'X', b'\'') => return self.string(1, false),
            // The prefix of a national string is no identifier.
            (b'n' | b'N', b'\'') => {}
            (b'u' | b'U', b'&') => match self.peek(2) {
                b'\'' => return self.string(2, false),
                b'"' => return self.quoted_identifier(2),
                _ => {}
            },
            (b'"', _) => return self.quoted_identifier(0),
            (b'$', _) => return self.dollar(),
            (b':', _) => {
                self.colon();
                return Ok(ScriptToken::Other);
            }
            (byte, _) if is_name_start(byte) => {
                self.identifier();
                return Ok(ScriptToken::Other);
            }
            (first, second) if first.is_ascii_digit() || (first == b'.' && second.is_ascii_digit()) => {
                self.number();
                return Ok(ScriptToken::Other);
            }
            (b'\\', b';') => return Ok(self.escaped_semicolon()),
            (b'\\', b':') => {
                self.escaped_colon();
                return Ok(ScriptToken::Other);
            }
            (b'\\', _) => {
                self.at += 1;
                return Ok(ScriptToken::Backslash);
            }
            (b'(', _) => self.open_parentheses += 1,
            (b')', _) => self.open_parentheses = self.open_parentheses.saturating_sub(1),
            (b';', _) => {
                self.at += 1;
                if self.is_nested() {
                    return Ok(ScriptToken::Other);
                }
                self.routine = Routine::default();
                return Ok(ScriptToken::End);
            }
            _ => {}
        }
        self.at += 1;
        Ok(ScriptToken::Other)
    }

    /// Whether a semicolon at the current position is inside parentheses or a routine's body, and so ends no statement.
    fn is_nested(&self) -> bool {
        self.open_parentheses > 0 || self.routine.is_in_body()
    }

    /// Takes `\;`, which puts a semicolon into the statement.
    fn escaped_semicolon(&mut self) -> ScriptToken {
        self.statement.escapes.push(self.at);
        self.statement.is_compound = true;
        self.at += 2;
        if self.is_nested() {
            return ScriptToken::Other;
        }
        self.routine = Routine::default();
        ScriptToken::Comment
    }

    /// Takes `\:`, which puts a colon into the statement.
    fn escaped_colon(&mut self) {
        self.statement.escapes.push(self.at);
        // pgbench removes the backslash first and then looks for variables.
        self.mention_at(self.at + 1, self.at, MentionKind::Inert);
        self.at += 2;
    }

    /// Takes an identifier or a keyword.
    fn identifier(&mut self) {
        let start = self.at;
        self.skip_while(|byte| is_name_part(byte) || byte == b'$');
        self.identifier_end = Some(self.at);
        if self.open_parentheses == 0 {
            self.routine.track(&self.bytes[start..self.at]);
        }
    }

    /// Takes a number, which begins with a digit or a point and a digit, and a word that follows it without a blank.
    fn number(&mut self) {
        self.digits();
        // 1..2 is a range of integers.
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), b'e' | b'E') {
            if matches!(self.peek(1), b'+' | b'-') {
                self.at += 2;
                if !self.peek(0).is_ascii_digit() {
                    return;
                }
            } else if self.peek(1).is_ascii_digit() {
                let exponent = self.at;
                self.at += 1;
                self.digits();
                if self.peek(0) == b'$' {
                    // The longest match wins, and e5$ is a word: 1e5$ is 1 and e5$.
                    self.at = exponent;
                }
                self.junk();
                return;
            }
            self.digits();
        }
        self.junk();
    }

    /// Takes digits, with single underscores between them.
    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() || (self.peek(0) == b'_' && self.peek(1).is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// Takes the word that follows a number or a parameter without a blank, if there is one.
    fn junk(&mut self) {
        if is_name_start(self.peek(0)) {
            self.skip_while(|byte| is_name_part(byte) || byte == b'$');
            self.identifier_end = Some(self.at);
        }
    }

    /// Takes a variable, a cast, or a colon.
    fn colon(&mut self) {
        let start = self.at;
        if self.peek(1) == b':' {
            self.at += 2;
            return;
        }
        let is_glued = self.identifier_end == Some(start);
        let kind = if is_glued { MentionKind::Glued } else { MentionKind::Parameter };
        let is_variable = self.mention_at(start, start, kind);
        // A name that begins with a digit is no variable, but is passed over like one.
        self.at += 1;
        self.skip_while(is_name_part);
        if is_variable && is_glued {
            self.identifier_end = Some(self.at);
        }
    }

    /// Records the variable whose colon is at `colon` in the script, and returns whether there is one. `text_colon` is
    /// the colon's place as far as the byte before it matters, which is the backslash for `\:`: behind another colon
    /// it begins no variable (`parseVariable` and `parseQuery` in pgbench.c).
    fn mention_at(&mut self, colon: usize, text_colon: usize, kind: MentionKind) -> bool {
        let follows_colon =
            text_colon.checked_sub(1).and_then(|before| self.bytes.get(before)) == Some(&b':');
        let start = colon + 1;
        let rest = self.bytes.get(start..).unwrap_or_default();
        if follows_colon || !rest.first().is_some_and(|&byte| is_name_start(byte)) {
            return false;
        }
        let length = rest.iter().take_while(|&&byte| is_name_part(byte)).count();
        self.statement.mentions.push(PossibleVariable { name: start..start + length, kind });
        true
    }

    /// Records the variables in a quote or a comment.
    fn mentions_in(&mut self, range: Range<usize>, kind: MentionKind) {
        for colon in range {
            if self.bytes.get(colon) == Some(&b':') {
                self.mention_at(colon, colon, kind);
            }
        }
    }

    /// Moves to the end of a meta command's line: the first newline without a backslash before it.
    fn skip_meta_command(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            self.at += continuation_length(&self.bytes[self.at..]).unwrap_or(1);
        }
    }

    /// Takes a comment to the end of the line. Before a statement it is no part of it.
    fn line_comment(&mut self) -> ScriptToken {
        let start = self.at;
        self.skip_while(|byte| !is_newline(byte));
        if self.start.is_some() {
            self.mentions_in(start..self.at, MentionKind::Inert);
        }
        ScriptToken::Blank
    }

    /// Takes a comment between `/*` and `*/`; such comments nest.
    fn block_comment(&mut self) -> Result<ScriptToken, UserError> {
        let start = self.at;
        let mut depth = 0usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        self.mentions_in(start..self.at, MentionKind::Inert);
                        return Ok(ScriptToken::Comment);
                    }
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(self.unterminated(start, "unterminated /* comment"));
                }
                _ => self.at += 1,
            }
        }
    }

    /// Takes a string constant whose quote is `prefix` bytes ahead.
    fn string(&mut self, prefix: usize, escapes: bool) -> Result<ScriptToken, UserError> {
        self.at += prefix;
        let start = self.at;
        self.quoted(b'\'', escapes, "unterminated quoted string")?;
        self.mentions_in(start..self.at, MentionKind::Quoted);
        Ok(ScriptToken::Other)
    }

    /// Takes an identifier whose double quote is `prefix` bytes ahead.
    fn quoted_identifier(&mut self, prefix: usize) -> Result<ScriptToken, UserError> {
        self.at += prefix;
        let start = self.at;
        self.quoted(b'"', false, "unterminated quoted identifier")?;
        self.mentions_in(start..self.at, MentionKind::InIdentifier);
        Ok(ScriptToken::Other)
    }

    /// Takes a text between quotes, which it may contain doubled or, with `escapes`, behind a backslash.
    fn quoted(&mut self, quote: u8, escapes: bool, message: &str) -> Result<(), UserError> {
        let start = self.at;
        self.at += 1;
        while self.at < self.bytes.len() {
            let byte = self.peek(0);
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) == quote {
                    self.at += 1;
                } else if !(escapes && self.continues_string()) {
                    return Ok(());
                }
            }
        }
        Err(self.unterminated(start, message))
    }

    /// Whether the string that has just ended continues after white space with a newline (SQL standard); if so, moves
    /// past the next opening quote. Matters only for strings with escapes: others look the same as two strings.
    fn continues_string(&mut self) -> bool {
        let end_of_string = self.at;
        let mut newline_seen = false;
        loop {
            let byte = self.peek(0);
            newline_seen |= is_newline(byte);
            if is_blank(byte) {
                self.at += 1;
            } else if byte == b'-' && self.peek(1) == b'-' {
                self.skip_while(|byte| !is_newline(byte));
            } else if byte == b'\'' && newline_seen {
                self.at += 1;
                return true;
            } else {
                self.at = end_of_string;
                return false;
            }
        }
    }

    /// Takes a dollar-quoted text, a parameter such as `$1`, or a dollar sign.
    fn dollar(&mut self) -> Result<ScriptToken, UserError> {
        let start = self.at;
        self.at += 1;
        if self.peek(0).is_ascii_digit() {
            self.skip_while(|byte| byte.is_ascii_digit());
            self.junk();
            return Ok(ScriptToken::Other);
        }
        self.skip_while(is_name_part);
        if self.peek(0) != b'$' {
            self.at = start + 1;
            return Ok(ScriptToken::Other);
        }
        self.at += 1;
        let text = self.source.text;
        let delimiter = &text[start..self.at];
        let Some(length) = text[self.at..].find(delimiter) else {
            return Err(self.unterminated(start, "unterminated dollar-quoted string"));
        };
        self.at += length + delimiter.len();
        self.mentions_in(start..self.at, MentionKind::Quoted);
        Ok(ScriptToken::Other)
    }

    fn unterminated(&self, start: usize, message: &str) -> UserError {
        self.source.error(start, sqlstate::SYNTAX_ERROR, message)
    }
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// A word at a statement's beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RoutineWord {
    #[default]
    Other,
    Create,
    Or,
    Replace,
    /// FUNCTION or PROCEDURE.
    Routine,
}

/// psql's heuristic for routines with a body (`psqlscan_track_identifier`): if a statement's first words create a
/// routine, it counts BEGIN and END pairs, and within them CASE, which also ends with END.
#[derive(Debug, Default)]
struct Routine {
    beginning: [RoutineWord; BEGINNING_LENGTH],
    /// The number of words in `beginning` so far.
    words: usize,
    begin_depth: usize,
}

impl Routine {
    /// Whether the statement is inside BEGIN … END.
    fn is_in_body(&self) -> bool {
        self.begin_depth > 0
    }

    /// Updates the state with an identifier outside parentheses.
    fn track(&mut self, identifier: &[u8]) {
        let is = |word: &str| identifier.eq_ignore_ascii_case(word.as_bytes());
        if let Some(word) = self.beginning.get_mut(self.words) {
            self.words += 1;
            *word = if is("create") {
                RoutineWord::Create
            } else if is("or") {
                RoutineWord::Or
            } else if is("replace") {
                RoutineWord::Replace
            } else if is("function") || is("procedure") {
                RoutineWord::Routine
            } else {
                RoutineWord::Other
            };
        }
        if !self.creates_routine() {
            return;
        }
        if is("begin") || (is("case") && self.is_in_body()) {
            self.begin_depth += 1;
        } else if is("end") {
            self.begin_depth = self.begin_depth.saturating_sub(1);
        }
    }

    fn creates_routine(&self) -> bool {
        matches!(
            self.beginning,
            [RoutineWord::Create, RoutineWord::Routine, ..]
                | [RoutineWord::Create, RoutineWord::Or, RoutineWord::Replace, RoutineWord::Routine]
        )
    }
}
