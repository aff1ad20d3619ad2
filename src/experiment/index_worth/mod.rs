//! What indexes are worth: the variants of the sweep that finds it out, and the copies of tables that they run on.

mod copies;
mod variants;

pub use variants::ask;
