//! Finds the constants of a statement, by the server's grammar (`AexprConst` in src/backend/parser/gram.y).

use crate::log::tokens::{StatementToken, TokenKind, tokens};

/// Characters of a shortened statement.
const SHORT_LENGTH: usize = 60;

/// Returns the beginning of a statement in one line.
pub fn shortened(query: &str) -> String {
    let words: Vec<&str> = query.split_ascii_whitespace().take(SHORT_LENGTH).collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHORT_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Words that precede an expression: reserved key words, which cannot name types or functions, and other key words that the
/// grammar has before an expression.
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

/// Most tokens of a type's modifiers, such as `geometry(Point, 4326)`.
const MAX_MODIFIER_TOKENS: usize = 16;

/// Returns whether a token is a word that precedes an expression.
pub fn is_before_expression(token: &StatementToken) -> bool {
    token.kind == TokenKind::Word
        && (token.is("zone") || token.is("variadic") || BEFORE_EXPRESSIONS.iter().any(|word| token.is(word)))
}

/// A type that is written before a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenType {
    /// Number of its tokens.
    pub tokens: usize,
    /// The type in a cast.
    pub cast: String,
}

/// Returns the type that these tokens end with, if a constant follows them; none of them may be silent.
pub fn type_before(before: &[StatementToken]) -> Option<WrittenType> {
    let token_back = |back: usize| before.len().checked_sub(back).map(|place| &before[place]);
    let is_one_of = |back: usize, words: &[&str]| {
        token_back(back)
            .is_some_and(|token| token.kind == TokenKind::Word && words.iter().any(|word| token.is(word)))
    };
    let mut length = 0;
    let has_zone = is_one_of(1, &["zone"]) && is_one_of(2, &["time"]) && is_one_of(3, &["with", "without"]);
    if has_zone {
        length += 3;
    }
    let modifier_count = modifier_tokens(&before[..before.len() - length]);
    length += modifier_count;
    if has_zone && !is_one_of(length + 1, &["time", "timestamp"]) {
        return None;
    }
    let is_national = |back: usize| usize::from(is_one_of(back, &["national"]));
    let name_count = if is_one_of(length + 1, &["precision"]) && is_one_of(length + 2, &["double"]) {
        2
    } else if is_one_of(length + 1, &["varying"])
        && is_one_of(length + 2, &["bit", "char", "character", "nchar"])
    {
        2 + is_national(length + 3)
    } else if is_one_of(length + 1, &["char", "character"]) {
        1 + is_national(length + 2)
    } else {
        name_tokens(&before[..before.len() - length])?
    };
    length += name_count;
    // A type before a constant begins an expression.
    let begins_expression = token_back(length + 1).is_none_or(|token| match token.kind {
        TokenKind::Symbol => ![")", "]", "."].contains(&token.text),
        _ => is_before_expression(token),
    });
    if !begins_expression {
        return None;
    }
    let written = &before[before.len() - length..];
    let last = written[name_count - 1];
    // In a cast, these would have length 1; before a constant, they have none.
    let cast = match (modifier_count, last.kind == TokenKind::Word) {
        (0, true) if last.is("bit") && name_count == 1 => "pg_catalog.\"bit\"".to_owned(),
        (0, true)
            if ["char", "character", "nchar"].iter().any(|word| last.is(word)) && !is_qualified(written) =>
        {
            "pg_catalog.bpchar".to_owned()
        }
        _ => join_tokens(written),
    };
    Some(WrittenType { tokens: length, cast })
}

fn is_qualified(written: &[StatementToken]) -> bool {
    written.iter().any(|token| token.text == ".")
}

/// Counts the last tokens that are a type's modifiers, with their parentheses.
fn modifier_tokens(before: &[StatementToken]) -> usize {
    if before.last().is_none_or(|token| token.text != ")") {
        return 0;
    }
    let inside = before.iter().rev().skip(1).take(MAX_MODIFIER_TOKENS);
    let is_modifier = |token: &&StatementToken| {
        matches!(token.kind, TokenKind::Word | TokenKind::Number | TokenKind::QuotedIdentifier)
            || token.text == ","
    };
    let length = inside.take_while(is_modifier).count();
    let is_opened = before.len().checked_sub(length + 2).is_some_and(|open| before[open].text == "(");
    if length > 0 && is_opened { length + 2 } else { 0 }
}

/// Counts the last tokens that are a name, with or without a schema.
fn name_tokens(before: &[StatementToken]) -> Option<usize> {
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

/// Joins tokens, with blanks between words.
fn join_tokens(written: &[StatementToken]) -> String {
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

/// Returns whether a token is a constant, other than a key word.
pub fn is_constant(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::String | TokenKind::OtherString | TokenKind::Number)
}

/// Replaces each constant of a statement by `?`; removes comments, which may contain some.
pub fn without_constants(text: &str) -> String {
    let written = |token: &StatementToken<'_>| {
        match token.kind {
            kind if is_constant(kind) => "?",
            TokenKind::Blank | TokenKind::Comment => " ",
            _ => token.text,
        }
        .to_owned()
    };
    let text: String = tokens(text).iter().map(written).collect();
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
