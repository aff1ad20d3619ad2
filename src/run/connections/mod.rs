//! The wire driver: the clients of a run are connections, which jobs share. A job is a worker without a connection to a
//! database of its own; it waits for all of its connections at once, as a thread of pgbench does.

mod connection;
pub mod job;
pub mod script_check;
mod shared;

pub use shared::secrets;
