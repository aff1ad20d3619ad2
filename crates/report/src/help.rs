//! What `bench.help` says, from the documentation: `docs/functions.md`, and the pages with the longer tables of arguments.
//!
//! `docs/functions.md` has a section for each group of functions (`## Runs`) and in it one for each function
//! (`### bench.run`): a paragraph, and an example in a fence of SQL. A table with the header `| argument | meaning |`, on
//! any of the pages, is of the function whose signature begins the fence before it. Its row `others`, or `… as bench.run …`
//! in the signature's first line, names the function that has the rest. Arguments that mean the same everywhere are in a
//! table before the first signature. A table with the header `| column | meaning |` is of the rows that the function returns.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bench_base::error::{UserError, sqlstate};
use bench_base::words;

use crate::sanitize::wrapped;

const FUNCTIONS: &str = include_str!("../../../docs/functions.md");
const PAGES: [&str; 4] = [
    FUNCTIONS,
    include_str!("../../../docs/runs.md"),
    include_str!("../../../docs/loading.md"),
    include_str!("../../../docs/sweeps.md"),
];

/// Columns of a line.
const WIDTH: usize = 100;

/// An argument as the server has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub sql_type: String,
    /// `None` for one that has to be given.
    pub default: Option<String>,
}

/// A function of schema `bench`.
#[derive(Debug)]
struct Function {
    name: &'static str,
    group: &'static str,
    /// Sentences, as plain text.
    summary: String,
    example: Vec<&'static str>,
}

/// The documentation of all functions, in the order of `docs/functions.md`.
#[derive(Debug)]
pub struct Help {
    functions: Vec<Function>,
    /// By function, each argument with its meaning.
    arguments: Tables,
    /// By function, each column of its result.
    columns: Tables,
}

impl Default for Help {
    fn default() -> Self {
        let of = |header| PAGES.iter().fold(Tables::new(), |tables, page| read_tables(page, header, tables));
        Self { functions: read_functions(FUNCTIONS), arguments: of("argument"), columns: of("column") }
    }
}

impl Help {
    /// Names of all functions, without the schema.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.iter().map(|function| function.name)
    }

    /// All functions by group, a sentence each; lines.
    pub fn list(&self) -> Vec<String> {
        let column = self.names().map(str::len).max().unwrap_or(0) + 4;
        let mut lines: Vec<String> = Vec::new();
        let mut group = "";
        for function in &self.functions {
            if function.group != group {
                group = function.group;
                lines.extend((!lines.is_empty()).then(String::new));
                lines.push(group.to_owned());
            }
            let sentence = first_sentence(&function.summary);
            for (number, text) in wrapped(sentence, WIDTH - column).into_iter().enumerate() {
                let name = if number == 0 { function.name } else { "" };
                lines.push(format!("  {name:<width$}{text}", width = column - 2));
            }
        }
        lines.push(String::new());
        lines.push(
            "SELECT * FROM bench.help('run') shows the arguments of bench.run and an example.".to_owned(),
        );
        lines
    }

    /// The function that is meant by a name, which may have the schema before it and parentheses behind it.
    ///
    /// # Errors
    /// 42883 with the name that was probably meant.
    pub fn find(&self, name: &str) -> Result<&'static str, UserError> {
        let bare = name.split('(').next().unwrap_or_default().trim().to_lowercase();
        let bare = bare.strip_prefix("bench.").unwrap_or(&bare);
        if let Some(found) = self.names().find(|known| *known == bare) {
            return Ok(found);
        }
        let all = "SELECT * FROM bench.help() lists all functions.".to_owned();
        Err(UserError::new(sqlstate::UNDEFINED_FUNCTION, format!("function bench.{bare} does not exist"))
            .hint(words::hint(bare, self.names(), all)))
    }

    /// What an argument of a function means, as plain text; `None` where no page says it.
    pub fn meaning(&self, function: &str, argument: &str) -> Option<String> {
        meaning(&self.arguments, function, argument).or_else(|| meaning(&self.arguments, "", argument))
    }

    /// What a column of a function's result means, likewise.
    pub fn column(&self, function: &str, column: &str) -> Option<String> {
        meaning(&self.columns, function, column)
    }

    /// Arguments that the pages explain for a function, those of its `others` left out.
    pub fn arguments(&self, function: &str) -> Vec<&'static str> {
        self.arguments.get(function).into_iter().flatten().flat_map(|(cell, _)| names_in(cell)).collect()
    }

    /// The example of a function; empty where the page has none.
    pub fn example(&self, function: &str) -> &[&'static str] {
        self.functions.iter().find(|known| known.name == function).map_or(&[], |known| &known.example)
    }

    /// A function with its arguments, as the server has them, and an example; lines.
    pub fn function(&self, name: &str, arguments: &[Declared], result: &str) -> Vec<String> {
        let names: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
        // The columns of a table are listed below.
        let returned = result.split('(').next().unwrap_or(result);
        let mut lines =
            indented(&format!("bench.{name}({}) returns {returned}", names.join(", ")), "", "    ");
        let summary = self.functions.iter().find(|known| known.name == name).map(|known| &known.summary);
        lines.push(String::new());
        lines.extend(summary.into_iter().flat_map(|summary| wrapped(summary, WIDTH)));
        if !arguments.is_empty() {
            lines.extend([String::new(), "Arguments:".to_owned()]);
        }
        for argument in arguments {
            let default = argument.default.as_ref().map(|default| format!(" DEFAULT {default}"));
            lines.push(format!("  {} {}{}", argument.name, argument.sql_type, default.unwrap_or_default()));
            let meaning = self.meaning(name, &argument.name).unwrap_or_default();
            lines.extend(indented(&meaning, "      ", "      "));
        }
        let columns = result.strip_prefix("TABLE(").and_then(|columns| columns.strip_suffix(')'));
        if let Some(columns) = columns {
            lines.extend([String::new(), "Columns:".to_owned()]);
            for column in columns.split(", ") {
                lines.push(format!("  {column}"));
                let column_name = column.split(' ').next().unwrap_or_default().trim_matches('"');
                let meaning = self.column(name, column_name).unwrap_or_default();
                lines.extend(indented(&meaning, "      ", "      "));
            }
        }
        lines.extend([String::new(), "Example:".to_owned()]);
        lines.extend(self.example(name).iter().map(|line| format!("  {line}")));
        lines
    }
}

/// The text in lines, the first and the further ones indented.
fn indented(text: &str, first: &str, further: &str) -> Vec<String> {
    let lines = wrapped(text, WIDTH - further.len());
    lines
        .iter()
        .zip([first].into_iter().chain(std::iter::repeat(further)))
        .map(|(l, by)| format!("{by}{l}"))
        .collect()
}

/// A text up to its first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// The names between backquotes.
fn names_in(cell: &'static str) -> impl Iterator<Item = &'static str> {
    cell.split('`').skip(1).step_by(2)
}

/// Markdown without its marks: code without backquotes, links as their text, and no "; see [another page](page.md)".
fn plain(markdown: &str) -> String {
    let mut markdown = markdown.replace('`', "");
    while let Some(start) = markdown.find("; see [")
        && let Some(length) = markdown[start..].find(')')
    {
        markdown.replace_range(start..=start + length, "");
    }
    let mut text = String::new();
    let mut rest = markdown.as_str();
    while let Some((before, linked)) = rest.split_once('[') {
        let Some((label, after)) = linked.split_once("](") else { break };
        let Some((_, after)) = after.split_once(')') else { break };
        text += before;
        // A link that is a sentence of its own leads on, and says nothing.
        rest = match after.strip_prefix('.') {
            Some(after) if before.is_empty() || before.ends_with(". ") => after,
            _ => {
                text += label;
                after
            }
        };
    }
    text + rest
}

fn read_functions(page: &'static str) -> Vec<Function> {
    let mut functions = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let (group, body) = section.split_once('\n').unwrap_or((section, ""));
        for text in body.split("\n### bench.").skip(1) {
            let (name, body) = text.split_once('\n').unwrap_or((text, ""));
            functions.push(read_function(name, group, body));
        }
    }
    functions
}

fn read_function(name: &'static str, group: &'static str, body: &'static str) -> Function {
    let mut example = Vec::new();
    let mut summary: Vec<&str> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in body.lines() {
        match (line.strip_prefix("```"), fence) {
            (Some(kind), None) => fence = Some(kind),
            (Some(_), Some(_)) => fence = None,
            (None, Some(kind)) if kind.starts_with("sql") => example.push(line),
            (None, None) if !line.starts_with('|') => summary.push(line),
            _ => {}
        }
    }
    let summary = plain(&summary.join(" "));
    let words: Vec<&str> = summary.split_whitespace().collect();
    Function { name, group, summary: words.join(" "), example }
}

/// Rows of names and their meaning, by function.
type Tables = HashMap<&'static str, Vec<(&'static str, &'static str)>>;

/// What a name means in a function's table, or in that of the function that has the rest.
fn meaning(tables: &Tables, function: &str, name: &str) -> Option<String> {
    let rows = tables.get(function)?;
    let found = rows.iter().find(|(cell, _)| names_in(cell).any(|found| found == name));
    if let Some((_, meaning)) = found {
        return Some(plain(meaning));
    }
    let (_, others) = rows.iter().find(|(cell, _)| *cell == "others")?;
    let (_, other) = others.split_once("bench.")?;
    let other = other.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    (other != function).then(|| meaning(tables, other, name))?
}

/// Adds the tables of a page whose first column is called so.
fn read_tables(page: &'static str, header: &str, mut tables: Tables) -> Tables {
    let mut function = "";
    let mut opens = false;
    let mut in_table = false;
    for line in page.lines() {
        let signature = line.strip_prefix("bench.").and_then(|text| text.split_once('('));
        if opens && let Some((name, arguments)) = signature {
            function = name;
            let others = arguments.split_once("… as ").filter(|_| header == "argument");
            tables.entry(name).or_default().extend(others.map(|(_, others)| ("others", others)));
        }
        opens = line == "```";
        let cells: Option<(&str, &str)> = (|| {
            let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
            row.split_once(" | ")
        })();
        match cells {
            Some((first, "meaning")) => in_table = first == header,
            Some(row) if in_table => tables.entry(function).or_default().push(row),
            _ => in_table &= line.starts_with('|'),
        }
    }
    tables
}
