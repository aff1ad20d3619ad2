//! What there is to say of a Citus cluster: nodes that were lost, that began late or were left with something to clear
//! up, which of them had the work, and what their talking to each other cost.

mod balance;
mod sentences;
mod traffic;

pub use balance::one_sided;
pub use sentences::*;
