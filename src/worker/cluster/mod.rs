//! A run on a Citus cluster: a link to each node, and the coordinator of a run whose clients are on several nodes.

pub mod coordinator;
mod link;
pub mod links;
