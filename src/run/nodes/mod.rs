//! A run on a Citus cluster: a link to each node, and the coordinator of a run whose clients are on several nodes.

pub mod cluster_spec;
pub mod link;
pub mod node_connectivity;
pub mod node_coordinator;
