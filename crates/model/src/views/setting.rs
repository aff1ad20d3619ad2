//! What pg_settings says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of a session's search_path and its parameters that are not at their defaults, as JSON: asked under that path, which
/// is one of them.
pub const SETTINGS_QUERY: &str = "SELECT /* pgbench_ext */ pg_catalog.json_build_object( \
     'search_path', pg_catalog.current_setting('search_path'), \
     'settings', (SELECT pg_catalog.json_agg(pg_catalog.json_build_object( \
             'name', s.name, 'setting', pg_catalog.current_setting(s.name), 'source', s.source) ORDER BY s.name) \
         FROM pg_catalog.pg_settings s \
         WHERE NOT s.source OPERATOR(pg_catalog.=) ANY (ARRAY['default', 'override']) \
           AND coalesce(s.setting OPERATOR(pg_catalog.<>) s.boot_val, true)))";

/// The answer to [`SETTINGS_QUERY`].
#[derive(Deserialize)]
pub struct SettingsAnswer {
    /// As SHOW shows it.
    pub search_path: String,
    /// `None`: all are at their defaults.
    pub settings: Option<Vec<ServerSetting>>,
}

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
