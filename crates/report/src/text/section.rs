//! A section in plain text.

use super::lines::{WIDTH, hanging, write_title};
use super::table;
use crate::content::{Body, Section};
use crate::sanitize::{defused, one_line, wrapped};

/// A section under its title, after an empty line.
pub fn write_section(lines: &mut Vec<String>, section: &Section) {
    write_title(lines, section.title);
    match &section.body {
        Body::Facts(facts) => {
            for (name, value) in facts {
                lines.extend(hanging(&format!("  {}: ", defused(&one_line(name))), value));
            }
        }
        Body::Table(table) => lines.extend(table::lines(table)),
        Body::Wide { whole, .. } if table::fits(whole) => lines.extend(table::lines(whole)),
        Body::Wide { parts, .. } => {
            for (index, (name, part)) in parts.iter().enumerate() {
                if index > 0 {
                    lines.push(String::new());
                }
                lines.extend(hanging("  ", name));
                lines.extend(table::lines(part));
            }
        }
    }
    if let Some(note) = &section.note {
        lines.extend(
            wrapped(&defused(&one_line(note)), WIDTH - 2).into_iter().map(|line| format!("  {line}")),
        );
    }
}
