//! Where in a script an error is.

use crate::error::UserError;

/// A script's name and text, for messages about places in it.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// The line, counted from 1, of a byte offset.
    pub fn line_of(&self, offset: usize) -> u32 {
        let newlines = self.text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count();
        u32::try_from(newlines).map_or(u32::MAX, |before| before.saturating_add(1))
    }

    /// An error at a byte offset on a character boundary. Its detail names script, line and column (in characters,
    /// from 1), and shows the line with a caret below the place.
    pub fn error(&self, offset: usize, sqlstate: &str, message: impl Into<String>) -> UserError {
        let (before, after) = self.text.split_at(offset);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = after.find('\n').map_or(self.text.len(), |newline| offset + newline);
        let line = self.text[line_start..line_end].trim_end();
        let left_of_caret = &before[line_start..];
        // Tabs stay tabs, so that the caret stands below its character however wide they are shown.
        let padding: String = left_of_caret.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        UserError::new(sqlstate, message).detail(format!(
            "script \"{}\", line {}, column {}:\n{line}\n{padding}^",
            self.name,
            self.line_of(offset),
            left_of_caret.chars().count() + 1,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caret_stands_below_the_place() {
        let source = Source { name: "s", text: "SELECT 1;\n\t\\set é foo(1)\nSELECT 2;" };
        let offset = source.text.find("foo").unwrap();
        let detail = source.error(offset, "42601", "m").detail.unwrap();
        assert_eq!(detail, "script \"s\", line 2, column 9:\n\t\\set é foo(1)\n\t       ^");
    }

    #[test]
    fn the_end_is_a_place_too() {
        let source = Source { name: "s", text: "ab" };
        assert_eq!(source.error(2, "42601", "m").detail.unwrap(), "script \"s\", line 1, column 3:\nab\n  ^");
        let source = Source { name: "s", text: "" };
        assert_eq!(source.error(0, "42601", "m").detail.unwrap(), "script \"s\", line 1, column 1:\n\n^");
    }
}
