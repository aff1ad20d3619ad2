//! A tokenizer for SQL statements after the server's scanner (src/backend/parser/scan.l, standard_conforming_strings on),
//! reduced to telling words, constants and parameters apart. The tokens' texts joined are the statement. Scripts have
//! another lexer, [`crate`]: psql finds variables in comments and quotes, and backslashes anywhere.

use std::ops::Range;

use bench_base::interrupts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// White space.
    Blank,
    /// `-- …` or `/* … */`.
    Comment,
    /// An identifier or a key word.
    Word,
    /// `"…"` or `U&"…"`.
    QuotedIdentifier,
    /// `'…'`, `E'…'` or `$tag$…$tag$`.
    String,
    /// `B'…'`, `X'…'`, `U&'…'`, `N'…'`, and any unterminated string.
    OtherString,
    Number,
    /// `$n`.
    Parameter(u32),
    /// Anything else: one character, `::`, `:=` or an operator.
    Symbol,
}

/// A token of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    /// Byte offsets in the statement.
    pub range: Range<usize>,
}

impl Token {
    /// Returns the token as written in `statement`.
    pub fn text<'a>(&self, statement: &'a str) -> &'a str {
        &statement[self.range.clone()]
    }

    /// Whether the token is this word, ignoring case.
    pub fn is_word(&self, statement: &str, word: &str) -> bool {
        self.kind == TokenKind::Word && self.text(statement).eq_ignore_ascii_case(word)
    }

    /// Whether the token is a blank or a comment.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, TokenKind::Blank | TokenKind::Comment)
    }
}

/// Divides a statement into tokens, which cover all of its text. An unterminated token extends to the end of the text.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        interrupts::check_now_and_then();
        let (kind, length) = first_token(&text[at..]);
        tokens.push(Token { kind, range: at..at + length });
        at += length;
    }
    tokens
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word_part(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

fn is_operator(byte: u8) -> bool {
    b"~!@#^&|`?+-*/%<>=".contains(&byte)
}

/// Counts the bytes at the beginning for which `accept` is true.
fn prefix_length(bytes: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !accept(byte)).unwrap_or(bytes.len())
}

/// Returns the kind of the first token and its length in bytes, which is not 0.
fn first_token(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let byte = |place: usize| bytes.get(place).copied().unwrap_or(0);
    match (byte(0), byte(1)) {
        (first, _) if is_blank(first) => (TokenKind::Blank, prefix_length(bytes, is_blank)),
        (b'-', b'-') => (TokenKind::Comment, prefix_length(bytes, |byte| byte != b'\n' && byte != b'\r')),
        (b'/', b'*') => (TokenKind::Comment, block_comment(bytes)),
        (b'\'', _) => string(bytes, 0, false, TokenKind::String),
        (b'e' | b'E', b'\'') => string(bytes, 1, true, TokenKind::String),
        (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'') => string(bytes, 1, false, TokenKind::OtherString),
        (b'u' | b'U', b'&') if byte(2) == b'\'' => string(bytes, 2, false, TokenKind::OtherString),
        (b'u' | b'U', b'&') if byte(2) == b'"' => (TokenKind::QuotedIdentifier, quoted_identifier(bytes, 2)),
        (b'"', _) => (TokenKind::QuotedIdentifier, quoted_identifier(bytes, 0)),
        (b'$', second) if second.is_ascii_digit() => parameter(text),
        (b'$', _) => dollar(text),
        (first, _) if is_word_start(first) => (TokenKind::Word, prefix_length(bytes, is_word_part)),
        (first, second) if first.is_ascii_digit() || (first == b'.' && second.is_ascii_digit()) => {
            (TokenKind::Number, number(bytes))
        }
        (b':', b':' | b'=') => (TokenKind::Symbol, 2),
        (first, _) if is_operator(first) => (TokenKind::Symbol, operator(bytes)),
        _ => (TokenKind::Symbol, 1),
    }
}

/// Returns the length of an operator, which ends where a comment begins.
fn operator(bytes: &[u8]) -> usize {
    let length = prefix_length(bytes, is_operator);
    let comment = bytes[..length].windows(2).position(|pair| pair == b"--" || pair == b"/*");
    comment.unwrap_or(length).max(1)
}

/// Returns the length of a block comment; they nest.
fn block_comment(bytes: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    break;
                }
            }
            _ => at += 1,
        }
    }
    at
}

/// Returns the end of a text whose opening quote is at `open`; doubled quotes are part of it. None if it is unterminated.
fn closing(bytes: &[u8], open: usize, quote: u8, has_escapes: bool) -> Option<usize> {
    let mut at = open + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if has_escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// Returns the kind and end of the string constant whose quote is at `open`, with its continuations on following lines.
fn string(bytes: &[u8], open: usize, has_escapes: bool, kind: TokenKind) -> (TokenKind, usize) {
    let Some(mut end) = closing(bytes, open, b'\'', has_escapes) else {
        return (TokenKind::OtherString, bytes.len());
    };
    loop {
        let gap = prefix_length(&bytes[end..], is_blank);
        let is_continued = bytes.get(end + gap) == Some(&b'\'')
            && bytes[end..end + gap].iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        if !is_continued {
            return (kind, end);
        }
        match closing(bytes, end + gap, b'\'', has_escapes) {
            Some(next) => end = next,
            None => return (TokenKind::OtherString, bytes.len()),
        }
    }
}

/// Returns the end of a quoted identifier.
fn quoted_identifier(bytes: &[u8], open: usize) -> usize {
    closing(bytes, open, b'"', false).unwrap_or(bytes.len())
}

/// Returns the kind and length of `$n`, which is a symbol if n exceeds 32 bits.
fn parameter(text: &str) -> (TokenKind, usize) {
    let end = 1 + prefix_length(&text.as_bytes()[1..], |byte| byte.is_ascii_digit());
    (text[1..end].parse().map_or(TokenKind::Symbol, TokenKind::Parameter), end)
}

/// Returns the kind and length of `$tag$…$tag$`, or of a dollar sign.
fn dollar(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let tag = prefix_length(&bytes[1..], |byte| is_word_part(byte) && byte != b'$');
    if bytes.get(1 + tag) != Some(&b'$') {
        return (TokenKind::Symbol, 1);
    }
    let mark = &text[..tag + 2];
    match text[mark.len()..].find(mark) {
        Some(place) => (TokenKind::String, place + 2 * mark.len()),
        None => (TokenKind::OtherString, bytes.len()),
    }
}

/// Returns the length of a number with underscores, fraction and exponent, or of a hexadecimal, octal or binary one.
fn number(bytes: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    if let [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', rest @ ..] = bytes {
        let digits = prefix_length(rest, |byte| byte.is_ascii_hexdigit() || byte == b'_');
        if digits > 0 {
            return 2 + digits;
        }
    }
    let mut at = prefix_length(bytes, is_digit);
    // 1..2 is a range.
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1) != Some(&b'.') {
        at += 1;
        at += prefix_length(&bytes[at..], is_digit);
    }
    if let [b'e' | b'E', rest @ ..] = &bytes[at..] {
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let digits = prefix_length(&rest[sign..], |byte| byte.is_ascii_digit());
        if digits > 0 {
            at += 1 + sign + digits;
        }
    }
    at
}

/// Returns the value of a constant of kind [`TokenKind::String`]; None if it cannot be determined.
pub fn decode(text: &str) -> Option<String> {
    match text.as_bytes().first()? {
        b'$' => {
            let mark = text[1..].find('$')? + 2;
            Some(text.get(mark..text.len() - mark)?.to_owned())
        }
        b'e' | b'E' => unescape(&quoted_parts(&text[1..], true)?.concat()),
        _ => unquote(text),
    }
}

/// Returns the value of `U&'…'` with this escape character; None if it cannot be determined.
pub fn decode_unicode(text: &str, escape: char) -> Option<String> {
    let text = unquote(text.get(2..)?)?;
    let mut out = Decoded::default();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != escape {
            out.push(c)?;
            continue;
        }
        let tail = rest.as_str();
        if tail.starts_with(escape) {
            rest.next();
            out.push(escape)?;
        } else if tail.starts_with('+') {
            rest.next();
            out.code(take_hexadecimal(&mut rest, 6)?)?;
        } else {
            out.code(take_hexadecimal(&mut rest, 4)?)?;
        }
    }
    out.end()
}

/// Returns the digits of `B'…'` or `X'…'` as the input function of type bit takes them, or the text of `N'…'`.
pub fn decode_prefixed(text: &str) -> Option<String> {
    let digits = unquote(text.get(1..)?)?;
    Some(if text.starts_with(['x', 'X']) { format!("x{digits}") } else { digits })
}

/// Returns the value of `'…'` without backslash escapes.
fn unquote(text: &str) -> Option<String> {
    Some(quoted_parts(text, false)?.concat().replace("''", "'"))
}

/// Returns the text between the quotes of each part of a constant.
fn quoted_parts(text: &str, has_escapes: bool) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii() && is_blank(c as u8));
        if rest.is_empty() {
            return Some(parts);
        }
        let end = closing(rest.as_bytes(), 0, b'\'', has_escapes)?;
        parts.push(&rest[1..end - 1]);
        rest = &rest[end..];
    }
}

/// A text under construction from characters, bytes and halves of surrogate pairs.
#[derive(Default)]
struct Decoded {
    bytes: Vec<u8>,
    /// The first half of a surrogate pair whose second half must follow.
    high: Option<u32>,
}

impl Decoded {
    fn push(&mut self, c: char) -> Option<()> {
        self.code(c.into())
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        // The server allows no zero byte in a text.
        if byte == 0 || self.high.is_some() {
            return None;
        }
        self.bytes.push(byte);
        Some(())
    }

    fn code(&mut self, code: u32) -> Option<()> {
        let code = match (self.high.take(), code) {
            (None, 0xd800..0xdc00) => {
                self.high = Some(code);
                return Some(());
            }
            (Some(high), 0xdc00..0xe000) => 0x1_0000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (Some(_), _) | (None, 0) => return None,
            (None, code) => code,
        };
        self.bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
        Some(())
    }

    fn end(self) -> Option<String> {
        if self.high.is_some() {
            return None;
        }
        String::from_utf8(self.bytes).ok()
    }
}

/// Replaces the escapes of `E'…'`.
fn unescape(text: &str) -> Option<String> {
    let mut out = Decoded::default();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                // Skip the second of two quotes.
                rest.next();
                out.push('\'')?;
            }
            '\\' => match rest.next()? {
                'n' => out.push('\n')?,
                't' => out.push('\t')?,
                'r' => out.push('\r')?,
                'b' => out.push('\u{8}')?,
                'f' => out.push('\u{c}')?,
                'u' => out.code(take_hexadecimal(&mut rest, 4)?)?,
                'U' => out.code(take_hexadecimal(&mut rest, 8)?)?,
                'x' if rest.as_str().starts_with(|c: char| c.is_ascii_hexdigit()) => {
                    out.byte(take_number(&mut rest, 16, 2)?)?;
                }
                digit @ '0'..='7' => {
                    let first = digit.to_digit(8)?;
                    let taken =
                        rest.as_str().bytes().take(2).take_while(|c| (b'0'..=b'7').contains(c)).count();
                    let lower = if taken > 0 { take_number(&mut rest, 8, taken)? } else { 0 };
                    // The server keeps the lower eight bits.
                    out.byte(((first << (3 * taken)) as u8) | lower)?;
                }
                other => out.push(other)?,
            },
            other => out.push(other)?,
        }
    }
    out.end()
}

/// Takes a number of at most `max_digits` digits.
fn take_number(rest: &mut std::str::Chars, radix: u32, max_digits: usize) -> Option<u8> {
    let digits = rest.as_str().chars().take(max_digits).take_while(|c| c.is_digit(radix)).count();
    let text = &rest.as_str()[..digits];
    *rest = rest.as_str()[digits..].chars();
    u8::from_str_radix(text, radix).ok()
}

/// Takes a hexadecimal number of exactly `digits` digits.
fn take_hexadecimal(rest: &mut std::str::Chars, digits: usize) -> Option<u32> {
    let text = rest.as_str().get(..digits).filter(|text| text.bytes().all(|c| c.is_ascii_hexdigit()))?;
    *rest = rest.as_str()[digits..].chars();
    u32::from_str_radix(text, 16).ok()
}
