//! Names of relations that end in a number. An application with a hundred tables of one form, or a schema for each of its
//! customers, has one statement for all of them and not a hundred.

use bench_base::interrupts;

use super::tokens::{StatementToken, TokenKind};

/// Key words that a relation's name follows.
const BEFORE_RELATIONS: [&str; 5] = ["from", "join", "update", "into", "only"];

/// Names that are told apart in a statement; further ones stay in its text.
const MOST_NAMES: usize = 100;

/// The names in a statement that end in a number, each once, as they are written.
#[derive(Debug, Default)]
pub struct NumberedNames<'a> {
    names: Vec<StatementToken<'a>>,
}

/// A name apart from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedName<'a> {
    /// With the quote before it.
    pub stem: &'a str,
    /// `7` of `orders7`, `_2026_11` of `orders_2026_11`.
    pub number: &'a str,
    /// The quote behind it.
    pub end: &'a str,
}

impl<'a> NumberedNames<'a> {
    /// Those where a relation is named, with a schema or without.
    pub fn of(tokens: &[StatementToken<'a>]) -> Self {
        let mut found = Self::default();
        let mut is_expected = false;
        let mut was_name = false;
        for token in tokens.iter().filter(|token| !token.is_silent()) {
            interrupts::check_now_and_then();
            let is_keyword = BEFORE_RELATIONS.iter().any(|word| token.is(word));
            let has_room = found.names.len() < MOST_NAMES;
            if is_expected
                && !is_keyword
                && has_room
                && divided(token).is_some()
                && found.place(token).is_none()
            {
                found.names.push(*token);
            }
            let is_dot = token.text == "." && was_name;
            was_name = is_expected && is_name(token);
            is_expected = is_keyword || is_dot;
        }
        found
    }

    /// Which of them this is.
    pub fn place(&self, token: &StatementToken) -> Option<usize> {
        self.names.iter().position(|name| {
            name.kind == token.kind
                && match name.kind {
                    TokenKind::Word => name.text.eq_ignore_ascii_case(token.text),
                    _ => name.text == token.text,
                }
        })
    }

    /// The numbers, in the order of the names.
    pub fn numbers(&self) -> Vec<String> {
        self.names.iter().filter_map(divided).map(|name| name.number.to_owned()).collect()
    }
}

fn is_name(token: &StatementToken) -> bool {
    matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier)
}

/// A name apart from the digits and underscores at its end, where there is a digit among them and something before.
pub fn divided<'a>(token: &StatementToken<'a>) -> Option<NumberedName<'a>> {
    if !is_name(token) {
        return None;
    }
    let plain = token.text.trim_end_matches('"');
    let letters = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let (stem, number) = plain.split_at(letters.len());
    let has_stem = stem.chars().any(|c| c != '"');
    (has_stem && number.contains(|c: char| c.is_ascii_digit())).then(|| NumberedName {
        stem,
        number,
        end: &token.text[plain.len()..],
    })
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    fn numbers(statement: &str) -> Vec<String> {
        NumberedNames::of(&tokens(statement)).numbers()
    }

    #[test]
    fn relations_alone_have_numbers() {
        assert_eq!(numbers("SELECT c1, md5(c) FROM sbtest17 WHERE id2 = 3"), ["17"]);
        assert_eq!(numbers("INSERT INTO \"Orders_2026_11\" (a1) VALUES (1)"), ["_2026_11"]);
        assert_eq!(numbers("UPDATE ONLY tenant5.stock SET n1 = 2"), ["5"]);
        assert_eq!(
            numbers("SELECT FROM tenant5.stock_2 s3 JOIN tenant5 . item USING (a4)"),
            ["5".to_owned(), "_2".to_owned()]
        );
        assert_eq!(numbers("DELETE FROM _1 USING \"2\""), [""; 0]);
        assert_eq!(numbers("SELECT 1 FROM (SELECT a1.b2 FROM x) y3"), [""; 0]);
    }

    #[test]
    fn a_name_is_one_whatever_its_case() {
        let statement = tokens("SELECT T1.a FROM t1, \"t1\"");
        let names = NumberedNames::of(&statement);
        let places: Vec<_> = statement.iter().map(|token| names.place(token)).collect();
        assert_eq!(places.iter().flatten().count(), 2, "{places:?}");
        let divided = divided(statement.last().unwrap()).unwrap();
        assert_eq!((divided.stem, divided.number, divided.end), ("\"t", "1", "\""));
    }
}
