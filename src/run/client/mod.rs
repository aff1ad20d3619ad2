//! Clients of the engine: sessions that execute the scripts' transactions in a loop.

mod preparation;
pub mod statements;
pub mod worker;
pub mod workload;

pub use preparation::{check_rights, describe, examine, explain, names, prepare_session};
pub use statements::internal;
pub use worker::KIND;
pub use workload::{beginning, schedule, start, workload};
