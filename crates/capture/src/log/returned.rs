//! Values that an application has from one statement of a transaction and gives to a later one. The log has no results; but
//! what an INSERT returns of a sequence is told by its use: an integer that no statement before has, another one in each
//! transaction, and rising from one to the next.

use super::shapes::{ShapeRow, TransactionShape};
use super::tokens::{StatementToken, TokenKind};

/// Transactions that it takes to tell.
const FEWEST: usize = 10;

/// Transactions and slots that are looked at, at most.
const MOST_ROWS: usize = 500;
const MOST_SLOTS: usize = 300;

/// The share of the transactions in which the value is above that of the transaction before: sessions overtake each other.
const RISING: f64 = 0.8;

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

/// A slot of a shape whose value an earlier statement of the same transaction returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnedValue {
    pub slot: usize,
    /// Which statement.
    pub statement: usize,
}

/// The slots of a shape that have such values.
pub fn returned_values(shape: &TransactionShape) -> Vec<ReturnedValue> {
    let statements = &shape.outline.statements;
    let Some(first) = statements.iter().position(|template| template.returns.is_some()) else {
        return Vec::new();
    };
    let mut rows: Vec<&ShapeRow> = shape.rows.iter().take(MOST_ROWS).collect();
    rows.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    if rows.len() < FEWEST {
        return Vec::new();
    }
    let of_statement: Vec<usize> =
        statements.iter().enumerate().flat_map(|(place, one)| vec![place; one.slots.len()]).collect();
    let slots = 0..of_statement.len().min(MOST_SLOTS);
    let same = |a: usize, b: usize| rows.iter().all(|row| row.values[a] == row.values[b]);
    let mut found: Vec<ReturnedValue> = Vec::new();
    for slot in slots.filter(|&slot| of_statement[slot] > first) {
        // Where it was used before, it comes from the same statement, or it was no result then either.
        if let Some(earlier) = (0..slot).find(|&earlier| same(earlier, slot)) {
            let of_earlier = found.iter().find(|value| value.slot == earlier).copied();
            found.extend(of_earlier.map(|value| ReturnedValue { slot, ..value }));
            continue;
        }
        // Of several that it may be from, none is sure; nor is one that another value is from.
        let is_free = |place: &usize| !found.iter().any(|value| value.statement == *place);
        let mut sources =
            (0..of_statement[slot]).filter(|&place| statements[place].returns.is_some()).filter(is_free);
        let source = sources.next().filter(|_| sources.next().is_none());
        if let Some(statement) = source.filter(|_| is_serial(&rows, slot)) {
            found.push(ReturnedValue { slot, statement });
        }
    }
    found
}

/// Whether the values of a slot are those of a sequence.
fn is_serial(rows: &[&ShapeRow], slot: usize) -> bool {
    let values: Option<Vec<i64>> = rows.iter().map(|row| row.values[slot].as_deref()?.parse().ok()).collect();
    let Some(mut values) = values else { return false };
    let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count();
    values.sort_unstable();
    values.windows(2).all(|pair| pair[0] != pair[1]) && rising as f64 >= RISING * (values.len() - 1) as f64
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
