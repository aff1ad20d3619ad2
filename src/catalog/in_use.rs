//! Runs that work on a fixture at this moment.

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::RunSpec;
use pgrx::pg_sys;

use super::{as_owner, fetch_all};
use crate::shm::Segment;
use crate::worker::is_under_way;

/// # Errors
/// 55006 with the run that works on one of the tables.
pub fn check_unused(fixture: &str, tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let open = as_owner(|| {
        let sql = "SELECT run_id, segment FROM bench.run_log WHERE status IN ('starting', 'running') ORDER BY run_id";
        fetch_all(sql, &[], |row| {
            let segment = row.get::<i64>(2)?.unwrap_or_default() as u32;
            Ok((row.get::<i64>(1)?.unwrap_or_default(), segment))
        })
    })?;
    let works_on_it = |run_id: i64, segment: &Segment| {
        segment.is_of_run(run_id)
            && is_under_way(segment)
            && serde_json::from_str::<RunSpec>(segment.spec()).is_ok_and(|spec| {
                let used = spec.fixtures.iter().flat_map(|f| &f.tables);
                used.copied().any(|used| tables.iter().any(|table| table.to_u32() == used))
            })
    };
    for (run_id, segment) in open {
        if Segment::peek(segment, |segment| works_on_it(run_id, segment)) == Some(true) {
            return Err(UserError::new(
                sqlstate::OBJECT_IN_USE,
                format!("fixture \"{fixture}\" is being used by run {run_id}"),
            )
            .hint(format!("Wait for it, or end it: SELECT bench.stop({run_id}).")));
        }
    }
    Ok(())
}
