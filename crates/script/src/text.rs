//! Positions in a script's text for error messages, and the separators of its words.

use bench_base::error::UserError;

/// A script's name and text, for messages about places in it.
#[derive(Clone, Copy)]
pub(crate) struct ScriptText<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl ScriptText<'_> {
    /// Returns an error at a byte offset, rounded down to a character boundary. Its detail names script, line and
    /// column (in characters, from 1), and shows the line with a caret below the position.
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

/// The most bytes of a text that a message shows.
const EXCERPT_LENGTH: usize = 200;

/// Returns the first line of a text, cut at [`EXCERPT_LENGTH`].
pub(crate) fn excerpt(text: &str) -> &str {
    let line = text.split(['\n', '\r']).next().unwrap_or_default();
    &line[..line.floor_char_boundary(EXCERPT_LENGTH)]
}

/// Finds the lines of ascending offsets; each newline is counted only once.
pub(crate) struct LineCounter<'a> {
    text: &'a str,
    /// Newlines before this offset have been counted.
    at: usize,
    /// The line at that offset.
    line: u32,
}

impl<'a> LineCounter<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    /// Returns the line, counted from 1, of a byte offset not below those of earlier calls.
    pub fn line_of(&mut self, offset: usize) -> u32 {
        let passed = self.text.as_bytes().get(self.at..offset).unwrap_or_default();
        let newlines = passed.iter().filter(|&&byte| byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(newlines).unwrap_or(u32::MAX));
        self.at = self.at.max(offset);
        self.line
    }
}

/// Returns the line of a text that contains `offset` (in bytes), and below it a caret under the character there. Offsets
/// past the end count as the end.
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

pub(crate) fn is_blank(byte: u8) -> bool {
    BLANKS.contains(&char::from(byte))
}

/// Removes blanks at the front of a text.
pub(crate) fn trim_start(text: &str) -> &str {
    text.trim_start_matches(BLANKS)
}

/// Removes blanks at the end of a text.
pub(crate) fn trim_end(text: &str) -> &str {
    text.trim_end_matches(BLANKS)
}

/// Returns the length of the line continuation (a backslash and a newline) at the front of a text, if there is one.
pub(crate) fn continuation_length(text: &[u8]) -> Option<usize> {
    match text {
        [b'\\', b'\n', ..] => Some(2),
        [b'\\', b'\r', b'\n', ..] => Some(3),
        _ => None,
    }
}

/// Returns the length of the blank or line continuation at the front of a text, if there is one.
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
