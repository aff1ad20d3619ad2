//! Comments, quoted texts and dollar quotes: tokens whose end has to be looked for.

use bench_base::error::UserError;

use super::{MentionKind, Scanner, ScriptToken, is_newline};
use crate::blanks::is_blank;
use crate::variables::is_name_part;

impl Scanner<'_> {
    /// A comment to the end of the line. Before a statement it is no part of it.
    pub(super) fn line_comment(&mut self) -> ScriptToken {
        let start = self.at;
        self.skip_while(|byte| !is_newline(byte));
        if self.start.is_some() {
            self.mentions_in(start..self.at, MentionKind::Inert);
        }
        ScriptToken::Blank
    }

    /// A comment between `/*` and `*/`; such comments nest.
    pub(super) fn block_comment(&mut self) -> Result<ScriptToken, UserError> {
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

    /// A string constant whose quote is `prefix` bytes ahead.
    pub(super) fn string(&mut self, prefix: usize, escapes: bool) -> Result<ScriptToken, UserError> {
        self.at += prefix;
        let start = self.at;
        self.quoted(b'\'', escapes, "unterminated quoted string")?;
        self.mentions_in(start..self.at, MentionKind::Quoted);
        Ok(ScriptToken::Other)
    }

    /// An identifier between double quotes that begin `prefix` bytes ahead.
    pub(super) fn quoted_identifier(&mut self, prefix: usize) -> Result<ScriptToken, UserError> {
        self.at += prefix;
        let start = self.at;
        self.quoted(b'"', false, "unterminated quoted identifier")?;
        self.mentions_in(start..self.at, MentionKind::InIdentifier);
        Ok(ScriptToken::Other)
    }

    /// A text between quotes, which it may contain doubled, or behind a backslash where `escapes` says so.
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
    pub(super) fn dollar(&mut self) -> Result<ScriptToken, UserError> {
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
}
