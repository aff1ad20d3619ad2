//! From what an application does to workloads that replay it.
//!
//! | module | contents |
//! |---|---|
//! | [`log`] | transactions of an application, read from the server's log |
//! | [`options`] | options of captures |
//! | [`statements`] | statements of pg_stat_statements as scripts |
//! | [`fidelity`] | how well a run replays the application |

#![forbid(unsafe_code)]

mod constants;
pub mod fidelity;
pub mod log;
pub mod options;
pub mod statements;

pub use constants::{shortened, without_constants};
