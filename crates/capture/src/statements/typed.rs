//! Types of constants that a statement has lost with them. The server takes a parameter whose type nothing says for a text in
//! `ARRAY[$1]`, and for nothing in a call of an overloaded function; a number that stood there had a type of its own.

use bench_script::tokens::{Token, TokenKind, tokens};

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
