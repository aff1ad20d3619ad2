//! Lines of a text: wrapped, under titles.

use crate::sanitize::{clean, defused, one_line, width, wrapped};

/// How wide a line is at most.
pub const WIDTH: usize = 100;

/// A title with a rule under it.
pub fn write_title(lines: &mut Vec<String>, title: &str) {
    lines.push(String::new());
    lines.push(title.to_owned());
    lines.push("─".repeat(width(title)));
}

/// How many lines of one value are shown: a setting or a message may be as long as a file.
const LINES: usize = 12;

/// A value after its name, in as many lines as it needs, the further ones indented.
pub fn hanging(name: &str, value: &str) -> Vec<String> {
    let indent = name.len() - name.trim_start().len() + 2;
    let value = defused(&one_line(&clean(value)));
    // The first line has the name in it, which is wrapped with the value: its own blanks are put back.
    let blanks = indent - 2;
    let mut wrapped = wrapped(&format!("{}{value}", &name[blanks..]), WIDTH - indent);
    if wrapped.len() > LINES {
        wrapped.truncate(LINES - 1);
        wrapped.push("…".to_owned());
    }
    let further = |index: usize| " ".repeat(if index == 0 { blanks } else { indent });
    wrapped.into_iter().enumerate().map(|(index, line)| further(index) + &line).collect()
}
