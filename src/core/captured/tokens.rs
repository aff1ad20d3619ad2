//! Statements as sequences of tokens, as the server's scanner (`scan.l`) takes them apart, as far as is needed to tell words
//! and parameters from what only looks like them.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Blanks and newlines.
    Blank,
    /// `-- …` or `/* … */`.
    Comment,
    /// A keyword or an unquoted identifier.
    Word,
    /// `"…"`.
    QuotedIdentifier,
    /// `'…'`, with its prefix (`E`, `B`, `X`, `N`, `U&`), or `$tag$…$tag$`.
    String,
    /// A number.
    Number,
    /// `$n`.
    Parameter(u32),
    /// Any other character: a part of an operator, or punctuation.
    Symbol,
}

/// A token: where it is in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    /// Its bytes.
    pub range: Range<usize>,
}

impl Token {
    /// As written.
    pub fn text<'a>(&self, of: &'a str) -> &'a str {
        &of[self.range.clone()]
    }

    /// Whether it is this word, in whatever case.
    pub fn is_word(&self, of: &str, word: &str) -> bool {
        self.kind == Kind::Word && self.text(of).eq_ignore_ascii_case(word)
    }

    /// Whether it says nothing: blanks and comments.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::Blank | Kind::Comment)
    }
}

/// The tokens of a statement, which cover all of its text. What is not ended goes to the end of the text.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (kind, end) = next(bytes, at);
        found.push(Token { kind, range: at..end });
        at = end;
    }
    found
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word_part(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Where a run of such bytes ends.
fn run(bytes: &[u8], from: usize, is_part: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|&byte| !is_part(byte)).map_or(bytes.len(), |length| from + length)
}

fn next(bytes: &[u8], at: usize) -> (Kind, usize) {
    let peek = |ahead: usize| bytes.get(at + ahead).copied().unwrap_or(0);
    match bytes[at] {
        byte if byte.is_ascii_whitespace() || byte == 0x0b => {
            (Kind::Blank, run(bytes, at, |byte| byte.is_ascii_whitespace() || byte == 0x0b))
        }
        b'-' if peek(1) == b'-' => (Kind::Comment, run(bytes, at, |byte| byte != b'\n' && byte != b'\r')),
        b'/' if peek(1) == b'*' => (Kind::Comment, end_of_comment(bytes, at)),
        b'\'' => (Kind::String, end_of_quoted(bytes, at, false)),
        b'"' => (Kind::QuotedIdentifier, end_of_quoted(bytes, at, false)),
        b'e' | b'E' if peek(1) == b'\'' => (Kind::String, end_of_quoted(bytes, at + 1, true)),
        b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if peek(1) == b'\'' => {
            (Kind::String, end_of_quoted(bytes, at + 1, false))
        }
        b'u' | b'U' if peek(1) == b'&' && peek(2) == b'\'' => {
            (Kind::String, end_of_quoted(bytes, at + 2, false))
        }
        b'u' | b'U' if peek(1) == b'&' && peek(2) == b'"' => {
            (Kind::QuotedIdentifier, end_of_quoted(bytes, at + 2, false))
        }
        byte if is_word_start(byte) => (Kind::Word, run(bytes, at, is_word_part)),
        b'$' => dollar(bytes, at),
        byte if byte.is_ascii_digit() || (byte == b'.' && peek(1).is_ascii_digit()) => {
            (Kind::Number, end_of_number(bytes, at))
        }
        _ => (Kind::Symbol, at + 1),
    }
}

fn dollar(bytes: &[u8], at: usize) -> (Kind, usize) {
    let end = run(bytes, at + 1, |byte| byte.is_ascii_digit());
    if end > at + 1 {
        let digits = std::str::from_utf8(&bytes[at + 1..end]).unwrap_or_default();
        return match digits.parse() {
            Ok(number) => (Kind::Parameter(number), end),
            Err(_) => (Kind::Symbol, end),
        };
    }
    let tag_end = run(bytes, at + 1, |byte| is_word_part(byte) && byte != b'$');
    if bytes.get(tag_end) != Some(&b'$') {
        return (Kind::Symbol, at + 1);
    }
    let tag = &bytes[at..=tag_end];
    let body = tag_end + 1;
    let length = bytes[body..].windows(tag.len()).position(|window| window == tag);
    (Kind::String, length.map_or(bytes.len(), |length| body + length + tag.len()))
}

/// Such comments nest.
fn end_of_comment(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut place = at;
    while place < bytes.len() {
        match &bytes[place..bytes.len().min(place + 2)] {
            b"/*" => {
                depth += 1;
                place += 2;
            }
            b"*/" => {
                depth -= 1;
                place += 2;
                if depth == 0 {
                    return place;
                }
            }
            _ => place += 1,
        }
    }
    bytes.len()
}

/// A doubled quote stands for itself, and does so as the end of one piece and the beginning of the next.
fn end_of_quoted(bytes: &[u8], quote_at: usize, escapes: bool) -> usize {
    let quote = bytes[quote_at];
    let mut place = quote_at + 1;
    while place < bytes.len() {
        match bytes[place] {
            b'\\' if escapes => place += 2,
            byte if byte == quote && bytes.get(place + 1) == Some(&quote) => place += 2,
            byte if byte == quote => return place + 1,
            _ => place += 1,
        }
    }
    bytes.len()
}

fn end_of_number(bytes: &[u8], at: usize) -> usize {
    let mut end = run(bytes, at, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    // Two dots are a range of PL/pgSQL's.
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1) != Some(&b'.') {
        end = run(bytes, end + 1, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    }
    let exponent = matches!(bytes.get(end.wrapping_sub(1)), Some(b'e' | b'E'));
    if exponent && matches!(bytes.get(end), Some(b'+' | b'-')) {
        end = run(bytes, end + 1, |byte| byte.is_ascii_digit());
    }
    end
}
