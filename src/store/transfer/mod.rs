//! Runs as documents, and their end: bench.export, bench.import, bench.prune and bench.delete_run.

mod chunks;
mod deletion;
mod export;
mod import;
mod part;
mod prune;
mod ranges;
mod tables;

pub use chunks::{chunk, chunks};
pub use deletion::{delete_runs, forget_runs};
pub use export::{export, export_piece};
pub use import::{Imported, import};
pub use part::{samples_after, take_part, take_samples};
pub use prune::prune;
