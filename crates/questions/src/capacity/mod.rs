//! How much load a server sustains: trials at offered rates, what each says, and which comes next.
//!
//! A search is a function of its trials: [`next`] looks at those made so far and names the one to make, [`answers`] says
//! what they have shown. So a search that was broken off goes on where it was, and a test can put a queue in the server's
//! place.

mod answer;
mod ask;
mod search;
#[cfg(test)]
mod tests;
mod trial;

pub use answer::answers;
pub use ask::SearchArguments;
pub use bench_results::capacity::{CapacityAnswer, CapacitySearch, Limit, Purpose, TrialOutcome};
pub use search::{OPERATING_SHARE, next};
pub use trial::{NextTrial, Trial, outcome_of};
