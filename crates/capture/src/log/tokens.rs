//! What the tokens of a statement say without a parser: what it does to a transaction, whether it can be replayed, and the column
//! of the one row that it returns.

pub use bench_script::tokens::{TokenKind, decode, decode_prefixed, decode_unicode};

/// A part of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementToken<'a> {
    pub kind: TokenKind,
    pub text: &'a str,
}

impl StatementToken<'_> {
    pub fn is(&self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }

    /// Whether it says nothing: blanks and comments.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, TokenKind::Blank | TokenKind::Comment)
    }
}

/// Divides a text.
pub fn tokens(text: &str) -> Vec<StatementToken<'_>> {
    let token =
        |token: bench_script::tokens::Token| StatementToken { kind: token.kind, text: token.text(text) };
    bench_script::tokens::tokens(text).into_iter().map(token).collect()
}

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

/// The column of the one row that a statement returns, by which a variable can be named: of `INSERT … VALUES (…) RETURNING
/// column, …` the first, and of `SELECT nextval(…)`.
pub fn returned_column(tokens: &[StatementToken]) -> Option<String> {
    let tokens: Vec<&StatementToken> = tokens.iter().filter(|token| !token.is_silent()).collect();
    let is = |place: usize, word: &str| tokens.get(place).is_some_and(|token| token.is(word));
    if is(0, "select") && is(1, "nextval") && is(2, "(") {
        return (is(4, ")") && tokens.len() == 5).then(|| "nextval".to_owned());
    }
    if !is(0, "insert") {
        return None;
    }
    let values = tokens.iter().position(|token| token.is("values"))?;
    let returning = tokens.iter().position(|token| token.is("returning"))?;
    let (mut depth, mut rows) = (0, 0);
    for token in tokens.get(values + 1..returning)? {
        match token.text {
            "(" => {
                rows += usize::from(depth == 0);
                depth += 1;
            }
            ")" => depth -= 1,
            // One that may insert nothing.
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    if rows != 1 {
        return None;
    }
    // Each of them has to have a name that a variable can have.
    let items = tokens.get(returning + 1..)?.split(|token| token.text == ",");
    let names: Option<Vec<String>> = items.map(name_of).collect();
    names?.into_iter().next()
}

/// The name of `a`, `t.a` or `a AS b`.
fn name_of(item: &[&StatementToken]) -> Option<String> {
    let column = match item {
        [column] => column,
        [_, dot, column] if dot.text == "." => column,
        [_, word, column] if word.is("as") => column,
        [_, dot, _, word, column] if dot.text == "." && word.is("as") => column,
        _ => return None,
    };
    let name = match column.kind {
        TokenKind::Word => column.text.to_ascii_lowercase(),
        TokenKind::QuotedIdentifier => column.text.trim_matches('"').to_owned(),
        _ => return None,
    };
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(is_plain).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_returns_one_row_has_a_column() {
        let column = |text: &str| returned_column(&tokens(text));
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(column("INSERT INTO t (a) VALUES ($1, f(2)) RETURNING id"), some("id"));
        assert_eq!(column("insert into t values (1) returning t.\"id\", a"), some("id"));
        assert_eq!(column("INSERT INTO t DEFAULT VALUES RETURNING id AS Key"), None);
        assert_eq!(column("INSERT INTO t VALUES (1) RETURNING id AS Key"), some("key"));
        assert_eq!(column("SELECT nextval('s')"), some("nextval"));
        assert_eq!(column("INSERT INTO t VALUES (1) RETURNING t.id AS k, a"), some("k"));
        for none in [
            "INSERT INTO t VALUES (1) RETURNING id, now() - created",
            "INSERT INTO t VALUES (1) RETURNING id::text",
            "INSERT INTO t VALUES (1) RETURNING a + b",
            "INSERT INTO t VALUES (1) RETURNING coalesce(a, b)",
            "INSERT INTO t SELECT x FROM (VALUES (1)) v, u RETURNING id",
            "INSERT INTO t VALUES (1), (2) RETURNING id",
            "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING RETURNING id",
            "INSERT INTO t SELECT 1 RETURNING id",
            "INSERT INTO t VALUES (1) RETURNING *",
            "INSERT INTO t VALUES (1) RETURNING",
            "INSERT INTO t VALUES (1) RETURNING \"a b\"",
            "SELECT nextval('s') FROM generate_series(1, 3)",
            "UPDATE t SET a = 1 RETURNING id",
            "",
        ] {
            assert_eq!(column(none), None, "{none}");
        }
    }
}
