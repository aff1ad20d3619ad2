//! Sweeps: from arguments to a started leader, that leader, the search for a capacity, and the state that each of its runs
//! begins with. The leader, which may be a session of a superuser, executes this project's own statements and no others: what
//! users have written is executed by hands.

pub mod answers;
mod changes;
mod hand;
pub mod index_worth;
pub mod launch;
mod leader;
pub mod parameters;
mod stops;
