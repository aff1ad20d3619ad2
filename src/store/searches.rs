//! Searches for a capacity: sweeps whose runs are trials, each of which decides on the next.

use bench_base::error::UserError;
use bench_questions::capacity::{CapacityAnswer, NextTrial, Trial, TrialOutcome};
use pgrx::JsonB;
use serde::Deserialize;

use super::as_owner;
use super::extension_owner::{read, write};
use crate::error::internal;
use crate::server::jsonb::json_of;
use crate::server::rows::select;
use crate::server::spi::{fetch, run};

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
                json_of(&step.purpose).as_str().unwrap_or_default().into(),
            ],
        )?;
        place.ok_or_else(|| internal("no place for a trial"))
    })
}

/// What a trial has shown.
pub fn keep_outcome(sweep_id: i64, place: i32, outcome: &TrialOutcome) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_run_log SET outcome = $3 WHERE sweep_id = $1 AND place = $2";
    write(sql, &[sweep_id.into(), place.into(), JsonB(json_of(outcome)).into()])
}

/// What a search has shown, which is its end.
pub fn keep_answers(sweep_id: i64, answers: &[CapacityAnswer]) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_log SET answers = $2 WHERE sweep_id = $1";
    write(sql, &[sweep_id.into(), JsonB(json_of(answers)).into()])
}

/// What a search has shown; nothing where it has not ended.
pub fn answers(sweep_id: i64) -> Result<Vec<CapacityAnswer>, UserError> {
    let sql = "SELECT answers FROM bench_internal.sweep_log WHERE sweep_id = $1";
    Ok(read(sql, &[sweep_id.into()])?.unwrap_or_default())
}
