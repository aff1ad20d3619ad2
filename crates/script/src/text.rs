//! A script as a text: where in it an error is, and what separates its words.

use bench_base::error::UserError;

/// A script's name and text, for messages about places in it.
#[derive(Clone, Copy)]
pub(crate) struct ScriptText<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl ScriptText<'_> {
    /// An error at a byte offset, or at the last character before it if it is none's. Its detail names script,
    /// line and column (in characters, from 1), and shows the line with a caret below the place.
    pub fn error(&self, offset: usize, sqlstate: &str, message: impl Into<String>) -> UserError {
        let offset = self.text.floor_char_boundary(offset);
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[line_start..].chars().count() + 1;
        UserError::new(sqlstate, message).detail(format!(
            "script \"{}\", line {}, column {column}:\n{}",
            self.name,
            LineCounter::new(self.text).line_of(offset),
            with_caret(self.text, offset),
        ))
    }
}

/// How much of a text a message shows, in bytes.
const EXCERPT_LENGTH: usize = 200;

/// The first line of a text, or its beginning if that is long.
pub(crate) fn excerpt(text: &str) -> &str {
    let line = text.split(['\n', '\r']).next().unwrap_or_default();
    &line[..line.floor_char_boundary(EXCERPT_LENGTH)]
}

/// Tells the lines of places that are asked for in the order of the text: each newline is counted once only,
/// however many places there are.
pub(crate) struct LineCounter<'a> {
    text: &'a str,
    /// How far newlines have been counted.
    at: usize,
    /// The line there.
    line: u32,
}

impl<'a> LineCounter<'a> {
    /// At the front of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// The line, counted from 1, of a byte offset that is not before those asked for so far.
    pub fn line_of(&mut self, offset: usize) -> u32 {
        let passed = self.text.as_bytes().get(self.at..offset).unwrap_or_default();
        let newlines = passed.iter().filter(|&&byte| byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        self.at = self.at.max(offset);
        self.line
    }
}

/// The line of a text that holds the byte at `offset`, and below it a caret under that byte's character. The text's end
/// is a place too; what is past it counts as it.
pub fn with_caret(text: &str, offset: usize) -> String {
    let (before, after) = text.split_at(text.floor_char_boundary(offset));
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = after.find('\n').map_or(text.len(), |newline| before.len() + newline);
    // Tabs stay tabs, so that the caret stands below its character however wide they are shown.
    let padding: String = before[line_start..].chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    format!("{}\n{padding}^", text[line_start..line_end].trim_end())
}

/// The blanks of C's `isspace`. Only ASCII separates words: to pgbench, any other character may be part of a name.
const BLANKS: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// Whether a byte is a blank.
pub(crate) fn is_blank(byte: u8) -> bool {
    BLANKS.contains(&char::from(byte))
}

/// A text without the blanks at its front.
pub(crate) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(BLANKS)
}

/// A text without the blanks at its end.
pub(crate) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(BLANKS)
}

/// The length of the line continuation – a backslash and a newline – that a text begins with, if it does.
pub(crate) fn continuation_length(text: &[u8]) -> Option<usize> {
    match text {
        [b'\\', b'\n', ..] => Some(2),
        [b'\\', b'\r', b'\n', ..] => Some(3),
        _ => None,
    }
}

/// The length of the blank or line continuation that a text begins with, if it does.
pub(crate) fn separator_length(text: &[u8]) -> Option<usize> {
    match text.first() {
        Some(&byte) if is_blank(byte) => Some(1),
        _ => continuation_length(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_the_place() {
        let source = ScriptText { name: "s", text: "SELECT 1;\n\t\\set é foo(1)\nSELECT 2;" };
        let offset = source.text.find("foo").unwrap();
        let detail = source.error(offset, "42601", "m").detail.unwrap();
        assert_eq!(detail, "script \"s\", line 2, column 9:\n\t\\set é foo(1)\n\t       ^");
    }

    #[test]
    fn the_end_is_a_place_too() {
        let source = ScriptText { name: "s", text: "ab" };
        assert_eq!(source.error(2, "42601", "m").detail.unwrap(), "script \"s\", line 1, column 3:\nab\n  ^");
        let source = ScriptText { name: "s", text: "" };
        assert_eq!(source.error(0, "42601", "m").detail.unwrap(), "script \"s\", line 1, column 1:\n\n^");
    }

    #[test]
    fn a_place_that_is_none_does_no_harm() {
        let source = ScriptText { name: "s", text: "é" };
        assert_eq!(source.error(1, "42601", "m").detail.unwrap(), "script \"s\", line 1, column 1:\né\n^");
        assert_eq!(source.error(9, "42601", "m").detail.unwrap(), "script \"s\", line 1, column 2:\né\n ^");
    }

    #[test]
    fn lines_are_counted_on_the_way() {
        let mut lines = LineCounter::new("a\nb\n\nc");
        assert_eq!([0, 1, 2, 2, 4, 5, 6].map(|offset| lines.line_of(offset)), [1, 1, 2, 2, 3, 4, 4]);
    }
}
