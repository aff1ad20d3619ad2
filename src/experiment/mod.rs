//! Sweeps: from arguments to a started leader, that leader, the search for a capacity, and the state that each of its runs
//! begins with.

pub mod capacity;
mod changes;
pub mod index_worth;
pub mod launch;
mod leader;
pub mod parameters;
mod restarts;
mod state;
mod stops;
