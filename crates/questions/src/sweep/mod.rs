//! What a sweep is asked to do, and the order of its runs.

mod ask;
mod plan;
mod screen;
mod search;
#[cfg(test)]
mod tests;
mod trial;
mod variant;

pub use ask::{Asked, LoadDescription, Question, Resumption, SweepArguments, SweepOptions, SweepSpec, Until};
pub use plan::SweepCell;
pub use screen::{row_of, screen_of, variants as variants_of_screen};
pub use search::SearchArguments;
pub use variant::Variant;
