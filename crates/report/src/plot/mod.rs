//! The plots of a run as SVG, drawn by plotters: shapes and numbers only, no text of a user's. Titles, legends and
//! captions are left to the page around them, which can wrap lines.
//!
//! All plots have one size and the same margins, so that the time axes of a page line up. Lengths are in half
//! pixels of a plot of 640 × 300: plotters knows whole numbers only.

pub mod axis;
mod by_node;
mod duel;
mod figure;
pub mod forest;
pub mod frame;
mod heat_map;
pub mod hover;
pub mod latency;
pub mod lines;
mod marks;
mod open_loop;
pub mod palette;
mod run;
mod stacked;
mod steps;
mod throughput;
mod times;
mod wal;

pub use figure::Figure;
pub use run::figures;
