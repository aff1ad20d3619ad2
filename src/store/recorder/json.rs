//! Values as the jsonb columns of the results have them.

/// Returns a value as JSON.
pub(super) fn json_of<T: serde::Serialize>(value: &T) -> serde_json::Value {
    // What is written here consists of texts, numbers and lists of them.
    serde_json::to_value(value).unwrap_or_default()
}
