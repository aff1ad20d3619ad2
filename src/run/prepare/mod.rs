//! The way of a run from its arguments to a started coordinator: checks before any worker starts, the segment, and the wait of
//! the calling session.

mod duel;
pub mod pauses;
pub mod prepared;
pub mod sessions;
pub mod settings;
pub mod start;
pub mod under_way;
pub mod workload;
