//! What the report of a sweep says, apart from how it looks.

mod capacity;
mod comparison;
mod headline;
mod indexes;
mod round_trip;
mod runs;
mod scalability;
mod screen;
mod sections;
mod setup;
mod tables;
mod variants;

pub use capacity::{percentile_name, sentence, trials_of};
pub use comparison::{headline as headline_of_sides, remarks, subtitle as subtitle_of_sides, workloads};
pub use headline::{opening_lines, outcome, subject, subtitle};
pub use sections::sections;
pub use variants::label;
