//! pgbench_ext: a benchmark harness inside PostgreSQL.
//!
//! The flow of one run: a caller ([`api`]) asks for it; [`launch`] turns the arguments into a `RunSpec`, finds out what is
//! wrong with them, lays out a shared segment ([`shm`]) and starts a coordinator. That one ([`worker`]) writes the run's row
//! ([`catalog`]) and launches a background worker for each client; each of those runs the script's transactions in a loop
//! ([`engine`]) and counts into its own slot; the coordinator turns the slots into samples, beside what it observes of the
//! server ([`observe`]). A sweep ([`sweep`]) launches one run after the other. What needs no server is in `crates`.
//!
//! The rooms, from the ground floor up; each uses what stands before it, which the test `rooms` of `crates/conventions` holds:
//!
//! | room | what |
//! |---|---|
//! | [`error`] | the project's errors as the server's, and back |
//! | [`server`] | the server's functions, wrapped so that they are safe to call |
//! | [`wire`] | connections to servers |
//! | [`shm`] | the shared segment of a run, load or sweep |
//! | [`engine`] | driving the executor: the session of a client |
//! | [`integration`] | Citus and pg_cron, found at run time |
//! | [`observe`] | reading the server and the machine |
//! | [`catalog`] | SQL on the tables of schema bench |
//! | [`fixture`] | what fixtures are, and what a load does |
//! | [`worker`] | what background workers do |
//! | [`launch`] | from arguments to a started leader |
//! | [`sweep`] | the leader of sweeps, and its launch |
//! | [`capture`] | from pg_stat_statements to workloads that replay an application |
//! | [`api`] | the SQL functions |
//!
//! No arrow climbs. Unsafe code is in the server, the segment and the engine, and where other processes' waits are read.

#![deny(unsafe_op_in_unsafe_fn)]

mod api;
mod capture;
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
mod wire;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Called by the server when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    server::process::take_no_backtraces();
    bench_base::interrupts::set_check(server::process::check_interrupts);
    launch::settings::define();
}
