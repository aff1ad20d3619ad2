//! The tokens of an expression (pgbench's exprscan.l).

use std::ops::Range;

use bench_base::error::{UserError, sqlstate};

use crate::blanks::separator_length;
use crate::position::ScriptText;
use crate::variables::{Scalar, is_name_part, is_name_start, parse_double};

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ExpressionToken<'a> {
    Constant(Scalar),
    /// 9223372036854775808, which is a bigint only behind a minus.
    SmallestIntegersMagnitude,
    /// The name, without the colon.
    Variable(&'a str),
    Function(&'a str),
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Bar,
    Hash,
    Ampersand,
    Tilde,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Open,
    Close,
    Comma,
    Or,
    And,
    Not,
    Is,
    IsNull,
    NotNull,
    Case,
    When,
    Then,
    Else,
    End,
}

/// Operators and punctuation, longer ones first.
const SYMBOLS: [(&str, ExpressionToken); 21] = [
    ("<>", ExpressionToken::NotEqual),
    ("!=", ExpressionToken::NotEqual),
    ("<=", ExpressionToken::LessOrEqual),
    (">=", ExpressionToken::GreaterOrEqual),
    ("<<", ExpressionToken::ShiftLeft),
    (">>", ExpressionToken::ShiftRight),
    ("<", ExpressionToken::Less),
    (">", ExpressionToken::Greater),
    ("=", ExpressionToken::Equal),
    ("+", ExpressionToken::Plus),
    ("-", ExpressionToken::Minus),
    ("*", ExpressionToken::Star),
    ("/", ExpressionToken::Slash),
    ("%", ExpressionToken::Percent),
    ("|", ExpressionToken::Bar),
    ("#", ExpressionToken::Hash),
    ("&", ExpressionToken::Ampersand),
    ("~", ExpressionToken::Tilde),
    ("(", ExpressionToken::Open),
    (")", ExpressionToken::Close),
    (",", ExpressionToken::Comma),
];

/// Words that are not functions' names.
const WORDS: [(&str, ExpressionToken); 14] = [
    ("and", ExpressionToken::And),
    ("or", ExpressionToken::Or),
    ("not", ExpressionToken::Not),
    ("is", ExpressionToken::Is),
    ("isnull", ExpressionToken::IsNull),
    ("notnull", ExpressionToken::NotNull),
    ("case", ExpressionToken::Case),
    ("when", ExpressionToken::When),
    ("then", ExpressionToken::Then),
    ("else", ExpressionToken::Else),
    ("end", ExpressionToken::End),
    ("null", ExpressionToken::Constant(Scalar::Null)),
    ("true", ExpressionToken::Constant(Scalar::Boolean(true))),
    ("false", ExpressionToken::Constant(Scalar::Boolean(false))),
];

/// The tokens in the bytes `range` of a script, each with its byte offset.
///
/// # Errors
/// 42601 for a character that begins no token, 22003 for a constant out of range.
pub(super) fn tokenize<'a>(
    source: ScriptText<'a>,
    range: Range<usize>,
) -> Result<Vec<(usize, ExpressionToken<'a>)>, UserError> {
    let mut tokens = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let rest = &source.text[at..range.end];
        if let Some(length) = separator_length(rest.as_bytes()) {
            at += length;
            continue;
        }
        let (token, length) = token(source, at, rest)?;
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// The token at the front of `rest`, which is not empty, and its length in bytes.
fn token<'a>(
    source: ScriptText,
    at: usize,
    rest: &'a str,
) -> Result<(ExpressionToken<'a>, usize), UserError> {
    let bytes = rest.as_bytes();
    if bytes[0] == b':' {
        return match length_of(&bytes[1..], is_name_part) {
            0 => Err(unexpected_character(source, at, ':')),
            length => Ok((ExpressionToken::Variable(&rest[1..=length]), length + 1)),
        };
    }
    if bytes[0].is_ascii_digit() || (bytes[0] == b'.' && starts_with_digit(&bytes[1..])) {
        return number(source, at, &rest[..number_length(bytes)]);
    }
    if is_name_start(bytes[0]) {
        let word = &rest[..length_of(bytes, is_name_part)];
        let keyword = WORDS.iter().find(|(text, _)| text.eq_ignore_ascii_case(word));
        return Ok((keyword.map_or(ExpressionToken::Function(word), |(_, token)| token.clone()), word.len()));
    }
    match SYMBOLS.iter().find(|(text, _)| rest.starts_with(text)) {
        Some((text, token)) => Ok((token.clone(), text.len())),
        None => {
            let character = rest.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
            Err(unexpected_character(source, at, character))
        }
    }
}

/// An integer or double precision constant, `text` being all of it.
fn number<'a>(source: ScriptText, at: usize, text: &str) -> Result<(ExpressionToken<'a>, usize), UserError> {
    let overflow = |type_name: &str| {
        let message = format!("{type_name} constant overflow ({text})");
        source.error(at, sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
    };
    let token = if text == "9223372036854775808" {
        ExpressionToken::SmallestIntegersMagnitude
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        ExpressionToken::Constant(Scalar::Integer(text.parse().map_err(|_| overflow("bigint"))?))
    } else {
        ExpressionToken::Constant(Scalar::Double(parse_double(text).ok_or_else(|| overflow("double"))?))
    };
    Ok((token, text.len()))
}

/// The length of digits, a point and more digits, and an exponent if it is complete.
fn number_length(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut length = length_of(text, is_digit);
    if text.get(length) == Some(&b'.') {
        length += 1 + length_of(&text[length + 1..], is_digit);
    }
    if let [b'e' | b'E', exponent @ ..] = &text[length..] {
        let sign = usize::from(matches!(exponent, [b'+' | b'-', ..]));
        if starts_with_digit(&exponent[sign..]) {
            length += 1 + sign + length_of(&exponent[sign..], is_digit);
        }
    }
    length
}

/// How many bytes at the front `accept` takes.
fn length_of(text: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|&&byte| accept(byte)).count()
}

fn starts_with_digit(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
}

fn unexpected_character(source: ScriptText, at: usize, character: char) -> UserError {
    source.error(at, sqlstate::SYNTAX_ERROR, format!("unexpected character \"{character}\""))
}
