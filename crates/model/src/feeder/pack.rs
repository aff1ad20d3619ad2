//! The rows of a run's feeders in one piece of memory, which its clients read and nobody changes.
//!
//! ```text
//! feeder:  length | script | rows | columns | pick | once | names | tags | cells | aliases | texts
//! ```
//!
//! Numbers are little-endian, of 4 bytes; a cell has 8, and its tag 1. A name is its length and its bytes. A weighted feeder has
//! a threshold and a row for each row, by Walker's alias method (M. D. Vose, A linear algorithm for generating random numbers
//! with a given distribution, IEEE Transactions on Software Engineering 17, 1991). Whatever the bytes are, reading does not fail
//! beyond what it says.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bench_base::allocation::reserve;
use bench_base::error::UserError;
use bench_base::interrupts;
use bench_script::{Prng, Value, VariableId, Variables};

use super::Pick;

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

/// What [`pack`] packs: the rows of one feeder, at least one.
pub struct Unpacked<'a> {
    /// Index of its script in the run.
    pub script: u32,
    pub pick: Pick,
    pub once: bool,
    pub variables: Vec<&'a str>,
    /// Row by row, a cell for each variable.
    pub cells: &'a [FeederValue],
    /// For each row, above 0; empty unless weighted.
    pub weights: &'a [f64],
}

/// Appends a feeder's rows.
///
/// # Errors
/// 53200.
pub fn pack(from: &Unpacked, out: &mut Vec<u8>) -> Result<(), UserError> {
    let start = out.len();
    let rows = from.cells.len() / from.variables.len().max(1);
    let cells = || {
        from.cells.iter().inspect(|_| {
            interrupts::check_now_and_then();
        })
    };
    let of_cell = |cell: &FeederValue| 9 + if let FeederValue::Text(text) = cell { text.len() } else { 0 };
    let names: usize = from.variables.iter().map(|name| 4 + name.len()).sum();
    let most = 24 + names + cells().map(of_cell).sum::<usize>() + 8 * from.weights.len();
    reserve(out, most)?;
    let put = |number: usize, out: &mut Vec<u8>| out.extend((number as u32).to_le_bytes());
    let pick = match from.pick {
        Pick::Random => 0,
        Pick::Sequence => 1,
        Pick::Weighted => 2,
    };
    let numbers = [0, from.script as usize, rows, from.variables.len(), pick, usize::from(from.once)];
    numbers.into_iter().for_each(|number| put(number, out));
    for name in &from.variables {
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
    if from.pick == Pick::Weighted {
        for (threshold, other) in aliases(from.weights) {
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
    Ok(())
}

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
