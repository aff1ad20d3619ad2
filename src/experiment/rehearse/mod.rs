//! `bench.rehearse`: a change of the database in the middle of a run, and what the run's clients feel of it.
//!
//! The sweep's leader follows the run: it starts the blocker, the change and the end of the run, and looks at the queue for
//! locks while somebody waits. Blocker and change are hands, sessions of the role that wrote their texts.

pub mod ask;
mod course;
mod look;

pub(super) use course::{Course, LOOK_MS};
pub(super) use look::dropped_columns;
