//! JUnit's XML, as services of continuous integration read it.

mod run;
mod suite;

pub use run::run;
pub use suite::{Case, Outcome, suite};
