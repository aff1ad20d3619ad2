//! Tokens that carry their texts.

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
