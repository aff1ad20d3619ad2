//! SQL as a row of tokens, as the server's scanner (src/backend/parser/scan.l) divides it with standard_conforming_strings
//! on, as far as is needed to tell words, constants and parameters from what only looks like them. Nothing is lost: the
//! tokens' texts are the statement. Scripts have a lexer of their own, [`crate`], for psql finds variables in
//! comments and quotes, and backslashes anywhere.

use std::ops::Range;

use bench_base::interrupts;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// White space.
    Blank,
    /// `-- …` or `/* … */`.
    Comment,
    /// An identifier or a key word.
    Word,
    /// `"…"`, with `U&` before it or not.
    QuotedIdentifier,
    /// `'…'`, `E'…'` or `$tag$…$tag$`.
    String,
    /// `B'…'`, `X'…'`, `U&'…'`, `N'…'`, and whatever does not end.
    OtherString,
    Number,
    /// `$n`.
    Parameter(u32),
    /// Anything else: one character, `::`, `:=` or an operator.
    Symbol,
}

/// A token: where it is in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
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
        self.kind == TokenKind::Word && self.text(of).eq_ignore_ascii_case(word)
    }

    /// Whether it says nothing: blanks and comments.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, TokenKind::Blank | TokenKind::Comment)
    }
}

/// The tokens of a statement, which cover all of its text. What does not end goes to the end of the text.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        interrupts::check_now_and_then();
        let (kind, length) = token(&text[at..]);
        found.push(Token { kind, range: at..at + length });
        at += length;
    }
    found
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

/// How many bytes at the beginning `accept` takes.
fn run(bytes: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|&byte| !accept(byte)).unwrap_or(bytes.len())
}

/// The kind of the first token and its length, which is not 0.
fn token(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let byte = |place: usize| bytes.get(place).copied().unwrap_or(0);
    match (byte(0), byte(1)) {
        (first, _) if is_blank(first) => (TokenKind::Blank, run(bytes, is_blank)),
        (b'-', b'-') => (TokenKind::Comment, run(bytes, |byte| byte != b'\n' && byte != b'\r')),
        (b'/', b'*') => (TokenKind::Comment, block_comment(bytes)),
        (b'\'', _) => string(bytes, 0, false, TokenKind::String),
        (b'e' | b'E', b'\'') => string(bytes, 1, true, TokenKind::String),
        (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'') => string(bytes, 1, false, TokenKind::OtherString),
        (b'u' | b'U', b'&') if byte(2) == b'\'' => string(bytes, 2, false, TokenKind::OtherString),
        (b'u' | b'U', b'&') if byte(2) == b'"' => (TokenKind::QuotedIdentifier, quoted_identifier(bytes, 2)),
        (b'"', _) => (TokenKind::QuotedIdentifier, quoted_identifier(bytes, 0)),
        (b'$', second) if second.is_ascii_digit() => parameter(text),
        (b'$', _) => dollar(text),
        (first, _) if is_word_start(first) => (TokenKind::Word, run(bytes, is_word_part)),
        (first, second) if first.is_ascii_digit() || (first == b'.' && second.is_ascii_digit()) => {
            (TokenKind::Number, number(bytes))
        }
        (b':', b':' | b'=') => (TokenKind::Symbol, 2),
        (first, _) if is_operator(first) => (TokenKind::Symbol, operator(bytes)),
        _ => (TokenKind::Symbol, 1),
    }
}

/// An operator ends where a comment begins.
fn operator(bytes: &[u8]) -> usize {
    let length = run(bytes, is_operator);
    let comment = bytes[..length].windows(2).position(|pair| pair == b"--" || pair == b"/*");
    comment.unwrap_or(length).max(1)
}

/// Block comments nest.
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

/// The end of quotes that begin at `open`, doubled ones being part of the text; None where they do not end.
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

/// A string constant whose quotes begin at `open`, with what continues it after a line's end.
fn string(bytes: &[u8], open: usize, has_escapes: bool, kind: TokenKind) -> (TokenKind, usize) {
    let Some(mut end) = closing(bytes, open, b'\'', has_escapes) else {
        return (TokenKind::OtherString, bytes.len());
    };
    loop {
        let gap = run(&bytes[end..], is_blank);
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

/// Where a quoted identifier ends.
fn quoted_identifier(bytes: &[u8], open: usize) -> usize {
    closing(bytes, open, b'"', false).unwrap_or(bytes.len())
}

/// One whose number is too great is none.
fn parameter(text: &str) -> (TokenKind, usize) {
    let end = 1 + run(&text.as_bytes()[1..], |byte| byte.is_ascii_digit());
    (text[1..end].parse().map_or(TokenKind::Symbol, TokenKind::Parameter), end)
}

/// `$tag$…$tag$`, or a dollar sign.
fn dollar(text: &str) -> (TokenKind, usize) {
    let bytes = text.as_bytes();
    let tag = run(&bytes[1..], |byte| is_word_part(byte) && byte != b'$');
    if bytes.get(1 + tag) != Some(&b'$') {
        return (TokenKind::Symbol, 1);
    }
    let mark = &text[..tag + 2];
    match text[mark.len()..].find(mark) {
        Some(place) => (TokenKind::String, place + 2 * mark.len()),
        None => (TokenKind::OtherString, bytes.len()),
    }
}

/// A number with its underscores, fraction and exponent; hexadecimal, octal and binary ones too.
fn number(bytes: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    if let [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', rest @ ..] = bytes {
        let digits = run(rest, |byte| byte.is_ascii_hexdigit() || byte == b'_');
        if digits > 0 {
            return 2 + digits;
        }
    }
    let mut at = run(bytes, is_digit);
    // 1..2 is a range.
    if bytes.get(at) == Some(&b'.') && bytes.get(at + 1) != Some(&b'.') {
        at += 1;
        at += run(&bytes[at..], is_digit);
    }
    if let [b'e' | b'E', rest @ ..] = &bytes[at..] {
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let digits = run(&rest[sign..], |byte| byte.is_ascii_digit());
        if digits > 0 {
            at += 1 + sign + digits;
        }
    }
    at
}

/// The text of a string constant of kind [`TokenKind::String`]; None where that is not known.
pub fn decode(text: &str) -> Option<String> {
    match text.as_bytes().first()? {
        b'$' => {
            let mark = text[1..].find('$')? + 2;
            Some(text.get(mark..text.len() - mark)?.to_owned())
        }
        b'e' | b'E' => unescape(&parts(&text[1..], true)?.concat()),
        _ => plain(text),
    }
}

/// The text of `U&'…'` with this character for escapes; None where that is not known.
pub fn decode_unicode(text: &str, escape: char) -> Option<String> {
    let text = plain(text.get(2..)?)?;
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
            out.code(hexadecimal(&mut rest, 6)?)?;
        } else {
            out.code(hexadecimal(&mut rest, 4)?)?;
        }
    }
    out.end()
}

/// The digits of `B'…'` and `X'…'` as the input function of type bit takes them, and the text of `N'…'`.
pub fn decode_prefixed(text: &str) -> Option<String> {
    let digits = plain(text.get(1..)?)?;
    Some(if text.starts_with(['x', 'X']) { format!("x{digits}") } else { digits })
}

/// The text of quotes without escapes.
fn plain(text: &str) -> Option<String> {
    Some(parts(text, false)?.concat().replace("''", "'"))
}

/// What is between the quotes of each part of a constant.
fn parts(text: &str, has_escapes: bool) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii() && is_blank(c as u8));
        if rest.is_empty() {
            return Some(found);
        }
        let end = closing(rest.as_bytes(), 0, b'\'', has_escapes)?;
        found.push(&rest[1..end - 1]);
        rest = &rest[end..];
    }
}

/// A text that escapes are put into: characters, bytes, and halves of surrogate pairs.
#[derive(Default)]
struct Decoded {
    bytes: Vec<u8>,
    /// The first half of a pair.
    high: Option<u32>,
}

impl Decoded {
    fn push(&mut self, c: char) -> Option<()> {
        self.code(c.into())
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        // The server's texts have no such byte.
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

/// Escapes of `E'…'`.
fn unescape(text: &str) -> Option<String> {
    let mut out = Decoded::default();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' => {
                // The second of two.
                rest.next();
                out.push('\'')?;
            }
            '\\' => match rest.next()? {
                'n' => out.push('\n')?,
                't' => out.push('\t')?,
                'r' => out.push('\r')?,
                'b' => out.push('\u{8}')?,
                'f' => out.push('\u{c}')?,
                'u' => out.code(hexadecimal(&mut rest, 4)?)?,
                'U' => out.code(hexadecimal(&mut rest, 8)?)?,
                'x' if rest.as_str().starts_with(|c: char| c.is_ascii_hexdigit()) => {
                    out.byte(number_of(&mut rest, 16, 2)?)?;
                }
                digit @ '0'..='7' => {
                    let first = digit.to_digit(8)?;
                    let taken =
                        rest.as_str().bytes().take(2).take_while(|c| (b'0'..=b'7').contains(c)).count();
                    let more = if taken > 0 { number_of(&mut rest, 8, taken)? } else { 0 };
                    // As the server, which keeps the lower eight bits.
                    out.byte(((first << (3 * taken)) as u8) | more)?;
                }
                other => out.push(other)?,
            },
            other => out.push(other)?,
        }
    }
    out.end()
}

/// The number that up to so many digits are.
fn number_of(rest: &mut std::str::Chars, radix: u32, most: usize) -> Option<u8> {
    let digits = rest.as_str().chars().take(most).take_while(|c| c.is_digit(radix)).count();
    let text = &rest.as_str()[..digits];
    *rest = rest.as_str()[digits..].chars();
    u8::from_str_radix(text, radix).ok()
}

fn hexadecimal(rest: &mut std::str::Chars, digits: usize) -> Option<u32> {
    let text = rest.as_str().get(..digits).filter(|text| text.bytes().all(|c| c.is_ascii_hexdigit()))?;
    *rest = rest.as_str()[digits..].chars();
    u32::from_str_radix(text, 16).ok()
}
