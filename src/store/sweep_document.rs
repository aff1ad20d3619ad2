//! Everything that is known of a sweep, read back for its report.

use bench_base::error::UserError;
use bench_questions::sweep::Question;
use bench_results::experiment::{ExperimentDocument, Sweep};

use super::extension_owner::read;
use super::sweeps::{reached, sweep_options};
use super::{fidelity, index_worth, screens, visible};
use crate::shm::Work;

/// A sweep and its runs, for its report.
///
/// # Errors
/// 42704 for a sweep that does not exist, 42501 for one that the caller may not see.
pub fn sweep_document(sweep_id: i64) -> Result<ExperimentDocument, UserError> {
    visible(Work::Sweep(sweep_id))?;
    const DOCUMENT: &str = "\
        SELECT jsonb_strip_nulls(jsonb_build_object( \
            'changes', (SELECT l.changes FROM bench_internal.sweep_log l WHERE l.sweep_id = $1), \
            'capacities', (SELECT l.answers FROM bench_internal.sweep_log l WHERE l.sweep_id = $1), \
            'sweep', (SELECT to_jsonb(s) FROM bench.sweeps s WHERE s.sweep_id = $1), \
            'runs', (SELECT jsonb_agg(r ORDER BY r.run_id IS NULL, r.place) FROM bench.sweep_runs r WHERE r.sweep_id = $1), \
            'environment', (SELECT r.environment FROM bench.runs r JOIN bench_internal.sweep_run_log s USING (run_id) \
                            WHERE s.sweep_id = $1 AND r.status = 'completed' ORDER BY s.place LIMIT 1)))";
    let document: ExperimentDocument = read(DOCUMENT, &[sweep_id.into()])?.unwrap_or_default();
    // What is not understood of its options, as a later version may write them, is not shown.
    let (sure_within, (screen, indexes)) = match sweep_options(sweep_id) {
        Ok(options) => {
            let answer = match &options.question {
                Some(Question::Screen(asked)) => {
                    (screens::lines_of(sweep_id, asked, &options, None, None)?, Vec::new())
                }
                Some(Question::IndexWorth(asked)) => {
                    (Vec::new(), index_worth::lines_of(sweep_id, asked, false)?)
                }
                None => Default::default(),
            };
            (reached(sweep_id, &options)?, answer)
        }
        Err(_) => Default::default(),
    };
    let first = document.runs.iter().find(|run| run.status.as_deref() == Some("completed"));
    let unreplayed = first.and_then(|run| run.run_id).map_or(Ok(None), fidelity::unreplayed)?;
    let sweep = Sweep { sure_within, ..document.sweep };
    Ok(ExperimentDocument { schema_version: 1, sweep, unreplayed, screen, indexes, ..document })
}
