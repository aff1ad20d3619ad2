//! Safer ways to well-known changes.

/// A statement of a change to which a safer way is known. Names are quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KnownStatement {
    /// CREATE INDEX, DROP INDEX or DETACH PARTITION without CONCURRENTLY, which goes behind this word of its text, or to its end.
    NotConcurrent { text: String, behind: Option<&'static str> },
    /// REINDEX without CONCURRENTLY.
    Reindex,
    /// ADD CONSTRAINT of a CHECK or a foreign key that is validated at once; `None`: without a name.
    Validated { text: String, table: String, constraint: Option<String> },
    /// SET NOT NULL.
    NotNull { table: String, column: String },
    /// ADD CONSTRAINT of a unique or primary key.
    Unique { table: String, constraint: Option<String>, columns: Vec<String>, is_primary: bool },
    /// ADD COLUMN with a default that calls a function.
    ComputedDefault { table: String, column: String },
    /// ALTER COLUMN TYPE.
    ColumnType { table: String, column: String },
    /// VACUUM FULL or CLUSTER.
    Rewrite,
}

/// A safer way to a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Better {
    /// What to do, as a sentence without a period.
    pub advice: String,
    /// The statements, where they follow from those of the change.
    pub apply: Option<Vec<String>>,
}

/// Returns the safer way to a statement.
pub fn better(statement: &KnownStatement) -> Better {
    let with = |advice: &str, apply: Option<Vec<String>>| Better { advice: advice.to_owned(), apply };
    let concurrently = "the same with CONCURRENTLY, which takes longer and blocks neither reads nor writes";
    match statement {
        KnownStatement::NotConcurrent { text, behind } => {
            let text = match behind {
                Some(word) => insert_behind(text, word, " CONCURRENTLY"),
                None => Some(format!("{} CONCURRENTLY", trimmed(text))),
            };
            with(concurrently, text.map(|text| vec![text]))
        }
        KnownStatement::Reindex => with(concurrently, None),
        KnownStatement::Validated { text, table, constraint } => with(
            "ADD CONSTRAINT … NOT VALID, and VALIDATE CONSTRAINT in a second transaction, which blocks no writes",
            constraint.as_ref().map(|constraint| {
                vec![
                    format!("{} NOT VALID", trimmed(text)),
                    format!("ALTER TABLE {table} VALIDATE CONSTRAINT {constraint}"),
                ]
            }),
        ),
        KnownStatement::NotNull { table, column } => with(
            "a CHECK (… IS NOT NULL) NOT VALID and its validation first: SET NOT NULL then does not read the table",
            Some(vec![
                format!(
                    "ALTER TABLE {table} ADD CONSTRAINT {NOT_NULL} CHECK ({column} IS NOT NULL) NOT VALID"
                ),
                format!("ALTER TABLE {table} VALIDATE CONSTRAINT {NOT_NULL}"),
                format!("ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL, DROP CONSTRAINT {NOT_NULL}"),
            ]),
        ),
        KnownStatement::Unique { table, constraint, columns, is_primary } => {
            let kind = if *is_primary { "PRIMARY KEY" } else { "UNIQUE" };
            with(
                "CREATE UNIQUE INDEX CONCURRENTLY, and ADD CONSTRAINT … USING INDEX",
                constraint.as_ref().map(|constraint| {
                    vec![
                        format!(
                            "CREATE UNIQUE INDEX CONCURRENTLY {constraint} ON {table} ({})",
                            columns.join(", ")
                        ),
                        format!(
                            "ALTER TABLE {table} ADD CONSTRAINT {constraint} {kind} USING INDEX {constraint}"
                        ),
                    ]
                }),
            )
        }
        KnownStatement::ComputedDefault { table, column } => with(
            &format!(
                "if the default is volatile: ADD COLUMN without it, then ALTER COLUMN {column} SET DEFAULT, then UPDATE {table} in \
                 batches"
            ),
            None,
        ),
        KnownStatement::ColumnType { table, column } => with(
            &format!(
                "if the type's representation changes: a new column beside {column}, a trigger that keeps it up to date, UPDATE \
                 {table} in batches, and a rename"
            ),
            None,
        ),
        KnownStatement::Rewrite => with("REPACK (CONCURRENTLY) of PostgreSQL 19, or pg_repack", None),
    }
}

/// The name of the constraint that lets SET NOT NULL pass over the table.
const NOT_NULL: &str = "bench_not_null";

/// Returns what helps a change that mostly waits for its lock.
pub fn patience(lock_timeout_secs: Option<f64>) -> Option<String> {
    lock_timeout_secs
        .is_none()
        .then(|| "lock_timeout => 0.2, tries => 10: the queue behind it then dissolves".to_owned())
}

fn trimmed(text: &str) -> &str {
    text.trim_end().trim_end_matches(';').trim_end()
}

/// Inserts a text behind a word that is among the first three; `None` if it is not.
fn insert_behind(text: &str, word: &str, inserted: &str) -> Option<String> {
    // In a comment the word would be another one.
    if text.trim_start().starts_with(['-', '/']) {
        return None;
    }
    let mut end = 0;
    for next in text.split_whitespace().take(3) {
        end = end + text[end..].find(next)? + next.len();
        if next.eq_ignore_ascii_case(word) {
            return Some(format!("{}{inserted}{}", &text[..end], trimmed(&text[end..])));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(statement: &KnownStatement) -> Vec<String> {
        better(statement).apply.unwrap()
    }

    #[test]
    fn indexes_are_made_concurrently() {
        let index =
            |text: &str| KnownStatement::NotConcurrent { text: text.to_owned(), behind: Some("INDEX") };
        assert_eq!(
            apply(&index("create unique  index i ON t (a);")),
            ["create unique  index CONCURRENTLY i ON t (a)"]
        );
        assert_eq!(apply(&index("DROP INDEX i")), ["DROP INDEX CONCURRENTLY i"]);
        assert_eq!(better(&index("/* an index */ CREATE INDEX i ON t (a)")).apply, None);
        let detach = KnownStatement::NotConcurrent {
            text: "ALTER TABLE t DETACH PARTITION p ; ".to_owned(),
            behind: None,
        };
        assert_eq!(apply(&detach), ["ALTER TABLE t DETACH PARTITION p CONCURRENTLY"]);
    }

    #[test]
    fn constraints_are_validated_later() {
        let check = |constraint: Option<&str>| KnownStatement::Validated {
            text: "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0);".to_owned(),
            table: "t".to_owned(),
            constraint: constraint.map(str::to_owned),
        };
        assert_eq!(
            apply(&check(Some("c"))),
            ["ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID", "ALTER TABLE t VALIDATE CONSTRAINT c"]
        );
        assert_eq!(better(&check(None)).apply, None);
        let unique = KnownStatement::Unique {
            table: "s.t".to_owned(),
            constraint: Some("k".to_owned()),
            columns: vec!["a".to_owned(), "\"B\"".to_owned()],
            is_primary: true,
        };
        assert_eq!(
            apply(&unique),
            [
                "CREATE UNIQUE INDEX CONCURRENTLY k ON s.t (a, \"B\")",
                "ALTER TABLE s.t ADD CONSTRAINT k PRIMARY KEY USING INDEX k"
            ]
        );
        let not_null = KnownStatement::NotNull { table: "t".to_owned(), column: "a".to_owned() };
        assert_eq!(apply(&not_null).len(), 3);
    }
}
