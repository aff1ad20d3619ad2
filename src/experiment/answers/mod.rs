//! Whether two arms return the same rows, and how much an approximate index returns of the exact ones.

mod ask;
mod comparer;
mod lane;
pub mod recall;
mod request;
mod session;
mod wire;

pub use ask::compare_arms;
pub use request::{AnswerOptions, TOLERANCE};
