//! Sweeps: their launch, their leader, the search for a capacity, and the state that each run begins with. The leader, which
//! may be a superuser's session, executes only the extension's own statements; users' statements are executed by hands.

pub mod answers;
mod changes;
mod hand;
pub mod index_worth;
pub mod launch;
mod leader;
pub mod parameters;
pub mod rehearse;
mod stops;
