//! Script variables: names, values, and the conversion between texts and numbers.

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
    /// Returns the index, counted from 0 in the order of first appearance.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of names from which on results of queries add no new ones: a name lasts for the run, and takes a slot in every
/// client.
pub const MAX_NAMES: usize = 5000;

/// The names of a run's variables, shared by all of its scripts.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    names: Vec<Rc<str>>,
    ids: HashMap<Rc<str>, VariableId>,
}

impl Symbols {
    /// Starts without names.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the variable of this name, a new one if there is none yet.
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

    /// As [`intern`](Self::intern), for the name of a result column.
    ///
    /// # Errors
    /// 54000 for a new name if there are [`MAX_NAMES`].
    pub fn intern_bounded(&mut self, name: &str) -> Result<VariableId, UserError> {
        if self.names.len() < MAX_NAMES {
            return Ok(self.intern(name));
        }
        self.lookup(name).ok_or_else(|| {
            UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "the scripts have too many variables")
                .detail(format!("The limit for those that \\gset and \\aset make is {MAX_NAMES}."))
        })
    }

    /// Returns the variable of this name, if there is one.
    pub fn lookup(&self, name: &str) -> Option<VariableId> {
        self.ids.get(name).copied()
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns a variable's name; empty if it is not one of these symbols.
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

/// The value of a variable.
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
    /// A text from outside the script, such as a query's result. Expressions interpret it by its form.
    Text(Rc<str>),
}

impl Value {
    /// Returns the value as it stands in a statement's text or is sent as a parameter (`getVariable` in pgbench.c).
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
    /// Returns the length of a text in bytes; 0 for other values.
    pub fn text_bytes(&self) -> usize {
        if let Value::Text(text) = self { text.len() } else { 0 }
    }

    /// Returns the value as an untyped literal between blanks that does not depend on `standard_conforming_strings`
    /// (`quote_literal` in the server).
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

/// An operand of an expression (pgbench's `PgBenchValue`): a [`Value`] whose text was interpreted.
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
    /// The few variables that feeders set, sorted.
    fed: Vec<VariableId>,
}

impl Variables {
    /// Makes room for `len` variables, usually [`Symbols::len`], none of them set.
    pub fn new(len: usize) -> Self {
        Self { slots: vec![None; len], fed: Vec::new() }
    }

    /// Returns the value; `None` if it was never set.
    #[inline]
    pub fn get(&self, id: VariableId) -> Option<&Value> {
        self.slots.get(id.index())?.as_ref()
    }

    /// Sets the value; makes room if the variable was interned later than [`new`](Self::new).
    #[inline]
    pub fn set(&mut self, id: VariableId, value: Value) {
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, None);
        }
        self.slots[id.index()] = Some(value);
    }

    /// Returns the total length of the texts among the values, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.slots.iter().flatten().map(Value::text_bytes).sum()
    }

    /// Marks a variable as set by a feeder: its values, of any content, stand in statements' texts only as literals.
    pub fn feed(&mut self, id: VariableId) {
        if let Err(place) = self.fed.binary_search(&id) {
            self.fed.insert(place, id);
        }
    }

    /// Whether a feeder sets the variable.
    pub fn is_fed(&self, id: VariableId) -> bool {
        self.fed.binary_search(&id).is_ok()
    }
}

/// Returns the value of the variable `name` for an expression (`makeVariableValue` in pgbench.c).
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

/// Interprets the text of the variable `name` by its form. pgbench tries words first; here integers come first because most
/// texts are integers and no word looks like one.
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

// Conversion between numbers and texts, as in pgbench's C.

/// Formats a double precision number as pgbench shows and sends it: C's `%.15g` (`DBL_DIG` digits), with "Infinity",
/// "-Infinity" and "NaN" as in PostgreSQL's snprintf.c.
pub fn format_double(value: f64) -> String {
    /// The most digits that `%.15g` shows.
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

/// Formats a number as pgbench's messages show it: C's `%f`, with infinities as for [`format_double`].
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

/// Removes the zeros at the end of a decimal number's fraction, and the point if nothing follows it.
fn without_trailing_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

/// Parses a double precision number; `None` for other texts, overflow and underflow (`strtodouble` in pgbench.c).
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
    // A number with a digit other than 0 before the exponent that becomes infinite or zero is out of range. C's strtod also
    // reports subnormal ones, which lose precision.
    let mantissa = magnitude.split(['e', 'E']).next().unwrap_or(magnitude);
    let out_of_range = !value.is_normal() && mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    (!out_of_range).then_some(sign * value)
}

/// Parses a hexadecimal number without its 0x: digits with an optional point, and an optional power of two behind a `p`.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    /// Beyond these exponents all numbers are out of range; sums with the digits' exponents do not overflow.
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
            // Beyond the precision of a double; but a digit other than 0 breaks a tie in rounding.
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
    // Scaling by powers of two is exact unless the result is out of range.
    let mut scaled = value as f64;
    exponent = exponent.clamp(*EXPONENTS.start(), *EXPONENTS.end());
    while exponent != 0 && scaled.is_normal() {
        let step = exponent.clamp(-1000, 1000);
        scaled *= 2_f64.powi(step as i32);
        exponent -= step;
    }
    scaled.is_normal().then_some(scaled)
}
