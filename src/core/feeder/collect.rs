//! Collecting a feeder's rows: as many as are to be kept, each as likely as the others, and what is wrong with them.

use super::pack::{Cell, Unpacked, pack};
use super::{Feeder, Order, invalid};
use crate::error::{UserError, sqlstate};
use crate::script::{Prng, format_double};

/// The most bytes that the rows of a run's feeders take together.
pub const MAX_BYTES: usize = 256 << 20;

/// What a cell takes beside its text: itself, and its tag.
const CELL_BYTES: usize = 9;

/// The rows of a feeder as they come.
pub struct Collector<'a> {
    feeder: &'a Feeder,
    /// For each column of the query; `None` for the weight.
    variables: Vec<Option<String>>,
    rows: Vec<Box<[Cell]>>,
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
        Ok(Self {
            feeder,
            variables: feeder.variables(columns)?,
            rows: Vec::new(),
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

    /// Where the next row goes, if it is kept (J. S. Vitter, Random sampling with a reservoir, ACM Transactions on Mathematical
    /// Software 11, 1985, algorithm R).
    ///
    /// # Errors
    /// 54000 for one row of a sequence too many.
    pub fn place(&mut self) -> Result<Option<usize>, UserError> {
        let max = u64::from(self.feeder.max_rows);
        self.seen += 1;
        if self.seen <= max {
            return Ok(Some(self.rows.len()));
        }
        if self.feeder.order == Order::Sequence {
            let message = format!("a feeder in sequence has more than {max} rows");
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                .detail(self.named())
                .hint("Raise max_rows of bench.add_feeder, or LIMIT the query."));
        }
        let place = self.random.uint64_range(0, self.seen - 1);
        Ok((place < max).then_some(place as usize))
    }

    /// Keeps a row, at the place that [`Self::place`] told.
    ///
    /// # Errors
    /// 22023 for a weight that is none; 54000 for more bytes than there is room for.
    pub fn put(&mut self, place: usize, cells: Vec<Cell>) -> Result<(), UserError> {
        let mut row = Vec::with_capacity(cells.len());
        let mut weight = None;
        for (cell, variable) in cells.into_iter().zip(&self.variables) {
            if variable.is_some() {
                row.push(cell);
            } else {
                weight = Some(self.weight(&cell)?);
            }
        }
        let row = row.into_boxed_slice();
        self.bytes += bytes(&row);
        match self.rows.get_mut(place) {
            Some(old) => {
                self.bytes -= bytes(old);
                *old = row;
                if let (Some(weight), Some(old)) = (weight, self.weights.get_mut(place)) {
                    *old = weight;
                }
            }
            None => {
                self.rows.push(row);
                self.weights.extend(weight);
            }
        }
        if self.bytes > self.room {
            let message =
                format!("the rows of a run's feeders must not take more than {} MB", MAX_BYTES >> 20);
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
                .detail(self.named())
                .hint("Lower max_rows of bench.add_feeder, or select fewer or shorter columns."));
        }
        Ok(())
    }

    fn weight(&self, cell: &Cell) -> Result<f64, UserError> {
        let weight = match cell {
            Cell::Integer(weight) => *weight as f64,
            Cell::Double(weight) => *weight,
            Cell::Text(text) => text.parse().unwrap_or(f64::NAN),
            Cell::Null | Cell::Boolean(_) => f64::NAN,
        };
        if weight > 0.0 && weight.is_finite() {
            return Ok(weight);
        }
        let shown = match cell {
            Cell::Integer(weight) => weight.to_string(),
            Cell::Double(weight) => format_double(*weight),
            Cell::Text(text) => format!("\"{text}\""),
            Cell::Boolean(_) => "a boolean".to_owned(),
            Cell::Null => "null".to_owned(),
        };
        Err(invalid(format!("the weight of a feeder's row must be a number above 0, not {shown}"))
            .detail(self.named())
            .hint("Leave such rows out: SELECT … WHERE …."))
    }

    /// Appends the rows to what clients read, as those of this script; how many there are, and the bytes that they took.
    ///
    /// # Errors
    /// 55000 where there is none.
    pub fn pack(&self, script: u32, out: &mut Vec<u8>) -> Result<(u32, usize), UserError> {
        if self.rows.is_empty() {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                "a feeder's query returned no rows",
            )
            .detail(self.named())
            .hint("Run the query yourself, as the role that runs the workload."));
        }
        let from = Unpacked {
            script,
            order: self.feeder.order,
            once: self.feeder.once,
            variables: self.variables(),
            rows: &self.rows,
            weights: &self.weights,
        };
        pack(&from, out);
        Ok((self.rows.len() as u32, self.bytes))
    }

    fn named(&self) -> String {
        self.feeder.named()
    }
}

fn bytes(row: &[Cell]) -> usize {
    let text = |cell: &Cell| if let Cell::Text(text) = cell { text.len() } else { 0 };
    row.iter().map(|cell| CELL_BYTES + text(cell)).sum()
}

/// The types of columns that are more than a text to a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    Integer,
    Float,
    Text,
}

impl Kind {
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
    pub fn cell(self, text: Option<&str>) -> Cell {
        let Some(text) = text else { return Cell::Null };
        let typed = match self {
            Self::Boolean => Some(Cell::Boolean(text == "t")),
            Self::Integer => text.parse().ok().map(Cell::Integer),
            // Only where it is the same text again.
            Self::Float => text.parse().ok().filter(|&value| format_double(value) == text).map(Cell::Double),
            Self::Text => None,
        };
        typed.unwrap_or_else(|| Cell::Text(text.into()))
    }
}
