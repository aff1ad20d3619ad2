//! The ground floor: safe wrappers of what the server offers to one of its processes.
//!
//! Here is what knows PostgreSQL's functions and globals and nothing of runs, loads and sweeps. With [`crate::shm`] and
//! [`crate::driver::session`] it is the only place with `unsafe`, beside the reading of other processes' waits.

pub mod at_exit;
pub mod background_worker;
mod buffers;
pub mod database;
pub mod fatal_error_log;
pub mod files;
pub mod guc;
pub mod heap;
pub mod horizon;
pub mod jsonb;
pub mod lists;
mod local_settings;
pub mod locks;
pub mod new_pages;
pub mod own_plans;
pub mod own_settings;
pub mod parser;
pub mod prewarm;
pub mod process;
pub mod query;
pub mod relations;
pub mod roles;
pub mod rows;
pub mod set_function;
pub mod signals;
pub mod spi;
pub mod timeouts;
pub mod timer;
pub mod transaction;
pub mod usage;
pub mod wait;
pub mod worker_slots;
