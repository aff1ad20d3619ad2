//! The column of the one row that a statement returns, by its text.

use super::tokens::{StatementToken, TokenKind};

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
    use super::super::tokens::tokens;
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
