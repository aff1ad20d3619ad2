//! Common parts of the launch of runs, loads, captures and sweeps: checks before any worker starts, the limit of a role,
//! questions to sessions of other roles, and the wait of the calling session.

pub mod checks;
pub mod handle;
pub mod role_session;
