//! The runs of a sweep that tells what indexes are worth.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_questions::index_worth::{VariantDuels, index_worth};
use bench_questions::sweep::Question;
use bench_results::experiment::{AskedIndex, IndexLine, IndexWorth};

use super::duels::duel_batches;
use super::extension_owner::read;
use super::sweeps::{sweep_options, sweep_runs_of};
use super::visible;
use crate::shm::Work;

/// What the indexes are worth that a sweep looks at; in latency, or in processor time.
///
/// # Errors
/// 42704 and 42501 as of a sweep, 55000 for one that looks at no index.
pub fn index_lines(
    sweep_id: i64,
    of_processor: bool,
    margin: Option<f64>,
) -> Result<Vec<IndexLine>, UserError> {
    visible(Work::Sweep(sweep_id))?;
    let Some(Question::IndexWorth(asked)) = sweep_options(sweep_id)?.question else {
        let message = format!("sweep {sweep_id} does not look at indexes");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("bench.index_worth and bench.start_index_worth make such sweeps."));
    };
    let margin = margin.unwrap_or(asked.margin);
    lines_of(sweep_id, &IndexWorth { margin, ..asked }, of_processor)
}

/// As [`index_lines`], of a sweep that the caller may see.
pub(super) fn lines_of(
    sweep_id: i64,
    asked: &IndexWorth,
    of_processor: bool,
) -> Result<Vec<IndexLine>, UserError> {
    let mut duels: BTreeMap<String, VariantDuels> = BTreeMap::new();
    for run in sweep_runs_of(sweep_id)? {
        pgrx::check_for_interrupts!();
        let of = duels.entry(run.variant.clone()).or_default();
        of.variant.clone_from(&run.variant);
        match (run.run_id, run.error) {
            (_, Some(error)) => of.error = Some(error),
            (Some(run_id), None) if run.status.as_deref() == Some("completed") => {
                of.run_id = Some(run_id);
                match elsewhere(&asked.indexes, &run.variant, run_id)? {
                    Some(error) => of.error = Some(error),
                    None => of.batches.extend(duel_batches(run_id)?),
                }
            }
            _ => {}
        }
    }
    let duels: Vec<VariantDuels> = duels.into_values().collect();
    Ok(index_worth(asked, &duels, of_processor))
}

/// That a run on copies has written to the table itself, so that it says nothing of the copies.
fn elsewhere(indexes: &[AskedIndex], variant: &str, run_id: i64) -> Result<Option<String>, UserError> {
    let Some(index) = indexes.iter().find(|index| index.writes == variant) else { return Ok(None) };
    let sql = "SELECT true FROM bench_internal.relation_log WHERE run_id = $1 AND relation = $2 \
               AND COALESCE(inserted, 0) + COALESCE(updated, 0) + COALESCE(deleted, 0) > 0 LIMIT 1";
    let found = read::<bool>(sql, &[run_id.into(), index.table.as_str().into()])?;
    Ok(found.map(|_| {
        format!("the workload wrote to {} itself, and not to its copies: it names the schema", index.table)
    }))
}
