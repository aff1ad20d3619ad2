//! Which of several settings matter: what is tried, and what it has shown; the module `screen` of bench_questions makes that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is tried; travels as JSON and is kept with the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Screen {
    pub factors: Vec<Factor>,
    /// Effects within this share are none.
    pub margin: f64,
}

/// A setting with two levels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Factor {
    /// Name of the parameter.
    pub name: String,
    pub a: Value,
    pub b: Value,
    pub kind: FactorKind,
}

/// When a setting can be changed, which says how its effect is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactorKind {
    /// In a session: a duel of its own.
    #[default]
    Session,
    /// In the whole server: with all others of the server, by runs of combinations.
    System,
    /// So, with a restart.
    Restart,
}

impl Screen {
    /// The factors that runs of combinations are for, in their order.
    pub fn combined(&self) -> impl Iterator<Item = &Factor> {
        self.factors.iter().filter(|factor| factor.kind != FactorKind::Session)
    }
}

/// What a setting does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScreenLine {
    /// `tps`, or `latency_avg_ms` under a rate.
    pub metric: String,
    /// The setting.
    pub factor: String,
    /// Its first value, which the other is compared with.
    pub a: String,
    /// Its second value.
    pub b: String,
    /// Change of the metric from `a` to `b`, as a share.
    pub effect: Option<f64>,
    /// Effects within this share count as none.
    pub margin: f64,
    /// Lower bound of its interval; all intervals of the screen hold together with 95 %.
    pub effect_low: Option<f64>,
    /// Upper bound of that interval.
    pub effect_high: Option<f64>,
    /// `faster`, `slower` or `same` with `b`, `inconclusive`, or `fails`: a value does not work.
    pub verdict: String,
    /// Interactions that the effect cannot be told from.
    pub aliases: Option<String>,
    /// Why a value does not work.
    pub error: Option<String>,
}
