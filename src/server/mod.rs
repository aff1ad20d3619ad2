//! Safe wrappers of the server's functions and globals. Nothing in this module depends on runs, loads or sweeps. Apart from
//! [`crate::shm`], [`crate::driver::session`] and the reading of other processes' waits, only this module has `unsafe` code.

pub mod background_worker;
pub mod database;
pub mod files;
pub mod guc;
pub mod horizon;
pub mod jsonb;
pub mod known_change;
pub mod own_locks;
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
