//! Whether two arms return the same rows, and how much an approximate index returns of the exact ones.

mod ask;
pub mod recall;
mod session;

pub use ask::compare_arms;
pub use session::{AnswerOptions, TOLERANCE};
