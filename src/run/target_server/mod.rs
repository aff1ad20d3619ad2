//! The server that the connections of a run lead to: a foreign server of the wrapper bench_wire and the caller's mapping on
//! it, and what has to be known of it before the run.

mod description;
mod feeders;
mod reached;
mod server;
mod statements;

pub use reached::{Examined, Reached};
pub use server::local_password;
pub use statements::PlanOfCommand;
