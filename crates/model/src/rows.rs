//! Rows of a fixture, produced without an executor: each column's value as the bytes of a heap tuple.
//!
//! The layout is that of the server's heap_fill_tuple (access/common/heaptuple.c): every value at its type's
//! alignment, texts of up to [`MAX_TEXT`] bytes with a header of one byte. A column is NULL in all rows or in none.

mod derived;
#[cfg(test)]
mod tests;
mod writer;

use serde::{Deserialize, Serialize};

pub use derived::{Derived, MAX_TEXT, SYLLABLES};
pub use writer::{RowColumn, RowWriter, Scene, select};

/// How ids become rows. By default each is a row of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeySelection {
    /// Keys that are taken of each group of [`Self::of`] keys, in sequence.
    pub take: i64,
    pub of: i64,
    /// The first that is taken of a group, counted from 1.
    pub first: i64,
    /// How many rows a key has; `None`: one.
    pub lines: Option<Lines>,
}

/// How many rows a key has: evenly from the least to the most, by the hash of the key with this seed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    pub seed: i64,
    pub least: i64,
    pub most: i64,
}

/// What identifies a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Counted from 1.
    pub id: i64,
    /// The row's number among those of its key, counted from 1; 0 where a key has one.
    pub line: i64,
}

impl Key {
    /// The key of a row that is its key's only one.
    pub fn of(id: i64) -> Self {
        Self { id, line: 0 }
    }

    /// What a row's own hashes are taken of: `key * 16 + line` where keys have lines.
    #[inline]
    fn hashed(self) -> i64 {
        if self.line == 0 { self.id } else { self.id * 16 + self.line }
    }
}

impl Default for KeySelection {
    fn default() -> Self {
        Self { take: 1, of: 1, first: 1, lines: None }
    }
}

impl KeySelection {
    /// How many rows a key has on average.
    pub fn rows_of_key(&self) -> i64 {
        self.lines.map_or(1, |Lines { least, most, .. }| (least + most) / 2)
    }

    /// The rows of the ids from the first to the last.
    pub fn rows(&self, first_id: i64, last_id: i64) -> impl Iterator<Item = Key> + '_ {
        (first_id..=last_id).flat_map(move |id| {
            let key = if self.of == 1 {
                id
            } else {
                (id - 1) / self.take * self.of + (id - 1) % self.take + self.first
            };
            let lines = match self.lines {
                None => 0..=0,
                Some(Lines { seed, least, most }) => 1..=uniform(key, seed, least, most),
            };
            lines.map(move |line| Key { id: key, line })
        })
    }
}

/// A share of a load: rows of one of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Which of the tables.
    pub table: usize,
    pub first_id: i64,
    pub last_id: i64,
}

/// Cuts the ids 1 … n of several tables, one table after the other, into chunks of at most `size` ids. Returns the chunk with
/// this number, counted from 0, or `None` after the last.
pub fn chunk(rows: impl IntoIterator<Item = i64>, size: i64, number: u64) -> Option<Chunk> {
    let size = size.max(1);
    let mut number = number;
    for (table, rows) in rows.into_iter().enumerate() {
        let chunks = chunk_count(rows, size);
        if number < chunks {
            let before = number.cast_signed() * size;
            let last_id = before.saturating_add(size).min(rows);
            return Some(Chunk { table, first_id: before + 1, last_id });
        }
        number -= chunks;
    }
    None
}

fn chunk_count(rows: i64, size: i64) -> u64 {
    (rows.max(0) as u64).div_ceil(size.max(1) as u64)
}

/// As [`chunk`], but chunks of the tables on one side, which `sides` has as true, come in turn with those on the other, while
/// there are both: two loaders that fill one table wait for each other at its end.
pub fn chunk_in_turn(rows: &[i64], sides: &[bool], size: i64, number: u64) -> Option<Chunk> {
    let of = |side: bool| rows.iter().zip(sides).map(move |(&rows, &own)| if own == side { rows } else { 0 });
    let count = |side: bool| of(side).map(|rows| chunk_count(rows, size)).sum::<u64>();
    let (one, other) = (count(false), count(true));
    let fewer = one.min(other);
    let (side, place) =
        if number < 2 * fewer { (number % 2 == 1, number / 2) } else { (other > one, number - fewer) };
    chunk(of(side), size, place)
}

/// `hashint8extended(key, seed)` of PostgreSQL (access/hash/hashfunc.c and common/hashfn.c, which is Bob Jenkins'
/// lookup3): the same in all versions, because hash partitions rest on it.
#[inline]
pub fn hash(key: i64, seed: i64) -> i64 {
    let high = (key >> 32) as u32;
    let word = key as u32 ^ if key >= 0 { high } else { !high };
    // The initial value with the length of the key, four bytes.
    let start = 0x9e37_79b9_u32.wrapping_add(4).wrapping_add(3_923_095);
    let (mut a, mut b, mut c) = (start, start, start);
    if seed != 0 {
        a = a.wrapping_add((seed >> 32) as u32);
        b = b.wrapping_add(seed as u32);
        mix(&mut a, &mut b, &mut c);
    }
    a = a.wrapping_add(word);
    finish(&mut a, &mut b, &mut c);
    (u64::from(b) << 32 | u64::from(c)).cast_signed()
}

/// `(hashint8extended(key, seed) & 9223372036854775807) % (most - least + 1) + least`.
#[inline]
pub fn uniform(key: i64, seed: i64, least: i64, most: i64) -> i64 {
    (hash(key, seed) & i64::MAX) % (most - least + 1) + least
}

#[inline]
fn mix(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: &mut u32, y: &mut u32, z: &mut u32, rotation: u32| {
        *x = x.wrapping_sub(*z) ^ z.rotate_left(rotation);
        *z = z.wrapping_add(*y);
    };
    step(a, b, c, 4);
    step(b, c, a, 6);
    step(c, a, b, 8);
    step(a, b, c, 16);
    step(b, c, a, 19);
    step(c, a, b, 4);
}

#[inline]
fn finish(a: &mut u32, b: &mut u32, c: &mut u32) {
    let step = |x: &mut u32, y: &u32, rotation: u32| *x = (*x ^ *y).wrapping_sub(y.rotate_left(rotation));
    step(c, b, 14);
    step(a, c, 11);
    step(b, a, 25);
    step(c, b, 16);
    step(a, c, 4);
    step(b, a, 14);
    step(c, b, 24);
}
