//! Rows of a fixture, produced without an executor: each column's value as the bytes of a heap tuple.
//!
//! The layout is that of the server's heap_fill_tuple (access/common/heaptuple.c): every value at its type's
//! alignment, texts of up to [`MAX_TEXT`] bytes with a header of one byte. A column is NULL in all rows or in none.

mod chunk;
mod derived;
mod hash;
mod keys;
mod put;
mod sql;
#[cfg(test)]
mod tests;
mod writer;

pub use chunk::{Chunk, chunk, chunk_in_turn};
pub use derived::{Derived, SYLLABLES};
pub use keys::{Key, KeySelection, Lines};
pub use put::MAX_TEXT;
pub use sql::select;
pub use writer::{RowColumn, RowWriter, Scene};
