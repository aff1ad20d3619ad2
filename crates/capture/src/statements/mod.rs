//! Statements of pg_stat_statements as scripts.

use serde_json::Value;

mod fit;
mod render;
mod rewrite;
#[cfg(test)]
mod tests;

pub use fit::{Fit, MIN_MEAN_BLOCKS, MIN_MEAN_ROWS, fit, generic_share, mean, relative_deviation};
pub use render::{script, shared, variable, with_casts, with_types, with_values};
pub use rewrite::{
    arbiter, expanded, grouped, has_constants, highest_parameter, parsable, squashed, with_texts,
};

/// Returns the weights of a mix, in proportion to the calls: at least 1 each, and at most about a million in all.
pub fn weights(calls: &[i64]) -> Vec<i32> {
    const MAX_TOTAL: f64 = 1e6;
    let total: f64 = calls.iter().map(|&calls| calls as f64).sum();
    let scale = if total > MAX_TOTAL { MAX_TOTAL / total } else { 1.0 };
    calls.iter().map(|&calls| ((calls as f64 * scale).round() as i32).max(1)).collect()
}

/// Masks the texts and keys of a JSON document as [`masked`]; masks a text that is not JSON as a whole.
pub fn masked_json(text: &str) -> String {
    fn mask(value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(masked(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(mask).collect()),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, value)| (masked(&key), mask(value))).collect())
            }
            other => other,
        }
    }
    serde_json::from_str(text).map_or_else(|_| masked(text), |value| mask(value).to_string())
}

/// Replaces letters and digits of a text by others, drawn from a hash of the whole text: equal texts stay equal, so that the
/// distribution of values stays.
pub fn masked(text: &str) -> String {
    // FNV-1a of 64 bits, then a step of SplitMix64 for each character.
    let mut state = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mask = |character: char| {
        let number = draw();
        match character {
            '0'..='9' => char::from(b'0' + (number % 10) as u8),
            'A'..='Z' => char::from(b'A' + (number % 26) as u8),
            c if c.is_alphabetic() && c.len_utf8() == 1 => char::from(b'a' + (number % 26) as u8),
            c if c.is_alphanumeric() => 'x',
            other => other,
        }
    };
    text.chars().map(mask).collect()
}
