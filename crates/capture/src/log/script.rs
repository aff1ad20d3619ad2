//! Writes a shape as a script in pgbench's language, and the values of its transactions as rows of a feeder.
//!
//! Some values were returned by an earlier statement of the same transaction. The log has no results, but a sequence's value that
//! INSERT returned is recognised by its use: an integer that no earlier statement has, that differs between transactions, and
//! that rises from one to the next.

use std::collections::HashSet;
use std::ops::Range;

use bench_base::interrupts;
use serde::{Deserialize, Serialize};

use super::normalise::{TemplatePart, TemplateValue, set_config};
use super::shapes::{ShapeRow, TransactionEnding, TransactionShape, Variant, Width};
use crate::options::ThinkTimes;

/// Shorter mean pauses are left out: the log's times, whose differences they are, have milliseconds.
const MIN_PAUSE_US: f64 = 2000.0;

/// A column of the feeder's rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeederColumn {
    /// The name of the column and of its variable.
    pub name: String,
    source: ColumnSource,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum ColumnSource {
    /// The value of one of the shape's slots.
    Slot { slot: usize, value: TemplateValue },
    /// One of the row's pauses, times `factor`.
    Pause { place: usize, factor: f64 },
    /// The branch of the script for the row's variant of a statement.
    Variant { statement: usize, kept: Kept },
}

/// Branches of the script by variant: the most frequent variants have one each, which the others share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// The branch of each variant, from 1.
    places: Vec<usize>,
}

impl FeederColumn {
    /// Returns whether it holds an integer of ours, not a text of the log.
    pub fn is_number(&self) -> bool {
        !matches!(self.source, ColumnSource::Slot { .. })
    }

    /// Returns whether it holds values of a server setting, which must not be masked: other texts are not valid.
    pub fn is_setting(&self) -> bool {
        matches!(self.source, ColumnSource::Slot { value: TemplateValue::Setting, .. })
    }

    /// Returns whether it holds constants, not parameters.
    pub fn is_constant(&self) -> bool {
        !matches!(self.source, ColumnSource::Slot { value: TemplateValue::Parameter(_), .. })
    }

    /// Returns its value in a row; a pause as digits, in microseconds.
    pub fn value(&self, row: &ShapeRow) -> Option<String> {
        match &self.source {
            ColumnSource::Slot { slot, .. } => row.values[*slot].clone(),
            ColumnSource::Pause { place, factor } => {
                Some((f64::from(row.pauses_us[*place]) * factor).round().to_string())
            }
            ColumnSource::Variant { statement, kept } => {
                Some(kept.places[row.variants[*statement] as usize].to_string())
            }
        }
    }
}

/// A script and the variables that it needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TransactionReplay {
    pub script: String,
    pub columns: Vec<FeederColumn>,
    /// What the script leaves out.
    pub omits: Option<String>,
    /// The mean of the sum of its pauses, in microseconds.
    pub pause_us: f64,
    /// Whether the script has a constant of the log although all should be variables.
    pub has_constants: bool,
}

/// Most statements in all branches of a script together.
const MAX_BRANCHED_STATEMENTS: usize = 1000;

/// Writes the script of a shape; with `hides_constants`, constants that do not vary are variables, too.
pub fn replay(shape: &TransactionShape, think_times: ThinkTimes, hides_constants: bool) -> TransactionReplay {
    let outline = &shape.outline;
    let mut first_slots = vec![0];
    for template in &outline.statements {
        first_slots.push(first_slots.last().unwrap_or(&0) + template.slots.len());
    }
    let returned = returned_values(shape);
    let mut writer = Writer {
        shape,
        think_times,
        hides_constants,
        prefix: unused_prefix(shape),
        first_slots,
        returned,
        named: HashSet::new(),
        replay: TransactionReplay { omits: shape.omits.map(str::to_owned), ..TransactionReplay::default() },
    };
    let needs_block = outline.ending != TransactionEnding::Implicit
        || outline.statements.len() > 1
        || outline.begin.is_some();
    if needs_block {
        writer.write_line(outline.begin.as_deref().unwrap_or("BEGIN"));
    }
    writer.write_statements();
    if needs_block {
        writer.write_pause(outline.statements.len());
        writer.write_line(if outline.ending == TransactionEnding::Rollback { "ROLLBACK" } else { "COMMIT" });
    }
    writer.replay.has_constants =
        hides_constants && outline.statements.iter().any(|template| template.keeps_constants);
    writer.replay
}

/// Returns a prefix of variable names that no text of the shape has behind a colon: `p` with one underscore more than there.
fn unused_prefix(shape: &TransactionShape) -> String {
    let parts = shape.outline.statements.iter().flat_map(|template| &template.parts);
    let texts = parts.filter_map(|part| match part {
        TemplatePart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let mut prefix = "p".to_owned();
    for text in texts.chain(shape.sources.iter().flatten().map(String::as_str)) {
        for (_, rest) in text.match_indices(":p").map(|(start, name)| text.split_at(start + name.len())) {
            interrupts::check_now_and_then();
            let underscores = rest.bytes().take_while(|&byte| byte == b'_').count();
            prefix.extend(std::iter::repeat_n('_', (underscores + 2).saturating_sub(prefix.len())));
        }
    }
    prefix
}

/// The pauses of a captured script.
#[derive(Debug, Default, PartialEq)]
pub struct ScriptPauses {
    /// The sum of those without a variable, in microseconds.
    pub constant_us: u64,
    /// The variables of the others, in microseconds.
    pub variables: Vec<String>,
}

impl ScriptPauses {
    /// Finds the pauses of a captured script. Of several branches, which pause alike, only the first counts.
    pub fn of(script: &str) -> Self {
        let mut pauses = Self::default();
        let mut is_counted = true;
        for line in script.lines() {
            is_counted = (is_counted || line == "\\endif") && !line.starts_with("\\elif ");
            let length = line.strip_prefix("\\sleep ").and_then(|rest| rest.strip_suffix(" us"));
            match length.filter(|_| is_counted).map(|length| (length.strip_prefix(':'), length)) {
                Some((Some(variable), _)) => pauses.variables.push(variable.to_owned()),
                Some((None, length)) => pauses.constant_us += length.parse::<u64>().unwrap_or(0),
                None => {}
            }
        }
        pauses
    }
}

/// Returns whether a constant looks like a mention of a variable that every client may have (comparisons set `think`): in the
/// simple protocol, the variable's value would replace it.
fn mentions_automatic_variable(constant: &str) -> bool {
    const AUTOMATIC: [&str; 5] = [":client_id", ":default_seed", ":random_seed", ":scale", ":think"];
    AUTOMATIC.iter().any(|name| constant.contains(name))
}

/// Writes the script of one shape.
struct Writer<'a> {
    shape: &'a TransactionShape,
    think_times: ThinkTimes,
    hides_constants: bool,
    prefix: String,
    /// The first slot of each statement among all slots of the shape.
    first_slots: Vec<usize>,
    returned: Vec<ReturnedValue>,
    /// Names of the columns so far.
    named: HashSet<String>,
    replay: TransactionReplay,
}

impl Writer<'_> {
    fn write_line(&mut self, statement: &str) {
        self.replay.script.push_str(statement);
        self.replay.script.push_str(";\n");
    }

    /// Writes all statements, in groups that always have the same relations.
    fn write_statements(&mut self) {
        let steps = &self.shape.steps;
        let varying: usize = steps.iter().filter(|step| step.variants.len() > 1).count();
        let max_branches = (MAX_BRANCHED_STATEMENTS / varying.max(1)).max(1);
        let mut start = 0;
        while start < steps.len() {
            let followers = steps[start + 1..].iter().take_while(|step| step.follows).count();
            let group = start..start + 1 + followers;
            self.write_pause(start);
            self.write_group(group.clone(), max_branches);
            start = group.end;
        }
    }

    /// Writes a group of statements, with a branch for each of its most frequent variants.
    fn write_group(&mut self, group: Range<usize>, max_branches: usize) {
        let variants = &self.shape.steps[group.start].variants;
        if variants.len() < 2 {
            self.write_branch(group, variants, 0);
            return;
        }
        let mut by_frequency: Vec<usize> = (0..variants.len()).collect();
        by_frequency.sort_by_key(|&variant| std::cmp::Reverse(variants[variant].transactions));
        let mut places = vec![0; variants.len()];
        for (rank, &variant) in by_frequency.iter().enumerate() {
            places[variant] = rank % max_branches + 1;
        }
        if variants.len() > max_branches {
            self.replay.omits.get_or_insert_with(|| {
                format!(
                    "{max_branches} of {} tables of the same form, the most frequent ones",
                    variants.len()
                )
            });
        }
        let name = format!("{}_table{}", self.prefix, group.start + 1);
        let source = ColumnSource::Variant { statement: group.start, kept: Kept { places } };
        self.add_column(name.clone(), source);
        for (rank, &variant) in by_frequency.iter().take(max_branches).enumerate() {
            let word = if rank == 0 { "if" } else { "elif" };
            self.replay.script.push_str(&format!("\\{word} :{name} = {}\n", rank + 1));
            self.write_branch(group.clone(), variants, variant);
        }
        self.replay.script.push_str("\\endif\n");
    }

    /// Writes a group's statements with the relations of one variant, and the pauses between them.
    fn write_branch(&mut self, group: Range<usize>, variants: &[Variant], variant: usize) {
        for statement in group.clone() {
            if statement > group.start {
                self.write_pause(statement);
            }
            self.write_statement(statement, variants, variant);
        }
    }

    fn write_statement(&mut self, statement: usize, variants: &[Variant], variant: usize) {
        let template = &self.shape.outline.statements[statement];
        let numbers = variants.get(variant).map_or(&[][..], |variant| &variant.numbers);
        let text: String =
            template.parts.iter().map(|part| self.part_text(part, statement, numbers)).collect();
        if self.returned.iter().any(|value| value.statement == statement) {
            let result_prefix = self.result_prefix(statement);
            self.replay.script.push_str(&format!("{text} \\gset {result_prefix}\n"));
        } else {
            self.write_line(&text);
        }
    }

    /// Returns the prefix of variables with a statement's result.
    fn result_prefix(&self, statement: usize) -> String {
        format!("{}_of{}_", self.prefix, statement + 1)
    }

    fn add_column(&mut self, name: String, source: ColumnSource) {
        if self.named.insert(name.clone()) {
            self.replay.columns.push(FeederColumn { name, source });
        }
    }

    /// Writes the pause before a statement, or before the end.
    fn write_pause(&mut self, place: usize) {
        let mean = self.shape.pause_sums_us[place] / self.shape.transactions as f64;
        if mean < MIN_PAUSE_US {
            return;
        }
        let factor = match self.think_times {
            ThinkTimes::None => return,
            ThinkTimes::Mean => {
                self.replay.script.push_str(&format!("\\sleep {mean:.0} us\n"));
                1.0
            }
            ThinkTimes::Captured { factor } => {
                let name = format!("{}_sleep{}", self.prefix, place + 1);
                self.replay.script.push_str(&format!("\\sleep :{name} us\n"));
                self.add_column(name, ColumnSource::Pause { place, factor });
                factor
            }
        };
        self.replay.pause_us += factor * mean;
    }

    /// Returns the text of a statement's part; adds the column that it needs.
    fn part_text(&mut self, part: &TemplatePart, statement: usize, numbers: &[String]) -> String {
        interrupts::check_now_and_then();
        let (slot, cast) = match part {
            TemplatePart::Text(text) => return text.clone(),
            TemplatePart::Number(name) => return numbers.get(*name).cloned().unwrap_or_default(),
            TemplatePart::Slot { slot, cast } => (*slot, cast.as_deref()),
            TemplatePart::Setting { slot, .. } => (*slot, None),
        };
        let slots = &self.shape.outline.statements[statement].slots;
        let place = self.first_slots[statement] + slot;
        let returned = self.returned.iter().find(|value| value.slot == place).map(|value| value.statement);
        if let Some(constant) = &self.shape.sources[place]
            && !(self.shape.varies[place] || self.hides_constants || mentions_automatic_variable(constant))
        {
            return constant.clone();
        }
        let result_variable = returned.and_then(|statement| {
            let column = self.shape.outline.statements[statement].returns.as_deref()?;
            Some(format!("{}{column}", self.result_prefix(statement)))
        });
        let is_result = result_variable.is_some();
        let name = result_variable.unwrap_or_else(|| format!("{}{}", self.prefix, place + 1));
        let cast = match slots[slot] {
            TemplateValue::Integer => Some(match self.shape.widest[place] {
                Width::Integer => "integer",
                Width::Bigint => "bigint",
                Width::Numeric => "numeric",
            }),
            TemplateValue::Decimal => Some("numeric"),
            TemplateValue::String => cast,
            TemplateValue::Parameter(_) | TemplateValue::Setting => None,
        };
        let text = cast.map_or_else(|| format!(":{name}"), |cast| format!(":{name}::{cast}"));
        if !is_result {
            self.add_column(name, ColumnSource::Slot { slot: place, value: slots[slot] });
        }
        match part {
            TemplatePart::Setting { name, .. } => set_config(name, &text),
            _ => text,
        }
    }
}

/// Fewest transactions from which a returned value is recognised.
const MIN_ROWS: usize = 10;

/// Most transactions and slots that are compared.
const MAX_ROWS: usize = 500;
const MAX_SLOTS: usize = 300;

/// Share of the transactions whose value must exceed the previous one's: sessions overtake each other.
const RISING_SHARE: f64 = 0.8;

/// A slot of a shape whose value an earlier statement of the same transaction returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReturnedValue {
    pub slot: usize,
    pub statement: usize,
}

/// Finds the slots of a shape with returned values.
fn returned_values(shape: &TransactionShape) -> Vec<ReturnedValue> {
    let statements = &shape.outline.statements;
    let Some(first) = statements.iter().position(|template| template.returns.is_some()) else {
        return Vec::new();
    };
    let mut rows: Vec<&ShapeRow> = shape.rows.iter().take(MAX_ROWS).collect();
    rows.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    if rows.len() < MIN_ROWS {
        return Vec::new();
    }
    let slot_statements: Vec<usize> = statements
        .iter()
        .enumerate()
        .flat_map(|(place, template)| vec![place; template.slots.len()])
        .collect();
    let slots = 0..slot_statements.len().min(MAX_SLOTS);
    let is_same = |a: usize, b: usize| rows.iter().all(|row| row.values[a] == row.values[b]);
    let mut returned: Vec<ReturnedValue> = Vec::new();
    for slot in slots.filter(|&slot| slot_statements[slot] > first) {
        // Each slot is compared with all before it, over all rows.
        interrupts::check();
        // A value that was used before was returned by the same statement, or by none.
        if let Some(earlier) = (0..slot).find(|&earlier| is_same(earlier, slot)) {
            let same = returned.iter().find(|value| value.slot == earlier).copied();
            returned.extend(same.map(|value| ReturnedValue { slot, ..value }));
            continue;
        }
        // The source is certain only if one statement alone could have returned this value, and returned no other.
        let is_free = |place: &usize| !returned.iter().any(|value| value.statement == *place);
        let mut sources =
            (0..slot_statements[slot]).filter(|&place| statements[place].returns.is_some()).filter(is_free);
        let source = sources.next().filter(|_| sources.next().is_none());
        if let Some(statement) = source.filter(|_| is_serial(&rows, slot)) {
            returned.push(ReturnedValue { slot, statement });
        }
    }
    returned
}

/// Returns whether the values of a slot could come from a sequence.
fn is_serial(rows: &[&ShapeRow], slot: usize) -> bool {
    let values: Option<Vec<i64>> = rows.iter().map(|row| row.values[slot].as_deref()?.parse().ok()).collect();
    let Some(mut values) = values else { return false };
    let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count();
    values.sort_unstable();
    let is_distinct = values.windows(2).all(|pair| pair[0] != pair[1]);
    is_distinct && rising as f64 >= RISING_SHARE * (values.len() - 1) as f64
}
