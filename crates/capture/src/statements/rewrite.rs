//! What pg_stat_statements has made of constants, made parsable again. It puts `$n` where a constant was; in some places the
//! grammar takes only a constant there.

use std::collections::HashSet;

use bench_base::interrupts;
use bench_script::tokens::{Token, TokenKind, tokens};

use crate::constants::type_before;
use crate::log::normalise::{TemplateValue, normalise};
use crate::log::tokens::StatementToken;

/// Words behind an interval's constant that say what it counts.
const FIELDS: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];

/// The comment by which PostgreSQL 18 says that there were more elements in a list.
const MORE: &str = "/*, ... */";

/// The statement with `interval $1`, `timestamp with time zone $1` and their like as casts, and with `EXTRACT($1 FROM …)` as a
/// call of the function behind it; UESCAPE goes with the constant that it was of. So do comments, but for hints (`/*+ … */`) and
/// the marks of squashed lists.
pub fn parsable(text: &str) -> String {
    let text = without_prepare(text);
    let all = tokens(text);
    let loud: Vec<Token> = all.iter().filter(|token| !token.is_silent()).cloned().collect();
    let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for token in all.iter().filter(|token| token.kind == TokenKind::Comment) {
        let comment = token.text(text);
        if comment != MORE && !comment.starts_with("/*+") {
            edits.push((token.range.clone(), " ".to_owned()));
        }
    }
    let written = |token: &Token| StatementToken { kind: token.kind, text: token.text(text) };
    let written: Vec<StatementToken> = loud.iter().map(written).collect();
    for place in 0..loud.len() {
        interrupts::check_now_and_then();
        if !matches!(loud[place].kind, TokenKind::Parameter(_)) {
            continue;
        }
        if let Some(edit) = place.checked_sub(2).and_then(|place| extract(text, &loud, place)) {
            edits.extend(edit);
        } else if let Some(edit) = typed_constant(text, &loud, &written, place) {
            edits.push(edit);
        }
        if let [word, escape] = loud.get(place + 1..place + 3).unwrap_or_default()
            && word.is_word(text, "uescape")
        {
            edits.push((word.range.start..escape.range.end, String::new()));
        }
    }
    applied(text, edits)
}

/// The statement that PREPARE has named: its executions are counted under the text of the command.
fn without_prepare(text: &str) -> &str {
    let all = tokens(text);
    let mut loud = all.iter().filter(|token| !token.is_silent());
    if !loud.next().is_some_and(|token| token.is_word(text, "prepare")) {
        return text;
    }
    let mut depth = 0;
    for token in loud.skip(1) {
        match token.text(text) {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ if depth == 0 && token.is_word(text, "as") => return &text[token.range.end..],
            _ => {}
        }
    }
    text
}

fn applied(text: &str, mut edits: Vec<(std::ops::Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for (range, new) in edits {
        // A comment inside of what is replaced goes with it.
        if range.start < at {
            continue;
        }
        result.push_str(&text[at..range.start]);
        result.push_str(&new);
        at = range.end;
    }
    result.push_str(&text[at..]);
    result
}

/// `EXTRACT ( $1 FROM` at a place: the grammar takes a word or a constant for the field.
fn extract(text: &str, loud: &[Token], place: usize) -> Option<Vec<(std::ops::Range<usize>, String)>> {
    let [word, opening, parameter, from] = loud.get(place..place + 4)? else { return None };
    let fits = word.is_word(text, "extract")
        && opening.text(text) == "("
        && matches!(parameter.kind, TokenKind::Parameter(_))
        && from.is_word(text, "from")
        && !is_qualified(text, loud, place);
    fits.then(|| {
        vec![(word.range.clone(), "pg_catalog.\"extract\"".to_owned()), (from.range.clone(), ",".to_owned())]
    })
}

fn is_qualified(text: &str, loud: &[Token], place: usize) -> bool {
    place > 0 && loud[place - 1].text(text) == "."
}

/// The parameter at a place with the type before it, and the fields of an interval behind it, as a cast.
fn typed_constant(
    text: &str,
    loud: &[Token],
    written: &[StatementToken],
    place: usize,
) -> Option<(std::ops::Range<usize>, String)> {
    let word = |at: usize, word: &str| loud.get(at).is_some_and(|token| token.is_word(text, word));
    let symbol = |at: usize, symbol: &str| loud.get(at).is_some_and(|token| token.text(text) == symbol);
    let found = type_before(&written[..place])?;
    let first = place - found.tokens;
    let (mut sql_type, mut end) = (found.cast, place + 1);
    if word(first, "interval") {
        let is_field = |at: usize| FIELDS.iter().any(|field| word(at, field));
        if is_field(end) {
            end += if word(end + 1, "to") && is_field(end + 2) { 3 } else { 1 };
            if word(end - 1, "second") && symbol(end, "(") && symbol(end + 2, ")") {
                end += 3;
            }
            let fields = &text[loud[place + 1].range.start..loud[end - 1].range.end];
            sql_type = format!("{sql_type} {fields}");
        }
    }
    let range = loud[first].range.start..loud[end - 1].range.end;
    Some((range, format!("CAST({} AS {sql_type})", loud[place].text(text))))
}

/// The statement with these parameters as texts, wherever it mentions them.
pub fn with_texts(text: &str, parameters: &[u32]) -> String {
    let parameters: HashSet<u32> = parameters.iter().copied().collect();
    let cast = |token: &Token| match token.kind {
        TokenKind::Parameter(number) if parameters.contains(&number) => {
            Some((token.range.end..token.range.end, "::pg_catalog.text".to_owned()))
        }
        _ => None,
    };
    applied(text, tokens(text).iter().filter_map(cast).collect())
}

/// Where the condition of ON CONFLICT's arbiter is, if it mentions parameters: the server infers an index from it while it plans,
/// for which it takes constants.
pub fn arbiter(text: &str) -> Option<std::ops::Range<usize>> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
    let conflict =
        all.windows(2).position(|pair| pair[0].is_word(text, "on") && pair[1].is_word(text, "conflict"))?;
    let end = (conflict..all.len()).find(|&at| all[at].is_word(text, "do"))?;
    let mut depth = 0_usize;
    let from = (conflict..end).find(|&at| {
        match all[at].text(text) {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && all[at].is_word(text, "where")
    })?;
    let condition = &all[from + 1..end];
    let has_parameters = condition.iter().any(|token| matches!(token.kind, TokenKind::Parameter(_)));
    has_parameters.then(|| all[from + 1].range.start..all[end - 1].range.end)
}

/// Whether a statement has constants, beside its parameters, positions, and the modifiers of types.
pub fn has_constants(text: &str) -> bool {
    let all = crate::log::tokens::tokens(text);
    let parameters = vec![None; highest(&tokens(text)) as usize];
    normalise(&all, &parameters).is_none_or(|found| {
        found.template.keeps_constants
            || found.template.slots.iter().any(|slot| !matches!(slot, TemplateValue::Parameter(_)))
    })
}

/// The highest number of a parameter that a statement mentions, or 0.
pub fn highest_parameter(text: &str) -> u32 {
    highest(&tokens(text))
}

/// The parameters behind which PostgreSQL 18 has left out further elements of a list.
pub fn squashed(text: &str) -> Vec<u32> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| token.kind != TokenKind::Blank).collect();
    let pairs = all.windows(2).filter_map(|pair| match pair {
        [Token { kind: TokenKind::Parameter(number), .. }, mark] if mark.text(text) == MORE => Some(*number),
        _ => None,
    });
    pairs.collect()
}

/// The statement with each squashed list at the length that `length` says of its first parameter, by new parameters behind
/// the last number.
pub fn expanded(text: &str, length: impl Fn(u32) -> usize) -> String {
    let all = tokens(text);
    let mut next = 1 + highest(&all);
    let mut last = None;
    let mut result = String::with_capacity(text.len());
    for token in &all {
        match token.kind {
            TokenKind::Parameter(number) => last = Some(number),
            TokenKind::Blank => {}
            TokenKind::Comment if token.text(text) == MORE && last.is_some() => {
                let elements = length(last.unwrap_or_default()).saturating_sub(1);
                for _ in 0..elements {
                    result.push_str(&format!(", ${next}"));
                    next += 1;
                }
                continue;
            }
            _ => last = None,
        }
        result.push_str(token.text(text));
    }
    result
}

fn highest(all: &[Token]) -> u32 {
    let numbers = all.iter().filter_map(|token| match token.kind {
        TokenKind::Parameter(number) => Some(number),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// The statement with what GROUP BY and the list before it know of each other. The server takes an item of GROUP BY and an
/// expression of the list for the same only where their constants are: so a parameter in the list gets the constant that the
/// item, word for word the same otherwise, has kept, and a parameter in the item becomes that in the list.
pub fn grouped(text: &str) -> String {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
    let mut edits = Vec::new();
    for place in 1..all.len() {
        if all[place].is_word(text, "by") && all[place - 1].is_word(text, "group") {
            let mut at = place + 1;
            while let Some(end) = end_of_item(text, &all, at) {
                edits.extend(as_before(text, &all, at, end, place - 1));
                if all.get(end).is_none_or(|token| token.text(text) != ",") {
                    break;
                }
                at = end + 1;
            }
        }
    }
    applied(text, edits)
}

/// Where an item of a list ends; `None` where there is none.
fn end_of_item(text: &str, all: &[Token], at: usize) -> Option<usize> {
    const ENDS: [&str; 9] =
        ["order", "having", "limit", "offset", "window", "union", "except", "intersect", "fetch"];
    let mut depth = 0;
    let mut end = at;
    while let Some(token) = all.get(end) {
        match token.text(text) {
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 0 => break,
            ")" | "]" => depth -= 1,
            "," | ";" if depth == 0 => break,
            _ if depth == 0 && ENDS.iter().any(|word| token.is_word(text, word)) => break,
            _ => {}
        }
        end += 1;
    }
    (end > at).then_some(end)
}

fn as_before(
    text: &str,
    all: &[Token],
    from: usize,
    to: usize,
    before: usize,
) -> Vec<(std::ops::Range<usize>, String)> {
    let item = &all[from..to];
    // A column by itself has no constant.
    if item.len() < 3 {
        return Vec::new();
    }
    let is_parameter = |token: &Token| matches!(token.kind, TokenKind::Parameter(_));
    let is_constant = |token: &Token| {
        is_parameter(token)
            || matches!(
                token.kind,
                TokenKind::Word | TokenKind::String | TokenKind::OtherString | TokenKind::Number
            )
    };
    let is_same = |one: &Token, other: &Token| one.text(text).eq_ignore_ascii_case(other.text(text));
    let fits = |(before, of_item): (&Token, &Token)| {
        is_same(before, of_item) || is_parameter(before) && is_constant(of_item)
    };
    let mut windows = all[..before].windows(item.len());
    let found = windows.find(|window| {
        interrupts::check_now_and_then();
        is_same(&window[0], &item[0]) && window.iter().zip(item).all(fits)
    });
    let pairs = found.into_iter().flat_map(|found| found.iter().zip(item));
    let edit = |(before, of_item): (&Token, &Token)| match is_parameter(of_item) {
        true => (of_item.range.clone(), before.text(text).to_owned()),
        false => (before.range.clone(), of_item.text(text).to_owned()),
    };
    pairs.filter(|(before, of_item)| !is_same(before, of_item)).map(edit).collect()
}
