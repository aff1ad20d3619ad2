//! Tokens that carry their texts.

pub use crate::tokens::{Kind, decode};

/// A part of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
}

impl Token<'_> {
    pub fn is(&self, text: &str) -> bool {
        self.text.eq_ignore_ascii_case(text)
    }

    /// Whether it says nothing: blanks and comments.
    pub fn is_silent(&self) -> bool {
        matches!(self.kind, Kind::Blank | Kind::Comment)
    }
}

/// Divides a text.
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let token = |token: crate::tokens::Token| Token { kind: token.kind, text: token.text(text) };
    crate::tokens::tokens(text).into_iter().map(token).collect()
}
