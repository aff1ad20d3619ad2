//! Splitting a script into SQL statements and meta commands.
//!
//! The rules are psql's (src/fe_utils/psqlscan.l), which pgbench uses, with standard_conforming_strings on: a
//! semicolon outside quotes, comments and parentheses ends a statement, and so does a backslash outside quotes and
//! comments, which begins a meta command that ends with its line. A statement of nothing but comments is none.

use std::ops::Range;

use super::blanks::{continuation_length, is_blank, trim_end};
use super::position::Source;
use super::variables::{is_name_part, is_name_start};
use crate::error::{UserError, sqlstate};

/// A part of a script that becomes one command. All positions are byte offsets into the script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// One statement.
    Sql {
        /// From its first character, or the first of a block comment before it, to its semicolon.
        range: Range<usize>,
        /// Where its text ends: before the semicolon.
        text_end: usize,
        /// The names of its variables, each without the colon before it.
        variables: Vec<Range<usize>>,
    },
    /// A meta command, from its backslash to the end of its line, or of the last line that continues it.
    Meta(Range<usize>),
}

/// Splits a script.
///
/// # Errors
/// 42601 for a quote or a comment that does not end, 0A000 for `\;` and `\:`.
pub(super) fn split(source: Source) -> Result<Vec<Piece>, UserError> {
    let mut scanner = Scanner { source, bytes: source.text.as_bytes(), at: 0 };
    let mut pieces = Vec::new();
    let mut statement = Statement::default();
    while scanner.at < scanner.bytes.len() {
        let start = scanner.at;
        match scanner.token()? {
            Token::Blank => {}
            Token::BlockComment => statement.extend_from(start),
            Token::Semicolon if statement.open_parentheses == 0 => {
                pieces.extend(std::mem::take(&mut statement).finish(start, scanner.at));
            }
            Token::Backslash => {
                pieces.extend(std::mem::take(&mut statement).finish_unterminated(source.text, start));
                scanner.skip_meta_command();
                pieces.push(Piece::Meta(start..scanner.at));
            }
            token => statement.add(start, token),
        }
    }
    pieces.extend(statement.finish_unterminated(source.text, scanner.at));
    Ok(pieces)
}

/// The statement that is being collected.
#[derive(Default)]
struct Statement {
    start: Option<usize>,
    /// Whether there is more than comments.
    has_content: bool,
    open_parentheses: usize,
    variables: Vec<Range<usize>>,
}

impl Statement {
    /// Begins the statement at `start` unless it has begun.
    fn extend_from(&mut self, start: usize) {
        self.start.get_or_insert(start);
    }

    /// Adds a token that is neither blank nor comment.
    fn add(&mut self, start: usize, token: Token) {
        self.extend_from(start);
        self.has_content = true;
        match token {
            Token::Open => self.open_parentheses += 1,
            Token::Close => self.open_parentheses = self.open_parentheses.saturating_sub(1),
            Token::Variable(name) => self.variables.push(name),
            _ => {}
        }
    }

    /// The statement that ends with a semicolon at `text_end`.
    fn finish(self, text_end: usize, end: usize) -> Option<Piece> {
        let start = self.start.filter(|_| self.has_content)?;
        Some(Piece::Sql { range: start..end, text_end, variables: self.variables })
    }

    /// The statement that a meta command or the script's end at `limit` ends.
    fn finish_unterminated(self, script: &str, limit: usize) -> Option<Piece> {
        let start = self.start?;
        let end = start + trim_end(&script[start..limit]).len();
        self.finish(end, end)
    }
}

/// What the splitting has to tell apart.
enum Token {
    /// White space or a comment to the end of the line.
    Blank,
    BlockComment,
    Open,
    Close,
    Semicolon,
    Backslash,
    /// The range is the name's, without the colon.
    Variable(Range<usize>),
    /// Anything else: words, numbers, operators, quoted texts.
    Other,
}

struct Scanner<'a> {
    source: Source<'a>,
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The byte `ahead` of the current one; 0, which no text in PostgreSQL contains, past the end.
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Moves past all bytes that `accept` takes.
    fn skip_while(&mut self, accept: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|&byte| accept(byte)) {
            self.at += 1;
        }
    }

    /// Moves past the next token and tells what it is.
    fn token(&mut self) -> Result<Token, UserError> {
        let single = match (self.peek(0), self.peek(1)) {
            (byte, _) if is_blank(byte) => {
                self.skip_while(is_blank);
                return Ok(Token::Blank);
            }
            (b'-', b'-') => {
                self.skip_while(|byte| !is_newline(byte));
                return Ok(Token::Blank);
            }
            (b'/', b'*') => return self.block_comment(),
            (b'\'', _) => return self.quoted(b'\'', false, "unterminated quoted string"),
            (b'e' | b'E', b'\'') => {
                self.at += 1;
                return self.quoted(b'\'', true, "unterminated quoted string");
            }
            (b'"', _) => return self.quoted(b'"', false, "unterminated quoted identifier"),
            (b'$', _) => return self.dollar(),
            (b':', _) => return Ok(self.colons()),
            (byte, _) if is_name_part(byte) => {
                self.word();
                return Ok(Token::Other);
            }
            (b'\\', follower @ (b';' | b':')) => {
                let message = format!("meta command \"\\{}\" is not supported yet", char::from(follower));
                return Err(self.source.error(self.at, sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            (b'\\', _) => Token::Backslash,
            (b'(', _) => Token::Open,
            (b')', _) => Token::Close,
            (b';', _) => Token::Semicolon,
            _ => Token::Other,
        };
        self.at += 1;
        Ok(single)
    }

    /// A word, or a number and the word that follows it without a blank. Only a word contains dollar signs.
    fn word(&mut self) {
        self.skip_while(|byte| byte.is_ascii_digit());
        if is_name_start(self.peek(0)) {
            self.skip_while(|byte| is_name_part(byte) || byte == b'$');
        }
    }

    /// Comments nest.
    fn block_comment(&mut self) -> Result<Token, UserError> {
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
                        return Ok(Token::BlockComment);
                    }
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(self.unterminated(start, "unterminated /* comment"));
                }
                _ => self.at += 1,
            }
        }
    }

    /// A text between quotes, which it may contain doubled, or behind a backslash where `escapes` says so.
    fn quoted(&mut self, quote: u8, escapes: bool, message: &str) -> Result<Token, UserError> {
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
                    return Ok(Token::Other);
                }
            }
        }
        Err(self.unterminated(start, message))
    }

    /// Whether white space with a newline and another quote continue the string that has just ended, as the SQL
    /// standard has it. Moves past that quote. It matters for strings with escapes only.
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

    /// A dollar-quoted text, a parameter such as `$1`, or a dollar sign.
    fn dollar(&mut self) -> Result<Token, UserError> {
        let start = self.at;
        self.at += 1;
        if self.peek(0).is_ascii_digit() {
            self.word();
            return Ok(Token::Other);
        }
        self.skip_while(is_name_part);
        if self.peek(0) != b'$' {
            self.at = start + 1;
            return Ok(Token::Other);
        }
        self.at += 1;
        let text = self.source.text;
        let delimiter = &text[start..self.at];
        let Some(length) = text[self.at..].find(delimiter) else {
            return Err(self.unterminated(start, "unterminated dollar-quoted string"));
        };
        self.at += length + delimiter.len();
        Ok(Token::Other)
    }

    /// A variable, or any number of colons that none follows: `::` is a cast (`parseVariable` and `parseQuery` in
    /// pgbench.c).
    fn colons(&mut self) -> Token {
        self.at += 1;
        let start = self.at;
        if is_name_start(self.peek(0)) {
            self.skip_while(is_name_part);
            return Token::Variable(start..self.at);
        }
        self.skip_while(|byte| byte == b':');
        Token::Other
    }

    /// Moves to the end of the meta command's line: the first newline without a backslash before it.
    fn skip_meta_command(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            self.at += continuation_length(&self.bytes[self.at..]).unwrap_or(1);
        }
    }

    fn unterminated(&mut self, start: usize, message: &str) -> UserError {
        self.source.error(start, sqlstate::SYNTAX_ERROR, message)
    }
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

#[cfg(test)]
mod tests;
