//! A shape as a script in pgbench's language, and the values of its transactions as rows of a feeder.
//!
//! Some values are results of an earlier statement of the same transaction. The log has no results, but its use shows what an
//! INSERT returns of a sequence: an integer that no statement before has, another one in each transaction, and rising from one to
//! the next.

use std::collections::HashSet;
use std::ops::Range;

use bench_base::interrupts;
use serde::{Deserialize, Serialize};

use super::normalise::{TemplatePart, TemplateValue, set_config};
use super::shapes::{ShapeRow, TransactionEnding, TransactionShape, Variant, Width};
use crate::options::ThinkTimes;

/// Pauses whose mean is shorter are left out: each is the difference of two times of the log, which have milliseconds.
const SHORTEST_PAUSE_US: f64 = 2000.0;

/// A column of the rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeederColumn {
    /// Of the variable, too.
    pub name: String,
    source: ColumnSource,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum ColumnSource {
    /// Of the shape's slots.
    Slot { slot: usize, value: TemplateValue },
    /// Of the row's pauses, multiplied by this.
    Pause { place: usize, factor: f64 },
    /// Of the row's variants, by the statement; those behind the first ones are taken for one of these.
    Variant { statement: usize, kept: Kept },
}

/// Which of a statement's variants are in the script, the most frequent ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// By variant: its place in the script, from 1.
    places: Vec<usize>,
}

impl FeederColumn {
    /// Whether it holds an integer of this extension, and not a text of the log.
    pub fn is_number(&self) -> bool {
        !matches!(self.source, ColumnSource::Slot { .. })
    }

    /// Whether it holds values of a setting of the server, of which no other text has the form.
    pub fn is_setting(&self) -> bool {
        matches!(self.source, ColumnSource::Slot { value: TemplateValue::Setting, .. })
    }

    /// Whether it holds constants, and not parameters of the log.
    pub fn is_constant(&self) -> bool {
        !matches!(self.source, ColumnSource::Slot { value: TemplateValue::Parameter(_), .. })
    }

    /// Its value in a row. Microseconds are digits.
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
    /// What it leaves out.
    pub omits: Option<String>,
    /// The mean of its pauses together, in microseconds.
    pub pause_us: f64,
    /// Whether a constant of the log is in the script where all were to be variables.
    pub has_constants: bool,
}

/// Statements of a script at most where it is one for several relations, those of all of them counted.
const MOST_STATEMENTS: usize = 1000;

/// The script of a shape; with `hides_constants` those of the log are variables, whether they vary or not.
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
        prefix: prefix(shape),
        first_slots,
        returned,
        named: HashSet::new(),
        replay: TransactionReplay { omits: shape.omits.map(str::to_owned), ..TransactionReplay::default() },
    };
    let needs_block = outline.ending != TransactionEnding::Implicit
        || outline.statements.len() > 1
        || outline.begin.is_some();
    if needs_block {
        writer.line(outline.begin.as_deref().unwrap_or("BEGIN"));
    }
    writer.statements();
    if needs_block {
        writer.pause(outline.statements.len());
        writer.line(if outline.ending == TransactionEnding::Rollback { "ROLLBACK" } else { "COMMIT" });
    }
    writer.replay.has_constants =
        hides_constants && outline.statements.iter().any(|template| template.keeps_constants);
    writer.replay
}

/// A beginning of names that no string constant of the shape mentions behind a colon: with an underscore more than any of
/// those that begin with a `p`.
fn prefix(shape: &TransactionShape) -> String {
    let parts = shape.outline.statements.iter().flat_map(|template| &template.parts);
    let texts = parts.filter_map(|part| match part {
        TemplatePart::Text(text) => Some(text.as_str()),
        _ => None,
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

/// The pauses within a transaction, as its script has them.
#[derive(Debug, Default, PartialEq)]
pub struct ScriptPauses {
    /// Of those that are always the same, in microseconds.
    pub constant_us: u64,
    /// Those that hold the others, in microseconds.
    pub variables: Vec<String>,
}

impl ScriptPauses {
    /// Finds the pauses in a captured script. Branches for other tables of the same form pause alike: only the first one counts.
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

/// Whether a script of the simple protocol would put the value of a variable that every client may have into a constant:
/// comparisons set `think`.
fn mentions_automatic_variable(constant: &str) -> bool {
    const AUTOMATIC: [&str; 5] = [":client_id", ":default_seed", ":random_seed", ":scale", ":think"];
    AUTOMATIC.iter().any(|name| constant.contains(name))
}

struct Writer<'a> {
    shape: &'a TransactionShape,
    think_times: ThinkTimes,
    hides_constants: bool,
    prefix: String,
    /// Of each statement, in all slots of the shape.
    first_slots: Vec<usize>,
    returned: Vec<ReturnedValue>,
    /// Names of columns that there are.
    named: HashSet<String>,
    replay: TransactionReplay,
}

impl Writer<'_> {
    fn line(&mut self, statement: &str) {
        self.replay.script.push_str(statement);
        self.replay.script.push_str(";\n");
    }

    /// Those that always have the same relations together, by turns where these are several.
    fn statements(&mut self) {
        let steps = &self.shape.steps;
        let varying: usize = steps.iter().filter(|step| step.variants.len() > 1).count();
        let most = (MOST_STATEMENTS / varying.max(1)).max(1);
        let mut from = 0;
        while from < steps.len() {
            let together = steps[from + 1..].iter().take_while(|step| step.follows).count();
            let group = from..from + 1 + together;
            self.pause(from);
            self.group(group.clone(), most);
            from = group.end;
        }
    }

    fn group(&mut self, group: Range<usize>, most: usize) {
        let variants = &self.shape.steps[group.start].variants;
        if variants.len() < 2 {
            for place in group.clone() {
                if place > group.start {
                    self.pause(place);
                }
                self.statement(place, variants, 0);
            }
            return;
        }
        let mut by_frequency: Vec<usize> = (0..variants.len()).collect();
        by_frequency.sort_by_key(|&variant| std::cmp::Reverse(variants[variant].transactions));
        let mut places = vec![0; variants.len()];
        for (place, &variant) in by_frequency.iter().enumerate() {
            places[variant] = place % most + 1;
        }
        if variants.len() > most {
            self.replay.omits.get_or_insert_with(|| {
                format!("{most} of {} tables of the same form, the most frequent ones", variants.len())
            });
        }
        let name = format!("{}_table{}", self.prefix, group.start + 1);
        self.column(name.clone(), ColumnSource::Variant { statement: group.start, kept: Kept { places } });
        for (place, &variant) in by_frequency.iter().take(most).enumerate() {
            let word = if place == 0 { "if" } else { "elif" };
            self.replay.script.push_str(&format!("\\{word} :{name} = {}\n", place + 1));
            for statement in group.clone() {
                if statement > group.start {
                    self.pause(statement);
                }
                self.statement(statement, variants, variant);
            }
        }
        self.replay.script.push_str("\\endif\n");
    }

    /// A statement with the relations of one of the group's variants.
    fn statement(&mut self, place: usize, variants: &[Variant], variant: usize) {
        let template = &self.shape.outline.statements[place];
        let numbers = variants.get(variant).map_or(&[][..], |variant| &variant.numbers);
        let text: String = template.parts.iter().map(|part| self.part(part, place, numbers)).collect();
        if self.returned.iter().any(|value| value.statement == place) {
            self.replay.script.push_str(&format!("{text} \\gset {}\n", self.result(place)));
        } else {
            self.line(&text);
        }
    }

    /// How names begin of what a statement returns.
    fn result(&self, statement: usize) -> String {
        format!("{}_of{}_", self.prefix, statement + 1)
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
        let factor = match self.think_times {
            ThinkTimes::None => return,
            ThinkTimes::Mean => {
                self.replay.script.push_str(&format!("\\sleep {mean:.0} us\n"));
                1.0
            }
            ThinkTimes::Captured { factor } => {
                let name = format!("{}_sleep{}", self.prefix, place + 1);
                self.replay.script.push_str(&format!("\\sleep :{name} us\n"));
                self.column(name, ColumnSource::Pause { place, factor });
                factor
            }
        };
        self.replay.pause_us += factor * mean;
    }

    fn part(&mut self, part: &TemplatePart, statement: usize, numbers: &[String]) -> String {
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
        match &self.shape.sources[place] {
            Some(source)
                if !(self.shape.varies[place]
                    || self.hides_constants
                    || mentions_automatic_variable(source)) =>
            {
                return source.clone();
            }
            _ => {}
        }
        let of_result = returned.and_then(|of| {
            let column = self.shape.outline.statements[of].returns.as_deref()?;
            Some(format!("{}{column}", self.result(of)))
        });
        let is_result = of_result.is_some();
        let name = of_result.unwrap_or_else(|| format!("{}{}", self.prefix, place + 1));
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
            self.column(name, ColumnSource::Slot { slot: place, value: slots[slot] });
        }
        match part {
            TemplatePart::Setting { name, .. } => set_config(name, &text),
            _ => text,
        }
    }
}

/// The fewest transactions by which a returned value is recognised.
const FEWEST: usize = 10;

/// Transactions and slots that are looked at, at most.
const MOST_ROWS: usize = 500;
const MOST_SLOTS: usize = 300;

/// The share of the transactions in which the value is above that of the transaction before: sessions overtake each other.
const RISING: f64 = 0.8;

/// A slot of a shape whose value an earlier statement of the same transaction returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReturnedValue {
    pub slot: usize,
    /// Which statement.
    pub statement: usize,
}

/// The slots of a shape that have such values.
fn returned_values(shape: &TransactionShape) -> Vec<ReturnedValue> {
    let statements = &shape.outline.statements;
    let Some(first) = statements.iter().position(|template| template.returns.is_some()) else {
        return Vec::new();
    };
    let mut rows: Vec<&ShapeRow> = shape.rows.iter().take(MOST_ROWS).collect();
    rows.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
    if rows.len() < FEWEST {
        return Vec::new();
    }
    let of_statement: Vec<usize> =
        statements.iter().enumerate().flat_map(|(place, one)| vec![place; one.slots.len()]).collect();
    let slots = 0..of_statement.len().min(MOST_SLOTS);
    let same = |a: usize, b: usize| rows.iter().all(|row| row.values[a] == row.values[b]);
    let mut found: Vec<ReturnedValue> = Vec::new();
    for slot in slots.filter(|&slot| of_statement[slot] > first) {
        // Each slot is compared with all before it, over all rows.
        interrupts::check();
        // Where it was used before, it comes from the same statement, or it was no result then either.
        if let Some(earlier) = (0..slot).find(|&earlier| same(earlier, slot)) {
            let of_earlier = found.iter().find(|value| value.slot == earlier).copied();
            found.extend(of_earlier.map(|value| ReturnedValue { slot, ..value }));
            continue;
        }
        // Of several that it may be from, none is sure; nor is one that another value is from.
        let is_free = |place: &usize| !found.iter().any(|value| value.statement == *place);
        let mut sources =
            (0..of_statement[slot]).filter(|&place| statements[place].returns.is_some()).filter(is_free);
        let source = sources.next().filter(|_| sources.next().is_none());
        if let Some(statement) = source.filter(|_| is_serial(&rows, slot)) {
            found.push(ReturnedValue { slot, statement });
        }
    }
    found
}

/// Whether the values of a slot are those of a sequence.
fn is_serial(rows: &[&ShapeRow], slot: usize) -> bool {
    let values: Option<Vec<i64>> = rows.iter().map(|row| row.values[slot].as_deref()?.parse().ok()).collect();
    let Some(mut values) = values else { return false };
    let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count();
    values.sort_unstable();
    values.windows(2).all(|pair| pair[0] != pair[1]) && rising as f64 >= RISING * (values.len() - 1) as f64
}
