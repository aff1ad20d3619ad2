//! A captured statement as a script, and as a text with values in it.
//!
//! A parameter of the server has one type wherever it stands. A mention of a script's variable is a parameter of its own, and so is
//! what stands for a constant: where its place says nothing of its type, as in `$1 IS NULL` or `ARRAY[$1]`, it gets a cast.

use std::collections::HashMap;
use std::hash::Hash;

use bench_base::interrupts;
use bench_script::tokens::{Token, TokenKind, tokens};

/// The name of the variable that takes a parameter's place.
pub fn variable(parameter: u32) -> String {
    format!("p{parameter}")
}

/// The statement as a script of the language of [`bench_script`]. `mention` says what stands for `$n`: a variable, or SQL as
/// an error. A parameter whose variable is mentioned more than once gets a cast to the type that `type_of` says, for a
/// script's mentions are parameters of their own, each of which has its type by where it stands. What would be a variable's
/// mention is escaped.
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
                        let pieces = tokens(&sql);
                        (0..pieces.len()).for_each(|at| result.push_str(&plain(&sql, &pieces, at)));
                        continue;
                    }
                };
                let is_shared = mentions.get(&number).is_some_and(|&mentions| mentions > 1);
                match type_of(number).filter(|_| is_shared) {
                    Some(sql_type) => result.push_str(&format!("CAST(:{name} AS {sql_type})")),
                    None => {
                        result.push_str(&format!(":{name}"));
                        // What follows is no part of the name, nor a cast with a colon before it.
                        if all.get(place + 1).is_some_and(|next| next.text(text).starts_with(':')) {
                            result.push(' ');
                        }
                    }
                }
            }
            _ => result.push_str(&plain(text, &all, place)),
        }
    }
    result.push(';');
    result
}

/// A token that is no parameter: a colon that is no part of a cast would begin a mention, and a semicolon end the statement.
fn plain(text: &str, all: &[Token], place: usize) -> String {
    let written = all[place].text(text);
    let is_colon = |place: usize| all.get(place).is_some_and(|token| token.text(text) == ":");
    match written {
        ":" if is_colon(place + 1) || place > 0 && is_colon(place - 1) => ":".to_owned(),
        ":" | ";" => format!("\\{written}"),
        _ => written.to_owned(),
    }
}

/// The statement with the text that `value` says in each parameter's place.
pub fn with_values(text: &str, value: impl Fn(u32) -> String) -> String {
    let all = tokens(text);
    let piece = |token: &Token| match token.kind {
        TokenKind::Parameter(number) => value(number),
        _ => token.text(text).to_owned(),
    };
    all.iter().map(piece).collect()
}

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
            out.push_str(token.text(text));
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

/// The types of constants that are not written in quotes, the likeliest first. One in quotes is taken as its parameter is.
const TYPES: [&str; 4] = ["integer", "bigint", "numeric", "boolean"];

/// Words before a parenthesis that are no function's name.
const NO_FUNCTIONS: [&str; 24] = [
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

/// The statement with types for the parameters in arrays, or in calls, or in both, to be tried in this order: each text once,
/// none where it has no such parameter.
pub fn with_types(text: &str) -> Vec<String> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
    let (arrays, calls) = (ends_of_arrays(text, &all), arguments(text, &all));
    let mut found = Vec::new();
    for (of_arrays, of_calls) in [(true, false), (false, true), (true, true)] {
        if of_arrays && arrays.is_empty() || of_calls && calls.is_empty() {
            continue;
        }
        for sql_type in TYPES {
            let arrays = arrays.iter().filter(|_| of_arrays).map(|at| (*at, format!("::{sql_type}[]")));
            let calls = calls.iter().filter(|_| of_calls).map(|at| (*at, format!("::{sql_type}")));
            let mut casts: Vec<(usize, String)> = arrays.chain(calls).collect();
            casts.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
            let mut typed = text.to_owned();
            casts.iter().for_each(|(at, cast)| typed.insert_str(*at, cast));
            found.push(typed);
        }
    }
    found
}

fn is_parameter(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Parameter(_))
}

/// Where each `ARRAY[…]` ends whose elements are parameters, unless a cast follows.
fn ends_of_arrays(text: &str, all: &[Token]) -> Vec<usize> {
    let mut ends = Vec::new();
    for (at, pair) in all.windows(2).enumerate() {
        if !pair[0].is_word(text, "array") || pair[1].text(text) != "[" {
            continue;
        }
        let elements = &all[at + 2..];
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

/// Where each parameter ends that is the argument of a call.
fn arguments(text: &str, all: &[Token]) -> Vec<usize> {
    let mut ends = Vec::new();
    // For each open parenthesis or bracket, whether it is that of a call.
    let mut open: Vec<bool> = Vec::new();
    for (at, token) in all.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &all[at]);
        let next = all.get(at + 1).map(|token| token.text(text));
        match token.text(text) {
            "(" => open.push(before.is_some_and(|before| {
                before.kind == TokenKind::Word && !NO_FUNCTIONS.iter().any(|word| before.is_word(text, word))
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
