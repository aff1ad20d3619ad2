//! What pg_settings says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A configuration parameter that is not at its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerSetting {
    /// The parameter.
    pub name: String,
    /// Its value as SHOW shows it, with its unit.
    pub setting: String,
    /// Where it was set, as in pg_settings.
    pub source: String,
}
