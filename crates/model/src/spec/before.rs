//! The state that a run is to begin with.

use bench_base::error::UserError;

use super::limits;
use super::values::{Word, words};

words! {
    /// What is done before a run, in the order in which it is done.
    pub enum Before {
        /// The workload's fixtures are loaded anew, as they were loaded.
        Reload = "reload",
        /// Fixtures that were loaded without rows are emptied, and the table that pgbench's own scripts fill.
        Truncate = "truncate",
        /// VACUUM (ANALYZE) of the fixtures' tables.
        Vacuum = "vacuum",
        /// Tables, their TOAST tables and indexes are read into shared buffers.
        Prewarm = "prewarm",
        /// CHECKPOINT.
        Checkpoint = "checkpoint",
    }
}

/// Steps as the text that [`Before::parse`] takes.
pub(super) mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Before;

    pub fn serialize<S: Serializer>(steps: &[Before], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Before::text(steps))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Before>, D::Error> {
        Before::parse(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl Before {
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
            let known = Self::WORDS.iter().find(|(known, _)| *known == word);
            let (_, step) = known.ok_or_else(|| {
                UserError::invalid(format!("unrecognized value for before: \"{word}\"")).hint(
                    "Available values: 'none', 'reload', 'truncate', 'vacuum', 'prewarm', 'checkpoint', or several of them: 'vacuum,checkpoint'.",
                )
            })?;
            steps.push(*step);
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
