//! The tokens of an expression (pgbench's exprscan.l).

use std::ops::Range;

use crate::error::{UserError, sqlstate};
use crate::script::blanks::separator_length;
use crate::script::position::Source;
use crate::script::variables::{Scalar, is_name_part, is_name_start, parse_double};

/// One token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
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
    Open,
    Close,
    Comma,
}

/// Operators of pgbench that are still to come, longer ones first.
const OPERATORS_NOT_YET_SUPPORTED: [&str; 13] =
    ["<>", "!=", "<=", ">=", "<<", ">>", "=", "<", ">", "|", "&", "#", "~"];

/// Words of pgbench's expressions that are still to come.
const WORDS_NOT_YET_SUPPORTED: [&str; 11] =
    ["and", "or", "not", "is", "isnull", "notnull", "case", "when", "then", "else", "end"];

/// The tokens in the bytes `range` of a script, each with its byte offset.
///
/// # Errors
/// 42601 for a character that begins no token, 0A000 for an operator that is not supported yet, 22003 for a
/// constant out of range.
pub(super) fn tokenize<'a>(
    source: Source<'a>,
    range: Range<usize>,
) -> Result<Vec<(usize, Token<'a>)>, UserError> {
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
fn token<'a>(source: Source, at: usize, rest: &'a str) -> Result<(Token<'a>, usize), UserError> {
    let bytes = rest.as_bytes();
    let single = match bytes[0] {
        b'+' => Token::Plus,
        b'-' => Token::Minus,
        b'*' => Token::Star,
        b'/' => Token::Slash,
        b'%' => Token::Percent,
        b'(' => Token::Open,
        b')' => Token::Close,
        b',' => Token::Comma,
        b':' => match length_of(&bytes[1..], is_name_part) {
            0 => return Err(unexpected_character(source, at, ':')),
            length => return Ok((Token::Variable(&rest[1..=length]), length + 1)),
        },
        first if first.is_ascii_digit() || (first == b'.' && starts_with_digit(&bytes[1..])) => {
            return number(source, at, &rest[..number_length(bytes)]);
        }
        first if is_name_start(first) => {
            let word = &rest[..length_of(bytes, is_name_part)];
            return Ok((named(source, at, word)?, word.len()));
        }
        _ => {
            if let Some(operator) = OPERATORS_NOT_YET_SUPPORTED.iter().find(|&&text| rest.starts_with(text)) {
                return Err(not_supported(source, at, operator));
            }
            let character = rest.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER);
            return Err(unexpected_character(source, at, character));
        }
    };
    Ok((single, 1))
}

/// A word: a constant or a function's name.
fn named<'a>(source: Source, at: usize, word: &'a str) -> Result<Token<'a>, UserError> {
    let is = |other: &str| word.eq_ignore_ascii_case(other);
    if is("null") {
        Ok(Token::Constant(Scalar::Null))
    } else if is("true") || is("false") {
        Ok(Token::Constant(Scalar::Boolean(is("true"))))
    } else if WORDS_NOT_YET_SUPPORTED.iter().any(|other| is(other)) {
        Err(not_supported(source, at, word))
    } else {
        Ok(Token::Function(word))
    }
}

/// An integer or double precision constant, `text` being all of it.
fn number<'a>(source: Source, at: usize, text: &str) -> Result<(Token<'a>, usize), UserError> {
    let overflow = |type_name: &str| {
        let message = format!("{type_name} constant overflow ({text})");
        source.error(at, sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message)
    };
    let token = if text == "9223372036854775808" {
        Token::SmallestIntegersMagnitude
    } else if text.bytes().all(|byte| byte.is_ascii_digit()) {
        Token::Constant(Scalar::Integer(text.parse().map_err(|_| overflow("bigint"))?))
    } else {
        Token::Constant(Scalar::Double(parse_double(text).ok_or_else(|| overflow("double"))?))
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

fn not_supported(source: Source, at: usize, operator: &str) -> UserError {
    let message = format!("operator \"{operator}\" is not supported yet");
    source.error(at, sqlstate::FEATURE_NOT_SUPPORTED, message)
}

fn unexpected_character(source: Source, at: usize, character: char) -> UserError {
    source.error(at, sqlstate::SYNTAX_ERROR, format!("unexpected character \"{character}\""))
}
