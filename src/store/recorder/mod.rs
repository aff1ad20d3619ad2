//! What the coordinator writes: a run's row, its samples and its results.
//!
//! Each function is a transaction of its own, so that what was measured stays whatever comes
//! after. The extension is held by a lock meanwhile, see [`super::hold_extension`].

mod end;
mod extension_hold;
mod finish;
mod lines;
mod relations;
mod samples;
mod start;
mod transactions;

pub use end::{Part, RunColumns, RunEnd, RunStatus};
pub use finish::{Closing, finish, status_only};
pub use lines::ErrorRow;
pub use samples::samples;
pub use start::{begin, running};
pub use transactions::{Logged, transactions};

pub use super::totals::{RunSample, Totals, ms};
pub(super) use extension_hold::hold;
