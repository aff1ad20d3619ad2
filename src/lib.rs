//! pgbench_ext: a benchmark harness inside PostgreSQL.
//!
//! The flow of one run: a caller ([`api`]) validates everything into a `RunSpec` and asks for a
//! coordinator ([`worker`]), which writes the run's row ([`catalog`]), lays out a shared segment
//! ([`shm`]), and launches a background worker for each client; each of those runs the script's
//! transactions in a loop ([`engine`]) and counts into its own slot; the coordinator turns the
//! slots into samples. The pure rooms are in the crate `bench_core`.

#![deny(unsafe_op_in_unsafe_fn)]

mod api;
mod catalog;
mod engine;
mod error;
mod fixture;
mod integration;
mod launch;
mod observe;
mod server;
mod shm;
mod sweep;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Called by the server when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    launch::settings::define();
}
