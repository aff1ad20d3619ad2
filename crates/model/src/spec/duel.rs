//! A duel: two arms that take turns in one run.

use bench_base::error::{UserError, sqlstate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::values::{QueryMode, Results, check_text, object, settings, variables, word};

/// The arms' names, in the order of scripts and counters.
pub const ARMS: [&str; 2] = ["a", "b"];

/// Parts of a sweep's variant that cannot alternate within a run.
const OF_WHOLE_RUNS: [&str; 8] =
    ["load", "system", "restart", "sql", "driver", "jobs", "reconnect", "on_disconnect"];

/// The parameter of PostgreSQL 19's pg_plan_advice that an arm's `plan_advice` is.
pub const PLAN_ADVICE: &str = "pg_plan_advice.advice";

/// What is special to the transactions of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Arm {
    /// Configuration parameters of the session: name and value as text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(String, String)>,
    /// The role whose settings it has besides, as ALTER ROLE … SET made them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_settings: Option<String>,
    /// What it runs instead of the run's own workload; of arm b only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// A script that it runs instead; of arm b only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Where its clients' connections lead instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_mode: Option<QueryMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<Results>,
    /// Script variables.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
    /// Indexes that the planner does not see, as they are named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hide_indexes: Vec<String>,
    /// Their OIDs, those of partitions among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<u32>,
}

/// Both arms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Duel {
    pub arms: [Arm; 2],
    /// As they were given, in the order of [`ARMS`].
    pub given: [Value; 2],
    /// The run ends as soon as it is decided by this margin; `None`: after its time.
    #[serde(default)]
    pub margin: Option<f64>,
    /// What the version() of each arm's target says, where these are two.
    #[serde(default)]
    pub versions: Option<[String; 2]>,
    /// Whether its statements answered the same before the run, as far as that was compared.
    #[serde(default)]
    pub answers: Vec<AnswerVerdict>,
}

/// Whether a statement answers the same in both arms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerVerdict {
    /// The script's name, without its arm.
    pub workload: String,
    /// Its place in the script, from 1.
    pub command: u32,
    /// As bench.answers returns it.
    pub verdict: String,
}

/// What differs less than this is the same, where no margin is given.
pub const MARGIN: f64 = 0.02;

impl Arm {
    /// As the variant of a sweep: parameters, and groups of others.
    fn new(name: &str, given: &Value) -> Result<Self, UserError> {
        let mut arm = Self::default();
        let mut parameters = Map::new();
        for (key, value) in object(name, given.clone())? {
            match (key.as_str(), value) {
                ("settings", value) => parameters.extend(object("settings", value)?),
                ("variables", value) => arm.variables = variables(value)?,
                ("role_settings", value) => arm.role_settings = Some(text(name, &key, value)?),
                ("workload", value) => arm.workload = Some(text(name, &key, value)?),
                ("script", value) => arm.script = Some(text(name, &key, value)?),
                ("target", value) => arm.target = Some(text(name, &key, value)?),
                ("query_mode", value) => {
                    arm.query_mode = Some(word("query_mode", Some(text(name, &key, value)?))?);
                }
                ("plan_advice", value) => {
                    parameters.insert(PLAN_ADVICE.to_owned(), text(name, &key, value)?.into());
                }
                ("results", value) => arm.results = Some(word("results", Some(text(name, &key, value)?))?),
                ("hide_indexes", value) => {
                    arm.hide_indexes = names(value).ok_or_else(|| {
                        UserError::invalid(format!(
                            "hide_indexes of arm {name} must be an array of names of indexes"
                        ))
                    })?
                }
                (other, _) if OF_WHOLE_RUNS.contains(&other) => {
                    let message = format!("arms of a duel cannot differ in \"{other}\"");
                    return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                        .hint("It cannot alternate within a run. Compare whole runs with bench.ab."));
                }
                (other, Value::Object(_) | Value::Array(_)) => {
                    return Err(UserError::invalid(format!("arm {name} has an unrecognized group: \"{other}\"")).hint(
                        "An arm may have configuration parameters, and settings, variables, hide_indexes, plan_advice, \
                         workload, script, target, query_mode, results and role_settings.",
                    ));
                }
                (_, value) => drop(parameters.insert(key, value)),
            }
        }
        arm.settings = settings(Value::Object(parameters))?;
        if arm.workload.is_some() && arm.script.is_some() {
            return Err(UserError::invalid(format!(
                "workload and script of arm {name} are mutually exclusive"
            )));
        }
        Ok(arm)
    }

    /// Whether its transactions are others than the run's.
    pub fn has_own_script(&self) -> bool {
        self.workload.is_some() || self.script.is_some()
    }
}

/// A text of an arm's group.
fn text(arm: &str, key: &str, value: Value) -> Result<String, UserError> {
    match value {
        Value::String(text) => {
            check_text(key, &text)?;
            Ok(text)
        }
        _ => Err(UserError::invalid(format!("{key} of arm {arm} must be text"))),
    }
}

/// A name, or several.
fn names(value: Value) -> Option<Vec<String>> {
    match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

impl Duel {
    /// # Errors
    /// 22023 for what is no arm.
    pub fn new(a: &Value, b: &Value) -> Result<Self, UserError> {
        let arms = [Arm::new(ARMS[0], a)?, Arm::new(ARMS[1], b)?];
        let [one, other] = &arms;
        let lacks = |arm: &Arm, than: &Arm| {
            than.variables.keys().find(|name| !arm.variables.contains_key(*name)).cloned()
        };
        for (arm, than, name) in [(one, other, ARMS[0]), (other, one, ARMS[1])] {
            if let Some(missing) = lacks(arm, than) {
                return Err(UserError::invalid(format!("arm {name} has no variable \"{missing}\""))
                    .hint("Both arms need the same variables: set it in both."));
            }
        }
        Ok(Self { arms, given: [a.clone(), b.clone()], ..Self::default() })
    }

    /// The target of arm b, where that is another one than the run's: then the clients are one arm's each, by turns.
    pub fn other_target(&self) -> Option<&str> {
        self.arms[1].target.as_deref()
    }

    /// The arm that a client has all the time; `None`: each by turns.
    pub fn arm_of(&self, client: u32) -> Option<usize> {
        self.other_target().map(|_| client as usize % ARMS.len())
    }

    /// What is kept of it with the run.
    pub fn recorded(&self) -> Value {
        let [a, b] = &self.given;
        let mut recorded = json!({ ARMS[0]: a, ARMS[1]: b });
        if let Some(margin) = self.margin {
            recorded["margin"] = margin.into();
        }
        if let Some(versions) = &self.versions {
            recorded["versions"] = json!(versions);
        }
        if !self.answers.is_empty() {
            recorded["answers"] = json!(self.answers);
        }
        recorded
    }

    /// The settings of an arm: its own, and, of the parameters that only the other one sets, what `base` says of them.
    ///
    /// # Errors
    /// 22023 for one that has no value there: the other arm's would stay.
    pub fn settings_of(
        &self,
        arm: usize,
        base: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, UserError> {
        let mut all = self.arms[arm].settings.clone();
        for (name, _) in &self.arms[1 - arm].settings {
            if all.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                continue;
            }
            let value = base(name).ok_or_else(|| {
                UserError::invalid(format!("arm {} has no value of \"{name}\"", ARMS[arm]))
                    .hint("Sessions begin without it. Set it in both arms, or in settings of the run.")
            })?;
            all.push((name.clone(), value));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_arm_has_what_is_known() {
        let duel = Duel::new(
            &json!({}),
            &json!({"work_mem": "1MB", "settings": {"jit": false}, "hide_indexes": "t_a_idx"}),
        )
        .unwrap();
        let setting = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(duel.arms[1].settings, [setting("jit", "off"), setting("work_mem", "1MB")]);
        assert_eq!(duel.arms[1].hide_indexes, ["t_a_idx"]);
        let base = |name: &str| Some(format!("base of {name}"));
        let of_base = [setting("jit", "base of jit"), setting("work_mem", "base of work_mem")];
        assert_eq!(duel.settings_of(0, base).unwrap(), of_base);
        assert_eq!(duel.settings_of(1, base).unwrap(), duel.arms[1].settings);
        let error = duel.settings_of(0, |_| None).unwrap_err();
        assert_eq!(error.message, "arm a has no value of \"jit\"");
        let duel = Duel::new(&json!({"plan_advice": "SEQ_SCAN(t)"}), &json!({})).unwrap();
        assert_eq!(duel.arms[0].settings, [setting(PLAN_ADVICE, "SEQ_SCAN(t)")]);
        let error = Duel::new(&json!({}), &json!({"system": {}})).unwrap_err();
        assert!(error.message.contains("differ in \"system\"") && error.hint.unwrap().contains("bench.ab"));
        assert!(Duel::new(&json!({"other": {}}), &json!({})).is_err());
        assert!(Duel::new(&json!([]), &json!({})).is_err());
        for arm in [
            json!({"hide_indexes": [1]}),
            json!({"plan_advice": ["SEQ_SCAN(t)"]}),
            json!({"query_mode": "none"}),
            json!({"results": 1}),
            json!({"workload": "x", "script": "SELECT 1"}),
        ] {
            assert!(Duel::new(&arm, &json!({})).is_err(), "{arm}");
        }
        let error = Duel::new(&json!({"variables": {"n": 1}}), &json!({})).unwrap_err();
        assert_eq!(error.message, "arm b has no variable \"n\"");
    }
}
