//! Types for variables that a statement mentions more than once. A parameter of the log has one type wherever it stands; a script's
//! variable is a parameter of its own at each place, and `$1 IS NULL` alone says nothing of its type.

use std::collections::HashMap;
use std::hash::Hash;

use super::tokens::{TokenKind, tokens};

/// A statement in which all places of a variable have one number, and the variables in the order of these numbers: `places[0]` is the
/// variable of `$1`. None where every variable has one place.
pub fn shared<T: Eq + Hash + Copy>(text: &str, places: &[T]) -> Option<(String, Vec<T>)> {
    let mut distinct: Vec<T> = Vec::new();
    let mut numbers: HashMap<T, usize> = HashMap::new();
    for &variable in places {
        numbers.entry(variable).or_insert_with(|| {
            distinct.push(variable);
            distinct.len()
        });
    }
    if distinct.len() == places.len() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for token in tokens(text) {
        if let TokenKind::Parameter(number) = token.kind {
            let variable = places.get((number as usize).checked_sub(1)?)?;
            out.push_str(&format!("${}", numbers.get(variable)?));
        } else {
            out.push_str(token.text);
        }
    }
    Some((out, distinct))
}

/// A script with a cast behind each mention of a variable that has none.
pub fn with_cast(script: &str, name: &str, sql_type: &str) -> String {
    let mention = format!(":{name}");
    let mut out = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(place) = rest.find(&mention) {
        let (before, tail) = rest.split_at(place + mention.len());
        out.push_str(before);
        let is_whole = !tail.starts_with(|c: char| c == '_' || c.is_alphanumeric());
        if is_whole && !tail.starts_with("::") {
            out.push_str(&format!("::{sql_type}"));
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}
