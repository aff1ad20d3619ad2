//! A captured statement as a script, and as a text with values in it.

use std::collections::HashMap;

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
