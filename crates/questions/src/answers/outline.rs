//! The order and the choice of a statement's rows as far as its text says, for answers over connections, where the plan is not
//! at hand.

use bench_script::tokens::{Token, TokenKind, tokens};

use super::shape::{Column, Shape};

/// The kind of a statement, by its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Returns rows and changes none.
    Reads,
    Writes,
    Utility,
    TransactionControl,
}

/// A value of LIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Count(u64),
    /// `$n`.
    Parameter(u32),
    Expression,
}

/// A statement's clauses outside of parentheses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    pub kind: StatementKind,
    pub limit: Option<Limit>,
    has_offset: bool,
    takes_one_of_several: bool,
    /// The words of each item of ORDER BY and of the select list.
    order: Vec<Vec<String>>,
    targets: Vec<Vec<String>>,
}

/// A token that is neither blank nor a comment: its depth in parentheses, and its text with key words in lower case.
type Part = (u32, String);

const TRANSACTION_CONTROL: [&str; 8] =
    ["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"];
const WRITES: [&str; 4] = ["insert", "update", "delete", "merge"];
const READS: [&str; 3] = ["select", "values", "table"];
const SET_OPERATIONS: [&str; 3] = ["union", "intersect", "except"];
/// Words that end an ORDER BY.
const AFTER_ORDER: [&str; 4] = ["limit", "offset", "fetch", "for"];

impl Outline {
    /// Reads a statement's text.
    pub fn new(text: &str) -> Self {
        let parts = parts(text);
        let at = |words: &[&str]| {
            parts.iter().position(|(depth, word)| *depth == 0 && words.contains(&word.as_str()))
        };
        let mut outline = Self {
            kind: kind(&parts),
            limit: None,
            has_offset: false,
            takes_one_of_several: false,
            order: Vec::new(),
            targets: Vec::new(),
        };
        let Some(start) = at(&READS).filter(|_| outline.kind == StatementKind::Reads) else { return outline };
        outline.takes_one_of_several = is_phrase(&parts[start + 1..], &["distinct", "on"]);
        let end = at(&AFTER_ORDER).unwrap_or(parts.len());
        let order = parts.windows(2).rposition(|pair| {
            pair.iter().all(|(depth, _)| *depth == 0) && pair[0].1 == "order" && pair[1].1 == "by"
        });
        if let Some(order) = order.filter(|order| order + 2 <= end) {
            outline.order = items(&parts[order + 2..end], without_direction);
        }
        if parts[start].1 == "select" && at(&SET_OPERATIONS).is_none() {
            let end = at(&["from"]).or(order).unwrap_or(end);
            outline.targets = items(parts.get(start + 1..end).unwrap_or_default(), without_name);
        }
        outline.has_offset = at(&["offset"]).is_some();
        let with_ties = parts.windows(2).any(|pair| is_phrase(pair, &["with", "ties"]));
        let count = at(&["limit"]).map(|place| place + 1).or_else(|| at(&["fetch"]).map(|place| place + 2));
        outline.limit =
            count.filter(|_| !with_ties).and_then(|place| limit(&parts[place.min(parts.len())..]));
        outline
    }

    /// Returns the shape of rows with these columns. Sort keys that are no columns, and those after them, are left out: rows that
    /// are equal in the others may change places.
    pub fn shape(&self, columns: &[Column]) -> Shape {
        let keys: Vec<usize> = self.order.iter().map_while(|item| self.place(item, columns)).collect();
        let is_known = keys.len() == self.order.len();
        Shape {
            is_cut: [is_known && self.has_offset, is_known && self.limit.is_some()],
            keys: (!keys.is_empty()).then_some(keys),
            takes_one_of_several: self.takes_one_of_several,
            width: None,
        }
    }

    /// Returns the column that an item of ORDER BY sorts by.
    fn place(&self, item: &[String], columns: &[Column]) -> Option<usize> {
        let named = |word: &String| {
            let name = word.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            let name = name.map_or_else(|| word.clone(), |name| name.replace("\"\"", "\""));
            let mut places = (0..columns.len()).filter(|&place| columns[place].name == name);
            places.next().filter(|_| places.next().is_none())
        };
        if let [word] = item {
            let number = word.parse().ok().and_then(|number: usize| number.checked_sub(1));
            if let Some(place) = number.filter(|place| *place < columns.len()).or_else(|| named(word)) {
                return Some(place);
            }
        }
        let has_star = self.targets.iter().any(|target| target.last().is_some_and(|word| word == "*"));
        match item {
            [.., dot, word] if has_star && dot == "." => named(word),
            _ if self.targets.len() == columns.len() => self.targets.iter().position(|target| target == item),
            _ => None,
        }
    }
}

/// Words that stand for the begin of the transaction or for the time of day.
const CLOCK: [&str; 11] = [
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtimestamp",
    "localtime",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "timeofday",
    "age",
];

/// Whether a statement's text reads the clock, so that two transactions that begin at different moments may answer differently.
pub fn reads_clock(text: &str) -> bool {
    parts(text).iter().any(|(_, word)| CLOCK.contains(&word.as_str()))
}

/// Returns the collations that two statements name, in their order, if nothing else distinguishes the statements.
pub fn other_collations(a: &str, b: &str) -> Option<[String; 2]> {
    let divided = |text: &str| -> (Vec<String>, String) {
        let (mut names, mut rest) = (Vec::new(), Vec::new());
        let mut words = parts(text).into_iter().map(|(_, word)| word).peekable();
        while let Some(word) = words.next() {
            if word != "collate" {
                rest.push(word);
                continue;
            }
            let mut name = words.next().unwrap_or_default();
            while let Some(dot) = words.next_if(|word| word == ".") {
                name += &(dot + &words.next().unwrap_or_default());
            }
            names.push(name);
        }
        (rest, names.join(", "))
    };
    let ((a_rest, a), (b_rest, b)) = (divided(a), divided(b));
    let named = |names: String| if names.is_empty() { "none".to_owned() } else { names };
    (a_rest == b_rest && a != b).then(|| [a, b].map(named))
}

fn parts(text: &str) -> Vec<Part> {
    let mut depth = 0_u32;
    let mut parts = Vec::new();
    for token in tokens(text).iter().filter(|token| !token.is_silent()) {
        let word = word(token, text);
        depth += u32::from(matches!(word.as_str(), "(" | "["));
        let own_depth = depth;
        depth = depth.saturating_sub(u32::from(matches!(word.as_str(), ")" | "]")));
        parts.push((own_depth, word));
    }
    parts
}

fn word(token: &Token, text: &str) -> String {
    let word = token.text(text);
    if token.kind == TokenKind::Word { word.to_ascii_lowercase() } else { word.to_owned() }
}

fn is_phrase(parts: &[Part], words: &[&str]) -> bool {
    parts.len() >= words.len()
        && parts.iter().zip(words).all(|((depth, part), word)| *depth == 0 && part == word)
}

fn kind(parts: &[Part]) -> StatementKind {
    let has = |words: &[&str], is_outside: bool| {
        parts.iter().any(|(depth, word)| (*depth == 0 || !is_outside) && words.contains(&word.as_str()))
    };
    match parts.first().map_or("", |(_, word)| word) {
        word if TRANSACTION_CONTROL.contains(&word) => StatementKind::TransactionControl,
        word if WRITES.contains(&word) => StatementKind::Writes,
        "prepare" if is_phrase(parts, &["prepare", "transaction"]) => StatementKind::TransactionControl,
        "with" if has(&WRITES, false) => StatementKind::Writes,
        word if (READS.contains(&word) || matches!(word, "with" | "(")) && !has(&["into"], true) => {
            StatementKind::Reads
        }
        _ => StatementKind::Utility,
    }
}

/// Divides a list at its commas.
fn items(parts: &[Part], trim: fn(&mut Vec<String>)) -> Vec<Vec<String>> {
    let divided = parts.split(|(depth, word)| *depth == 0 && word == ",");
    let words = divided.map(|item| item.iter().map(|(_, word)| word.clone()).collect());
    words.map(|mut item| (trim(&mut item), item).1).filter(|item: &Vec<String>| !item.is_empty()).collect()
}

/// Removes an item's direction and collation: rows that are equal under a deterministic collation are so under each.
fn without_direction(item: &mut Vec<String>) {
    while item.len() > 1
        && item.last().is_some_and(|word| ["asc", "desc", "nulls", "first", "last"].contains(&word.as_str()))
    {
        item.pop();
    }
    if let Some(end) = item.iter().rposition(|word| word == "using" || word == "collate") {
        item.truncate(end);
    }
}

fn without_name(item: &mut Vec<String>) {
    if item.len() > 2 && item[item.len() - 2] == "as" {
        item.truncate(item.len() - 2);
    }
    if item.first().is_some_and(|word| word == "all" || word == "distinct") {
        item.remove(0);
    }
}

fn limit(parts: &[Part]) -> Option<Limit> {
    let is_alone = parts.get(1).is_none_or(|(_, word)| word.starts_with(char::is_alphabetic));
    match parts.first().map_or("all", |(_, word)| word) {
        "all" | "null" => None,
        "row" | "rows" => Some(Limit::Count(1)),
        word if is_alone && word.starts_with('$') => word[1..].parse().ok().map(Limit::Parameter),
        word => Some(word.parse().ok().filter(|_| is_alone).map_or(Limit::Expression, Limit::Count)),
    }
}
