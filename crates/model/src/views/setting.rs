//! What pg_settings says.

use serde::{Deserialize, Serialize};

/// A configuration parameter that is not at its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSetting {
    pub name: String,
    /// As SHOW shows it.
    pub setting: String,
    /// As pg_settings.source.
    pub source: String,
}
