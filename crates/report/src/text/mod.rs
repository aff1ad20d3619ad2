//! The report for a terminal: what pgbench prints at its end, and more, in at most 100 columns.

mod lines;
mod report;
mod section;
mod sparkline;

pub use report::render;
pub use sparkline::of_tps as sparkline_of_tps;
