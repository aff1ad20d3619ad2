//! What separates words. Only ASCII does: to pgbench, any other character may be part of a name.

/// The blanks of C's `isspace`.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// Whether a byte is a blank.
pub(super) fn is_blank(byte: u8) -> bool {
    BLANKS.contains(&char::from(byte))
}

/// A text without the blanks at its front.
pub(super) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(BLANKS)
}

/// A text without the blanks at its end.
pub(super) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(BLANKS)
}

/// The length of the line continuation – a backslash and a newline – that a text begins with, if it does.
pub(super) fn continuation_length(text: &[u8]) -> Option<usize> {
    match text {
        [b'\\', b'\n', ..] => Some(2),
        [b'\\', b'\r', b'\n', ..] => Some(3),
        _ => None,
    }
}

/// The length of the blank or line continuation that a text begins with, if it does.
pub(super) fn separator_length(text: &[u8]) -> Option<usize> {
    match text.first() {
        Some(&byte) if is_blank(byte) => Some(1),
        _ => continuation_length(text),
    }
}
