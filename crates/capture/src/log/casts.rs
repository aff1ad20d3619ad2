//! Types for variables that a statement mentions more than once. A parameter of the log has one type wherever it stands; a script's
//! variable is a parameter of its own at each place, and `$1 IS NULL` alone says nothing of its type.

use std::collections::HashMap;
use std::hash::Hash;

use bench_base::interrupts;

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

/// A script with casts behind those mentions of variables that have none, to the type that `types` has for a variable's name.
pub fn with_casts(script: &str, types: &HashMap<&str, &str>) -> String {
    let mut out = String::with_capacity(script.len());
    let mut rest = script;
    while let Some(colon) = rest.find(':') {
        interrupts::check_now_and_then();
        let (before, tail) = rest.split_at(colon + 1);
        let end = tail.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(tail.len());
        let (name, behind) = tail.split_at(end);
        out.push_str(before);
        out.push_str(name);
        if let Some(sql_type) = types.get(name).filter(|_| !behind.starts_with("::")) {
            out.push_str(&format!("::{sql_type}"));
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}
