//! The charts of a run. A figure is a function that describes its [`Chart`] from a document; [`svg`] draws all of them:
//! shapes and numbers, and no text of a user's but on axes.

pub mod axis;
mod by_node;
pub mod chart;
mod duel;
pub mod forest;
mod heat_map;
pub mod latency;
mod marks;
mod open_loop;
pub mod palette;
mod run;
mod stacked;
mod svg;
mod throughput;
pub mod times;
mod wal;

pub use chart::Chart;
pub use run::charts;
pub use svg::svg;
