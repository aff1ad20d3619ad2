//! The server that the connections of a run lead to: a foreign server of the wrapper bench_wire and the caller's mapping on
//! it, and what has to be known of it before the run.

mod reached;
mod server;

pub use reached::{Examined, PlanOfCommand, Reached};
pub use server::local_password;
