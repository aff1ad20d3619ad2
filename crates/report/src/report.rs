//! What a report consists of, apart from how it is written: that of a run, of a sweep and of a comparison alike.

use bench_results::Finding;

use crate::plot::chart::Chart;
use crate::section::Section;

/// A report.
pub struct Report<'a> {
    /// As `Run 42`.
    pub subject: String,
    pub workload: String,
    pub status: &'a str,
    /// What it was, in one line.
    pub subtitle: String,
    /// What was compared: the name of each side, and what it is. Empty where nothing was.
    pub compared: Vec<(String, String)>,
    /// How it ended, where that is not as it should.
    pub outcome: Option<String>,
    /// What it comes to, where it comes to something.
    pub conclusion: Option<Conclusion>,
    /// The lines that the text begins with, where the other formats have subject, subtitle and outcome.
    pub opening: Vec<String>,
    /// What pgbench prints at its end, for those who look for it.
    pub closing: Vec<String>,
    /// The figures that one looks for first.
    pub headline: Vec<HeadlineFigure>,
    /// Throughput over time in lines of text.
    pub sparkline: Vec<String>,
    /// Pages have charts. The first is beside the findings, where there are such.
    pub charts: Box<dyn Fn() -> Vec<Chart> + 'a>,
    /// Why there is no chart over time.
    pub charts_note: Option<&'static str>,
    /// Those of a run; `None` where findings are none of the report's parts.
    pub findings: Option<&'a [Finding]>,
    pub sections: Vec<Section>,
    pub extension_version: &'a str,
    pub schema_version: u32,
}

/// What a report comes to.
#[derive(Default)]
pub struct Conclusion {
    /// One word of known ones.
    pub verdict: String,
    pub sentence: String,
    /// What to know about it.
    pub remarks: Vec<String>,
}

/// A figure above all others.
pub struct HeadlineFigure {
    pub name: &'static str,
    pub value: String,
    pub unit: String,
    /// How it looks, if not like the others.
    pub class: &'static str,
}

impl HeadlineFigure {
    /// A figure that looks like the others.
    pub fn new(name: &'static str, value: String, unit: impl Into<String>) -> HeadlineFigure {
        HeadlineFigure { name, value, unit: unit.into(), class: "" }
    }

    /// This figure in greater letters.
    pub fn in_large(self) -> HeadlineFigure {
        HeadlineFigure { class: "tps", ..self }
    }

    /// This figure, marked where it is not as it should be.
    pub fn bad_if(self, is_bad: bool) -> HeadlineFigure {
        HeadlineFigure { class: if is_bad { "bad" } else { self.class }, ..self }
    }
}
