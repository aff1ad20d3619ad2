//! Captures: from what an application does to a mix of workloads that replays it.
//!
//! [`launch`] and [`worker`] look at pg_stat_statements before and after, [`statements`] selects which of its statements are
//! kept, and [`values`] finds rows and values for their parameters. [`log`] reads whole transactions from the server's log.

mod activity;
pub mod document;
pub mod launch;
pub mod log;
mod sessions;
pub mod spec;
mod statements;
mod values;
pub mod worker;
