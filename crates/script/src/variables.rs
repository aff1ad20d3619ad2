//! Script variables: their names, their values, and what a text means as a number.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

mod number;

use bench_base::error::{UserError, sqlstate};

pub use number::format_double;
pub(super) use number::{format_fixed, parse_double};

use super::blanks::trim_start;

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
pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii()
}

/// Whether a byte may continue a variable's name.
pub(super) fn is_name_part(byte: u8) -> bool {
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
pub(super) enum Scalar {
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
pub(super) fn scalar_of(name: &str, value: &Value) -> Result<Scalar, Box<UserError>> {
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

#[cfg(test)]
mod tests;
