//! The report as one page that needs nothing but itself: no script, no font, no picture from elsewhere. It is read
//! on a telephone and on a desk, by day and by night, and on paper.

pub mod page;
mod run;

pub use run::*;
