//! The ground floor: safe wrappers of what the server offers to one of its processes.
//!
//! Here is what knows PostgreSQL's functions and globals and nothing of runs, loads and sweeps. With [`crate::shm`] and
//! [`crate::driver::session`] it is the only place with `unsafe`, beside the reading of other processes' waits.

pub mod background_worker;
pub mod database;
pub mod files;
pub mod guc;
pub mod horizon;
pub mod jsonb;
pub mod pages;
pub mod process;
pub mod query;
pub mod relations;
pub mod roles;
pub mod rows;
pub mod set_function;
pub mod signals;
pub mod spi;
pub mod transaction;
