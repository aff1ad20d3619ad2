//! Makes statements of pg_stat_statements parsable again: it replaces each constant by `$n`, also where the grammar takes only a
//! constant.

use std::collections::HashSet;
use std::ops::Range;

use bench_base::interrupts;
use bench_script::tokens::{Token, TokenKind, tokens};

use crate::constants::type_before;
use crate::log::normalise::{TemplateValue, normalise};
use crate::log::tokens::StatementToken;

/// Fields that may follow an interval's constant.
const INTERVAL_FIELDS: [&str; 6] = ["year", "month", "day", "hour", "minute", "second"];

/// The comment with which PostgreSQL 18 replaces the further elements of a squashed list.
const SQUASHED: &str = "/*, ... */";

/// A range of a text, and its replacement.
type Edit = (Range<usize>, String);

/// Rewrites `interval $1` and the like as casts, and `EXTRACT($1 FROM …)` as a function call; removes UESCAPE behind parameters,
/// and comments other than hints (`/*+ … */`) and marks of squashed lists.
pub fn parsable(text: &str) -> String {
    let text = without_prepare(text);
    let all = tokens(text);
    let loud: Vec<Token> = all.iter().filter(|token| !token.is_silent()).cloned().collect();
    let mut edits: Vec<Edit> = Vec::new();
    for token in all.iter().filter(|token| token.kind == TokenKind::Comment) {
        let comment = token.text(text);
        if comment != SQUASHED && !comment.starts_with("/*+") {
            edits.push((token.range.clone(), " ".to_owned()));
        }
    }
    let statement_token = |token: &Token| StatementToken { kind: token.kind, text: token.text(text) };
    let statement_tokens: Vec<StatementToken> = loud.iter().map(statement_token).collect();
    for place in 0..loud.len() {
        interrupts::check_now_and_then();
        if !is_parameter(&loud[place]) {
            continue;
        }
        if let Some(extract) = place.checked_sub(2).and_then(|place| extract_as_call(text, &loud, place)) {
            edits.extend(extract);
        } else if let Some(cast) = typed_constant_as_cast(text, &loud, &statement_tokens, place) {
            edits.push(cast);
        }
        if let [word, escape] = loud.get(place + 1..place + 3).unwrap_or_default()
            && word.is_word(text, "uescape")
        {
            edits.push((word.range.start..escape.range.end, String::new()));
        }
    }
    apply_edits(text, edits)
}

fn is_parameter(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Parameter(_))
}

/// Returns the statement of a PREPARE command: its executions are counted under the command's text.
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

/// Applies edits; one inside of an earlier one is dropped with it.
fn apply_edits(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut result = String::with_capacity(text.len());
    let mut copied = 0;
    for (range, replacement) in edits {
        if range.start < copied {
            continue;
        }
        result.push_str(&text[copied..range.start]);
        result.push_str(&replacement);
        copied = range.end;
    }
    result.push_str(&text[copied..]);
    result
}

/// Rewrites `EXTRACT ( $1 FROM` at a place as a call: EXTRACT takes only a word or a constant for the field.
fn extract_as_call(text: &str, loud: &[Token], place: usize) -> Option<Vec<Edit>> {
    let [word, opening, parameter, from] = loud.get(place..place + 4)? else { return None };
    let is_extract = word.is_word(text, "extract")
        && opening.text(text) == "("
        && is_parameter(parameter)
        && from.is_word(text, "from")
        && !is_qualified(text, loud, place);
    is_extract.then(|| {
        vec![(word.range.clone(), "pg_catalog.\"extract\"".to_owned()), (from.range.clone(), ",".to_owned())]
    })
}

fn is_qualified(text: &str, loud: &[Token], place: usize) -> bool {
    place > 0 && loud[place - 1].text(text) == "."
}

/// Rewrites the parameter at a place as a cast to the type before it, with an interval's fields behind it.
fn typed_constant_as_cast(
    text: &str,
    loud: &[Token],
    statement_tokens: &[StatementToken],
    place: usize,
) -> Option<Edit> {
    let is_word = |place: usize, word: &str| loud.get(place).is_some_and(|token| token.is_word(text, word));
    let is_symbol =
        |place: usize, symbol: &str| loud.get(place).is_some_and(|token| token.text(text) == symbol);
    let written_type = type_before(&statement_tokens[..place])?;
    let first = place - written_type.tokens;
    let (mut sql_type, mut end) = (written_type.cast, place + 1);
    let is_field = |place: usize| INTERVAL_FIELDS.iter().any(|field| is_word(place, field));
    if is_word(first, "interval") && is_field(end) {
        end += if is_word(end + 1, "to") && is_field(end + 2) { 3 } else { 1 };
        if is_word(end - 1, "second") && is_symbol(end, "(") && is_symbol(end + 2, ")") {
            end += 3;
        }
        let fields = &text[loud[place + 1].range.start..loud[end - 1].range.end];
        sql_type = format!("{sql_type} {fields}");
    }
    let range = loud[first].range.start..loud[end - 1].range.end;
    Some((range, format!("CAST({} AS {sql_type})", loud[place].text(text))))
}

/// Casts these parameters to text wherever the statement mentions them.
pub fn with_texts(text: &str, parameters: &[u32]) -> String {
    let parameters: HashSet<u32> = parameters.iter().copied().collect();
    let cast = |token: &Token| match token.kind {
        TokenKind::Parameter(number) if parameters.contains(&number) => {
            Some((token.range.end..token.range.end, "::pg_catalog.text".to_owned()))
        }
        _ => None,
    };
    apply_edits(text, tokens(text).iter().filter_map(cast).collect())
}

/// Finds the condition of ON CONFLICT's arbiter, if it has parameters: the planner infers an index only from constants.
pub fn arbiter(text: &str) -> Option<Range<usize>> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
    let conflict =
        all.windows(2).position(|pair| pair[0].is_word(text, "on") && pair[1].is_word(text, "conflict"))?;
    let end = (conflict..all.len()).find(|&place| all[place].is_word(text, "do"))?;
    let mut depth = 0_usize;
    let where_place = (conflict..end).find(|&place| {
        match all[place].text(text) {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && all[place].is_word(text, "where")
    })?;
    let has_parameters = all[where_place + 1..end].iter().any(is_parameter);
    has_parameters.then(|| all[where_place + 1].range.start..all[end - 1].range.end)
}

/// Returns whether a statement has constants other than positions (`ORDER BY 1`) and type modifiers.
pub fn has_constants(text: &str) -> bool {
    let all = crate::log::tokens::tokens(text);
    let parameters = vec![None; highest_number(&tokens(text)) as usize];
    normalise(&all, &parameters).is_none_or(|normalised| {
        normalised.template.keeps_constants
            || normalised.template.slots.iter().any(|slot| !matches!(slot, TemplateValue::Parameter(_)))
    })
}

/// Returns the highest number of a statement's parameters, or 0.
pub fn highest_parameter(text: &str) -> u32 {
    highest_number(&tokens(text))
}

/// Returns the parameters that stand for a squashed list.
pub fn squashed(text: &str) -> Vec<u32> {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| token.kind != TokenKind::Blank).collect();
    let pairs = all.windows(2).filter_map(|pair| match pair {
        [Token { kind: TokenKind::Parameter(number), .. }, mark] if mark.text(text) == SQUASHED => {
            Some(*number)
        }
        _ => None,
    });
    pairs.collect()
}

/// Expands each squashed list to `length` elements, which gets the list's parameter. New parameters have new numbers.
pub fn expanded(text: &str, length: impl Fn(u32) -> usize) -> String {
    let all = tokens(text);
    let mut next = 1 + highest_number(&all);
    let mut last = None;
    let mut result = String::with_capacity(text.len());
    for token in &all {
        match token.kind {
            TokenKind::Parameter(number) => last = Some(number),
            TokenKind::Blank => {}
            TokenKind::Comment if token.text(text) == SQUASHED && last.is_some() => {
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

fn highest_number(all: &[Token]) -> u32 {
    let numbers = all.iter().filter_map(|token| match token.kind {
        TokenKind::Parameter(number) => Some(number),
        _ => None,
    });
    numbers.max().unwrap_or(0)
}

/// Makes items of GROUP BY equal to the expressions of the SELECT list: the server compares them with their constants. Where an
/// item is an expression word for word except for parameters, a parameter in the list becomes the constant that the item has
/// kept, and a parameter in the item becomes that of the list.
pub fn grouped(text: &str) -> String {
    let all: Vec<Token> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
    let mut edits = Vec::new();
    for place in 1..all.len() {
        if all[place].is_word(text, "by") && all[place - 1].is_word(text, "group") {
            let mut start = place + 1;
            while let Some(end) = item_end(text, &all, start) {
                edits.extend(match_expression(text, &all[start..end], &all[..place - 1]));
                if all.get(end).is_none_or(|token| token.text(text) != ",") {
                    break;
                }
                start = end + 1;
            }
        }
    }
    apply_edits(text, edits)
}

/// Returns where a list's item ends; `None` where it is empty.
fn item_end(text: &str, all: &[Token], start: usize) -> Option<usize> {
    const CLAUSES: [&str; 9] =
        ["order", "having", "limit", "offset", "window", "union", "except", "intersect", "fetch"];
    let mut depth = 0;
    let mut end = start;
    while let Some(token) = all.get(end) {
        match token.text(text) {
            "(" | "[" => depth += 1,
            ")" | "]" if depth == 0 => break,
            ")" | "]" => depth -= 1,
            "," | ";" if depth == 0 => break,
            _ if depth == 0 && CLAUSES.iter().any(|word| token.is_word(text, word)) => break,
            _ => {}
        }
        end += 1;
    }
    (end > start).then_some(end)
}

/// Returns edits that make an item equal to the first expression before it that differs only in parameters.
fn match_expression(text: &str, item: &[Token], before: &[Token]) -> Vec<Edit> {
    /// Shorter items are columns, without constants.
    const MIN_TOKENS: usize = 3;
    if item.len() < MIN_TOKENS {
        return Vec::new();
    }
    let is_constant = |token: &Token| {
        is_parameter(token)
            || matches!(
                token.kind,
                TokenKind::Word | TokenKind::String | TokenKind::OtherString | TokenKind::Number
            )
    };
    let is_same = |one: &Token, other: &Token| one.text(text).eq_ignore_ascii_case(other.text(text));
    let can_match = |(listed, grouped): (&Token, &Token)| {
        is_same(listed, grouped) || is_parameter(listed) && is_constant(grouped)
    };
    let expression = before.windows(item.len()).find(|window| {
        interrupts::check_now_and_then();
        is_same(&window[0], &item[0]) && window.iter().zip(item).all(can_match)
    });
    let pairs = expression.into_iter().flat_map(|expression| expression.iter().zip(item));
    let edit = |(listed, grouped): (&Token, &Token)| match is_parameter(grouped) {
        true => (grouped.range.clone(), listed.text(text).to_owned()),
        false => (listed.range.clone(), grouped.text(text).to_owned()),
    };
    pairs.filter(|(listed, grouped)| !is_same(listed, grouped)).map(edit).collect()
}
