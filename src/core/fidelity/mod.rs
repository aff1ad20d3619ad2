//! How well a run replays what was captured: each call beside each call, and what the whole database did.

mod activity;
mod call;
mod counts;

pub use activity::{Activity, CPU, FidelityPart, ReplayShares, ReplayedCall, calls, parts, whole};
pub use call::{Call, Likeness, likeness, overall};
pub use counts::Counts;
