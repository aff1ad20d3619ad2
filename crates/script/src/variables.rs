//! Script variables: their names, their values, and what a text means as a number.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use bench_base::error::{UserError, sqlstate};

use crate::text::trim_start;

/// A variable of a run: the index of its name in [`Symbols`] and of its value in [`Variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableId(u32);

impl VariableId {
    /// Counted from 0 in the order of first appearance.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The most names of variables that results of queries add to: each is there for as long as the run, and each client has a
/// place for it.
pub const MAX_NAMES: usize = 5000;

/// The names of a run's variables, shared by all of its scripts.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<Rc<str>>,
    ids: HashMap<Rc<str>, VariableId>,
}

impl Symbols {
    /// No names yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The variable of this name, a new one if there is none yet.
    pub fn intern(&mut self, name: &str) -> VariableId {
        if let Some(id) = self.lookup(name) {
            return id;
        }
        let id = VariableId(self.names.len() as u32);
        let name: Rc<str> = name.into();
        self.names.push(Rc::clone(&name));
        self.ids.insert(name, id);
        id
    }

    /// As [`intern`](Self::intern), for a name that comes from outside.
    ///
    /// # Errors
    /// 54000 for a new one where there are [`MAX_NAMES`].
    pub fn intern_bounded(&mut self, name: &str) -> Result<VariableId, UserError> {
        if self.names.len() < MAX_NAMES {
            return Ok(self.intern(name));
        }
        self.lookup(name).ok_or_else(|| {
            UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "the scripts have too many variables")
                .detail(format!("The limit for those that \\gset and \\aset make is {MAX_NAMES}."))
        })
    }

    /// The variable of this name, if there is one.
    pub fn lookup(&self, name: &str) -> Option<VariableId> {
        self.ids.get(name).copied()
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name of a variable of these symbols; empty for one that is not among them.
    pub fn name(&self, id: VariableId) -> &str {
        self.names.get(id.index()).map_or("", |name| name)
    }
}

/// Whether pgbench would accept this as a variable's name (`valid_variable_name` in pgbench.c): ASCII letters,
/// digits, underscores and anything that is not ASCII, with no digit at the front.
pub fn is_variable_name(name: &str) -> bool {
    name.bytes().next().is_some_and(is_name_start) && name.bytes().all(is_name_part)
}

/// Whether a byte may begin a variable's name.
pub(crate) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether a byte may continue a variable's name.
pub(crate) fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit()
}

/// What a variable may hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL's null.
    Null,
    /// True or false.
    Boolean(bool),
    /// A bigint.
    Integer(i64),
    /// A double precision number.
    Double(f64),
    /// A text that came from outside; an expression takes it for what it looks like.
    Text(Rc<str>),
}

impl Value {
    /// The value as it goes into a statement's text, or to the server as a text (`getVariable` in pgbench.c).
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Value::Null => Cow::Borrowed("NULL"),
            Value::Boolean(true) => Cow::Borrowed("true"),
            Value::Boolean(false) => Cow::Borrowed("false"),
            Value::Integer(value) => Cow::Owned(value.to_string()),
            Value::Double(value) => Cow::Owned(format_double(*value)),
            Value::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl Value {
    /// The bytes of a text.
    pub fn text_bytes(&self) -> usize {
        if let Value::Text(text) = self { text.len() } else { 0 }
    }

    /// The value as a literal, with blanks about it, which is the same under either `standard_conforming_strings`
    /// (`quote_literal` in the server). It has the type that its place gives it, as a parameter's.
    pub fn to_literal(&self) -> String {
        if *self == Value::Null {
            return " NULL ".to_owned();
        }
        let text = self.to_text();
        let mut literal = String::with_capacity(text.len() + 8);
        literal.push_str(if text.contains('\\') { " E'" } else { " '" });
        for character in text.chars() {
            if matches!(character, '\'' | '\\') {
                literal.push(character);
            }
            literal.push(character);
        }
        literal.push_str("' ");
        literal
    }
}

/// What an expression computes with (pgbench's `PgBenchValue`): a [`Value`] whose text was interpreted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Value {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Boolean(value) => Value::Boolean(value),
            Scalar::Integer(value) => Value::Integer(value),
            Scalar::Double(value) => Value::Double(value),
        }
    }
}

/// The values of one client's variables.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    slots: Vec<Option<Value>>,
    /// Those whose values come from outside, row by row, in order; there are few.
    fed: Vec<VariableId>,
}

impl Variables {
    /// As many variables as `len`, usually [`Symbols::len`], none of them set.
    pub fn new(len: usize) -> Self {
        Self { slots: vec![None; len], fed: Vec::new() }
    }

    /// The value; `None` when it was never set.
    #[inline]
    pub fn get(&self, id: VariableId) -> Option<&Value> {
        self.slots.get(id.index())?.as_ref()
    }

    /// Sets the value, and makes room for it where the variable is newer than these.
    #[inline]
    pub fn set(&mut self, id: VariableId, value: Value) {
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, None);
        }
        self.slots[id.index()] = Some(value);
    }

    /// What the texts among the values take, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.slots.iter().flatten().map(Value::text_bytes).sum()
    }

    /// Has the values of a variable stand in statements' texts as literals only, for they may be of any content.
    pub fn feed(&mut self, id: VariableId) {
        if let Err(place) = self.fed.binary_search(&id) {
            self.fed.insert(place, id);
        }
    }

    /// Whether [`Self::feed`] has been said of it.
    pub fn is_fed(&self, id: VariableId) -> bool {
        self.fed.binary_search(&id).is_ok()
    }
}

/// The value of the variable `name` for an expression (`makeVariableValue` in pgbench.c).
///
/// # Errors
/// 22023 for a text that is neither null, boolean nor number, 22003 for an integer beyond bigint.
#[inline]
pub(crate) fn scalar_of(name: &str, value: &Value) -> Result<Scalar, Box<UserError>> {
    match value {
        Value::Null => Ok(Scalar::Null),
        Value::Boolean(value) => Ok(Scalar::Boolean(*value)),
        Value::Integer(value) => Ok(Scalar::Integer(*value)),
        Value::Double(value) => Ok(Scalar::Double(*value)),
        Value::Text(text) => scalar_of_text(name, text),
    }
}

/// What the text of the variable `name` looks like. pgbench tries words first, but none of them looks like an
/// integer, and most texts do.
fn scalar_of_text(name: &str, text: &str) -> Result<Scalar, Box<UserError>> {
    let malformed = || {
        let message = format!("malformed variable \"{name}\" value: \"{text}\"");
        Box::new(UserError::invalid(message))
    };
    if text.is_empty() {
        return Err(malformed());
    }
    let number = trim_start(text);
    let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
    if digits.is_empty() {
        let message = format!("invalid input syntax for type bigint: \"{text}\"");
        return Err(UserError::invalid(message).into());
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.parse().map(Scalar::Integer).map_err(|_| {
            let message = format!("value \"{text}\" is out of range for type bigint");
            UserError::new(sqlstate::NUMERIC_VALUE_OUT_OF_RANGE, message).into()
        });
    }
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    // Prefixes such as "y" and "fal" count, but not "o", which could be either "on" or "off".
    let begins = |word: &str| word.get(..text.len()).is_some_and(is);
    if is("null") {
        return Ok(Scalar::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Ok(Scalar::Boolean(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Ok(Scalar::Boolean(false));
    }
    parse_double(number).map(Scalar::Double).ok_or_else(malformed)
}

// Numbers as text and texts as numbers, as pgbench's C does both.

/// A double precision number as pgbench shows it and sends it: C's `%.15g` (`DBL_DIG` digits), but infinities
/// are "Infinity" and "-Infinity" and what is no number is "NaN", as PostgreSQL's own snprintf.c has it
/// everywhere.
pub fn format_double(value: f64) -> String {
    /// What `%g` shows at most.
    const DIGITS: i32 = 15;
    if !value.is_finite() {
        return format_non_finite(value).to_owned();
    }
    // One digit before the point and 14 after it; the exponent is that of the rounded number.
    let scientific = format!("{value:.14e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..DIGITS).contains(&exponent) {
        let decimals = (DIGITS - 1 - exponent) as usize;
        return without_trailing_zeros(&format!("{value:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

/// C's `%f`, with PostgreSQL's infinities as above: how pgbench's messages show numbers.
pub(crate) fn format_fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { format_non_finite(value).to_owned() }
}

fn format_non_finite(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// The decimal number without the zeros at the end of its fraction, and without the point if nothing follows
/// it.
fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// A double precision number; `None` for what is none, overflows or underflows (`strtodouble` in pgbench.c).
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let (sign, magnitude) = match text.strip_prefix(['+', '-']) {
        Some(magnitude) if text.starts_with('-') => (-1.0, magnitude),
        Some(magnitude) => (1.0, magnitude),
        None => (1.0, text),
    };
    // Only one sign.
    if magnitude.starts_with(['+', '-']) {
        return None;
    }
    if let Some(digits) = magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        return parse_hexadecimal(digits).map(|value| sign * value);
    }
    let value: f64 = magnitude.parse().ok()?;
    // Written with a digit other than 0 before the exponent, a number is neither infinite nor zero. C's
    // strtod reports the loss of precision of subnormal ones as well.
    let mantissa = magnitude.split(['e', 'E']).next().unwrap_or(magnitude);
    let out_of_range = !value.is_normal() && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (!out_of_range).then_some(sign * value)
}

/// What follows the 0x of a hexadecimal number: digits with a point among them, and behind a `p` a power of
/// two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    /// Beyond these all numbers are out of range, and what is added to them does not overflow.
    const EXPONENTS: std::ops::RangeInclusive<i64> = -1_000_000..=1_000_000;
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (text, "0"),
    };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let negative = exponent.starts_with('-');
    let magnitude = digits.parse().unwrap_or(i64::MAX).min(*EXPONENTS.end());
    let mut exponent = if negative { -magnitude } else { magnitude };

    let (mut value, mut any_digit, mut behind_point) = (0_u64, false, false);
    for character in mantissa.chars() {
        if character == '.' && !behind_point {
            behind_point = true;
            continue;
        }
        let digit = u64::from(character.to_digit(16)?);
        any_digit = true;
        if value >> 60 == 0 {
            value = value << 4 | digit;
            exponent -= if behind_point { 4 } else { 0 };
        } else {
            // Far below what is rounded away; but a digit other than 0 decides a tie.
            value |= u64::from(digit != 0);
            exponent += if behind_point { 0 } else { 4 };
        }
    }
    if !any_digit {
        return None;
    }
    if value == 0 {
        return Some(0.0);
    }
    // In steps that are exact, unless the result is out of range.
    let mut scaled = value as f64;
    exponent = exponent.clamp(*EXPONENTS.start(), *EXPONENTS.end());
    while exponent != 0 && scaled.is_normal() {
        let step = exponent.clamp(-1000, 1000);
        scaled *= 2_f64.powi(step as i32);
        exponent -= step;
    }
    scaled.is_normal().then_some(scaled)
}
