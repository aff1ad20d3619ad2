//! What is around the report: head, style sheet, title and foot.

use crate::escape::escaped;
use crate::plot::{Chart, palette};
use crate::sanitize::{one_line, shortened};

/// The rules for everything but the colours of plots.
const STYLE: &str = include_str!("style.css");

/// How long a workload's name may be in the title: a mix is named by all of its scripts.
const NAME: usize = 120;

/// How long the reason of a failure may be.
const OUTCOME: usize = 2_000;

/// What is said above the figures.
pub struct PageHead<'a> {
    /// As `Run 42`.
    pub subject: String,
    pub workload: &'a str,
    pub status: &'a str,
    pub subtitle: String,
    /// How it ended, where that is not as it should.
    pub outcome: Option<String>,
    /// What it comes to, where it comes to something.
    pub conclusion: Option<Conclusion<'a>>,
}

/// What a comparison comes to.
pub struct Conclusion<'a> {
    /// One word of known ones.
    pub verdict: &'a str,
    pub sentence: &'a str,
    /// What to know about it.
    pub remarks: &'a [String],
}

/// Writes everything up to the headline's figures, whose list it opens.
pub fn open(page: &mut String, head: &PageHead) {
    let subject = &head.subject;
    let name = shortened(&one_line(head.workload), NAME);
    let title = escaped(&format!("{subject}: {name}"));
    *page += "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
              <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
              <meta name=\"color-scheme\" content=\"light dark\">\n";
    *page += &format!(
        "<title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n<main>\n",
        palette::style_sheet()
    );
    // One word of known ones; what is not one of these has no class of its own.
    let class = if head.status == "completed" && head.outcome.is_none() { "good" } else { "bad" };
    let status = match head.status {
        "" => String::new(),
        status => format!(" <span class=\"status {class}\">{}</span>", escaped(status)),
    };
    *page += &format!(
        "<header>\n<p class=\"run\">{subject}{status}</p>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n",
        escaped(&name),
        escaped(&shortened(&head.subtitle, OUTCOME))
    );
    if let Some(outcome) = &head.outcome {
        *page += &format!("<p class=\"outcome\">{}</p>\n", escaped(&shortened(outcome, OUTCOME)));
    }
    if let Some(Conclusion { verdict, sentence, remarks }) = &head.conclusion {
        *page += &format!("<p class=\"conclusion {}\">{}</p>\n", escaped(verdict), escaped(sentence));
        for remark in *remarks {
            *page += &format!("<p class=\"remark\">{}</p>\n", escaped(&shortened(remark, OUTCOME)));
        }
    }
    *page += "<dl class=\"headline\">\n";
}

/// Links to the parts of the page: plots, then tables, each with its id and its title.
pub fn write_contents(page: &mut String, figures: &[Chart], sections: &[(&str, &str)]) {
    let plots: Vec<(&str, &str)> = figures.iter().map(|figure| (figure.id, figure.title)).collect();
    if plots.is_empty() && sections.is_empty() {
        return;
    }
    *page += "<nav class=\"contents\" aria-label=\"Contents\">\n";
    for parts in [&plots[..], sections] {
        if parts.is_empty() {
            continue;
        }
        *page += "<ul>";
        for (id, title) in parts {
            // The unit is at the plot.
            let name = title.split(',').next().unwrap_or(title);
            *page += &format!("<li><a href=\"#{id}\">{name}</a></li>");
        }
        *page += "</ul>\n";
    }
    *page += "</nav>\n";
}

/// Writes everything after the report.
pub fn close(page: &mut String, extension_version: &str, schema_version: u32) {
    let version = match extension_version {
        "" => String::new(),
        version => format!(" {}", escaped(version)),
    };
    *page += &format!(
        "</main>\n<footer>pgbench_ext{version}, schema version {schema_version}</footer>\n</body>\n</html>\n"
    );
}
