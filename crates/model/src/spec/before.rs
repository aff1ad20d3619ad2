//! The state that a run is to begin with.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

use super::limits;

/// What is done before a run, in the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// The workload's fixtures are loaded anew, as they were loaded.
    Reload,
    /// Fixtures that were loaded without rows are emptied, and the table that pgbench's own scripts fill.
    Truncate,
    /// VACUUM (ANALYZE) of the fixtures' tables.
    Vacuum,
    /// Tables, their TOAST tables and indexes are read into shared buffers.
    Prewarm,
    /// CHECKPOINT.
    Checkpoint,
}

impl Before {
    const ALL: [Self; 5] = [Self::Reload, Self::Truncate, Self::Vacuum, Self::Prewarm, Self::Checkpoint];

    /// The word users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::Truncate => "truncate",
            Self::Vacuum => "vacuum",
            Self::Prewarm => "prewarm",
            Self::Checkpoint => "checkpoint",
        }
    }

    /// Takes 'none', or one or more words separated by commas.
    ///
    /// # Errors
    /// 22023 for another word, 54000 for a text beyond the [`limits`].
    pub fn parse(text: &str) -> Result<Vec<Self>, UserError> {
        limits::check_text("before", text)?;
        if text.trim() == "none" {
            return Ok(Vec::new());
        }
        let mut steps = Vec::new();
        for word in text.split(',').map(str::trim) {
            let step = Self::ALL.into_iter().find(|step| step.as_str() == word).ok_or_else(|| {
                UserError::invalid(format!("unrecognized value for before: \"{word}\"")).hint(
                    "Available values: 'none', 'reload', 'truncate', 'vacuum', 'prewarm', 'checkpoint', or several of them: 'vacuum,checkpoint'.",
                )
            })?;
            steps.push(step);
        }
        steps.sort();
        steps.dedup();
        Ok(steps)
    }

    /// What [`Before::parse`] takes for these steps.
    pub fn text(steps: &[Self]) -> String {
        if steps.is_empty() {
            return "none".to_owned();
        }
        steps.iter().map(|step| step.as_str()).collect::<Vec<_>>().join(",")
    }
}
