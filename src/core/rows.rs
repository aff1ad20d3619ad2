//! Rows of a fixture, produced without an executor: each column's value as the bytes of a heap tuple.
//!
//! The layout is that of the server's heap_fill_tuple (access/common/heaptuple.c) for a row without
//! NULLs: every value at its type's alignment, texts with a header of one byte.

use serde::{Deserialize, Serialize};

use crate::script::Prng;

/// What a column holds in the row of an id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Column {
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
}

/// The longest text in bytes: a header of one byte tells no more.
pub const MAX_TEXT: usize = 126;

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
    constant: Vec<(usize, Column)>,
    /// What differs from row to row and stands at the same place.
    varying: Vec<(usize, Column)>,
    /// Where the first value of a length that differs begins, and all columns from there on.
    tail_at: usize,
    tail: Vec<Column>,
    scene: Scene,
}

impl RowWriter {
    /// # Errors
    /// The text that is too long.
    pub fn new(columns: &[Column], scene: Scene) -> Result<Self, String> {
        let too_long = columns.iter().find_map(|column| match column {
            Column::Text(text) => (text.len() > MAX_TEXT).then(|| text.clone()),
            Column::Blanks(count) => (*count > MAX_TEXT).then(|| " ".repeat(*count)),
            Column::IdText(suffix) => (suffix.len() > MAX_TEXT - 20).then(|| suffix.clone()),
            Column::NowText => (scene.now_text.len() > MAX_TEXT).then(|| scene.now_text.clone()),
            _ => None,
        });
        if let Some(text) = too_long {
            return Err(text);
        }
        let is_fixed = |column: &&Column| !matches!(column, Column::IdText(_));
        let fixed = columns.iter().take_while(is_fixed).count();
        let tail = columns[fixed..].to_vec();
        let mut writer = Self { constant: Vec::new(), varying: Vec::new(), tail_at: 0, tail, scene };
        let mut scratch = vec![0; columns[..fixed].iter().map(|column| writer.longest(column)).sum()];
        for column in &columns[..fixed] {
            let place = (writer.tail_at, column.clone());
            writer.tail_at = writer.put(column, 1, 0, &mut Prng::from_seed(0), &mut scratch, writer.tail_at);
            match column {
                Column::Constant4(_)
                | Column::Constant8(_)
                | Column::Text(_)
                | Column::Blanks(_)
                | Column::Now
                | Column::NowText => writer.constant.push(place),
                _ => writer.varying.push(place),
            }
        }
        Ok(writer)
    }

    fn columns(&self) -> impl Iterator<Item = &Column> {
        self.constant.iter().chain(&self.varying).map(|(_, column)| column).chain(&self.tail)
    }

    /// Whether a row has values of variable width, as HEAP_HASVARWIDTH has it.
    pub fn has_variable_width(&self) -> bool {
        self.columns().any(|column| {
            matches!(
                column,
                Column::Text(_) | Column::Blanks(_) | Column::IdText(_) | Column::RandomHex | Column::NowText
            )
        })
    }

    /// Whether rows say when they were made.
    pub fn needs_clock(&self) -> bool {
        self.columns()
            .any(|column| matches!(column, Column::Clock | Column::LocalClock | Column::LocalClockSeconds))
    }

    /// The length that no row exceeds, in bytes.
    pub fn max_length(&self) -> usize {
        self.columns().map(|column| self.longest(column)).sum()
    }

    /// With the gap before it.
    fn longest(&self, column: &Column) -> usize {
        const DIGITS: usize = 19;
        match column {
            Column::Text(text) => 1 + text.len(),
            Column::Blanks(count) => 1 + count,
            Column::IdText(suffix) => 1 + DIGITS + suffix.len(),
            Column::NowText => 1 + self.scene.now_text.len(),
            Column::RandomHex => 33,
            _ => 15,
        }
    }

    /// Prepares a buffer of [`Self::max_length`] bytes at an alignment of eight, for [`Self::write`] to write one
    /// row after the other into it.
    pub fn prepare(&self, out: &mut [u8]) {
        out.fill(0);
        for (at, column) in &self.constant {
            self.put(column, 1, 0, &mut Prng::from_seed(0), out, *at);
        }
    }

    /// Writes the row of an id, made at a time in microseconds since 2000 (UTC), into a buffer that
    /// [`Self::prepare`] has seen; the row's length.
    #[inline]
    pub fn write(&self, id: i64, clock_us: i64, random: &mut Prng, out: &mut [u8]) -> usize {
        for (at, column) in &self.varying {
            self.put(column, id, clock_us, random, out, *at);
        }
        let mut at = self.tail_at;
        for column in &self.tail {
            at = self.put(column, id, clock_us, random, out, at);
        }
        at
    }

    /// Writes a value behind `at`; where it ends.
    #[inline]
    fn put(
        &self,
        column: &Column,
        id: i64,
        clock_us: i64,
        random: &mut Prng,
        out: &mut [u8],
        at: usize,
    ) -> usize {
        match column {
            Column::Id4 => put4(out, at, id as i32),
            Column::Id8 => put8(out, at, id),
            Column::Group4(size) => put4(out, at, ((id - 1) / size + 1) as i32),
            Column::Constant4(value) => put4(out, at, *value),
            Column::Uniform4(least, most) => {
                put4(out, at, random.int64_range((*least).into(), (*most).into()) as i32)
            }
            Column::Constant8(value) => put8(out, at, *value),
            Column::Text(text) => put_text(out, at, text.as_bytes()),
            Column::Blanks(count) => put_text(out, at, &[b' '; MAX_TEXT][..*count]),
            Column::NowText => put_text(out, at, self.scene.now_text.as_bytes()),
            Column::IdText(suffix) => {
                let digits = put_digits(out, at + 1, id);
                let length = digits + suffix.len();
                out[at] = short_header(length);
                out[at + 1 + digits..at + 1 + length].copy_from_slice(suffix.as_bytes());
                at + 1 + length
            }
            Column::RandomHex => {
                out[at] = short_header(32);
                for half in 0..2 {
                    let from = at + 1 + 16 * half;
                    out[from..from + 16].copy_from_slice(&hexadecimal(random.next_u64()));
                }
                at + 33
            }
            Column::Clock => put8(out, at, clock_us),
            Column::LocalClock => put8(out, at, clock_us + self.scene.local_offset_us),
            Column::LocalClockSeconds => {
                put8(out, at, round_to_seconds(clock_us + self.scene.local_offset_us))
            }
            Column::Now => put8(out, at, self.scene.now_us),
        }
    }
}

#[inline]
fn put4(out: &mut [u8], at: usize, value: i32) -> usize {
    let from = at.next_multiple_of(4);
    out[at..from].fill(0);
    out[from..from + 4].copy_from_slice(&value.to_ne_bytes());
    from + 4
}

#[inline]
fn put8(out: &mut [u8], at: usize, value: i64) -> usize {
    let from = at.next_multiple_of(8);
    out[at..from].fill(0);
    out[from..from + 8].copy_from_slice(&value.to_ne_bytes());
    from + 8
}

#[inline]
fn put_text(out: &mut [u8], at: usize, text: &[u8]) -> usize {
    out[at] = short_header(text.len());
    out[at + 1..at + 1 + text.len()].copy_from_slice(text);
    at + 1 + text.len()
}

/// SET_VARSIZE_SHORT of varatt.h (postgres.h before 16): the length with the header, and the bit that says so.
#[inline]
fn short_header(length: usize) -> u8 {
    let with_header = length as u8 + 1;
    if cfg!(target_endian = "little") { with_header << 1 | 1 } else { with_header | 0x80 }
}

/// Writes a number that is not negative; how many digits it has.
#[inline]
fn put_digits(out: &mut [u8], at: usize, number: i64) -> usize {
    let mut digits = [0; 20];
    let mut first = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let count = digits.len() - first;
    out[at..at + count].copy_from_slice(&digits[first..]);
    count
}

/// The sixteen digits of a number.
#[inline]
fn hexadecimal(number: u64) -> [u8; 16] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

/// AdjustTimestampForTypmod for timestamp(0) (utils/adt/timestamp.c): a half goes away from 2000.
#[inline]
fn round_to_seconds(us: i64) -> i64 {
    const SECOND: i64 = 1_000_000;
    let away = if us >= 0 { SECOND / 2 } else { -SECOND / 2 };
    (us + away) / SECOND * SECOND
}

/// A share of a load: rows of one of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Which of the tables.
    pub table: usize,
    pub first_id: i64,
    pub last_id: i64,
}

/// Cuts the ids 1 … n of several tables, one table after the other, into chunks of so many ids at most; the one with
/// that number, counted from 0, or `None` after the last.
pub fn chunk(rows: impl IntoIterator<Item = i64>, size: i64, number: u64) -> Option<Chunk> {
    let size = size.max(1);
    let mut number = number;
    for (table, rows) in rows.into_iter().enumerate() {
        let chunks = (rows.max(0) / size + i64::from(rows.max(0) % size > 0)).unsigned_abs();
        if number < chunks {
            let before = number.cast_signed() * size;
            let last_id = before.saturating_add(size).min(rows);
            return Some(Chunk { table, first_id: before + 1, last_id });
        }
        number -= chunks;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(columns: &[Column], id: i64) -> Vec<u8> {
        let scene = Scene { now_us: 42, now_text: "now".to_owned(), local_offset_us: 3_600_000_000 };
        let writer = RowWriter::new(columns, scene).unwrap();
        let mut out = vec![0xAA; writer.max_length()];
        writer.prepare(&mut out);
        // A buffer serves many rows: what one leaves must not be seen in the next.
        writer.write(i64::MAX, 7, &mut Prng::from_seed(2), &mut out);
        let length = writer.write(id, 1_500_000, &mut Prng::from_seed(1), &mut out);
        out.truncate(length);
        out
    }

    #[test]
    fn values_stand_at_their_alignment_and_gaps_are_zero() {
        let row =
            row(&[Column::Id4, Column::Text("abc".to_owned()), Column::Constant4(-1), Column::Clock], 7);
        let mut expected = 7i32.to_ne_bytes().to_vec();
        expected.push(short_header(3));
        expected.extend(b"abc");
        expected.extend((-1i32).to_ne_bytes());
        expected.extend([0; 4]);
        expected.extend(1_500_000i64.to_ne_bytes());
        // 4 + 4 + 4, then a gap of 4 that ends at 16
        assert_eq!(row, expected);
        assert_eq!(row.len(), 24);
    }

    #[test]
    fn what_follows_a_text_of_any_length_stands_where_that_ends() {
        let columns =
            [Column::Id8, Column::IdText("_name".to_owned()), Column::LocalClockSeconds, Column::Id4];
        for (id, at) in [(1, 16), (12, 16), (123, 24), (1_234_567_890, 24)] {
            let row = row(&columns, id);
            let text = format!("{id}_name");
            assert_eq!(&row[9..9 + text.len()], text.as_bytes());
            assert!(row[9 + text.len()..at].iter().all(|byte| *byte == 0));
            assert_eq!(row[at..at + 8], 3_602_000_000i64.to_ne_bytes());
            assert_eq!(row[at + 8..], (id as i32).to_ne_bytes());
        }
    }

    #[test]
    fn times_are_local_and_rounded_where_they_should_be() {
        let eight = |bytes: Vec<u8>| i64::from_ne_bytes(bytes.try_into().unwrap());
        assert_eq!(eight(row(&[Column::Clock], 1)), 1_500_000);
        assert_eq!(eight(row(&[Column::LocalClock], 1)), 3_601_500_000);
        assert_eq!(eight(row(&[Column::LocalClockSeconds], 1)), 3_602_000_000);
        assert_eq!(eight(row(&[Column::Now], 1)), 42);
        assert_eq!(round_to_seconds(-1_500_000), -2_000_000);
        assert_eq!(round_to_seconds(1_499_999), 1_000_000);
    }

    #[test]
    fn a_text_that_a_short_header_cannot_tell_is_refused() {
        let new = |column| RowWriter::new(&[column], Scene::default());
        assert!(new(Column::Text("x".repeat(MAX_TEXT))).is_ok());
        assert!(new(Column::Text("x".repeat(MAX_TEXT + 1))).is_err());
        assert!(new(Column::Blanks(MAX_TEXT)).is_ok());
        assert!(new(Column::Blanks(MAX_TEXT + 1)).is_err());
        assert!(new(Column::IdText("x".repeat(MAX_TEXT - 20))).is_ok());
        assert!(new(Column::IdText("x".repeat(MAX_TEXT - 19))).is_err());
    }

    #[test]
    fn random_digits_differ_and_are_hexadecimal() {
        let writer = RowWriter::new(&[Column::RandomHex], Scene::default()).unwrap();
        let mut random = Prng::from_seed(5);
        let mut out = vec![0; writer.max_length()];
        writer.prepare(&mut out);
        let mut seen = std::collections::HashSet::new();
        for id in 1..=1000 {
            assert_eq!(writer.write(id, 0, &mut random, &mut out), 33);
            assert!(out[1..33].iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b)));
            assert!(seen.insert(out[1..33].to_vec()));
        }
    }

    #[test]
    fn random_integers_are_of_the_whole_range_and_even() {
        let writer = RowWriter::new(&[Column::Uniform4(0, 100)], Scene::default()).unwrap();
        let mut random = Prng::from_seed(6);
        let mut out = vec![0; writer.max_length()];
        writer.prepare(&mut out);
        let mut counts = [0u32; 101];
        for id in 1..=101_000 {
            assert_eq!(writer.write(id, 0, &mut random, &mut out), 4);
            let value = i32::from_ne_bytes(out[..4].try_into().unwrap());
            counts[usize::try_from(value).unwrap()] += 1;
        }
        // About a thousand of each, with a standard deviation of 31.
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    proptest! {
        #[test]
        fn an_id_reads_as_it_is(id in 1i64..=i64::MAX) {
            let row = row(&[Column::IdText("_x".to_owned())], id);
            prop_assert_eq!(std::str::from_utf8(&row[1..]).unwrap(), format!("{id}_x"));
            prop_assert_eq!(usize::from(row[0] >> 1), row.len());
        }

        #[test]
        fn digits_are_those_of_the_number(number: u64) {
            let digits = String::from_utf8(hexadecimal(number).to_vec()).unwrap();
            prop_assert_eq!(digits, format!("{number:016x}"));
        }

        #[test]
        fn chunks_hold_every_id_once(rows in prop::collection::vec(0i64..500, 0..5), size in 1i64..200) {
            let mut next = vec![1; rows.len()];
            let mut number = 0;
            while let Some(chunk) = chunk(rows.iter().copied(), size, number) {
                prop_assert_eq!(chunk.first_id, next[chunk.table]);
                prop_assert!(chunk.last_id - chunk.first_id < size);
                prop_assert!(chunk.last_id >= chunk.first_id);
                prop_assert!(next[..chunk.table].iter().zip(&rows).all(|(next, rows)| *next > *rows));
                next[chunk.table] = chunk.last_id + 1;
                number += 1;
            }
            prop_assert!(next.iter().zip(&rows).all(|(next, rows)| *next == rows + 1));
        }

        #[test]
        fn the_greatest_ids_do_not_overflow(size in 1i64..=i64::MAX, back in 0u64..3) {
            let chunks = (i64::MAX / size + i64::from(i64::MAX % size > 0)).unsigned_abs();
            if let Some(number) = chunks.checked_sub(back + 1) {
                let chunk = chunk([i64::MAX], size, number).unwrap();
                prop_assert!(chunk.first_id >= 1 && chunk.first_id <= chunk.last_id);
            }
            prop_assert_eq!(chunk([i64::MAX], size, chunks), None);
        }
    }
}
