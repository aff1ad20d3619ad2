//! Loads: from the arguments of `bench.load` to filled tables.
//!
//! [`fixture`] says what each fixture's tables are, [`prepare`] starts a leader, [`workers`] has that leader and the loaders that
//! fill the tables, [`bulk`] inserts rows in large batches.

pub mod bulk;
pub mod fixture;
pub mod prepare;
pub mod workers;
