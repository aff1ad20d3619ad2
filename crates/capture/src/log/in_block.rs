//! Statements that belong into a transaction block and are no queries, apart from what differs between their executions.

use std::collections::HashMap;

use super::class::{SavepointStep, savepoint};
use super::normalise::{Constant, Normalised, Template, TemplatePart, TemplateValue};
use super::tokens::{StatementToken, TokenKind, decode};
use crate::constants::is_constant;

/// Settings whose values are lists of names in quotes (GUC_LIST_QUOTE in the server's guc_tables.c).
const LISTS_OF_NAMES: [&str; 4] =
    ["local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"];

/// Settings that a query must not set: the first query of a transaction decides on them.
const BEFORE_QUERIES: [&str; 3] =
    ["transaction_deferrable", "transaction_isolation", "transaction_read_only"];

/// What is left out of a replay.
pub const SNAPSHOT: &str = "SET TRANSACTION SNAPSHOT is left out";

/// The names of a transaction's savepoints, each with its number from 1.
pub type SavepointNames = HashMap<String, usize>;

/// What a statement is in a replay: `Err` what is left out.
///
/// # Errors
/// As said.
pub fn normalise_in_block(
    tokens: &[StatementToken],
    text: String,
    names: &mut SavepointNames,
) -> Result<Normalised, &'static str> {
    let loud: Vec<StatementToken> = tokens.iter().copied().filter(|token| !token.is_silent()).collect();
    let is = |place: usize, word: &str| loud.get(place).is_some_and(|token| token.is(word));
    if is(0, "set") && (1..4).any(|place| is(place, "transaction") && is(place + 1, "snapshot")) {
        return Err(SNAPSHOT);
    }
    if let Some((step, name)) = savepoint(tokens) {
        let next = names.len() + 1;
        let number = *names.entry(name).or_insert(next);
        let command = match step {
            SavepointStep::Set => "SAVEPOINT",
            SavepointStep::Release => "RELEASE SAVEPOINT",
            SavepointStep::RollBackTo => "ROLLBACK TO SAVEPOINT",
        };
        return Ok(fixed(format!("{command} s{number}"), false));
    }
    if is(0, "set")
        && is(1, "local")
        && let Some((name, value)) = setting(&loud[2..])
    {
        let is_free = name.contains('.') || name == "application_name";
        let kind = if is_free { TemplateValue::String } else { TemplateValue::Setting };
        return Ok(Normalised {
            template: Template {
                parts: vec![TemplatePart::Setting { name, slot: 0 }],
                slots: vec![kind],
                ..Template::default()
            },
            constants: vec![Constant { value: Some(value), source: Some(text) }],
            numbers: Vec::new(),
        });
    }
    let has_constants = loud.iter().any(|token| is_constant(token.kind));
    Ok(fixed(text, has_constants))
}

/// A statement that is always the same.
pub fn fixed(text: String, keeps_constants: bool) -> Normalised {
    let template = Template { parts: vec![TemplatePart::Text(text)], keeps_constants, ..Template::default() };
    Normalised { template, ..Normalised::default() }
}

/// The setting of a SET LOCAL, and its value as `set_config` takes it; `None` where it takes none such.
fn setting(loud: &[StatementToken]) -> Option<(String, String)> {
    let is = |place: usize, word: &str| loud.get(place).is_some_and(|token| token.is(word));
    if is(0, "time") && is(1, "zone") {
        let name = "timezone".to_owned();
        return Some((name, value(&loud[2..]).filter(|_| !is(2, "local") && !is(2, "default"))?));
    }
    if is(0, "role") && loud.len() == 2 {
        return Some(("role".to_owned(), value(&loud[1..])?));
    }
    let operator = loud.iter().position(|token| token.text == "=" || token.is("to"))?;
    let name: String = loud[..operator].iter().map(|token| token.text).collect();
    let name = name.to_ascii_lowercase();
    let is_name = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'.');
    if !is_name || is(operator + 1, "default") || BEFORE_QUERIES.contains(&name.as_str()) {
        return None;
    }
    let items: Option<Vec<String>> =
        loud[operator + 1..].split(|token| token.text == ",").map(value).collect();
    let quoted = |item: String| match LISTS_OF_NAMES.contains(&name.as_str()) {
        true => format!("\"{}\"", item.replace('"', "\"\"")),
        false => item,
    };
    let items: Vec<String> = items?.into_iter().map(quoted).collect();
    Some((name, items.join(", ")))
}

/// One value: a word, a string, or a number with its sign.
fn value(item: &[StatementToken]) -> Option<String> {
    let (sign, token) = match item {
        [token] => ("", token),
        [sign, token] if token.kind == TokenKind::Number && ["+", "-"].contains(&sign.text) => {
            (sign.text, token)
        }
        _ => return None,
    };
    match token.kind {
        TokenKind::Word => Some(token.text.to_ascii_lowercase()),
        TokenKind::String => decode(token.text),
        TokenKind::QuotedIdentifier => {
            let inside = token.text.strip_prefix('"')?.strip_suffix('"')?;
            Some(inside.replace("\"\"", "\""))
        }
        TokenKind::Number => Some(format!("{}{}", sign.trim_start_matches('+'), token.text.replace('_', ""))),
        _ => None,
    }
}
