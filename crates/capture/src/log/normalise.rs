//! A statement apart from its constants: what is left is its shape, and the constants are values of one execution.
//!
//! A constant becomes a parameter only where the server takes one with the same meaning. A number gets the type it has as a
//! constant by a cast; a string stays of unknown type, which the server resolves for parameters as for constants. Others
//! stay in the text: positions in ORDER BY and GROUP BY, modifiers of types, fields of extract.

use std::collections::HashMap;

use bench_base::interrupts;

use super::event::ParameterValue;
use super::names::{NumberedNames, divided};
use super::returning::returned_column;
use super::tokens::{StatementToken, TokenKind, decode};

/// What a value of a template is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemplateValue {
    /// `$n` of the extended protocol, n from 1.
    Parameter(usize),
    Integer,
    /// With a fraction or an exponent.
    Decimal,
    String,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TemplatePart {
    Text(String),
    /// A place of the template's slots. The text of the constant is kept for those that never vary.
    Slot {
        slot: usize,
        cast: Option<String>,
    },
    /// The number at the end of a relation's name: which of the statement's.
    Number(usize),
}

/// A statement without its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Template {
    pub parts: Vec<TemplatePart>,
    pub slots: Vec<TemplateValue>,
    /// The column that it returns of one row, as [`returned_column`].
    pub returns: Option<String>,
}

/// A statement apart from what differs between its executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    pub template: Template,
    /// In the order of the slots.
    pub constants: Vec<Constant>,
    /// At the ends of relations' names.
    pub numbers: Vec<String>,
}

/// What an execution gives a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub value: ParameterValue,
    /// As it was written, with the type in front of it; of a parameter None.
    pub source: Option<String>,
}

/// Divides a statement. None if it mentions a parameter that is not there.
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

/// Words behind which a string constant is a value. Behind other words it belongs to the word, such as a type.
const BEFORE_VALUES: [&str; 37] = [
    "select",
    "all",
    "distinct",
    "where",
    "and",
    "or",
    "not",
    "like",
    "ilike",
    "to",
    "in",
    "then",
    "else",
    "when",
    "case",
    "between",
    "from",
    "for",
    "by",
    "on",
    "having",
    "returning",
    "limit",
    "offset",
    "values",
    "escape",
    "symmetric",
    "any",
    "some",
    "zone",
    "set",
    "placing",
    "union",
    "except",
    "intersect",
    "using",
    "if",
];

/// Types of one word that constants are written with: `date '2026-11-24'`.
const TYPES: [&str; 42] = [
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "interval",
    "json",
    "jsonb",
    "jsonpath",
    "uuid",
    "inet",
    "cidr",
    "macaddr",
    "numeric",
    "decimal",
    "int",
    "integer",
    "int2",
    "int4",
    "int8",
    "bigint",
    "smallint",
    "real",
    "float4",
    "float8",
    "text",
    "varchar",
    "bytea",
    "bool",
    "boolean",
    "point",
    "box",
    "circle",
    "polygon",
    "path",
    "lseg",
    "pg_lsn",
    "regclass",
    "regtype",
    "xml",
    "money",
    "tsquery",
];

/// Types with a number in parentheses behind them.
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

#[derive(Default)]
struct Normaliser<'a> {
    tokens: &'a [StatementToken<'a>],
    names: NumberedNames<'a>,
    template: Template,
    constants: Vec<Constant>,
    /// Places of the tokens so far that are not blank.
    significant: Vec<usize>,
    depth: usize,
    /// The depths of the lists behind ORDER BY and GROUP BY that have begun, in ascending order.
    lists: Vec<usize>,
    /// The slot of each parameter that was mentioned, by its number.
    parameters: HashMap<usize, usize>,
    /// The depth inside of a type's modifier.
    modifier: Option<usize>,
}

impl<'a> Normaliser<'a> {
    /// The token `back` places before the current one; 1 is the one before.
    fn before(&self, back: usize) -> Option<StatementToken<'a>> {
        let place = self.significant.len().checked_sub(back)?;
        Some(self.tokens[self.significant[place]])
    }

    fn follows(&self, words: &[&str]) -> bool {
        self.follows_at(1, words)
    }

    fn follows_at(&self, back: usize, words: &[&str]) -> bool {
        self.before(back)
            .is_some_and(|token| token.kind == TokenKind::Word && words.iter().any(|word| token.is(word)))
    }

    fn take(&mut self, place: usize, parameters: &[ParameterValue]) -> Option<()> {
        let token = self.tokens[place];
        match token.kind {
            TokenKind::Blank | TokenKind::Comment => {
                // Hints are for the planner; other comments differ from call to call.
                let text = if token.text.starts_with("/*+") { token.text } else { " " };
                if !self.template.parts.is_empty() {
                    self.push(text);
                }
                return Some(());
            }
            TokenKind::Parameter(number) => {
                let number = number as usize;
                let value = parameters.get(number.checked_sub(1)?)?;
                let constant = Constant { value: value.clone(), source: None };
                self.slot(TemplateValue::Parameter(number), constant, None);
            }
            TokenKind::Number if !self.is_fixed_number() => self.number(token.text),
            TokenKind::String => self.string(token.text),
            // A slice's bound behind it would look like a variable.
            TokenKind::Symbol if token.text == ":" => self.push(" : "),
            _ => match self.names.place(&token).zip(divided(&token)) {
                Some((name, divided)) => {
                    self.push(divided.stem);
                    self.template.parts.push(TemplatePart::Number(name));
                    if !divided.end.is_empty() {
                        self.template.parts.push(TemplatePart::Text(divided.end.to_owned()));
                    }
                }
                None => self.push(token.text),
            },
        }
        self.track(token);
        self.significant.push(place);
        Some(())
    }

    /// Keeps where in the statement this is.
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
                while self.lists.pop_if(|depth| *depth > self.depth).is_some() {}
            }
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

    /// Whether this is a list behind ORDER BY or GROUP BY, and not in parentheses in it. Those of deeper levels have ended.
    fn is_in_list(&self) -> bool {
        self.lists.last() == Some(&self.depth)
    }

    /// Whether a number here is no value.
    fn is_fixed_number(&self) -> bool {
        let is_position = self.is_in_list()
            && (self.follows(&["by"]) || self.before(1).is_some_and(|token| token.text == ","));
        let counts_rows = self.follows(&["first", "next"]) && self.follows_at(2, &["fetch"]);
        is_position || counts_rows || self.modifier.is_some()
    }

    fn number(&mut self, text: &str) {
        let digits: String = text.chars().filter(|&c| c != '_').collect();
        let is_based =
            digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_alphabetic();
        if is_based {
            self.push(text);
            return;
        }
        let slot =
            if digits.contains(['.', 'e', 'E']) { TemplateValue::Decimal } else { TemplateValue::Integer };
        // As the server does, whose grammar takes the sign for a part of the constant.
        let sign = if self.sign() { self.remove_words(1) } else { String::new() };
        let constant =
            Constant { value: Some(format!("{sign}{digits}")), source: Some(format!("{sign}{text}")) };
        self.slot(slot, constant, None);
    }

    /// Whether the token before is the sign of a number, and not an operator.
    fn sign(&self) -> bool {
        let is_minus = self.before(1).is_some_and(|token| token.text == "-");
        is_minus
            && match self.before(2) {
                None => true,
                Some(token) => match token.kind {
                    TokenKind::Symbol => ![")", "]", "."].contains(&token.text),
                    TokenKind::Word => self.follows_at(2, &BEFORE_VALUES),
                    _ => false,
                },
            }
    }

    fn string(&mut self, text: &str) {
        let Some(value) = decode(text).filter(|_| self.takes_string()) else {
            self.push(text);
            return;
        };
        let constant = |source: String| Constant { value: Some(value.clone()), source: Some(source) };
        match self.type_before() {
            None => self.slot(TemplateValue::String, constant(text.to_owned()), None),
            Some(words) => {
                let written = self.remove_words(words);
                let source = format!("{written} {text}");
                self.slot(TemplateValue::String, constant(source), Some(written));
            }
        }
    }

    /// Whether a string here may be a parameter.
    fn takes_string(&self) -> bool {
        match self.before(1) {
            None => true,
            Some(token) => match token.kind {
                TokenKind::Word => self.follows(&BEFORE_VALUES) || self.type_before().is_some(),
                TokenKind::Symbol if token.text == ")" => false,
                TokenKind::Symbol if token.text == "(" => !self.follows_at(2, &["extract"]),
                TokenKind::Symbol => true,
                _ => false,
            },
        }
    }

    /// How many words before the current token are a type's name.
    fn type_before(&self) -> Option<usize> {
        if self.follows(&["zone"])
            && self.follows_at(2, &["time"])
            && self.follows_at(3, &["with", "without"])
        {
            return self.follows_at(4, &["time", "timestamp"]).then_some(4);
        }
        let two = (self.follows(&["precision"]) && self.follows_at(2, &["double"]))
            || (self.follows(&["varying"]) && self.follows_at(2, &["character"]));
        if two {
            return Some(2);
        }
        // A column may have such a name, but no constant stands directly behind it.
        self.follows(&TYPES).then_some(1)
    }

    /// Takes the last words from the template, and with them the blanks.
    fn remove_words(&mut self, words: usize) -> String {
        let from = self.significant.len() - words;
        let text: Vec<&str> = self.significant[from..].iter().map(|&place| self.tokens[place].text).collect();
        let text = text.join(" ");
        if let Some(TemplatePart::Text(last)) = self.template.parts.last_mut() {
            for word in text.split(' ').rev() {
                last.truncate(last.trim_end().len().saturating_sub(word.len()));
            }
        }
        text
    }

    fn slot(&mut self, slot: TemplateValue, constant: Constant, cast: Option<String>) {
        let next = self.template.slots.len();
        // A parameter that is mentioned again is the same value.
        let place = match slot {
            TemplateValue::Parameter(number) => *self.parameters.entry(number).or_insert(next),
            _ => next,
        };
        if place == next {
            self.template.slots.push(slot);
            self.constants.push(constant);
        }
        // What takes its place must not become a part of a word.
        if matches!(self.template.parts.last(), Some(TemplatePart::Text(text)) if ends_in_word(text)) {
            self.push(" ");
        }
        self.template.parts.push(TemplatePart::Slot { slot: place, cast });
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

fn is_word_part(c: char) -> bool {
    c == '_' || c == '$' || c == '"' || c.is_ascii_alphanumeric() || !c.is_ascii()
}

fn ends_in_word(text: &str) -> bool {
    text.ends_with(is_word_part)
}

impl Template {
    /// The statement with marks in the places of values, as pg_stat_statements shows it.
    pub fn shown(&self, numbers: &[String]) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Slot { slot, cast } => {
                    out.push_str(&cast.as_ref().map_or(String::new(), |cast| format!("{cast} ")));
                    out.push_str(&format!("${}", slot + 1));
                }
                TemplatePart::Number(name) => out.push_str(numbers.get(*name).map_or("*", String::as_str)),
            }
        }
        out
    }
}
