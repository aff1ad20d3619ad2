//! How well a run replays what was captured, as it is kept and shown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One aspect of the run of a whole capture, as in `bench.fidelity_parts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FidelityPart {
    /// Aspect that is compared, such as `statements` or `WAL flushes`.
    pub part: String,
    /// Value of the application, per transaction.
    pub captured: Option<f64>,
    /// Value of the run.
    pub replayed: Option<f64>,
    /// 0 to 1, 1 if both are equal; null if they are not judged.
    pub score: Option<f64>,
    /// Cause of a low score, or of its absence.
    pub reason: Option<String>,
}

/// The score of the whole, which is that of the worst part, and what is wrong with the worst three.
pub fn whole(parts: &[FidelityPart]) -> Option<(f64, Option<String>)> {
    let mut judged: Vec<(f64, &FidelityPart)> =
        parts.iter().filter_map(|part| Some((part.score?, part))).collect();
    judged.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let reasons: Vec<&str> = judged.iter().filter_map(|(_, part)| part.reason.as_deref()).take(3).collect();
    judged.first().map(|(score, _)| (*score, (!reasons.is_empty()).then(|| reasons.join("; "))))
}

/// What of a capture is not replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unreplayed {
    /// Number of statements that are not replayed, or of kinds of transactions of a capture from the log.
    pub statements: u64,
    /// Their fraction of the captured execution time.
    pub share: f64,
}
