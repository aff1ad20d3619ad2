//! Which of several settings matter: what a screen runs, and the effects that its runs show.

mod answer;
mod ask;

pub use answer::{CombinedRun, ScreenMetric, ScreenRuns, above_limit, screen, sentence};
pub use ask::{row_of, screen_of, variants};
