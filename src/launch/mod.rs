//! From the arguments of a call to a leader that has been started: what they mean here, what can be found wrong before any
//! worker is started, the segment, and the wait of the session that asked.

pub mod capture_name;
pub mod checks;
mod connections;
pub mod default_clients;
mod duel;
pub mod end_messages;
pub mod feeders;
pub mod fetch_parts;
pub mod horizon;
pub mod launch_handle;
pub mod load;
pub mod load_progress;
pub mod log;
mod mixes;
pub mod node_connectivity;
pub mod nodes;
pub mod preflight;
pub mod role_limit;
pub mod role_session;
pub mod run;
pub mod run_part;
pub mod run_progress;
pub mod sessions;
pub mod settings;
pub mod target;
pub mod under_way;
pub mod workload;
