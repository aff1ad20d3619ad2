//! The scripts of a run: their shares of its transactions, and how clients wait around them.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::feeder::Feeder;

/// A role, as it was called when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    pub name: String,
    pub oid: u32,
}

/// A script of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptSpec {
    /// The workload's name.
    pub name: String,
    pub source: String,
    /// Its share of the transactions, relative to the other scripts' weights; in a deck, its number of cards.
    pub weight: u32,
    /// Whether the scripts are dealt as cards of a deck instead of being drawn by weight.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_dealt: bool,
    /// How long a client waits before and after each of its transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Terminal>,
    /// Index of its fixture in [`RunSpec::fixtures`](super::RunSpec::fixtures).
    pub fixture: Option<usize>,
    /// Whether it is a part of a capture: errors of the data, such as keys that are there already, then fail the transaction
    /// and not the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub captured: bool,
    /// The arm of a duel that it is the script of. Both arms have each script, one behind the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<usize>,
    /// Whose sessions execute it, where that is another role than the run's; as a capture of several roles has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// Milliseconds of a transaction when it was captured, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub captured_ms: Option<f64>,
    /// The workload's feeders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feeders: Vec<Feeder>,
    /// Generic plans of its commands, from 1, as its target had them before the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plans: BTreeMap<u32, String>,
    /// And their identifiers in pg_stat_statements there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_ids: BTreeMap<u32, i64>,
}

/// The variables of a run that multiply the times of its workloads.
const KEYING: &str = "keying";
pub const THINK: &str = "think";

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
        let (keying, think) = (scale(KEYING, variables)?, think_scale(variables)?);
        let times = Self { keying_secs: self.keying_secs * keying, think_secs: self.think_secs * think };
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

/// Returns what multiplies think times and the captured pauses of transactions: the run's variable [`THINK`], or 1.
///
/// # Errors
/// 22023 for a variable that is no number of at least 0.
pub fn think_scale(variables: &Map<String, Value>) -> Result<f64, UserError> {
    scale(THINK, variables)
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

/// As many scripts as pgbench takes (`MAX_SCRIPTS`).
pub(crate) const MAX_SCRIPTS: usize = 128;

/// A workload's share of a run's transactions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The workload's name.
    pub workload: String,
    /// Relative to the others' weights; in a deck, how many cards are this one's.
    pub weight: u32,
    /// Whether the mix is a deck of cards, which each client shuffles and deals: shares are exact after each deck.
    #[serde(default)]
    pub is_dealt: bool,
}

/// What a mix begins with that is a deck of cards.
const DECK: &str = "deck:";

/// Whether a mix could name a workload, or a capture, like this.
pub fn is_name(name: &str, max_bytes: usize) -> bool {
    (1..=max_bytes).contains(&name.len()) && !name.contains(['@', ',']) && !name.starts_with(DECK)
}

/// The most cards of a deck: each client has one.
const MAX_CARDS: u64 = 10_000;

/// Takes a mix apart: names separated by commas, each with its weight behind an @, or 1 (`parseScriptWeight` in
/// pgbench.c); with `deck:` before them, weights are numbers of cards.
///
/// # Errors
/// 22023 for weights that are no whole numbers or all 0, and for too many workloads.
pub fn mix(text: &str) -> Result<Vec<Share>, UserError> {
    let (is_dealt, text) = text.trim_start().strip_prefix(DECK).map_or((false, text), |cards| (true, cards));
    let mut shares = Vec::new();
    for part in text.split(',') {
        let (name, weight) = match part.split_once('@') {
            None => (part, 1),
            Some((name, weight)) => {
                let weight = weight.trim();
                let digits = !weight.is_empty() && weight.bytes().all(|byte| byte.is_ascii_digit());
                let parsed = weight.parse::<u32>().ok().filter(|&w| digits && w <= i32::MAX as u32);
                let weight = parsed.ok_or_else(|| {
                    UserError::invalid(format!("invalid weight specification: \"{part}\""))
                        .hint("A weight is a whole number: 'pk_select@9,pk_update@1'.")
                })?;
                (name, weight)
            }
        };
        shares.push(Share { workload: name.trim().to_owned(), weight, is_dealt });
    }
    check_count(&shares)?;
    if shares.iter().all(|share| share.weight == 0) {
        return Err(UserError::invalid("total script weight must not be zero"));
    }
    Ok(shares)
}

fn check_count(shares: &[Share]) -> Result<(), UserError> {
    if shares.len() <= MAX_SCRIPTS {
        return Ok(());
    }
    Err(UserError::invalid(format!(
        "at most {MAX_SCRIPTS} workloads are allowed in a mix, not {}",
        shares.len()
    )))
}

/// A mix with each name that stands for a mix itself replaced by that one's workloads; its weight multiplies theirs.
///
/// # Errors
/// 22023 for too many workloads, for weights beyond those of a mix, for a deck beside other workloads and for one of too many
/// cards; those of `of_name`, which knows the mixes.
pub fn expand(
    mix: &[Share],
    mut of_name: impl FnMut(&str) -> Result<Option<Vec<Share>>, UserError>,
) -> Result<Vec<Share>, UserError> {
    let mut expanded = Vec::with_capacity(mix.len());
    for share in mix {
        let Some(inner) = of_name(&share.workload)? else {
            expanded.push(share.clone());
            continue;
        };
        for Share { workload, weight, is_dealt } in inner {
            let product = weight.checked_mul(share.weight).filter(|&weight| weight <= i32::MAX as u32);
            let weight = product.ok_or_else(|| {
                UserError::invalid(format!(
                    "weight {} of workload \"{}\" is too large",
                    share.weight, share.workload
                ))
                .hint(format!(
                    "It multiplies the weights of the workloads that \"{}\" stands for.",
                    share.workload
                ))
            })?;
            expanded.push(Share { workload, weight, is_dealt: is_dealt || share.is_dealt });
        }
    }
    check_count(&expanded)?;
    check_deck(expanded.iter().map(|share| (share.is_dealt, share.weight)))?;
    Ok(expanded)
}

/// A deck is a whole mix, whose weights are numbers of cards.
pub(crate) fn check_deck(shares: impl Iterator<Item = (bool, u32)> + Clone) -> Result<(), UserError> {
    if !shares.clone().any(|(is_dealt, _)| is_dealt) {
        return Ok(());
    }
    if !shares.clone().all(|(is_dealt, _)| is_dealt) {
        return Err(UserError::invalid("a deck cannot be part of a mix with weights").hint(format!(
            "Make all of it a deck, whose weights are numbers of cards: '{DECK}pk_select@9,pk_update@1'."
        )));
    }
    let cards: u64 = shares.map(|(_, weight)| u64::from(weight)).sum();
    if cards > MAX_CARDS {
        return Err(UserError::invalid(format!("a deck may have at most {MAX_CARDS} cards, not {cards}"))
            .hint("Its weights are numbers of cards."));
    }
    Ok(())
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
