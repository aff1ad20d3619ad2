//! A client: one session that runs the scripts' transactions in a loop.

pub mod arms;
mod internal_error;
mod preparation;
mod privileges;
mod setters;
pub mod statements;
pub mod timed_wait;
pub mod variables;
mod worker;
mod workload;

pub use internal_error::internal;
pub use preparation::{check_rights, describe, examine, prepare_session};
pub use worker::KIND;
pub use workload::{beginning, schedule, start, workload};
