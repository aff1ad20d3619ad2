//! pgbench_ext: a benchmark harness inside PostgreSQL.
//!
//! The flow of one run: a caller ([`api`]) asks for it; [`run`] turns the arguments into a `RunSpec`, finds out what is
//! wrong with them, lays out a shared segment ([`shm`]) and starts a coordinator, a background worker ([`worker`]). The
//! coordinator writes the run's row ([`store`]) and launches a background worker for each client; each of those runs the
//! script's transactions in a loop ([`driver`]) and counts into its own slot; the coordinator turns the slots into samples,
//! beside what it observes of the server ([`observe`]). A sweep ([`experiment`]) launches one run after the other. What needs
//! no server is in `crates`.
//!
//! The rooms, from the ground floor up; each uses only those before it, which the test `rooms` of `crates/conventions` holds:
//!
//! | room | what |
//! |---|---|
//! | [`error`] | the project's errors as the server's, and back |
//! | [`server`] | the server's functions, wrapped so that they are safe to call |
//! | [`shm`] | the shared segment of a run, load or sweep |
//! | [`worker`] | what every background worker begins with |
//! | [`guard`] | roles and rights |
//! | [`driver`] | executing a client's transactions: in a session, or over a connection |
//! | [`cluster`] | Citus, found at run time |
//! | [`observe`] | reading the server and the machine |
//! | [`store`] | SQL on the tables of schema bench |
//! | [`launch`] | what starting a run, a load, a capture or a sweep has in common |
//! | [`load`] | fixtures, and the workers that fill their tables |
//! | [`run`] | from the arguments of bench.run to the samples of its clients |
//! | [`capture`] | from what an application does to workloads that replay it |
//! | [`experiment`] | the leader of sweeps, and its launch |
//! | [`api`] | the SQL functions |

#![deny(unsafe_op_in_unsafe_fn)]

mod api;
mod capture;
mod cluster;
mod driver;
mod error;
mod experiment;
mod guard;
mod launch;
mod load;
mod observe;
mod run;
mod server;
mod shm;
mod store;
mod worker;

pgrx::pg_module_magic!(name, version);

/// Called by the server when it loads the library.
#[pgrx::pg_guard]
pub extern "C-unwind" fn _PG_init() {
    server::process::take_no_backtraces();
    bench_base::interrupts::set_check(server::process::check_interrupts);
    run::prepare::settings::define();
}
