//! A client: which transaction comes next and when, the commands of its script one after the other, and what follows from
//! how they end. It knows neither a server nor how to wait: a driver does what each [`Step`] says, tells how that went by
//! the method that the step names, and is given the next one. So every driver runs the same client, and the client can be
//! tested without a server.
//!
//! The states and their order are those of `advanceConnectionState` in pgbench.c.

mod choice;
mod lateness;
mod pace;
mod recorder;
mod state_machine;
mod stretches;
#[cfg(test)]
mod tests;
mod workload;

pub use lateness::Lateness;
pub use recorder::{Consequence, Outcome, Transaction, TransactionRecorder};
pub use state_machine::{Client, ClientStart, Step, back_off_ns};
pub use stretches::Turns;
pub use workload::{ClientWorkload, Pauses, Program, Tolerance};
