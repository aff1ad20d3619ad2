//! Writes captured statements as scripts, and with values in place of parameters.
//!
//! A server's parameter has one type wherever it stands. Each mention of a script's variable becomes a parameter of its own;
//! where its place does not determine a type, as in `$1 IS NULL` or `ARRAY[$1]`, it gets a cast.

use std::collections::HashMap;
use std::hash::Hash;

use bench_base::interrupts;
use bench_script::tokens::{Token, TokenKind, tokens};

/// Returns the name of the variable for a parameter.
pub fn variable(parameter: u32) -> String {
    format!("p{parameter}")
}

/// Writes a statement as a script of [`bench_script`]. `mention` returns the variable for `$n`, or SQL as an error. A parameter
/// that is mentioned more than once gets a cast to its `type_of`. Text that would be a variable's mention is escaped.
pub fn script(
    text: &str,
    mention: impl Fn(u32) -> Result<String, String>,
    type_of: impl Fn(u32) -> Option<String>,
) -> String {
    let text = text.trim().trim_end_matches(';').trim_end();
    let all = tokens(text);
    let mut mentions: HashMap<u32, usize> = HashMap::new();
    for token in &all {
        if let TokenKind::Parameter(number) = token.kind {
            *mentions.entry(number).or_default() += 1;
        }
    }
    let mut result = String::with_capacity(text.len() + 16);
    for (place, token) in all.iter().enumerate() {
        interrupts::check_now_and_then();
        match token.kind {
            TokenKind::Parameter(number) => {
                let name = match mention(number) {
                    Ok(name) => name,
                    Err(sql) => {
                        let sql_tokens = tokens(&sql);
                        let places = 0..sql_tokens.len();
                        places.for_each(|place| result.push_str(&escape(&sql, &sql_tokens, place)));
                        continue;
                    }
                };
                let is_shared = mentions.get(&number).is_some_and(|&mentions| mentions > 1);
                match type_of(number).filter(|_| is_shared) {
                    Some(sql_type) => result.push_str(&format!("CAST(:{name} AS {sql_type})")),
                    None => {
                        result.push_str(&format!(":{name}"));
                        // A cast that follows (`::`) must not be read as part of the mention.
                        if all.get(place + 1).is_some_and(|next| next.text(text).starts_with(':')) {
                            result.push(' ');
                        }
                    }
                }
            }
            _ => result.push_str(&escape(text, &all, place)),
        }
    }
    result.push(';');
    result
}

/// Writes a token other than a parameter. Escapes a colon outside of casts, which would begin a mention, and a semicolon, which
/// would end the statement.
fn escape(text: &str, all: &[Token], place: usize) -> String {
    let written = all[place].text(text);
    let is_colon = |place: usize| all.get(place).is_some_and(|token| token.text(text) == ":");
    match written {
        ":" if is_colon(place + 1) || place > 0 && is_colon(place - 1) => ":".to_owned(),
        ":" | ";" => format!("\\{written}"),
        _ => written.to_owned(),
    }
}

/// Replaces each parameter by its `value`.
pub fn with_values(text: &str, value: impl Fn(u32) -> String) -> String {
    let all = tokens(text);
    let written = |token: &Token| match token.kind {
        TokenKind::Parameter(number) => value(number),
        _ => token.text(text).to_owned(),
    };
    all.iter().map(written).collect()
}

/// Gives all places of a variable one parameter number; `places[0]` is the variable of `$1`. Returns the statement and the
/// variables in the order of their numbers; `None` where every variable has one place.
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
            out.push_str(token.text(text));
        }
    }
    Some((out, distinct))
}

/// Adds casts to mentions of variables without one; `types` has types by variable name.
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

/// Types of unquoted constants, the likeliest first; the server infers those of quoted ones from their place.
const CONSTANT_TYPES: [&str; 4] = ["integer", "bigint", "numeric", "boolean"];

/// Key words, not names of functions, that may precede a parenthesis.
const NON_FUNCTIONS: [&str; 24] = [
    "all",
    "and",
    "any",
    "as",
    "by",
    "case",
    "distinct",
    "else",
    "except",
    "exists",
    "from",
    "having",
    "in",
    "intersect",
    "limit",
    "not",
    "on",
    "or",
    "over",
    "row",
    "some",
    "union",
    "values",
    "where",
];

/// Returns the statement with casts of the parameters in arrays, in calls, or in both, for each constant type; empty where it has
/// no such parameters.
pub fn with_types(text: &str) -> Vec<String> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
    let (arrays, calls) = (array_ends(text, &all), argument_ends(text, &all));
    let mut texts = Vec::new();
    for (casts_arrays, casts_calls) in [(true, false), (false, true), (true, true)] {
        if casts_arrays && arrays.is_empty() || casts_calls && calls.is_empty() {
            continue;
        }
        for sql_type in CONSTANT_TYPES {
            let arrays = arrays.iter().filter(|_| casts_arrays).map(|end| (*end, format!("::{sql_type}[]")));
            let calls = calls.iter().filter(|_| casts_calls).map(|end| (*end, format!("::{sql_type}")));
            let mut casts: Vec<(usize, String)> = arrays.chain(calls).collect();
            // From the end, so that earlier places stay valid.
            casts.sort_by_key(|(end, _)| std::cmp::Reverse(*end));
            let mut typed = text.to_owned();
            casts.iter().for_each(|(end, cast)| typed.insert_str(*end, cast));
            texts.push(typed);
        }
    }
    texts
}

fn is_parameter(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Parameter(_))
}

/// Returns where each `ARRAY[…]` of parameters ends that has no cast.
fn array_ends(text: &str, all: &[Token]) -> Vec<usize> {
    let mut ends = Vec::new();
    for (place, pair) in all.windows(2).enumerate() {
        if !pair[0].is_word(text, "array") || pair[1].text(text) != "[" {
            continue;
        }
        let elements = &all[place + 2..];
        let is_element = |place: usize, token: &Token| match place % 2 {
            0 => is_parameter(token),
            _ => token.text(text) == ",",
        };
        let length =
            elements.iter().enumerate().take_while(|(place, token)| is_element(*place, token)).count();
        let is_closed = length % 2 == 1 && elements.get(length).is_some_and(|token| token.text(text) == "]");
        let has_cast = elements.get(length + 1).is_some_and(|token| token.text(text).starts_with(':'));
        if is_closed && !has_cast {
            ends.push(elements[length].range.end);
        }
    }
    ends
}

/// Returns where each parameter ends that is an argument of a call.
fn argument_ends(text: &str, all: &[Token]) -> Vec<usize> {
    let mut ends = Vec::new();
    // For each open parenthesis or bracket, whether it is a call's.
    let mut open: Vec<bool> = Vec::new();
    for (place, token) in all.iter().enumerate() {
        let before = place.checked_sub(1).map(|place| &all[place]);
        let next = all.get(place + 1).map(|token| token.text(text));
        match token.text(text) {
            "(" => open.push(before.is_some_and(|before| {
                before.kind == TokenKind::Word && !NON_FUNCTIONS.iter().any(|word| before.is_word(text, word))
            })),
            "[" => open.push(false),
            ")" | "]" => drop(open.pop()),
            _ if is_parameter(token)
                && open.last() == Some(&true)
                && before.is_some_and(|before| ["(", ","].contains(&before.text(text)))
                && next.is_some_and(|next| [")", ","].contains(&next)) =>
            {
                ends.push(token.range.end);
            }
            _ => {}
        }
    }
    ends
}
