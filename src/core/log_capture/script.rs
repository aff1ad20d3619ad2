//! A shape as a script in pgbench's language, and the values of its transactions as rows of a feeder.

use std::collections::HashSet;

use super::normalise::{TemplatePart, TemplateValue};
use super::shapes::{ShapeRow, TransactionShape, Width};
use super::transaction::TransactionEnding;
use crate::interrupts;

/// Pauses whose mean is shorter are left out: each is the difference of two times of the log, which have milliseconds.
const SHORTEST_PAUSE_US: f64 = 2000.0;

/// What becomes of the client's pauses within a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkTimes {
    /// Each transaction's own.
    #[default]
    Each,
    /// The mean of all of the shape.
    Mean,
    None,
}

/// A column of the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeederColumn {
    /// Of the variable, too.
    pub name: String,
    source: ColumnSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnSource {
    /// Of the shape's slots.
    Slot(usize),
    /// Of the row's pauses.
    Pause(usize),
}

impl FeederColumn {
    /// Whether it holds microseconds, and not a text.
    pub fn is_pause(&self) -> bool {
        matches!(self.source, ColumnSource::Pause(_))
    }

    /// Its value in a row. Microseconds are digits.
    pub fn value(&self, row: &ShapeRow) -> Option<String> {
        match self.source {
            ColumnSource::Slot(slot) => row.values[slot].clone(),
            ColumnSource::Pause(place) => Some(row.pauses_us[place].to_string()),
        }
    }
}

/// A script and the variables that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionReplay {
    pub script: String,
    pub columns: Vec<FeederColumn>,
}

/// The script of a shape; with `hides_texts` no string constant of the log is in it.
pub fn replay(shape: &TransactionShape, think_times: ThinkTimes, hides_texts: bool) -> TransactionReplay {
    let mut writer = Writer {
        shape,
        think_times,
        hides_texts,
        prefix: prefix(shape),
        named: HashSet::new(),
        replay: TransactionReplay::default(),
    };
    let outline = &shape.outline;
    let needs_block = outline.ending != TransactionEnding::Implicit
        || outline.statements.len() > 1
        || outline.begin.is_some();
    if needs_block {
        writer.line(outline.begin.as_deref().unwrap_or("BEGIN"));
    }
    let mut first_slot = 0;
    for (place, template) in outline.statements.iter().enumerate() {
        writer.pause(place);
        let text: String =
            template.parts.iter().map(|part| writer.part(part, first_slot, &template.slots)).collect();
        writer.line(&text);
        first_slot += template.slots.len();
    }
    if needs_block {
        writer.pause(outline.statements.len());
        writer.line(if outline.ending == TransactionEnding::Rollback { "ROLLBACK" } else { "COMMIT" });
    }
    writer.replay
}

/// A beginning of names that no string constant of the shape mentions behind a colon: with an underscore more than any of
/// those that begin with a `p`.
fn prefix(shape: &TransactionShape) -> String {
    let parts = shape.outline.statements.iter().flat_map(|template| &template.parts);
    let texts = parts.filter_map(|part| match part {
        TemplatePart::Text(text) => Some(text.as_str()),
        TemplatePart::Slot { .. } => None,
    });
    let mut prefix = "p".to_owned();
    for text in texts.chain(shape.sources.iter().flatten().map(String::as_str)) {
        for (_, rest) in text.match_indices(":p").map(|(at, found)| text.split_at(at + found.len())) {
            interrupts::check_now_and_then();
            let underscores = rest.bytes().take_while(|&byte| byte == b'_').count();
            prefix.extend(std::iter::repeat_n('_', (underscores + 2).saturating_sub(prefix.len())));
        }
    }
    prefix
}

struct Writer<'a> {
    shape: &'a TransactionShape,
    think_times: ThinkTimes,
    hides_texts: bool,
    prefix: String,
    /// Names of columns that there are.
    named: HashSet<String>,
    replay: TransactionReplay,
}

impl Writer<'_> {
    fn line(&mut self, statement: &str) {
        self.replay.script.push_str(statement);
        self.replay.script.push_str(";\n");
    }

    fn column(&mut self, name: String, source: ColumnSource) {
        if self.named.insert(name.clone()) {
            self.replay.columns.push(FeederColumn { name, source });
        }
    }

    fn pause(&mut self, place: usize) {
        let mean = self.shape.pause_sums_us[place] / self.shape.transactions as f64;
        if mean < SHORTEST_PAUSE_US {
            return;
        }
        match self.think_times {
            ThinkTimes::None => {}
            ThinkTimes::Mean => self.replay.script.push_str(&format!("\\sleep {mean:.0} us\n")),
            ThinkTimes::Each => {
                let name = format!("{}_sleep{}", self.prefix, place + 1);
                self.replay.script.push_str(&format!("\\sleep :{name} us\n"));
                self.column(name, ColumnSource::Pause(place));
            }
        }
    }

    fn part(&mut self, part: &TemplatePart, first_slot: usize, slots: &[TemplateValue]) -> String {
        interrupts::check_now_and_then();
        let (slot, cast) = match part {
            TemplatePart::Text(text) => return text.clone(),
            TemplatePart::Slot { slot, cast } => (*slot, cast.as_deref()),
        };
        let place = first_slot + slot;
        match &self.shape.sources[place] {
            Some(source)
                if !(self.shape.varies[place]
                    || self.hides_texts && slots[slot] == TemplateValue::String) =>
            {
                return source.clone();
            }
            _ => {}
        }
        let name = format!("{}{}", self.prefix, place + 1);
        let cast = match slots[slot] {
            TemplateValue::Integer => Some(match self.shape.widest[place] {
                Width::Integer => "integer",
                Width::Bigint => "bigint",
                Width::Numeric => "numeric",
            }),
            TemplateValue::Decimal => Some("numeric"),
            TemplateValue::String => cast,
            TemplateValue::Parameter(_) => None,
        };
        let text = cast.map_or_else(|| format!(":{name}"), |cast| format!(":{name}::{cast}"));
        self.column(name, ColumnSource::Slot(place));
        text
    }
}
