//! Searches for a capacity: sweeps whose runs are trials, each of which decides on the next.

use bench_base::error::UserError;
use bench_questions::capacity::{CapacityAnswer, NextTrial, Trial, TrialOutcome};
use pgrx::JsonB;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::as_owner;
use crate::error::internal;
use crate::server::jsonb::json_of;
use crate::server::rows::select;
use crate::server::spi::{fetch, run};

fn from_json<T: DeserializeOwned>(json: Value) -> Result<T, UserError> {
    serde_json::from_value(json).map_err(|e| internal(e.to_string()))
}

/// The trials that a search has made, in their order.
pub fn trials(sweep_id: i64) -> Result<Vec<Trial>, UserError> {
    #[derive(Deserialize)]
    struct Row {
        place: u32,
        #[serde(flatten)]
        step: NextTrial,
        outcome: TrialOutcome,
    }
    let rows = as_owner(|| {
        select::<Row>(
            "SELECT place, round, rate, purpose, outcome FROM bench_internal.sweep_run_log \
             WHERE sweep_id = $1 AND outcome IS NOT NULL ORDER BY place",
            &[sweep_id.into()],
        )
    })?;
    Ok(rows.into_iter().map(|Row { place, step, outcome }| Trial { step, place, outcome }).collect())
}

/// Writes down the trial that a search is to make; its place. One that was not made, or did not count, gives way to it.
pub fn plan_trial(sweep_id: i64, step: &NextTrial, clients: u32) -> Result<i32, UserError> {
    let purpose = serde_json::to_value(step.purpose).map_err(|e| internal(e.to_string()))?;
    as_owner(|| {
        run(
            "DELETE FROM bench_internal.sweep_run_log WHERE sweep_id = $1 AND outcome IS NULL",
            &[sweep_id.into()],
        )?;
        let place = fetch::<i32>(
            "INSERT INTO bench_internal.sweep_run_log (sweep_id, place, round, variant, clients, rate, purpose) \
             SELECT $1, COALESCE(max(l.place), 0) + 1, $2, '', $3, $4, $5 \
             FROM bench_internal.sweep_run_log l WHERE l.sweep_id = $1 RETURNING place",
            &[
                sweep_id.into(),
                step.round.cast_signed().into(),
                clients.cast_signed().into(),
                step.rate.into(),
                purpose.as_str().unwrap_or_default().into(),
            ],
        )?;
        place.ok_or_else(|| internal("no place for a trial"))
    })
}

/// What a trial has shown.
pub fn keep_outcome(sweep_id: i64, place: i32, outcome: &TrialOutcome) -> Result<(), UserError> {
    let outcome = JsonB(json_of(outcome));
    as_owner(|| {
        let sql = "UPDATE bench_internal.sweep_run_log SET outcome = $3 WHERE sweep_id = $1 AND place = $2";
        run(sql, &[sweep_id.into(), place.into(), outcome.into()]).map(drop)
    })
}

/// What a search has shown, which is its end.
pub fn keep_answers(sweep_id: i64, answers: &[CapacityAnswer]) -> Result<(), UserError> {
    let answers = JsonB(json_of(answers));
    as_owner(|| {
        let sql = "UPDATE bench_internal.sweep_log SET answers = $2 WHERE sweep_id = $1";
        run(sql, &[sweep_id.into(), answers.into()]).map(drop)
    })
}

/// What a search has shown; nothing where it has not ended.
pub fn answers(sweep_id: i64) -> Result<Vec<CapacityAnswer>, UserError> {
    let sql = "SELECT answers FROM bench_internal.sweep_log WHERE sweep_id = $1";
    match as_owner(|| fetch::<JsonB>(sql, &[sweep_id.into()]))? {
        Some(json) => from_json(json.0),
        None => Ok(Vec::new()),
    }
}
