//! The report for a terminal: what pgbench prints at its end, and more, in at most [`WIDTH`] columns.

mod lines;
mod run;
mod section;
mod sparkline;

pub use lines::{WIDTH, hanging, joined, write_title};
pub use run::render;
pub use section::write_section;
