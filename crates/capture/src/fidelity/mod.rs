//! How well a run replays what was captured: each call beside each call, and what the whole database did.

mod activity;
mod call;

pub use activity::{Activity, CPU, ReplayShares, ReplayedCall, calls, parts};
pub use bench_results::{FidelityPart, whole};
pub use call::{Call, Counts, Likeness, likeness, overall};
