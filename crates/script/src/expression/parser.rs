//! The parser of expressions: tokens as in pgbench's exprscan.l, and a Pratt parser for operator precedence.

use std::ops::Range;

use bench_base::error::{UserError, sqlstate};

use crate::expression;
use crate::expression::{Binary, Expression, ExpressionNode, Integral, Overloaded, Unary};
use crate::text::{ScriptText, separator_length, trim_end};
use crate::variables::{Scalar, Symbols, is_name_part, is_name_start, parse_double};

/// The deepest nesting of parentheses, arguments, `CASE` and prefix operators: parsing and evaluation recurse, and a
/// backend's stack is small. Binary operators add at most one level for each [`Binding`] in between.
const MAX_DEPTH: usize = 100;

/// statement_too_complex
const STATEMENT_TOO_COMPLEX: &str = "54001";

/// The precedence of operators, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// Weaker than any operator.
    Nothing,
    Or,
    And,
    Not,
    /// `IS`, `ISNULL` and `NOTNULL`, which follow their operand.
    Is,
    /// Not associative: `a < b < c` is an error.
    Comparison,
    /// Includes the prefix `~`.
    Bitwise,
    Sum,
    Product,
    Sign,
}

/// Errors are boxed to keep stack frames small.
type Parsed<T> = Result<T, Box<UserError>>;

impl Expression {
    /// Parses the bytes `range` of a script.
    ///
    /// # Errors
    /// 42601 for a syntax error, 22003 for a constant out of range, 54001 for too deep nesting.
    pub(crate) fn parse(
        source: ScriptText,
        range: Range<usize>,
        symbols: &mut Symbols,
    ) -> Result<Expression, UserError> {
        parse(source, range, symbols).map(|root| Expression { root })
    }
}

/// Parses the bytes `range` of a script.
fn parse(
    source: ScriptText,
    range: Range<usize>,
    symbols: &mut Symbols,
) -> Result<ExpressionNode, UserError> {
    let end = range.end;
    let mut parser = Parser { source, tokens: tokenize(source, range)?, next: 0, end, symbols, nesting: 0 };
    let node = parser.nested(Binding::Nothing).map_err(|error| *error)?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(*parser.unexpected()),
    }
}

/// Returns the binary operator of a token, and whether its operands are swapped.
fn infix(token: &ExpressionToken) -> Option<(Binding, Binary, bool)> {
    let comparison = |function, swapped| Some((Binding::Comparison, Binary::Overloaded(function), swapped));
    let overloaded = |binding, function| Some((binding, Binary::Overloaded(function), false));
    let integral = |binding, function| Some((binding, Binary::Integral(function), false));
    match token {
        ExpressionToken::Or => Some((Binding::Or, Binary::Or, false)),
        ExpressionToken::And => Some((Binding::And, Binary::And, false)),
        ExpressionToken::Equal => comparison(Overloaded::Equal, false),
        ExpressionToken::NotEqual => comparison(Overloaded::NotEqual, false),
        ExpressionToken::Less => comparison(Overloaded::Less, false),
        ExpressionToken::LessOrEqual => comparison(Overloaded::LessOrEqual, false),
        ExpressionToken::Greater => comparison(Overloaded::Less, true),
        ExpressionToken::GreaterOrEqual => comparison(Overloaded::LessOrEqual, true),
        ExpressionToken::Bar => integral(Binding::Bitwise, Integral::BitOr),
        ExpressionToken::Hash => integral(Binding::Bitwise, Integral::BitXor),
        ExpressionToken::Ampersand => integral(Binding::Bitwise, Integral::BitAnd),
        ExpressionToken::ShiftLeft => integral(Binding::Bitwise, Integral::ShiftLeft),
        ExpressionToken::ShiftRight => integral(Binding::Bitwise, Integral::ShiftRight),
        ExpressionToken::Plus => overloaded(Binding::Sum, Overloaded::Add),
        ExpressionToken::Minus => overloaded(Binding::Sum, Overloaded::Subtract),
        ExpressionToken::Star => overloaded(Binding::Product, Overloaded::Multiply),
        ExpressionToken::Slash => overloaded(Binding::Product, Overloaded::Divide),
        ExpressionToken::Percent => integral(Binding::Product, Integral::Modulo),
        _ => None,
    }
}

struct Parser<'a> {
    source: ScriptText<'a>,
    /// Each with its byte offset in the script.
    tokens: Vec<(usize, ExpressionToken<'a>)>,
    next: usize,
    /// The byte offset of the expression's end.
    end: usize,
    symbols: &'a mut Symbols,
    nesting: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&ExpressionToken<'a>> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Returns the byte offset of the next token, or of the end.
    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |&(offset, _)| offset)
    }

    /// Moves past the next token if it is the given one.
    fn accept(&mut self, token: &ExpressionToken) -> bool {
        let accepted = self.peek() == Some(token);
        self.next += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, token: &ExpressionToken) -> Parsed<()> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Parses a nested expression, up to an operator that binds no stronger than `binding`.
    fn nested(&mut self, binding: Binding) -> Parsed<ExpressionNode> {
        if self.nesting == MAX_DEPTH {
            let message = format!("expression nests deeper than {MAX_DEPTH} levels");
            return Err(self.source.error(self.offset(), STATEMENT_TOO_COMPLEX, message).into());
        }
        self.nesting += 1;
        let node = self.expression(binding)?;
        self.nesting -= 1;
        Ok(node)
    }

    /// Parses an expression up to an operator that binds no stronger than `binding`.
    fn expression(&mut self, binding: Binding) -> Parsed<ExpressionNode> {
        let mut left = self.operand()?;
        let mut follows_comparison = false;
        while let Some(token) = self.peek() {
            if let Some((operator_binding, function, swapped)) = infix(token) {
                if operator_binding <= binding {
                    break;
                }
                let is_comparison = operator_binding == Binding::Comparison;
                if is_comparison && follows_comparison {
                    return Err(self.unexpected());
                }
                self.next += 1;
                let right = self.expression(operator_binding)?;
                let (first, second) = if swapped { (right, left) } else { (left, right) };
                left = ExpressionNode::binary(function, first, second);
                follows_comparison = is_comparison;
            } else if matches!(
                token,
                ExpressionToken::Is | ExpressionToken::IsNull | ExpressionToken::NotNull
            ) && Binding::Is > binding
            {
                left = self.is_test(left)?;
                follows_comparison = false;
            } else {
                break;
            }
        }
        Ok(left)
    }

    /// Parses `IS [NOT] NULL`, `IS [NOT] TRUE`, `IS [NOT] FALSE`, `ISNULL` or `NOTNULL` behind `operand`.
    fn is_test(&mut self, operand: ExpressionNode) -> Parsed<ExpressionNode> {
        let function = if self.accept(&ExpressionToken::IsNull) {
            return Ok(ExpressionNode::binary(Binary::Is, operand, ExpressionNode::Constant(Scalar::Null)));
        } else if self.accept(&ExpressionToken::NotNull) {
            return Ok(ExpressionNode::binary(
                Binary::IsNot,
                operand,
                ExpressionNode::Constant(Scalar::Null),
            ));
        } else {
            self.expect(&ExpressionToken::Is)?;
            if self.accept(&ExpressionToken::Not) { Binary::IsNot } else { Binary::Is }
        };
        match self.peek() {
            Some(&ExpressionToken::Constant(constant @ (Scalar::Null | Scalar::Boolean(_)))) => {
                self.next += 1;
                Ok(ExpressionNode::binary(function, operand, ExpressionNode::Constant(constant)))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// Parses a constant, a variable, a function call, a `CASE`, or an expression in parentheses or behind a prefix.
    fn operand(&mut self) -> Parsed<ExpressionNode> {
        let offset = self.offset();
        let Some(token) = self.peek().cloned() else { return Err(self.unexpected()) };
        self.next += 1;
        match token {
            ExpressionToken::Constant(scalar) => Ok(ExpressionNode::Constant(scalar)),
            ExpressionToken::Variable(name) => {
                Ok(ExpressionNode::Variable { id: self.symbols.intern(name), name: name.into() })
            }
            ExpressionToken::Function(name) => self.function_call(offset, name),
            ExpressionToken::Case => self.case(),
            ExpressionToken::Open => {
                let inner = self.nested(Binding::Nothing)?;
                self.expect(&ExpressionToken::Close)?;
                Ok(inner)
            }
            ExpressionToken::Plus => self.nested(Binding::Sign),
            // 2⁶³ is a bigint only behind a minus.
            ExpressionToken::Minus if self.accept(&ExpressionToken::SmallestIntegersMagnitude) => {
                Ok(ExpressionNode::Constant(Scalar::Integer(i64::MIN)))
            }
            ExpressionToken::Minus => {
                let zero = ExpressionNode::Constant(Scalar::Integer(0));
                Ok(ExpressionNode::binary(
                    Binary::Overloaded(Overloaded::Subtract),
                    zero,
                    self.nested(Binding::Sign)?,
                ))
            }
            ExpressionToken::Tilde => {
                let all_bits = ExpressionNode::Constant(Scalar::Integer(!0));
                Ok(ExpressionNode::binary(
                    Binary::Integral(Integral::BitXor),
                    all_bits,
                    self.nested(Binding::Bitwise)?,
                ))
            }
            ExpressionToken::Not => Ok(ExpressionNode::unary(Unary::Not, self.nested(Binding::Not)?)),
            _ => {
                self.next -= 1;
                Err(self.unexpected())
            }
        }
    }

    /// Parses the arguments of the function whose name was at `offset`.
    fn function_call(&mut self, offset: usize, name: &str) -> Parsed<ExpressionNode> {
        let source = self.source;
        let syntax_error = |message| Box::new(source.error(offset, sqlstate::SYNTAX_ERROR, message));
        let Some((name, callable)) = expression::find(name) else {
            return Err(syntax_error(format!("unexpected function name \"{name}\"")));
        };
        self.expect(&ExpressionToken::Open)?;
        let mut arguments = Vec::new();
        if !self.accept(&ExpressionToken::Close) {
            // pgbench's grammar allows a comma before the first argument.
            self.accept(&ExpressionToken::Comma);
            arguments.push(self.nested(Binding::Nothing)?);
            while self.accept(&ExpressionToken::Comma) {
                arguments.push(self.nested(Binding::Nothing)?);
            }
            self.expect(&ExpressionToken::Close)?;
        }
        callable.call(name, arguments, self.symbols).map_err(syntax_error)
    }

    /// Parses a `CASE` behind that word.
    fn case(&mut self) -> Parsed<ExpressionNode> {
        let mut arms = Vec::new();
        self.expect(&ExpressionToken::When)?;
        loop {
            let condition = self.nested(Binding::Nothing)?;
            self.expect(&ExpressionToken::Then)?;
            arms.push((condition, self.nested(Binding::Nothing)?));
            if !self.accept(&ExpressionToken::When) {
                break;
            }
        }
        let otherwise = if self.accept(&ExpressionToken::Else) {
            self.nested(Binding::Nothing)?
        } else {
            ExpressionNode::Constant(Scalar::Null)
        };
        self.expect(&ExpressionToken::End)?;
        Ok(ExpressionNode::Case { arms: arms.into(), otherwise: Box::new(otherwise) })
    }

    /// Returns the error for an unexpected next token.
    fn unexpected(&self) -> Box<UserError> {
        let offset = self.offset();
        let end = self.tokens.get(self.next + 1).map_or(self.end, |&(offset, _)| offset);
        let message = match trim_end(&self.source.text[offset..end]) {
            "" => "syntax error at end of expression".to_owned(),
            text => format!("syntax error at or near \"{text}\""),
        };
        self.source.error(offset, sqlstate::SYNTAX_ERROR, message).into()
    }
}

/// A token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ExpressionToken<'a> {
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

/// Keywords; other words are functions' names.
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

/// Splits the bytes `range` of a script into tokens, each with its byte offset.
///
/// # Errors
/// 42601 for a character that begins no token, 22003 for a constant out of range.
fn tokenize<'a>(
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

/// Returns the token at the front of `rest`, which is not empty, and its length in bytes.
fn token<'a>(
    source: ScriptText,
    at: usize,
    rest: &'a str,
) -> Result<(ExpressionToken<'a>, usize), UserError> {
    let bytes = rest.as_bytes();
    if bytes[0] == b':' {
        return match prefix_length(&bytes[1..], is_name_part) {
            0 => Err(unexpected_character(source, at, ':')),
            length => Ok((ExpressionToken::Variable(&rest[1..=length]), length + 1)),
        };
    }
    if bytes[0].is_ascii_digit() || (bytes[0] == b'.' && starts_with_digit(&bytes[1..])) {
        return number(source, at, &rest[..number_length(bytes)]);
    }
    if is_name_start(bytes[0]) {
        let word = &rest[..prefix_length(bytes, is_name_part)];
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

/// Parses an integer or double precision constant.
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

/// Returns the length of a number: digits, a point and more digits, and a complete exponent.
fn number_length(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let mut length = prefix_length(text, is_digit);
    if text.get(length) == Some(&b'.') {
        length += 1 + prefix_length(&text[length + 1..], is_digit);
    }
    if let [b'e' | b'E', exponent @ ..] = &text[length..] {
        let sign = usize::from(matches!(exponent, [b'+' | b'-', ..]));
        if starts_with_digit(&exponent[sign..]) {
            length += 1 + sign + prefix_length(&exponent[sign..], is_digit);
        }
    }
    length
}

/// Counts the bytes at the front for which `accept` is true.
fn prefix_length(text: &[u8], accept: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|&&byte| accept(byte)).count()
}

fn starts_with_digit(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
}

fn unexpected_character(source: ScriptText, at: usize, character: char) -> UserError {
    source.error(at, sqlstate::SYNTAX_ERROR, format!("unexpected character \"{character}\""))
}
