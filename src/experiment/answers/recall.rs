//! The recall of an approximate index: arm a has the index and each combination of settings, arm b does without it.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{RunArguments, plain};
use bench_questions::answers::{Recall, RecallSample, pick, recall};
use pgrx::pg_sys;
use serde_json::{Map, Value as Json, json};

use super::ask::ask_session;
use super::request::{AnswerOptions, RecallRequest, SessionAnswer};
use crate::server::spi::{fetch, fetch_all};

/// More combinations are taken for a mistake.
const MAX_COMBINATIONS: usize = 100;

/// The arguments of bench.recall about the index.
pub struct RecallQuestion {
    pub index: pg_sys::Oid,
    /// Values of parameters, by name.
    pub vary: Json,
    pub at_least: f64,
}

/// The recall with a combination of settings.
pub struct CombinationRecall {
    pub settings: Json,
    /// `None` if no execution used the index and returned rows.
    pub recall: Option<Recall>,
    /// Whether it is the first one whose mean is high enough.
    pub is_picked: bool,
}

/// Measures the recall of an index with each combination of settings.
///
/// # Errors
/// 22023 for arguments, 42704 and 42809 for names that are no index, 55000 if no statement uses it; those of a run.
pub fn measure(
    question: &RecallQuestion,
    options: AnswerOptions,
    run: RunArguments,
) -> Result<Vec<CombinationRecall>, UserError> {
    let RecallQuestion { index, vary, at_least } = question;
    if !(0.0..=1.0).contains(at_least) {
        return Err(UserError::invalid(format!("at_least must be between 0 and 1, not {at_least}")));
    }
    let combinations = combinations(vary)?;
    let name = fetch::<String>("SELECT $1::regclass::text", &[(*index).into()])?.unwrap_or_default();
    // The first combination is in both arms, so that each switch of arms sets all parameters.
    let first = Json::Object(combinations[0].clone());
    let without = json!({ "settings": first, "hide_indexes": [name] });
    let settings = |combination: &Map<String, Json>| -> Vec<(String, String)> {
        combination.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
    };
    let request = RecallRequest {
        indexes: parts_of(*index)?,
        combinations: combinations.iter().map(settings).collect(),
    };
    let SessionAnswer { samples, .. } =
        ask_session(&json!({ "settings": first }), &without, options, Some(request), run)?;
    let recalls: Vec<Option<Recall>> =
        samples.iter().map(|samples: &Vec<RecallSample>| recall(samples)).collect();
    if recalls.iter().all(Option::is_none) {
        let message =
            format!("no execution of the workload's statements has used index \"{name}\" and returned rows");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("See the plans with EXPLAIN. enable_seqscan => off in settings makes the planner prefer the index."));
    }
    let picked = pick(&recalls, *at_least);
    let all = combinations.into_iter().zip(recalls).enumerate();
    Ok(all
        .map(|(place, (settings, recall))| CombinationRecall {
            settings: Json::Object(settings),
            recall,
            is_picked: picked == Some(place),
        })
        .collect())
}

/// Returns the index and those of its partitions.
fn parts_of(index: pg_sys::Oid) -> Result<Vec<u32>, UserError> {
    let sql = "SELECT relid::oid FROM pg_partition_tree($1) UNION SELECT $1::oid";
    let parts = fetch_all(sql, &[index.into()], |row| row.get::<pg_sys::Oid>(1))?;
    Ok(parts.into_iter().flatten().map(pg_sys::Oid::to_u32).collect())
}

/// Returns all combinations of the parameters' values; the first parameter's value changes last.
fn combinations(vary: &Json) -> Result<Vec<Map<String, Json>>, UserError> {
    const EXAMPLE: &str = "For example: vary => '{\"hnsw.ef_search\": [40, 80, 160]}'.";
    let malformed =
        || UserError::invalid("vary must be an object of parameters with arrays of values").hint(EXAMPLE);
    let mut all = vec![Map::new()];
    for (name, values) in vary.as_object().ok_or_else(malformed)? {
        let values = values.as_array().filter(|values| !values.is_empty()).ok_or_else(malformed)?;
        if values.iter().any(|value| value.is_object() || value.is_array() || value.is_null()) {
            return Err(malformed());
        }
        if all.len() * values.len() > MAX_COMBINATIONS {
            let message = format!("vary has more than {MAX_COMBINATIONS} combinations");
            return Err(UserError::invalid(message));
        }
        let with = |one: &Map<String, Json>, value: &Json| {
            let mut one = one.clone();
            one.insert(name.clone(), value.clone());
            one
        };
        all = all.iter().flat_map(|one| values.iter().map(move |value| with(one, value))).collect();
    }
    Ok(all)
}
