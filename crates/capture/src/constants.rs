//! Constants of a statement, by the server's grammar (`AexprConst` in src/backend/parser/gram.y).

use crate::log::tokens::{StatementToken, TokenKind, tokens};

/// Characters of a statement that one line has room for.
const SHOWN: usize = 60;

/// Returns the beginning of a statement in one line.
pub fn shortened(query: &str) -> String {
    let words: Vec<&str> = query.split_ascii_whitespace().take(SHOWN).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Words behind which an expression begins: the reserved key words, which are names of neither types nor functions, and those
/// of the others that the grammar has in front of an expression.
const BEFORE_EXPRESSIONS: [&str; 67] = [
    "all",
    "and",
    "any",
    "array",
    "as",
    "asymmetric",
    "between",
    "both",
    "by",
    "case",
    "collate",
    "content",
    "default",
    "distinct",
    "do",
    "document",
    "else",
    "end",
    "escape",
    "except",
    "fetch",
    "first",
    "for",
    "from",
    "full",
    "group",
    "groups",
    "having",
    "if",
    "ilike",
    "in",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "key",
    "leading",
    "like",
    "limit",
    "next",
    "not",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "passing",
    "placing",
    "range",
    "returning",
    "rows",
    "select",
    "set",
    "similar",
    "some",
    "symmetric",
    "then",
    "to",
    "trailing",
    "union",
    "using",
    "value",
    "values",
    "version",
    "when",
    "where",
];

/// The most tokens of a type's modifiers: `geometry(Point, 4326)`.
const MOST_MODIFIERS: usize = 16;

/// Whether a word is one behind which an expression begins.
pub fn is_before_expression(token: &StatementToken) -> bool {
    token.kind == TokenKind::Word
        && (token.is("zone") || token.is("variadic") || BEFORE_EXPRESSIONS.iter().any(|word| token.is(word)))
}

/// The type that is written before a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenType {
    /// How many tokens it has.
    pub tokens: usize,
    /// As a cast takes it.
    pub cast: String,
}

/// The type that the last of these tokens are, none of which is silent, if a constant follows them.
pub fn type_before(before: &[StatementToken]) -> Option<WrittenType> {
    let at = |back: usize| before.len().checked_sub(back).map(|place| &before[place]);
    let is = |back: usize, words: &[&str]| {
        at(back).is_some_and(|token| token.kind == TokenKind::Word && words.iter().any(|word| token.is(word)))
    };
    let mut length = 0;
    let has_zone = is(1, &["zone"]) && is(2, &["time"]) && is(3, &["with", "without"]);
    if has_zone {
        length += 3;
    }
    let modifiers = modifiers(&before[..before.len() - length]);
    length += modifiers;
    if has_zone && !is(length + 1, &["time", "timestamp"]) {
        return None;
    }
    let is_national = |back: usize| usize::from(is(back, &["national"]));
    let words = if is(length + 1, &["precision"]) && is(length + 2, &["double"]) {
        2
    } else if is(length + 1, &["varying"]) && is(length + 2, &["bit", "char", "character", "nchar"]) {
        2 + is_national(length + 3)
    } else if is(length + 1, &["char", "character"]) {
        1 + is_national(length + 2)
    } else {
        name(&before[..before.len() - length])?
    };
    length += words;
    // A type's name in front of a constant begins an expression.
    let begins = at(length + 1).is_none_or(|token| match token.kind {
        TokenKind::Symbol => ![")", "]", "."].contains(&token.text),
        _ => is_before_expression(token),
    });
    if !begins {
        return None;
    }
    let written = &before[before.len() - length..];
    let last = written[words - 1];
    // As a cast, these would have the length 1, which they do not have in front of a constant.
    let cast = match (modifiers, last.kind == TokenKind::Word) {
        (0, true) if last.is("bit") && words == 1 => "pg_catalog.\"bit\"".to_owned(),
        (0, true)
            if ["char", "character", "nchar"].iter().any(|word| last.is(word)) && !is_qualified(written) =>
        {
            "pg_catalog.bpchar".to_owned()
        }
        _ => joined(written),
    };
    Some(WrittenType { tokens: length, cast })
}

fn is_qualified(written: &[StatementToken]) -> bool {
    written.iter().any(|token| token.text == ".")
}

/// How many of the last tokens are a type's modifiers with their parentheses.
fn modifiers(before: &[StatementToken]) -> usize {
    if before.last().is_none_or(|token| token.text != ")") {
        return 0;
    }
    let inside = before.iter().rev().skip(1).take(MOST_MODIFIERS);
    let is_modifier = |token: &&StatementToken| {
        matches!(token.kind, TokenKind::Word | TokenKind::Number | TokenKind::QuotedIdentifier)
            || token.text == ","
    };
    let length = inside.take_while(is_modifier).count();
    let is_opened = before.len().checked_sub(length + 2).is_some_and(|open| before[open].text == "(");
    if length > 0 && is_opened { length + 2 } else { 0 }
}

/// How many of the last tokens are a name, with a schema or without.
fn name(before: &[StatementToken]) -> Option<usize> {
    let is_name = |token: &StatementToken| match token.kind {
        TokenKind::Word => !is_before_expression(token),
        kind => kind == TokenKind::QuotedIdentifier,
    };
    before.last().filter(|token| is_name(token))?;
    let mut length = 1;
    while before.len() >= length + 2
        && before[before.len() - length - 1].text == "."
        && matches!(before[before.len() - length - 2].kind, TokenKind::Word | TokenKind::QuotedIdentifier)
    {
        length += 2;
    }
    Some(length)
}

/// The tokens with blanks between words.
fn joined(written: &[StatementToken]) -> String {
    let mut text = String::new();
    let mut was_word = false;
    for token in written {
        let is_word = matches!(token.kind, TokenKind::Word | TokenKind::QuotedIdentifier);
        if is_word && (was_word || text.ends_with(')')) {
            text.push(' ');
        }
        text.push_str(token.text);
        was_word = is_word;
    }
    text
}

/// Whether a token is a constant, other than a key word.
pub fn is_constant(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::String | TokenKind::OtherString | TokenKind::Number)
}

/// A statement with a mark in the place of each constant, and without comments, in which there may be others.
pub fn without_constants(text: &str) -> String {
    let hidden = |token: &StatementToken<'_>| {
        match token.kind {
            kind if is_constant(kind) => "?",
            TokenKind::Blank | TokenKind::Comment => " ",
            _ => token.text,
        }
        .to_owned()
    };
    let text: String = tokens(text).iter().map(hidden).collect();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cast for a constant at the end of a text, and how many tokens it takes.
    fn cast(text: &str) -> Option<(String, usize)> {
        let all: Vec<StatementToken> = tokens(text).into_iter().filter(|token| !token.is_silent()).collect();
        type_before(&all).map(|found| (found.cast, found.tokens))
    }

    /// `func_name Sconst`, `func_name '(' func_arg_list ')' Sconst`, `ConstTypename Sconst`, `ConstInterval …`.
    #[test]
    fn types_before_constants_are_those_of_the_grammar() {
        for (text, expected, tokens) in [
            ("SELECT date", "date", 1),
            ("SELECT mood", "mood", 1),
            ("SELECT a + int4range", "int4range", 1),
            ("f(shop . \"Mood\"", "shop.\"Mood\"", 3),
            ("SELECT name", "name", 1),
            ("SELECT \"char\"", "\"char\"", 1),
            ("SELECT char", "pg_catalog.bpchar", 1),
            ("SELECT CHARACTER", "pg_catalog.bpchar", 1),
            ("SELECT nchar", "pg_catalog.bpchar", 1),
            ("SELECT national char", "pg_catalog.bpchar", 2),
            ("SELECT char(9)", "char(9)", 4),
            ("SELECT character varying ( 3 )", "character varying(3)", 5),
            ("SELECT national character varying", "national character varying", 3),
            ("SELECT bit", "pg_catalog.\"bit\"", 1),
            ("SELECT bit(3)", "bit(3)", 4),
            ("SELECT bit varying", "bit varying", 2),
            ("SELECT numeric(10, 2)", "numeric(10,2)", 6),
            ("SELECT double precision", "double precision", 2),
            ("SELECT float(24)", "float(24)", 4),
            ("SELECT time(0) with time zone", "time(0) with time zone", 7),
            ("SELECT timestamp without time zone", "timestamp without time zone", 4),
            ("SELECT interval(3)", "interval(3)", 4),
            ("SELECT geometry(Point, 4326)", "geometry(Point,4326)", 6),
            ("WHERE a > ALL (ARRAY[timestamptz", "timestamptz", 1),
            ("x LIKE bpchar", "bpchar", 1),
        ] {
            assert_eq!(cast(text), Some((expected.to_owned(), tokens)), "{text}");
        }
        for text in [
            "",
            "SELECT",
            "SELECT DISTINCT ON (a)",
            "a OPERATOR(pg_catalog.=)",
            "x AT TIME ZONE",
            "x LIKE y ESCAPE",
            "x SIMILAR TO",
            "GROUP BY",
            "OVER (ORDER BY a RANGE",
            "OVER (ROWS",
            "trim(both",
            "overlay(a PLACING",
            "xmlparse(DOCUMENT",
            "xmlroot(x, VERSION",
            "json_object('k' VALUE",
            "x IS DISTINCT FROM",
            "FETCH FIRST",
            "a ||",
            "f(",
        ] {
            assert_eq!(cast(text), None, "{text}");
        }
    }
}
