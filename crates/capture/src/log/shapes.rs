//! Collects the log's transactions by shape: their number, their common statements, and a sample of their values.

use std::collections::{BTreeMap, HashMap};

use bench_base::error::{UserError, cut, sqlstate};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::event::ParameterValue;
use super::normalise::{Constant, Template, TemplatePart};
use crate::constants::without_constants;

/// A statement of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedStatement {
    pub template: Template,
    pub constants: Vec<Constant>,
    /// The numbers at the ends of its relations' names.
    pub numbers: Vec<String>,
    /// The client's pause before it, in milliseconds, if both ends are known; 0 for the first statement.
    pub pause_ms: Option<f64>,
    pub duration_ms: Option<f64>,
    pub writes: bool,
    /// The identifier in pg_stat_statements, for queries and statements that change data; 0 if unknown.
    pub query_id: Option<i64>,
}

impl LoggedStatement {
    pub fn values(&self) -> impl Iterator<Item = &ParameterValue> {
        self.constants.iter().map(|constant| &constant.value)
    }
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransactionEnding {
    /// Without COMMIT or ROLLBACK: one statement, or several in one message.
    #[default]
    Implicit,
    Commit,
    Rollback,
}

/// A finished transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedTransaction {
    /// The statement that began an explicit block, if it is in the log.
    pub begin: Option<String>,
    pub steps: Vec<LoggedStatement>,
    pub ending: TransactionEnding,
    /// The client's pause before its end, in milliseconds.
    pub end_pause_ms: Option<f64>,
    /// Duration of the statements that began and ended it, in milliseconds.
    pub frame_ms: f64,
    /// Omissions of a replay.
    pub omits: Option<&'static str>,
    /// Why it cannot be replayed, and the text that shows the reason.
    pub problem: Option<(String, String)>,
    /// Its beginning and end, in milliseconds of the log's time scale.
    pub start_ms: f64,
    pub end_ms: f64,
    /// Milliseconds since the session's previous transaction.
    pub idle_ms: Option<f64>,
    pub session: String,
    /// The role that the session connected as.
    pub user: String,
}

impl LoggedTransaction {
    /// Drops the statements' texts and values, but keeps their durations.
    pub fn forget_statements(&mut self) {
        for step in &mut self.steps {
            (step.template, step.constants, step.numbers) = Default::default();
        }
    }

    /// Returns the milliseconds in the server; `None` if a duration is unknown.
    pub fn busy_ms(&self) -> Option<f64> {
        let steps: Option<f64> = self.steps.iter().map(|step| step.duration_ms).sum();
        Some(steps? + self.frame_ms)
    }
}

/// Most shapes; transactions of further ones are counted together.
const MAX_SHAPES: usize = 10_000;

/// Most bytes of statements and values, over all shapes.
const MAX_BYTES: usize = 256 << 20;

/// Most variants of a statement.
const MAX_VARIANTS: usize = 10_000;

/// Most reasons; transactions with further ones are counted together.
const MAX_REASONS: usize = 1000;

/// The sequence of a transaction's statements without their values, as one role executes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outline {
    /// The role that executed them: another role's names may resolve to other objects.
    pub role: String,
    pub begin: Option<String>,
    pub statements: Vec<Template>,
    pub ending: TransactionEnding,
}

impl Outline {
    fn of(transaction: &LoggedTransaction) -> Self {
        Self {
            role: transaction.user.clone(),
            begin: transaction.begin.clone(),
            statements: transaction.steps.iter().map(|step| step.template.clone()).collect(),
            ending: transaction.ending,
        }
    }

    /// Estimates the memory of a shape with this outline: it is stored twice, and each slot has a first value and its source.
    fn bytes(&self) -> usize {
        let parts = self.statements.iter().flat_map(|template| &template.parts).map(|part| match part {
            TemplatePart::Text(text) => 100 + 2 * text.len(),
            TemplatePart::Slot { .. } => 300,
            TemplatePart::Setting { name, .. } => 300 + 2 * name.len(),
            TemplatePart::Number(_) => 16,
        });
        1000 + parts.sum::<usize>()
    }

    /// Formats the statements for display, with their relations' numbers where a statement has one variant.
    fn shown(&self, steps: &[StepVariants]) -> String {
        let numbers = |place: usize| match steps.get(place).map(|step| step.variants.as_slice()) {
            Some([variant]) => variant.numbers.as_slice(),
            _ => &[],
        };
        let statements = self.statements.iter().enumerate();
        let texts: Vec<String> = statements.map(|(place, template)| template.shown(numbers(place))).collect();
        texts.join("; ")
    }
}

/// The variants of a shape's statement, which differ in the numbers of their relations.
#[derive(Clone, Debug, Default)]
pub struct StepVariants {
    /// In the order of their first executions.
    pub variants: Vec<Variant>,
    by_numbers: HashMap<Vec<String>, u32>,
    /// Whether each execution has the relations of the statement before.
    pub follows: bool,
}

/// A statement with relations of certain numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub numbers: Vec<String>,
    /// The identifier in pg_stat_statements; 0 if unknown, `None` if it does not count such statements.
    pub query_id: Option<i64>,
    pub transactions: u64,
}

impl StepVariants {
    /// Counts an execution; returns the index of its variant.
    fn count(&mut self, step: &LoggedStatement, bytes: &mut usize) -> u32 {
        let next = self.variants.len();
        let place = match self.by_numbers.get(&step.numbers) {
            Some(&place) => place,
            // The last variant stands for all further ones.
            None if next >= MAX_VARIANTS => next as u32 - 1,
            None => {
                *bytes += 200 + 2 * step.numbers.iter().map(|number| 24 + number.len()).sum::<usize>();
                self.by_numbers.insert(step.numbers.clone(), next as u32);
                let (numbers, query_id) = (step.numbers.clone(), step.query_id);
                self.variants.push(Variant { numbers, query_id, transactions: 0 });
                next as u32
            }
        };
        self.variants[place as usize].transactions += 1;
        place
    }
}

/// Values and pauses of one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShapeRow {
    /// The values of all slots of all statements, in their order.
    pub values: Vec<ParameterValue>,
    /// The index of each statement's variant.
    pub variants: Vec<u32>,
    pub start_ms: f64,
    /// Pauses before each statement and before the end, in microseconds.
    pub pauses_us: Vec<u32>,
}

impl ShapeRow {
    fn of(transaction: &LoggedTransaction) -> Self {
        let values = transaction.steps.iter().flat_map(LoggedStatement::values).cloned().collect();
        let pauses = transaction.steps.iter().map(|step| step.pause_ms).chain([transaction.end_pause_ms]);
        // Pauses are cut at an hour, far beyond any think time within a transaction.
        let pauses_us =
            pauses.map(|pause| (pause.unwrap_or(0.0) * 1e3).round().clamp(0.0, 3.6e9) as u32).collect();
        Self { values, variants: Vec::new(), start_ms: transaction.start_ms, pauses_us }
    }

    fn bytes(&self) -> usize {
        let values: usize = self.values.iter().map(|value| 32 + value.as_ref().map_or(0, String::len)).sum();
        values + 8 * self.pauses_us.len() + 96
    }
}

/// All transactions of one shape.
#[derive(Clone, Debug)]
pub struct TransactionShape {
    pub outline: Outline,
    pub transactions: u64,
    pub writes: bool,
    /// Omissions of a replay.
    pub omits: Option<&'static str>,
    /// One per statement.
    pub steps: Vec<StepVariants>,
    /// Text of each slot's first constant; `None` for parameters.
    pub sources: Vec<Option<String>>,
    /// Whether each slot had other values later.
    pub varies: Vec<bool>,
    /// The widest integer of each slot.
    pub widest: Vec<Width>,
    /// A random sample of the transactions.
    pub rows: Vec<ShapeRow>,
    /// Sums of [`ShapeRow::pauses_us`] over all transactions.
    pub pause_sums_us: Vec<f64>,
    /// Transactions whose statements all have a duration, and their time in the server.
    pub timed: u64,
    pub busy_ms: f64,
    first: Vec<ParameterValue>,
}

/// The type of an integer constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    Integer,
    Bigint,
    Numeric,
}

impl Width {
    fn of(value: &ParameterValue) -> Self {
        let text = value.as_deref().unwrap_or("0");
        if text.parse::<i32>().is_ok() {
            Self::Integer
        } else if text.parse::<i64>().is_ok() {
            Self::Bigint
        } else {
            Self::Numeric
        }
    }
}

/// Transactions that cannot be replayed for one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Skipped {
    pub transactions: u64,
    pub busy_ms: f64,
    /// The text of the first one.
    pub example: String,
}

/// The shapes of a log.
#[derive(Debug)]
pub struct Shapes {
    pub shapes: HashMap<Outline, TransactionShape>,
    pub skipped: BTreeMap<String, Skipped>,
    max_rows: usize,
    bytes: usize,
    random: Pcg64Mcg,
}

impl Shapes {
    /// Samples up to `max_rows` transactions of each shape.
    pub fn new(max_rows: usize) -> Self {
        Self {
            shapes: HashMap::new(),
            skipped: BTreeMap::new(),
            max_rows,
            bytes: 0,
            // The same log makes the same capture.
            random: Pcg64Mcg::seed_from_u64(0),
        }
    }

    /// Counts a transaction.
    ///
    /// # Errors
    /// 54000 for too many bytes of values.
    pub fn add(&mut self, transaction: &LoggedTransaction) -> Result<(), UserError> {
        if let Some((reason, example)) = &transaction.problem {
            self.skip(reason, example, transaction);
            return Ok(());
        }
        let outline = Outline::of(transaction);
        if self.shapes.len() >= MAX_SHAPES && !self.shapes.contains_key(&outline) {
            let example = without_constants(&outline.shown(&[]));
            self.skip(&format!("one of more than {MAX_SHAPES} shapes"), &example, transaction);
            return Ok(());
        }
        let mut row = ShapeRow::of(transaction);
        let bytes = &mut self.bytes;
        let shape = self.shapes.entry(outline).or_insert_with_key(|outline| {
            *bytes += outline.bytes() + 2 * row.bytes();
            TransactionShape::new(outline.clone(), transaction)
        });
        shape.count(transaction, &mut row, &mut self.bytes);
        if shape.rows.len() < self.max_rows {
            self.bytes += row.bytes();
            shape.rows.push(row);
        } else {
            // Vitter's algorithm R.
            let place = self.random.random_range(0..shape.transactions);
            if let Some(kept) = usize::try_from(place).ok().and_then(|place| shape.rows.get_mut(place)) {
                self.bytes = self.bytes + row.bytes() - kept.bytes();
                *kept = row;
            }
        }
        if self.bytes <= MAX_BYTES {
            return Ok(());
        }
        let message = "the statements and values of the log's transactions take more memory than allowed";
        Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
            .detail(format!("The limit is {} MB.", MAX_BYTES >> 20))
            .hint("Lower the option max_rows, or capture a shorter log."))
    }

    /// Counts a transaction that cannot be replayed.
    pub fn skip(&mut self, reason: &str, example: &str, transaction: &LoggedTransaction) {
        let is_excess = self.skipped.len() >= MAX_REASONS && !self.skipped.contains_key(reason);
        let reason =
            if is_excess { format!("one of more than {MAX_REASONS} reasons") } else { reason.to_owned() };
        let skipped = self.skipped.entry(reason).or_default();
        if skipped.transactions == 0 {
            skipped.example = cut(example).into_owned();
        }
        skipped.transactions += 1;
        skipped.busy_ms += transaction.busy_ms().unwrap_or(0.0);
    }
}

impl TransactionShape {
    /// Formats the statements for display.
    pub fn shown(&self) -> String {
        self.outline.shown(&self.steps)
    }

    /// Returns, per statement that pg_stat_statements counts, its identifiers with their transactions.
    pub fn query_ids(&self) -> Vec<Vec<(i64, u64)>> {
        let ids = |step: &StepVariants| {
            let id = |variant: &Variant| Some((variant.query_id?, variant.transactions));
            step.variants.iter().filter_map(id).collect::<Vec<_>>()
        };
        self.steps.iter().map(ids).filter(|ids| !ids.is_empty()).collect()
    }

    fn new(outline: Outline, transaction: &LoggedTransaction) -> Self {
        let constants: Vec<_> = transaction.steps.iter().flat_map(|step| &step.constants).collect();
        Self {
            outline,
            transactions: 0,
            writes: transaction.steps.iter().any(|step| step.writes),
            omits: transaction.omits,
            steps: vec![StepVariants { follows: true, ..StepVariants::default() }; transaction.steps.len()],
            sources: constants.iter().map(|constant| constant.source.clone()).collect(),
            varies: vec![false; constants.len()],
            widest: vec![Width::Integer; constants.len()],
            rows: Vec::new(),
            pause_sums_us: vec![0.0; transaction.steps.len() + 1],
            timed: 0,
            busy_ms: 0.0,
            first: constants.iter().map(|constant| constant.value.clone()).collect(),
        }
    }

    fn count(&mut self, transaction: &LoggedTransaction, row: &mut ShapeRow, bytes: &mut usize) {
        self.transactions += 1;
        let mut before: &[String] = &[];
        for (step, variants) in transaction.steps.iter().zip(&mut self.steps) {
            row.variants.push(variants.count(step, bytes));
            variants.follows &= step.numbers == before;
            before = &step.numbers;
        }
        for (place, value) in row.values.iter().enumerate() {
            self.varies[place] |= *value != self.first[place];
            self.widest[place] = self.widest[place].max(Width::of(value));
        }
        for (sum, &pause) in self.pause_sums_us.iter_mut().zip(&row.pauses_us) {
            *sum += f64::from(pause);
        }
        if let Some(busy_ms) = transaction.busy_ms() {
            self.timed += 1;
            self.busy_ms += busy_ms;
        }
    }
}
