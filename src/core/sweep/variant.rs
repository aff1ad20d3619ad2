//! A variant: what distinguishes some runs of a sweep from the others.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{invalid, object};
use crate::error::UserError;

/// What a variant changes. In SQL it is an object of configuration parameters, as `settings` of bench.run, in which
/// `variables`, `load` and `system` may be objects of their own: no parameter of the server has such a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Empty where there are no variants.
    pub name: String,
    /// Configuration parameters of the clients' sessions.
    pub settings: Map<String, Value>,
    /// Script variables.
    pub variables: Map<String, Value>,
    /// Rows, jobs and options of bench.load: the fixture is loaded so.
    pub load: Map<String, Value>,
    /// Configuration parameters of the server, to be set by ALTER SYSTEM.
    pub system: Map<String, Value>,
}

/// The variants of a sweep, in the order of their names, as jsonb has them.
pub fn parse(variants: Value) -> Result<Vec<Variant>, UserError> {
    let variants = object("variants", variants)?;
    if variants.is_empty() {
        return Ok(vec![Variant::default()]);
    }
    variants.into_iter().map(|(name, changes)| one(name, changes)).collect()
}

/// A variant by its name and what it changes.
pub fn one(name: String, changes: Value) -> Result<Variant, UserError> {
    const EXAMPLE: &str = "For example: variants => '{\"off\": {\"synchronous_commit\": \"off\"}, \"on\": {\"synchronous_commit\": \"on\"}}'.";
    if name.trim().is_empty() {
        return Err(invalid("a variant must have a name").hint(EXAMPLE));
    }
    let Value::Object(changes) = changes else {
        return Err(invalid(format!("variant \"{name}\" must be a JSON object")).hint(EXAMPLE));
    };
    let mut variant = Variant { name, ..Variant::default() };
    for (key, value) in changes {
        let Value::Object(group) = value else {
            variant.settings.insert(key, value);
            continue;
        };
        match key.as_str() {
            "settings" => variant.settings.extend(group),
            "variables" => variant.variables = group,
            "load" => variant.load = group,
            "system" => variant.system = group,
            _ => {
                return Err(invalid(format!("variant \"{}\" has an unrecognized group: \"{key}\"", variant.name))
                    .hint("Beside configuration parameters it may have the groups settings, variables, load and system."));
            }
        }
    }
    Ok(variant)
}
