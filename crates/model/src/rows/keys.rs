//! Which rows the ids of a load stand for.

use serde::{Deserialize, Serialize};

use super::hash::uniform;

/// How ids become rows. By default each is a row of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeySelection {
    /// Keys come in groups of [`Self::of`], of which so many in sequence are taken, from the first on.
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
    pub(super) fn hashed(self) -> i64 {
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
