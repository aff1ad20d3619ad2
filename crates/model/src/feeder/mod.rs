//! Feeders: queries whose rows give a script's variables their values, a row for each transaction.

mod collect;
mod definition;
mod pack;

pub use collect::{Collector, MAX_BYTES, ValueKind};
pub use definition::{Feeder, MAX_COLUMNS, Pick, WEIGHT};
pub use pack::{FeederRows, FeederValue, RowSource, Stride, unpack};

#[cfg(test)]
mod tests;
