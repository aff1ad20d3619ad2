//! Values of users and of findings as texts.

use bench_base::number;
use bench_base::number::MISSING;
use bench_results::{Finding, plain};
use serde_json::{Map, Value};

/// Figures of a finding, of which four digits say enough where they are not whole. Lists are for programs: the
/// sentence tells what is in them.
pub fn figures(finding: &Finding) -> impl Iterator<Item = (&String, String)> {
    let shown = |value: &Value| match value.as_f64() {
        Some(number) if !value.is_i64() && !value.is_u64() => number::significant(number),
        _ => plain(value),
    };
    let single = finding
        .figures
        .iter()
        .filter(|(_, value)| !value.is_array() && !value.is_object() && !value.is_null());
    single.map(move |(name, value)| (name, shown(value)))
}

/// Names and values in one line; `None` of none.
pub fn pairs(map: &Map<String, Value>) -> Option<String> {
    let pairs: Vec<_> = map.iter().map(|(name, value)| format!("{name} = {}", plain(value))).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

/// Milliseconds in the unit that fits.
pub fn latency(ms: f64) -> String {
    let (value, unit) = number::short_ms(Some(ms));
    format!("{value} {unit}")
}

/// A text, unless there is none.
pub fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A text, or what stands for one that is not there.
pub fn or_missing(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or(MISSING)
}

/// A sentence on the rows that are not shown, where only the first of all are.
pub fn more_in_json(shown: usize, all: usize) -> Option<String> {
    let more = all.checked_sub(shown).filter(|more| *more > 0)?;
    Some(format!("The first {shown}; {} more are in the JSON.", number::count(more as u64)))
}
