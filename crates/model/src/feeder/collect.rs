//! Collects a feeder's rows: a random sample of the number to keep, with equal probabilities, and errors in the rows.

use bench_base::allocation::{copied, reserve};
use bench_base::error::{UserError, sqlstate};
use bench_script::{Prng, format_double};

use super::pack::{FeederValue, Unpacked, pack};
use super::{Feeder, Pick};

/// The most bytes that the rows of a run's feeders take together while they are collected. Clients read them in less.
pub const MAX_BYTES: usize = 256 << 20;

/// What a text takes beside its bytes: the allocator's share.
const TEXT_BYTES: usize = 16;

/// The rows of a feeder as they come.
pub struct Collector<'a> {
    feeder: &'a Feeder,
    /// For each column of the query; `None` for the weight.
    variables: Vec<Option<String>>,
    /// Cells of a row.
    width: usize,
    /// Of all rows that are kept, one after the other.
    cells: Vec<FeederValue>,
    weights: Vec<f64>,
    seen: u64,
    bytes: usize,
    room: usize,
    random: Prng,
}

impl<'a> Collector<'a> {
    /// None yet. Which rows are kept depends on `seed`; they may take `room` bytes.
    ///
    /// # Errors
    /// As [`Feeder::variables`].
    pub fn new(feeder: &'a Feeder, columns: &[&str], seed: u64, room: usize) -> Result<Self, UserError> {
        let variables = feeder.variables(columns)?;
        Ok(Self {
            feeder,
            width: variables.iter().flatten().count(),
            variables,
            cells: Vec::new(),
            weights: Vec::new(),
            seen: 0,
            bytes: 0,
            room: room.min(MAX_BYTES),
            random: Prng::from_seed(seed),
        })
    }

    /// The names of the variables.
    pub fn variables(&self) -> Vec<&str> {
        self.variables.iter().flatten().map(String::as_str).collect()
    }

    /// How many rows are kept.
    fn rows(&self) -> usize {
        // A query without a variable is refused.
        self.cells.len() / self.width.max(1)
    }

    /// Where the next row goes, if it is kept (J. S. Vitter, Random sampling with a reservoir, ACM Transactions on Mathematical
    /// Software 11, 1985, algorithm R).
    ///
    /// # Errors
    /// 54000 for one row of a sequence too many.
    pub fn place(&mut self) -> Result<Option<usize>, UserError> {
        let max = u64::from(self.feeder.max_rows);
        self.seen += 1;
        if self.seen <= max {
            return Ok(Some(self.rows()));
        }
        if self.feeder.pick == Pick::Sequence {
            let message = format!("a feeder in sequence has more than {max} rows");
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                .detail(self.named())
                .hint("Raise max_rows of bench.add_feeder, or LIMIT the query."));
        }
        let place = self.random.uint64_range(0, self.seen - 1);
        Ok((place < max).then_some(place as usize))
    }

    /// Keeps a row, at the place that [`Self::place`] told. `cells` has one for each column, of which none is copied that there
    /// is no room for.
    ///
    /// # Errors
    /// Those of `cells`; 22023 for a weight that is none; 54000 for more bytes than there is room for; 53200.
    pub fn put<'t>(
        &mut self,
        place: usize,
        cells: impl Iterator<Item = Result<(ValueKind, Option<&'t str>), UserError>>,
    ) -> Result<(), UserError> {
        let at = place * self.width;
        let is_new = at >= self.cells.len();
        if is_new {
            reserve(&mut self.cells, self.width)?;
            reserve(&mut self.weights, 1)?;
        }
        let mut next = at;
        for (column, cell) in cells.enumerate() {
            let (kind, text) = cell?;
            let length = text.map_or(0, str::len);
            if self.bytes.saturating_add(length) > self.room {
                return Err(self.too_large());
            }
            let cell = kind.cell(text)?;
            if self.variables.get(column).is_some_and(Option::is_none) {
                let weight = self.weight(&cell)?;
                match self.weights.get_mut(place) {
                    Some(old) => *old = weight,
                    None => self.weights.push(weight),
                }
                continue;
            }
            self.bytes += bytes(&cell);
            match self.cells.get_mut(next) {
                Some(old) => self.bytes -= bytes(&std::mem::replace(old, cell)),
                None => self.cells.push(cell),
            }
            next += 1;
        }
        if self.bytes > self.room { Err(self.too_large()) } else { Ok(()) }
    }

    /// As [`Self::put`], with what the cells' texts would have become.
    #[cfg(test)]
    pub fn put_cells(&mut self, place: usize, cells: Vec<FeederValue>) -> Result<(), UserError> {
        let texts = cells.iter().map(|cell| match cell {
            FeederValue::Null => (ValueKind::Text, None),
            FeederValue::Boolean(value) => {
                (ValueKind::Boolean, Some(if *value { "t" } else { "f" }.to_owned()))
            }
            FeederValue::Integer(value) => (ValueKind::Integer, Some(value.to_string())),
            FeederValue::Double(value) => (ValueKind::Float, Some(format_double(*value))),
            FeederValue::Text(text) => (ValueKind::Text, Some(text.to_string())),
        });
        let texts: Vec<(ValueKind, Option<String>)> = texts.collect();
        self.put(place, texts.iter().map(|(kind, text)| Ok((*kind, text.as_deref()))))
    }

    fn too_large(&self) -> UserError {
        let message = format!("the rows of a run's feeders must not take more than {} MB", MAX_BYTES >> 20);
        UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
            .detail(self.named())
            .hint("Lower max_rows of bench.add_feeder, or select fewer or shorter columns.")
    }

    fn weight(&self, cell: &FeederValue) -> Result<f64, UserError> {
        let weight = match cell {
            FeederValue::Integer(weight) => *weight as f64,
            FeederValue::Double(weight) => *weight,
            FeederValue::Text(text) => text.parse().unwrap_or(f64::NAN),
            FeederValue::Null | FeederValue::Boolean(_) => f64::NAN,
        };
        if weight > 0.0 && weight.is_finite() {
            return Ok(weight);
        }
        let shown = match cell {
            FeederValue::Integer(weight) => weight.to_string(),
            FeederValue::Double(weight) => format_double(*weight),
            FeederValue::Text(text) => format!("\"{text}\""),
            FeederValue::Boolean(_) => "a boolean".to_owned(),
            FeederValue::Null => "null".to_owned(),
        };
        Err(UserError::invalid(format!("the weight of a feeder's row must be a number above 0, not {shown}"))
            .detail(self.named())
            .hint("Leave such rows out: SELECT … WHERE …."))
    }

    /// Appends the rows to what clients read, as those of this script; how many there are.
    ///
    /// # Errors
    /// 55000 where there is none; 53200.
    pub fn pack(&self, script: u32, out: &mut Vec<u8>) -> Result<u32, UserError> {
        if self.cells.is_empty() {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                "a feeder's query returned no rows",
            )
            .detail(self.named())
            .hint("Run the query yourself, as the role that runs the workload."));
        }
        let from = Unpacked {
            script,
            pick: self.feeder.pick,
            once: self.feeder.once,
            variables: self.variables(),
            cells: &self.cells,
            weights: &self.weights,
        };
        pack(&from, out)?;
        Ok(self.rows() as u32)
    }

    fn named(&self) -> String {
        self.feeder.named()
    }
}

fn bytes(cell: &FeederValue) -> usize {
    size_of::<FeederValue>() + if let FeederValue::Text(text) = cell { TEXT_BYTES + text.len() } else { 0 }
}

/// The types of columns that are more than a text to a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Boolean,
    Integer,
    Float,
    Text,
}

impl ValueKind {
    /// By the type's OID: bool, int8, int2, int4, float4, float8 (`pg_type.dat`).
    pub fn of(type_oid: u32) -> Self {
        match type_oid {
            16 => Self::Boolean,
            20 | 21 | 23 => Self::Integer,
            700 | 701 => Self::Float,
            _ => Self::Text,
        }
    }

    /// A value, which the type's output function has made a text.
    ///
    /// # Errors
    /// 53200.
    pub fn cell(self, text: Option<&str>) -> Result<FeederValue, UserError> {
        let Some(text) = text else { return Ok(FeederValue::Null) };
        let typed = match self {
            Self::Boolean => Some(FeederValue::Boolean(text == "t")),
            Self::Integer => text.parse().ok().map(FeederValue::Integer),
            // Only where it is the same text again.
            Self::Float => {
                text.parse().ok().filter(|&value| format_double(value) == text).map(FeederValue::Double)
            }
            Self::Text => None,
        };
        typed.map_or_else(|| copied(text).map(FeederValue::Text), Ok)
    }
}
