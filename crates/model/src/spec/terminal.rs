//! Clients that wait as people at terminals do: for the keys before a transaction, and to think after it.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The variables of a run that multiply the times of its workloads.
const SCALES: [&str; 2] = ["keying", "think"];

/// The longest of the times, in seconds: a day.
const MAX_SECS: f64 = 86_400.0;

/// How long a client waits around a transaction, in seconds. None of it counts as the transaction's latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terminal {
    /// Before each transaction: keying.
    pub keying_secs: f64,
    /// After each transaction: the mean of think times, which are exponentially distributed.
    pub think_secs: f64,
}

impl Terminal {
    /// Times as a workload has them, multiplied by the run's variables `keying` and `think`, where these are given.
    ///
    /// # Errors
    /// 22023 for a variable that is no number of at least 0, and for times beyond a day.
    pub fn scaled(self, variables: &Map<String, Value>) -> Result<Self, UserError> {
        let [keying, think] = SCALES.map(|name| scale(name, variables));
        let times = Self { keying_secs: self.keying_secs * keying?, think_secs: self.think_secs * think? };
        times.check().map(|()| times)
    }

    /// # Errors
    /// 22023 for times below 0 or beyond a day.
    pub(crate) fn check(&self) -> Result<(), UserError> {
        let Self { keying_secs, think_secs } = self;
        if [keying_secs, think_secs].into_iter().all(|secs| (0.0..=MAX_SECS).contains(secs)) {
            return Ok(());
        }
        Err(UserError::invalid(format!(
            "keying and think times must be between 0 and {MAX_SECS} seconds, not {keying_secs} and {think_secs}"
        )))
    }
}

fn scale(name: &str, variables: &Map<String, Value>) -> Result<f64, UserError> {
    let Some(given) = variables.get(name) else { return Ok(1.0) };
    let number = match given {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    number.filter(|number: &f64| number.is_finite() && *number >= 0.0).ok_or_else(|| {
        UserError::invalid(format!("variable \"{name}\" must be a number of at least 0, not {given}"))
            .hint("It multiplies the workload's times: 1 leaves them as they are, 0 leaves them out.")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NEW_ORDER: Terminal = Terminal { keying_secs: 18.0, think_secs: 12.0 };

    fn scaled(variables: Value) -> Result<Terminal, UserError> {
        let Value::Object(variables) = variables else { panic!("an object") };
        NEW_ORDER.scaled(&variables)
    }

    #[test]
    fn variables_multiply_times() {
        assert_eq!(scaled(json!({"other": "x"})), Ok(NEW_ORDER));
        let times = Terminal { keying_secs: 0.0, think_secs: 6.0 };
        assert_eq!(scaled(json!({"keying": 0, "think": "0.5"})), Ok(times));
    }

    #[test]
    fn other_values_are_refused() {
        for bad in
            [json!("soon"), json!(-1), json!(null), json!(true), json!("inf"), json!("NaN"), json!(1e9)]
        {
            let error = scaled(json!({ "think": bad })).expect_err("no number of at least 0");
            assert_eq!(error.sqlstate, bench_base::error::sqlstate::INVALID_PARAMETER_VALUE);
        }
    }
}
