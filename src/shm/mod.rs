//! The shared segment of one run, load or sweep: a header, a slot for each client, each client's command
//! counters, times and intervals, and the run's specification as JSON. All the pointer work is here;
//! outside, a [`Segment`] hands out references to atomics.
//!
//! ```text
//! Header | ClientSlot × slots | ClientIntervals × slots | CommandCounters × slots × commands
//!        | CommandTimes × slots × commands | Tally × ring
//!        | Tally × slots × scripts of a mix | Tally × scripts | CommandPlans × commands | NodeCell × nodes
//!        | Ends × slots | Place × slots × log | ConnectionCell × connections
//!        | Tally × slots of a run over connections | Taken × feeders | BatchOfArms × slots × batches
//!        | specification | rows of feeders
//! ```

pub mod build;
mod cells;
mod client_slot;
mod segment;
mod shape;
mod tallies;
mod transactions;

pub use bench_model::tally::{Counter, Tally};
pub use build::Work;
pub use cells::*;
pub use client_slot::*;
pub use segment::{ClientSession, DetachCallback, Segment, ask_to_stop, is_under_way};
pub use shape::{SegmentShape, log_for, ring_for};
pub use tallies::*;
pub use transactions::{ClientCounters, MeasuredSession};
