//! Divides a statement into a template, and one execution's constants and numbers at the ends of relations' names. An
//! application with a hundred tables of one form, or a schema per customer, has one template for all of them.
//!
//! A constant becomes a parameter only where the server accepts one with the same meaning. A number is cast to the type of the
//! constant; a string stays of unknown type, which the server resolves for parameters as for constants. Other constants stay in
//! the text: positions in ORDER BY and GROUP BY, type modifiers, and the arbiter of ON CONFLICT, which the planner infers.

use std::collections::HashMap;

use bench_base::interrupts;
use serde::{Deserialize, Serialize};

use super::event::ParameterValue;
use super::tokens::{
    StatementToken, TokenKind, decode, decode_prefixed, decode_unicode, returned_column, tokens,
};
use crate::constants::{is_before_expression, is_constant, type_before};

/// The kind of a template's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TemplateValue {
    /// `$n` of the extended protocol, n from 1.
    Parameter(usize),
    Integer,
    /// A number with a fraction or an exponent.
    Decimal,
    String,
    /// The value of a server setting in SET LOCAL, which must be valid for it.
    Setting,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TemplatePart {
    Text(String),
    /// A value, by its index in the template's slots.
    Slot {
        slot: usize,
        cast: Option<String>,
    },
    /// The number at the end of a relation's name, by its index in [`Normalised::numbers`].
    Number(usize),
    /// A whole SET LOCAL, with the slot of its value.
    Setting {
        name: String,
        slot: usize,
    },
}

/// A statement without its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Template {
    pub parts: Vec<TemplatePart>,
    pub slots: Vec<TemplateValue>,
    /// The returned column, as [`returned_column`].
    pub returns: Option<String>,
    /// Whether its text has constants other than positions and type modifiers.
    pub keeps_constants: bool,
}

/// A statement's template, with the values of one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    pub template: Template,
    /// One per slot.
    pub constants: Vec<Constant>,
    /// The numbers at the ends of relations' names.
    pub numbers: Vec<String>,
}

/// A slot's value in one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub value: ParameterValue,
    /// The constant's text, with the type before it; `None` for a parameter.
    pub source: Option<String>,
}

/// Divides a statement; `None` if it has a parameter without a value.
pub fn normalise(tokens: &[StatementToken], parameters: &[ParameterValue]) -> Option<Normalised> {
    let mut normaliser = Normaliser { tokens, names: NumberedNames::of(tokens), ..Normaliser::default() };
    for place in 0..tokens.len() {
        interrupts::check_now_and_then();
        normaliser.take(place, parameters)?;
    }
    normaliser.trim_end();
    let Normaliser { mut template, constants, names, .. } = normaliser;
    template.returns = returned_column(tokens);
    Some(Normalised { template, constants, numbers: names.numbers() })
}

/// Last words of types that may be followed by a number in parentheses.
const WITH_MODIFIER: [&str; 16] = [
    "varchar",
    "char",
    "character",
    "varying",
    "bpchar",
    "numeric",
    "decimal",
    "dec",
    "bit",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "interval",
    "float",
    "second",
];

/// A string constant.
struct DecodedString {
    value: String,
    source: String,
    /// The type that the letter before its quotes means.
    cast: Option<&'static str>,
}

#[derive(Default)]
struct Normaliser<'a> {
    tokens: &'a [StatementToken<'a>],
    names: NumberedNames<'a>,
    template: Template,
    constants: Vec<Constant>,
    /// The tokens so far, without blanks and comments.
    significant: Vec<StatementToken<'a>>,
    depth: usize,
    /// Depths of the open lists of ORDER BY and GROUP BY, in ascending order.
    lists: Vec<usize>,
    /// Slots by parameter number.
    parameters: HashMap<usize, usize>,
    /// The depth inside of a type modifier.
    modifier: Option<usize>,
    /// The depth of an ON CONFLICT, up to its DO.
    arbiter: Option<usize>,
    /// Number of next tokens that belong to the constant before.
    skipped: usize,
}

/// Fields that EXTRACT takes as words.
const FIELDS: [&str; 22] = [
    "century",
    "day",
    "decade",
    "dow",
    "doy",
    "epoch",
    "hour",
    "isodow",
    "isoyear",
    "julian",
    "microseconds",
    "millennium",
    "milliseconds",
    "minute",
    "month",
    "quarter",
    "second",
    "timezone",
    "timezone_hour",
    "timezone_minute",
    "week",
    "year",
];

impl<'a> Normaliser<'a> {
    /// Returns the token `back` places before the current one.
    fn token_back(&self, back: usize) -> Option<StatementToken<'a>> {
        self.significant.len().checked_sub(back).map(|place| self.significant[place])
    }

    /// Returns whether the previous token is one of these words.
    fn follows(&self, words: &[&str]) -> bool {
        self.follows_at(1, words)
    }

    fn follows_at(&self, back: usize, words: &[&str]) -> bool {
        self.token_back(back)
            .is_some_and(|token| token.kind == TokenKind::Word && words.iter().any(|word| token.is(word)))
    }

    /// Adds the token at a place; `None` for a parameter without a value.
    fn take(&mut self, place: usize, parameters: &[ParameterValue]) -> Option<()> {
        let token = self.tokens[place];
        if self.skipped > 0 {
            self.skipped -= 1;
            return Some(());
        }
        match token.kind {
            TokenKind::Blank | TokenKind::Comment => {
                // Hints are for the planner; other comments differ from call to call.
                let hint = token.text.strip_prefix("/*+");
                self.template.keeps_constants |=
                    hint.is_some_and(|hint| tokens(hint).iter().any(|token| is_constant(token.kind)));
                let text = if hint.is_some() { token.text } else { " " };
                if !self.template.parts.is_empty() {
                    self.push(text);
                }
                return Some(());
            }
            TokenKind::Parameter(number) => {
                let number = number as usize;
                let value = parameters.get(number.checked_sub(1)?)?;
                let constant = Constant { value: value.clone(), source: None };
                self.push_slot(TemplateValue::Parameter(number), constant, None);
            }
            TokenKind::Number if !self.is_fixed_number() => self.push_number(token.text),
            TokenKind::String | TokenKind::OtherString if self.arbiter.is_none() => self.push_string(place),
            kind if is_constant(kind) && self.arbiter.is_some() => self.push_constant(token.text),
            // A slice's bound after the colon would look like a variable.
            TokenKind::Symbol if token.text == ":" => self.push(" : "),
            _ => match self.names.place(&token).zip(split_name(&token)) {
                Some((name, parts)) => {
                    self.push(parts.stem);
                    self.template.parts.push(TemplatePart::Number(name));
                    if !parts.end.is_empty() {
                        self.template.parts.push(TemplatePart::Text(parts.end.to_owned()));
                    }
                }
                None => self.push(token.text),
            },
        }
        self.track(token);
        self.significant.push(token);
        Some(())
    }

    /// Tracks parentheses, lists and modifiers.
    fn track(&mut self, token: StatementToken) {
        match token.text {
            "(" => {
                self.depth += 1;
                if self.follows(&WITH_MODIFIER) {
                    self.modifier = Some(self.depth);
                }
            }
            ")" => {
                if self.modifier == Some(self.depth) {
                    self.modifier = None;
                }
                self.depth = self.depth.saturating_sub(1);
                self.arbiter = self.arbiter.filter(|depth| *depth <= self.depth);
                while self.lists.pop_if(|depth| *depth > self.depth).is_some() {}
            }
            _ if token.is("conflict") && self.follows(&["on"]) => self.arbiter = Some(self.depth),
            _ if token.is("do") => self.arbiter = None,
            _ if token.is("by") && self.follows(&["order", "group"]) && !self.is_in_list() => {
                self.lists.push(self.depth);
            }
            _ if token.kind == TokenKind::Word
                && ["limit", "offset", "having", "window", "union", "for", "values", "set"]
                    .iter()
                    .any(|w| token.is(w)) =>
            {
                let depth = self.depth;
                self.lists.pop_if(|list| *list == depth);
            }
            _ => {}
        }
    }

    /// Returns whether the current token is in a list of ORDER BY or GROUP BY, outside of parentheses in it.
    fn is_in_list(&self) -> bool {
        self.lists.last() == Some(&self.depth)
    }

    /// Returns whether a number at this place is a position, a type modifier, or part of an arbiter.
    fn is_fixed_number(&self) -> bool {
        let is_position = self.is_in_list()
            && (self.follows(&["by"]) || self.token_back(1).is_some_and(|token| token.text == ","));
        is_position || self.modifier.is_some() || self.arbiter.is_some()
    }

    fn push_number(&mut self, text: &str) {
        let digits: String = text.chars().filter(|&c| c != '_').collect();
        let radix = match digits.get(..2) {
            Some("0x" | "0X") => 16,
            Some("0o" | "0O") => 8,
            Some("0b" | "0B") => 2,
            _ => 10,
        };
        let digits = match radix {
            10 => digits,
            _ => match u128::from_str_radix(&digits[2..], radix) {
                Ok(number) => number.to_string(),
                Err(_) => return self.push_constant(text),
            },
        };
        let kind =
            if digits.contains(['.', 'e', 'E']) { TemplateValue::Decimal } else { TemplateValue::Integer };
        // In the server's grammar, the sign is part of the constant.
        let sign = if self.follows_sign() { self.remove_words(1) } else { String::new() };
        let constant =
            Constant { value: Some(format!("{sign}{digits}")), source: Some(format!("{sign}{text}")) };
        // FETCH FIRST takes a parameter with a cast only in parentheses.
        let is_row_count = self.follows(&["first", "next"]) && self.follows_at(2, &["fetch"]);
        if is_row_count {
            self.push("(");
        }
        self.push_slot(kind, constant, None);
        if is_row_count {
            self.push(")");
        }
    }

    /// Returns whether the previous token is the sign of a number, not an operator.
    fn follows_sign(&self) -> bool {
        let is_minus = self.token_back(1).is_some_and(|token| token.text == "-");
        is_minus
            && match self.token_back(2) {
                None => true,
                Some(token) => match token.kind {
                    TokenKind::Symbol => ![")", "]", "."].contains(&token.text),
                    TokenKind::Word => is_before_expression(&token),
                    _ => false,
                },
            }
    }

    fn push_string(&mut self, place: usize) {
        let token = self.tokens[place];
        let Some(decoded) = self.decode_string(place) else { return self.push_constant(token.text) };
        let DecodedString { value, source, cast } = decoded;
        if self.follows(&["extract"])
            || self.token_back(1).is_some_and(|b| b.text == "(") && self.follows_at(2, &["extract"])
        {
            // The field must be a word, not a parameter.
            let field = value.to_ascii_lowercase();
            let is_field = FIELDS.contains(&field.as_str());
            return if is_field { self.push(&field) } else { self.push_constant(token.text) };
        }
        let constant = |source: String| Constant { value: Some(value.clone()), source: Some(source) };
        match type_before(&self.significant) {
            _ if cast.is_some() => {
                self.push_slot(TemplateValue::String, constant(source), cast.map(str::to_owned));
            }
            Some(written) => {
                let text = self.remove_words(written.tokens);
                let source = format!("{text} {source}");
                self.push_slot(TemplateValue::String, constant(source), Some(written.cast));
            }
            None if self.can_be_parameter() => self.push_slot(TemplateValue::String, constant(source), None),
            None => self.push_constant(token.text),
        }
    }

    /// Leaves a constant in the text.
    fn push_constant(&mut self, text: &str) {
        self.template.keeps_constants = true;
        self.push(text);
    }

    /// Decodes the string constant at a place, with UESCAPE after it.
    fn decode_string(&mut self, place: usize) -> Option<DecodedString> {
        let token = self.tokens[place];
        let string = |value: String, cast| DecodedString { value, source: token.text.to_owned(), cast };
        if token.kind == TokenKind::String {
            return decode(token.text).map(|value| string(value, None));
        }
        match token.text.as_bytes().first()? {
            b'b' | b'B' | b'x' | b'X' => {
                Some(string(decode_prefixed(token.text)?, Some("pg_catalog.\"bit\"")))
            }
            b'n' | b'N' => Some(string(decode_prefixed(token.text)?, Some("pg_catalog.bpchar"))),
            b'u' | b'U' => {
                let mut next_places =
                    (place + 1..self.tokens.len()).filter(|&next| !self.tokens[next].is_silent());
                let uescape = next_places.next().filter(|&next| self.tokens[next].is("uescape"));
                let Some(escape_place) = uescape.and_then(|_| next_places.next()) else {
                    return decode_unicode(token.text, '\\').map(|value| string(value, None));
                };
                let escape = decode(self.tokens[escape_place].text)?;
                let value = decode_unicode(token.text, escape.chars().next()?)?;
                self.skipped = escape_place - place;
                let source: String =
                    self.tokens[place..=escape_place].iter().map(|token| token.text).collect();
                Some(DecodedString { value, source, cast: None })
            }
            _ => None,
        }
    }

    /// Returns whether a string at this place, without a type before it, may become a parameter.
    fn can_be_parameter(&self) -> bool {
        match self.token_back(1) {
            None => true,
            Some(token) => match token.kind {
                TokenKind::Word => is_before_expression(&token),
                // DISTINCT ON (…), OPERATOR(…)
                TokenKind::Symbol => token.text != "]",
                _ => false,
            },
        }
    }

    /// Removes the last words from the template, with their blanks, and returns them.
    fn remove_words(&mut self, words: usize) -> String {
        let first = self.significant.len() - words;
        let texts: Vec<&str> = self.significant[first..].iter().map(|token| token.text).collect();
        if let Some(TemplatePart::Text(last)) = self.template.parts.last_mut() {
            for text in texts.iter().rev() {
                last.truncate(last.trim_end().len().saturating_sub(text.len()));
            }
        }
        texts.join(" ")
    }

    fn push_slot(&mut self, kind: TemplateValue, constant: Constant, cast: Option<String>) {
        let next = self.template.slots.len();
        // All mentions of a parameter share a slot.
        let slot = match kind {
            TemplateValue::Parameter(number) => *self.parameters.entry(number).or_insert(next),
            _ => next,
        };
        if slot == next {
            self.template.slots.push(kind);
            self.constants.push(constant);
        }
        // The slot's text must not join the word before it.
        if matches!(self.template.parts.last(), Some(TemplatePart::Text(text)) if ends_in_word(text)) {
            self.push(" ");
        }
        self.template.parts.push(TemplatePart::Slot { slot, cast });
    }

    fn push(&mut self, text: &str) {
        if let Some(TemplatePart::Text(last)) = self.template.parts.last_mut() {
            if text != " " || !last.ends_with(' ') {
                last.push_str(text);
            }
        } else {
            let gap =
                if text.starts_with(is_word_part) && !self.template.parts.is_empty() { " " } else { "" };
            self.template.parts.push(TemplatePart::Text(format!("{gap}{text}")));
        }
    }

    fn trim_end(&mut self) {
        if let Some(TemplatePart::Text(last)) = self.template.parts.last_mut() {
            last.truncate(last.trim_end_matches(' ').len());
            if last.is_empty() {
                self.template.parts.pop();
            }
        }
    }
}

/// Writes a SET LOCAL as a call, whose value may be a variable.
pub fn set_config(name: &str, value: &str) -> String {
    format!("SELECT pg_catalog.set_config('{name}', {value}, true)")
}

fn is_word_part(c: char) -> bool {
    c == '_' || c == '$' || c == '"' || c.is_ascii_alphanumeric() || !c.is_ascii()
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(is_word_part)
}

impl Template {
    /// Formats the statement with `$n` for its values, as pg_stat_statements does.
    pub fn shown(&self, numbers: &[String]) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Slot { slot, cast } => {
                    // Casts to types of pg_catalog were not written as types.
                    let cast = cast.as_ref().filter(|cast| !cast.starts_with("pg_catalog."));
                    out.push_str(&cast.map_or(String::new(), |cast| format!("{cast} ")));
                    out.push_str(&format!("${}", slot + 1));
                }
                TemplatePart::Setting { name, slot } => {
                    out.push_str(&set_config(name, &format!("${}", slot + 1)));
                }
                TemplatePart::Number(name) => out.push_str(numbers.get(*name).map_or("*", String::as_str)),
            }
        }
        out
    }
}

/// Key words that a relation's name follows.
const BEFORE_RELATIONS: [&str; 5] = ["from", "join", "update", "into", "only"];

/// Most names with numbers of a statement; further ones stay in its text.
const MAX_NAMES: usize = 100;

/// Distinct relation names of a statement that end in a number.
#[derive(Debug, Default)]
struct NumberedNames<'a> {
    names: Vec<StatementToken<'a>>,
}

/// A name divided at its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NumberedName<'a> {
    /// The beginning, with the opening quote.
    pub stem: &'a str,
    /// `7` of `orders7`, `_2026_11` of `orders_2026_11`.
    pub number: &'a str,
    /// The closing quote.
    pub end: &'a str,
}

impl<'a> NumberedNames<'a> {
    /// Finds names at the places of relations and of their schemas.
    pub fn of(tokens: &[StatementToken<'a>]) -> Self {
        let mut numbered = Self::default();
        let mut is_expected = false;
        let mut was_name = false;
        for token in tokens.iter().filter(|token| !token.is_silent()) {
            interrupts::check_now_and_then();
            let is_keyword = BEFORE_RELATIONS.iter().any(|word| token.is(word));
            let has_room = numbered.names.len() < MAX_NAMES;
            if is_expected
                && !is_keyword
                && has_room
                && split_name(token).is_some()
                && numbered.place(token).is_none()
            {
                numbered.names.push(*token);
            }
            let is_dot = token.text == "." && was_name;
            was_name = is_expected && is_name(token);
            is_expected = is_keyword || is_dot;
        }
        numbered
    }

    /// Returns the index of a name.
    pub fn place(&self, token: &StatementToken) -> Option<usize> {
        self.names.iter().position(|name| {
            name.kind == token.kind
                && match name.kind {
                    TokenKind::Word => name.text.eq_ignore_ascii_case(token.text),
                    _ => name.text == token.text,
                }
        })
    }

    /// Returns the numbers, in the order of the names.
    pub fn numbers(&self) -> Vec<String> {
        self.names.iter().filter_map(split_name).map(|name| name.number.to_owned()).collect()
    }
}

fn is_name(token: &StatementToken) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier)
}

/// Splits the digits and underscores from the end of a name; `None` without a digit among them, or without a stem.
fn split_name<'a>(token: &StatementToken<'a>) -> Option<NumberedName<'a>> {
    if !is_name(token) {
        return None;
    }
    let plain = token.text.trim_end_matches('"');
    let letters = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let (stem, number) = plain.split_at(letters.len());
    let has_stem = stem.chars().any(|c| c != '"');
    (has_stem && number.contains(|c: char| c.is_ascii_digit())).then(|| NumberedName {
        stem,
        number,
        end: &token.text[plain.len()..],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(statement: &str) -> Vec<String> {
        NumberedNames::of(&tokens(statement)).numbers()
    }

    #[test]
    fn relations_alone_have_numbers() {
        assert_eq!(numbers("SELECT c1, md5(c) FROM sbtest17 WHERE id2 = 3"), ["17"]);
        assert_eq!(numbers("INSERT INTO \"Orders_2026_11\" (a1) VALUES (1)"), ["_2026_11"]);
        assert_eq!(numbers("UPDATE ONLY tenant5.stock SET n1 = 2"), ["5"]);
        assert_eq!(
            numbers("SELECT FROM tenant5.stock_2 s3 JOIN tenant5 . item USING (a4)"),
            ["5".to_owned(), "_2".to_owned()]
        );
        assert_eq!(numbers("DELETE FROM _1 USING \"2\""), [""; 0]);
        assert_eq!(numbers("SELECT 1 FROM (SELECT a1.b2 FROM x) y3"), [""; 0]);
    }

    #[test]
    fn a_name_is_one_whatever_its_case() {
        let statement = tokens("SELECT T1.a FROM t1, \"t1\"");
        let names = NumberedNames::of(&statement);
        let places: Vec<_> = statement.iter().map(|token| names.place(token)).collect();
        assert_eq!(places.iter().flatten().count(), 2, "{places:?}");
        let divided = split_name(statement.last().unwrap()).unwrap();
        assert_eq!((divided.stem, divided.number, divided.end), ("\"t", "1", "\""));
    }
}
