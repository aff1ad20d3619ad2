//! What the launch of a run, a load, a capture and a sweep have in common: checks before any worker is started, the limit of a
//! role, questions to a session of another role, and the wait of the session that asked.

pub mod checks;
pub mod handle;
pub mod role_session;
