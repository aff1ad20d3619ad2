//! Runs: from the arguments of `bench.run` to the samples of its clients.
//!
//! [`prepare`] turns the arguments into a specification and starts a coordinator. The [`coordinator`] launches a [`client`] for
//! each session of the workload, or [`connections`] to a server, and records what they count. [`before`] is the state that a run
//! begins with, [`feeders`] the rows that its scripts take values from. [`target_server`] is another server to run on, [`nodes`]
//! a Citus cluster.

pub mod before;
pub mod client;
pub mod connections;
pub mod coordinator;
pub mod feeders;
pub mod nodes;
pub mod prepare;
pub mod server_parameters;
pub mod target_server;
