//! From the arguments of a call to a leader that has been started: what they mean here, what can be found wrong before any
//! worker is started, the segment, and the wait of the session that asked.

mod duel;
pub mod pauses;
pub mod prepared;
pub mod sessions;
pub mod settings;
pub mod start;
pub mod under_way;
pub mod workload;
