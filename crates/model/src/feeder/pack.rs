//! The rows of a run's feeders: a random sample of those that the queries return, in one piece of memory, which clients read
//! and nobody changes.
//!
//! ```text
//! feeder:  length | script | rows | columns | pick | once | names | tags | cells | aliases | texts
//! ```
//!
//! Numbers are little-endian, of 4 bytes; a cell has 8, and its tag 1. A name is its length and its bytes. A weighted feeder has
//! a threshold and a row for each row, by Walker's alias method (M. D. Vose, A linear algorithm for generating random numbers
//! with a given distribution, IEEE Transactions on Software Engineering 17, 1991). [`unpack`] accepts any bytes: it returns
//! `None` for those that [`Collector::pack`] did not write.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use bench_base::error::{UserError, sqlstate};
use bench_base::interrupts;
use bench_base::untrusted::{copied, reserve};
use bench_script::{Prng, Value, VariableId, Variables, format_double};

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
                .detail(self.feeder.named())
                .hint("Raise max_rows of bench.add_feeder, or LIMIT the query."));
        }
        let place = self.random.uint64_range(0, self.seen - 1);
        Ok((place < max).then_some(place as usize))
    }

    /// Keeps a row at a place that [`Self::place`] returned. `cells` has one for each column; a cell that there is no room for is
    /// not copied.
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
            .detail(self.feeder.named())
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
            .detail(self.feeder.named())
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
            .detail(self.feeder.named())
            .hint("Run the query yourself, as the role that runs the workload."));
        }
        let start = out.len();
        let (rows, variables) = (self.rows(), self.variables());
        let cells = || {
            self.cells.iter().inspect(|_| {
                interrupts::check_now_and_then();
            })
        };
        let of_cell =
            |cell: &FeederValue| 9 + if let FeederValue::Text(text) = cell { text.len() } else { 0 };
        let names: usize = variables.iter().map(|name| 4 + name.len()).sum();
        let most = 24 + names + cells().map(of_cell).sum::<usize>() + 8 * self.weights.len();
        reserve(out, most)?;
        let put = |number: usize, out: &mut Vec<u8>| out.extend((number as u32).to_le_bytes());
        let pick = match self.feeder.pick {
            Pick::Random => 0,
            Pick::Sequence => 1,
            Pick::Weighted => 2,
        };
        let numbers = [0, script as usize, rows, variables.len(), pick, usize::from(self.feeder.once)];
        numbers.into_iter().for_each(|number| put(number, out));
        for name in &variables {
            put(name.len(), out);
            out.extend(name.as_bytes());
        }
        out.extend(cells().map(|cell| match cell {
            FeederValue::Null => NULL,
            FeederValue::Boolean(_) => BOOLEAN,
            FeederValue::Integer(_) => INTEGER,
            FeederValue::Double(_) => DOUBLE,
            FeederValue::Text(_) => TEXT,
        }));
        let mut texts = 0;
        for cell in cells() {
            let number = match cell {
                FeederValue::Null => 0,
                FeederValue::Boolean(value) => u64::from(*value),
                FeederValue::Integer(value) => value.cast_unsigned(),
                FeederValue::Double(value) => value.to_bits(),
                FeederValue::Text(text) => {
                    let place = texts << 32 | text.len() as u64;
                    texts += text.len() as u64;
                    place
                }
            };
            out.extend(number.to_le_bytes());
        }
        if self.feeder.pick == Pick::Weighted {
            for (threshold, other) in aliases(&self.weights) {
                out.extend(threshold.to_le_bytes());
                out.extend(other.to_le_bytes());
            }
        }
        for cell in cells() {
            if let FeederValue::Text(text) = cell {
                out.extend(text.as_bytes());
            }
        }
        let length = (out.len() - start) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
        Ok(rows as u32)
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

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum FeederValue {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(Box<str>),
}

const NULL: u8 = 0;
const BOOLEAN: u8 = 1;
const INTEGER: u8 = 2;
const DOUBLE: u8 = 3;
const TEXT: u8 = 4;

/// For each row, how often of 2^32 times it is itself, where it was drawn, and which one it is otherwise.
fn aliases(weights: &[f64]) -> Vec<(u32, u32)> {
    let mean = weights.iter().map(|weight| weight / weights.len() as f64).sum::<f64>();
    let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
    let mut aliases: Vec<(u32, u32)> = (0..weights.len() as u32).map(|row| (u32::MAX, row)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..weights.len()).partition(|&row| shares[row] < 1.0);
    while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
        aliases[poor] = ((shares[poor] * 4_294_967_296.0) as u32, rich as u32);
        shares[rich] -= 1.0 - shares[poor];
        if shares[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    aliases
}

/// The rows of one feeder, where they were packed.
#[derive(Clone, Debug)]
pub struct FeederRows<'a> {
    /// Index of its script in the run.
    pub script: usize,
    pub pick: Pick,
    once: bool,
    /// The names of the variables, one for each column.
    pub variables: Vec<&'a str>,
    rows: u32,
    tags: &'a [u8],
    cells: &'a [[u8; 8]],
    aliases: &'a [[u8; 8]],
    texts: &'a [u8],
}

/// Takes what has been packed apart.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn cells(&mut self, count: usize) -> Option<&'a [[u8; 8]]> {
        Some(self.bytes(count.checked_mul(8)?)?.as_chunks().0)
    }
}

/// All feeders that have been packed; `None` for bytes that were not.
pub fn unpack(bytes: &[u8]) -> Option<Vec<FeederRows<'_>>> {
    let mut all = Vec::new();
    let mut rest = Reader(bytes);
    while !rest.0.is_empty() {
        let length = Reader(rest.0).number()? as usize;
        let mut reader = Reader(rest.bytes(length)?);
        reader.number()?;
        let (script, rows, columns) = (reader.number()? as usize, reader.number()?, reader.number()?);
        let pick = match reader.number()? {
            0 => Pick::Random,
            1 => Pick::Sequence,
            2 => Pick::Weighted,
            _ => return None,
        };
        let once = reader.number()? != 0;
        // Each name has four bytes at least.
        let names = (0..columns).map(|_| {
            let length = reader.number()? as usize;
            std::str::from_utf8(reader.bytes(length)?).ok()
        });
        let variables = names.collect::<Option<Vec<&str>>>()?;
        let count = (rows as usize).checked_mul(columns as usize)?;
        let (tags, cells) = (reader.bytes(count)?, reader.cells(count)?);
        let aliases = if pick == Pick::Weighted { reader.cells(rows as usize)? } else { &[] };
        if rows == 0 || columns == 0 {
            return None;
        }
        all.push(FeederRows { script, pick, once, variables, rows, tags, cells, aliases, texts: reader.0 });
    }
    Some(all)
}

impl FeederRows<'_> {
    /// How many there are, at least one.
    pub fn count(&self) -> u32 {
        self.rows
    }

    /// A value; null where there is none.
    #[inline]
    pub fn value(&self, row: u32, column: usize) -> Value {
        let at = row as usize * self.variables.len() + column;
        let (Some(tag), Some(cell)) = (self.tags.get(at), self.cells.get(at)) else { return Value::Null };
        let number = u64::from_le_bytes(*cell);
        match *tag {
            BOOLEAN => Value::Boolean(number != 0),
            INTEGER => Value::Integer(number.cast_signed()),
            DOUBLE => Value::Double(f64::from_bits(number)),
            TEXT => self.text(number).map_or(Value::Null, |text| Value::Text(text.into())),
            _ => Value::Null,
        }
    }

    fn text(&self, place: u64) -> Option<&str> {
        let (from, length) = ((place >> 32) as usize, (place & 0xffff_ffff) as usize);
        std::str::from_utf8(self.texts.get(from..from.checked_add(length)?)?).ok()
    }

    /// The row that a draw of a weighted feeder comes to.
    fn alias(&self, row: u32, drawn: u32) -> u32 {
        let Some(alias) = self.aliases.get(row as usize) else { return row };
        let alias = u64::from_le_bytes(*alias);
        let (threshold, other) = (alias as u32, (alias >> 32) as u32);
        if drawn <= threshold || other >= self.rows { row } else { other }
    }
}

/// Which share of a sequence a node of several takes: one row of `of`, the first one being the row `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    pub first: u64,
    pub of: u64,
}

impl Stride {
    /// Of a run on one node.
    pub const WHOLE: Self = Self { first: 0, of: 1 };
}

/// Where the transactions of a script get rows of one feeder from.
#[derive(Clone, Debug)]
pub struct RowSource<'a> {
    rows: FeederRows<'a>,
    /// Rows that have been taken in sequence by all clients.
    taken: &'a AtomicU64,
    stride: Stride,
    /// Columns, and the variables that they are read by.
    variables: Vec<(usize, VariableId)>,
}

impl<'a> RowSource<'a> {
    /// `find` knows those of the variables that are read.
    pub fn new(
        rows: FeederRows<'a>,
        taken: &'a AtomicU64,
        stride: Stride,
        find: impl Fn(&str) -> Option<VariableId>,
    ) -> Self {
        let found = rows.variables.iter().enumerate();
        let variables = found.filter_map(|(column, name)| Some((column, find(name)?))).collect();
        Self { rows, taken, stride, variables }
    }

    /// The variables that it sets.
    pub fn variables(&self) -> impl Iterator<Item = VariableId> {
        self.variables.iter().map(|(_, variable)| *variable)
    }

    /// The row for a transaction; `None` when each has been taken and none is to come twice.
    #[inline]
    pub fn draw(&self, random: &mut Prng) -> Option<u32> {
        let rows = &self.rows;
        let any = |random: &mut Prng| random.int64_range(0, i64::from(rows.rows) - 1) as u32;
        match rows.pick {
            Pick::Random => Some(any(random)),
            Pick::Weighted => {
                let row = any(random);
                Some(rows.alias(row, (random.next_u64() >> 32) as u32))
            }
            Pick::Sequence => {
                let count = u64::from(rows.rows);
                let taken = self.taken.fetch_add(1, Relaxed);
                let at = taken.wrapping_mul(self.stride.of).wrapping_add(self.stride.first);
                (!rows.once || at < count).then(|| (at % count) as u32)
            }
        }
    }

    /// Gives the variables the values of a row.
    #[inline]
    pub fn set(&self, row: u32, variables: &mut Variables) {
        for (column, variable) in &self.variables {
            variables.set(*variable, self.rows.value(row, *column));
        }
    }
}
