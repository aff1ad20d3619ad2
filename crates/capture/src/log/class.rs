//! What a statement does to a transaction, and whether it can be replayed.

use super::tokens::{StatementToken, TokenKind, tokens};

/// A class of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Begin,
    Commit,
    Rollback,
    /// ROLLBACK TO and other statements that belong into a transaction block.
    InBlock,
    /// Of no concern for a replay, which prepares its own statements.
    Ignored,
    /// A query, or one that changes data.
    Query {
        writes: bool,
    },
    /// Not replayable, with the reason.
    Other(&'static str),
}

pub const COPY: &str = "COPY";
pub const CURSOR: &str = "a cursor";
pub const UTILITY: &str = "a utility command";
pub const PREPARED: &str = "PREPARE or EXECUTE in SQL";
pub const TWO_PHASE: &str = "a two-phase commit";

/// The statements of a text, without the semicolons and what is empty.
pub fn statements(text: &str) -> Vec<Vec<StatementToken<'_>>> {
    let mut found = vec![Vec::new()];
    let mut depth = 0_usize;
    for token in tokens(text) {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            ";" if depth == 0 => {
                found.push(Vec::new());
                continue;
            }
            _ => {}
        }
        found.last_mut().expect("one is there").push(token);
    }
    found.retain(|tokens| tokens.iter().any(|token| !token.is_silent()));
    found
}

/// The class of one statement.
pub fn classify(tokens: &[StatementToken]) -> Class {
    let words: Vec<StatementToken> = tokens.iter().copied().filter(|token| !token.is_silent()).collect();
    let begin = words.iter().position(|token| token.text != "(").unwrap_or(0);
    let word = |place: usize| {
        words
            .get(begin + place)
            .filter(|token| token.kind == TokenKind::Word)
            .map_or(String::new(), |token| token.text.to_ascii_lowercase())
    };
    let (first, second) = (word(0), word(1));
    match (first.as_str(), second.as_str()) {
        ("begin", _) | ("start", "transaction") => Class::Begin,
        ("commit" | "rollback", "prepared") | ("prepare", "transaction") => Class::Other(TWO_PHASE),
        ("rollback", _) if has_word(&words, "to") => Class::InBlock,
        ("commit" | "end" | "rollback" | "abort", _)
            if has_word(&words, "chain") && !has_word(&words, "no") =>
        {
            Class::Other("AND CHAIN")
        }
        ("commit" | "end", _) => Class::Commit,
        ("rollback" | "abort", _) => Class::Rollback,
        ("savepoint" | "release" | "lock", _) | ("set", "local" | "transaction" | "constraints") => {
            Class::InBlock
        }
        ("insert" | "update" | "delete" | "merge", _) => Class::Query { writes: true },
        ("with", _) => Class::Query { writes: with_writes(&words) },
        ("select", _) if has_word(&words, "into") => Class::Other(UTILITY),
        ("select" | "values" | "table", _) => Class::Query { writes: false },
        ("call", _) => Class::Query { writes: true },
        ("copy", _) => Class::Other(COPY),
        ("declare" | "fetch" | "move" | "close", _) => Class::Other(CURSOR),
        ("deallocate", _) => Class::Ignored,
        ("prepare" | "execute", _) => Class::Other(PREPARED),
        _ => Class::Other(UTILITY),
    }
}

/// What a statement does about a savepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavepointStep {
    Set,
    Release,
    RollBackTo,
}

/// That of a statement, with the savepoint's name; `None` of another one.
pub fn savepoint(tokens: &[StatementToken]) -> Option<(SavepointStep, String)> {
    let words: Vec<StatementToken> = tokens.iter().copied().filter(|token| !token.is_silent()).collect();
    let (first, last) = (words.first()?, words.last()?);
    let step = if first.is("savepoint") {
        SavepointStep::Set
    } else if first.is("release") {
        SavepointStep::Release
    } else if first.is("rollback") && has_word(&words, "to") {
        SavepointStep::RollBackTo
    } else {
        return None;
    };
    let quoted = last.text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let name = quoted.map_or_else(|| last.text.to_ascii_lowercase(), |text| text.replace("\"\"", "\""));
    Some((step, name))
}

/// Whether a text is a utility command, as pg_stat_statements counts them; an empty one is none.
pub fn is_utility(text: &str) -> bool {
    statements(text).first().is_some_and(|tokens| !matches!(classify(tokens), Class::Query { .. }))
}

/// Whether a text begins a transaction block.
pub fn begins_transaction(text: &str) -> bool {
    statements(text).first().is_some_and(|tokens| classify(tokens) == Class::Begin)
}

fn has_word(words: &[StatementToken], word: &str) -> bool {
    words.iter().any(|token| token.kind == TokenKind::Word && token.is(word))
}

/// Whether a statement that begins with WITH changes data: behind FOR an UPDATE locks rows.
fn with_writes(words: &[StatementToken]) -> bool {
    (0..words.len()).any(|place| {
        let token = &words[place];
        let after = |word: &str| place > 0 && words[place - 1].is(word);
        token.kind == TokenKind::Word
            && (token.is("insert")
                || token.is("delete")
                || token.is("merge")
                || (token.is("update") && !after("for") && !after("key")))
    })
}
