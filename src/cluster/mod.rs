//! Other extensions: found at run time, never required.

pub mod citus;
pub mod sessions;
