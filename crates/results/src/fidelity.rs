//! How well a run replays what was captured, as it is kept and shown.

use serde::{Deserialize, Serialize};

/// One aspect of a replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FidelityPart {
    pub part: String,
    pub captured: Option<f64>,
    pub replayed: Option<f64>,
    /// From 0 to 1; `None`: is not judged.
    pub score: Option<f64>,
    /// What makes the score low, or why there is none.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unreplayed {
    /// Statements, or kinds of transactions of a capture from the log.
    pub statements: u64,
    /// Of the captured execution time, as a fraction.
    pub share: f64,
}
