//! What is around the report: head, style sheet, title and foot.

use super::escape::escaped;
use crate::report::Document;
use crate::report::content::{outcome, subtitle};
use crate::report::hygiene::{one_line, shortened};
use crate::report::plot::palette;

/// The rules for everything but the colours of plots.
const STYLE: &str = include_str!("style.css");

/// How long a workload's name may be in the title: a mix is named by all of its scripts.
const NAME: usize = 120;

/// How long the reason of a failure may be.
const OUTCOME: usize = 2_000;

/// Writes everything up to the headline's figures, whose list it opens.
pub fn open(page: &mut String, document: &Document) {
    let run = &document.run;
    let name = shortened(&one_line(&run.workload), NAME);
    let title = escaped(&format!("Run {}: {name}", run.run_id));
    *page += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
              <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
              <meta name=\"color-scheme\" content=\"light dark\">\n";
    *page += &format!(
        "<title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        palette::style_sheet()
    );
    // One word of known ones; what is not one of these has no class of its own.
    let class = if run.status == "completed" { "good" } else { "bad" };
    let status = match &*run.status {
        "" => String::new(),
        status => format!(" <span class=\"status {class}\">{}</span>", escaped(status)),
    };
    *page += &format!(
        "<header>\n<p class=\"run\">Run {}{status}</p>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n",
        run.run_id,
        escaped(&name),
        escaped(&subtitle(document))
    );
    if let Some(outcome) = outcome(run) {
        *page += &format!("<p class=\"outcome\">{}</p>\n", escaped(&shortened(&outcome, OUTCOME)));
    }
    *page += "<dl class=\"headline\">\n";
}

/// Writes everything after the report.
pub fn close(page: &mut String, document: &Document) {
    let version = match &*document.run.extension_version {
        "" => String::new(),
        version => format!(" {}", escaped(version)),
    };
    *page += &format!(
        "</main>\n<footer>pgbench_ext{version}, schema version {}</footer>\n</body>\n</html>\n",
        document.schema_version
    );
}
