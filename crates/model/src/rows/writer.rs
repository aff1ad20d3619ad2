//! What the columns of a row hold, and the rows of one kind as bytes.

use bench_script::Prng;
use serde::{Deserialize, Serialize};

use super::derived::Derived;
use super::keys::Key;
use super::put::{
    MAX_TEXT, hexadecimal, put_decimal, put_digits, put_text, put4, put8, round_to_seconds, short_header,
};

/// What a column holds in the row of an id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum RowColumn {
    /// The id as an integer, which it must fit.
    Id4,
    /// The id as a bigint.
    Id8,
    /// The number of the group that the id is in, counted from 1, as an integer; groups have so many ids.
    Group4(i64),
    /// An integer.
    Constant4(i32),
    /// A uniformly random integer, from the first to the second, both included.
    Uniform4(i32, i32),
    /// A bigint.
    Constant8(i64),
    /// A text of at most [`MAX_TEXT`] bytes.
    Text(String),
    /// So many blanks, at most [`MAX_TEXT`]: what is left of an empty text in a column of type char(n).
    Blanks(usize),
    /// The id's decimal digits and then this: at most [`MAX_TEXT`] bytes.
    IdText(String),
    /// 32 random hexadecimal digits: what the md5 of a random number is.
    RandomHex,
    /// When the row was made, with time zone.
    Clock,
    /// When the row was made, without time zone.
    LocalClock,
    /// When the row was made, without time zone, rounded to seconds.
    LocalClockSeconds,
    /// The transaction's begin, with time zone: now().
    Now,
    /// The transaction's begin as text: now()::text.
    NowText,
    /// A numeric: so many units of the last of so many decimal places.
    ConstantDecimal(i64, u8),
    /// No integer.
    Null4,
    /// No time.
    NullTime,
    /// What the key determines.
    Derived(Derived),
}

impl RowColumn {
    /// Whether there is no value in any row.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null4 | Self::NullTime)
    }

    /// Whether all values take as many bytes.
    fn is_fixed(&self) -> bool {
        match self {
            Self::IdText(_) => false,
            Self::Derived(derived) => derived.is_fixed(),
            _ => true,
        }
    }

    /// Whether it is the same in every row of a transaction.
    fn is_constant(&self) -> bool {
        matches!(
            self,
            Self::Constant4(_)
                | Self::Constant8(_)
                | Self::Text(_)
                | Self::Blanks(_)
                | Self::Now
                | Self::NowText
                | Self::ConstantDecimal(..)
                | Self::Null4
                | Self::NullTime
        )
    }
}

/// A key for values that do not depend on it.
const FIRST: Key = Key { id: 1, line: 0 };

/// The transaction's share of a row.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    /// now(), in microseconds since 2000.
    pub now_us: i64,
    /// now()::text.
    pub now_text: String,
    /// Local time less UTC in microseconds.
    pub local_offset_us: i64,
}

/// Rows of one kind.
#[derive(Clone, Debug)]
pub struct RowWriter {
    /// What is the same in every row, and stands at the same place: written once.
    constant: Vec<(usize, RowColumn)>,
    /// What differs from row to row and stands at the same place.
    varying: Vec<(usize, RowColumn)>,
    /// Where the first value of a length that differs begins, and all columns from there on.
    tail_at: usize,
    tail: Vec<RowColumn>,
    scene: Scene,
}

impl RowWriter {
    /// # Errors
    /// The text that is too long.
    pub fn new(columns: &[RowColumn], scene: Scene) -> Result<Self, String> {
        let too_long = columns.iter().find_map(|column| match column {
            RowColumn::Text(text) => (text.len() > MAX_TEXT).then(|| text.clone()),
            RowColumn::Blanks(count) => (*count > MAX_TEXT).then(|| " ".repeat(*count)),
            RowColumn::IdText(suffix) => (suffix.len() > MAX_TEXT - 20).then(|| suffix.clone()),
            RowColumn::NowText => (scene.now_text.len() > MAX_TEXT).then(|| scene.now_text.clone()),
            _ => None,
        });
        if let Some(text) = too_long {
            return Err(text);
        }
        let fixed = columns.iter().take_while(|column| column.is_fixed()).count();
        let tail = columns[fixed..].to_vec();
        let mut writer = Self { constant: Vec::new(), varying: Vec::new(), tail_at: 0, tail, scene };
        let mut scratch = vec![0; columns[..fixed].iter().map(|column| writer.longest(column)).sum()];
        for column in &columns[..fixed] {
            let place = (writer.tail_at, column.clone());
            writer.tail_at =
                writer.put(column, FIRST, 0, &mut Prng::from_seed(0), &mut scratch, writer.tail_at);
            if column.is_constant() { &mut writer.constant } else { &mut writer.varying }.push(place);
        }
        Ok(writer)
    }

    fn columns(&self) -> impl Iterator<Item = &RowColumn> {
        self.constant.iter().chain(&self.varying).map(|(_, column)| column).chain(&self.tail)
    }

    /// Whether a row has values of variable width, as HEAP_HASVARWIDTH has it.
    pub fn has_variable_width(&self) -> bool {
        self.columns().any(|column| match column {
            RowColumn::Text(_)
            | RowColumn::Blanks(_)
            | RowColumn::IdText(_)
            | RowColumn::RandomHex
            | RowColumn::NowText
            | RowColumn::ConstantDecimal(..) => true,
            RowColumn::Derived(derived) => derived.has_variable_width(),
            _ => false,
        })
    }

    /// Whether rows say when they were made.
    pub fn needs_clock(&self) -> bool {
        self.columns().any(|column| {
            matches!(column, RowColumn::Clock | RowColumn::LocalClock | RowColumn::LocalClockSeconds)
        })
    }

    /// The length that no row exceeds, in bytes.
    pub fn max_length(&self) -> usize {
        self.columns().map(|column| self.longest(column)).sum()
    }

    /// With the gap before it.
    fn longest(&self, column: &RowColumn) -> usize {
        const DIGITS: usize = 19;
        match column {
            RowColumn::Text(text) => 1 + text.len(),
            RowColumn::Blanks(count) => 1 + count,
            RowColumn::IdText(suffix) => 1 + DIGITS + suffix.len(),
            RowColumn::NowText => 1 + self.scene.now_text.len(),
            RowColumn::RandomHex => 33,
            RowColumn::ConstantDecimal(..) => 16,
            RowColumn::Derived(derived) => derived.longest(),
            _ => 15,
        }
    }

    /// Prepares a buffer of [`Self::max_length`] bytes at an alignment of eight, for [`Self::write`] to write one
    /// row after the other into it.
    pub fn prepare(&self, out: &mut [u8]) {
        out.fill(0);
        for (at, column) in &self.constant {
            self.put(column, FIRST, 0, &mut Prng::from_seed(0), out, *at);
        }
    }

    /// Writes the row of a key, made at a time in microseconds since 2000 (UTC), into a buffer that
    /// [`Self::prepare`] has seen; the row's length.
    #[inline]
    pub fn write(&self, key: Key, clock_us: i64, random: &mut Prng, out: &mut [u8]) -> usize {
        for (at, column) in &self.varying {
            self.put(column, key, clock_us, random, out, *at);
        }
        let mut at = self.tail_at;
        for column in &self.tail {
            at = self.put(column, key, clock_us, random, out, at);
        }
        at
    }

    /// Writes a value behind `at`; where it ends.
    #[inline]
    fn put(
        &self,
        column: &RowColumn,
        key: Key,
        clock_us: i64,
        random: &mut Prng,
        out: &mut [u8],
        at: usize,
    ) -> usize {
        let id = key.id;
        match column {
            RowColumn::Id4 => put4(out, at, id as i32),
            RowColumn::Id8 => put8(out, at, id),
            RowColumn::Group4(size) => put4(out, at, ((id - 1) / size + 1) as i32),
            RowColumn::Constant4(value) => put4(out, at, *value),
            RowColumn::Uniform4(least, most) => {
                put4(out, at, random.int64_range((*least).into(), (*most).into()) as i32)
            }
            RowColumn::Constant8(value) => put8(out, at, *value),
            RowColumn::Text(text) => put_text(out, at, text.as_bytes()),
            RowColumn::Blanks(count) => put_text(out, at, &[b' '; MAX_TEXT][..*count]),
            RowColumn::NowText => put_text(out, at, self.scene.now_text.as_bytes()),
            RowColumn::IdText(suffix) => {
                let digits = put_digits(out, at + 1, id);
                let length = digits + suffix.len();
                out[at] = short_header(length);
                out[at + 1 + digits..at + 1 + length].copy_from_slice(suffix.as_bytes());
                at + 1 + length
            }
            RowColumn::RandomHex => {
                out[at] = short_header(32);
                for half in 0..2 {
                    let from = at + 1 + 16 * half;
                    out[from..from + 16].copy_from_slice(&hexadecimal(random.next_u64()));
                }
                at + 33
            }
            RowColumn::Clock => put8(out, at, clock_us),
            RowColumn::LocalClock => put8(out, at, clock_us + self.scene.local_offset_us),
            RowColumn::LocalClockSeconds => {
                put8(out, at, round_to_seconds(clock_us + self.scene.local_offset_us))
            }
            RowColumn::Now => put8(out, at, self.scene.now_us),
            RowColumn::ConstantDecimal(units, places) => put_decimal(out, at, *units, *places),
            RowColumn::Null4 | RowColumn::NullTime => at,
            RowColumn::Derived(derived) => derived.put(key, out, at),
        }
    }
}
