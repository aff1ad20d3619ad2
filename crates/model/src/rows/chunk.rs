//! Shares of a load, for loaders that work at the same time.

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

/// As [`chunk`], but chunks of the tables on one side, which `sides` has as true, come in turn with those on the other, while
/// there are both: two loaders that fill one table wait for each other at its end.
pub fn chunk_in_turn(rows: &[i64], sides: &[bool], size: i64, number: u64) -> Option<Chunk> {
    let of = |side: bool| rows.iter().zip(sides).map(move |(&rows, &own)| if own == side { rows } else { 0 });
    let count =
        |side: bool| of(side).map(|rows| (rows.max(0) as u64).div_ceil(size.max(1) as u64)).sum::<u64>();
    let (one, other) = (count(false), count(true));
    let fewer = one.min(other);
    let (side, place) =
        if number < 2 * fewer { (number % 2 == 1, number / 2) } else { (other > one, number - fewer) };
    chunk(of(side), size, place)
}
