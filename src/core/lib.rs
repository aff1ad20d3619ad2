//! The pure rooms of pgbench_ext: scripts, run specifications, time lines and statistics.
//! Nothing in here knows of a PostgreSQL server, so plain `cargo test` covers it.

pub mod cluster;
pub mod comparison;
pub mod document;
pub mod error;
pub mod findings;
pub mod intervals;
pub mod missing;
pub mod part;
pub mod report;
pub mod rows;
pub mod schedule;
pub mod script;
pub mod shard_keys;
pub mod spec;
pub mod stats;
pub mod sweep;
pub mod tally;
pub mod timeline;
