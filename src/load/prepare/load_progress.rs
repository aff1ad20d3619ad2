//! How far a load under way is, and the NOTICEs of bench.load.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use crate::server::process::{forget_activity, now_ns};
use crate::server::spi;
use crate::shm::{LoadPhase, RunState, Segment};
use crate::store;

/// How often bench.load reports its progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Where a load stands.
pub struct Standing {
    pub phase: LoadPhase,
    pub elapsed_secs: f64,
    pub rows: u64,
    pub ids: u64,
    pub rows_per_sec: f64,
    /// Until the rows are written; it cannot be told in other phases.
    pub remaining_secs: Option<f64>,
}

impl Standing {
    /// Reads the segment of a load under way.
    pub fn of(segment: &Segment) -> Self {
        let load = &segment.header().load;
        let phase = load.phase();
        let now = now_ns();
        let since = |began_ns: i64| (now - began_ns).max(0) as f64 / 1e9;
        let (rows, ids) = (segment.rows_written(), load.ids.get());
        let in_phase_secs = since(load.phase_began_ns.load(Relaxed));
        let rows_per_sec =
            if phase == LoadPhase::Rows && in_phase_secs > 0.0 { rows as f64 / in_phase_secs } else { 0.0 };
        let remaining_secs = (rows_per_sec > 0.0).then(|| ids.saturating_sub(rows) as f64 / rows_per_sec);
        let elapsed_secs = since(load.began_ns.load(Relaxed));
        Self { phase, elapsed_secs, rows, ids, rows_per_sec, remaining_secs }
    }
}

/// A phase as users read it.
pub fn title(phase: LoadPhase) -> &'static str {
    match phase {
        LoadPhase::Starting => "starting",
        LoadPhase::Rows => "loading rows",
        LoadPhase::Indexes => "building indexes",
        LoadPhase::Vacuum => "vacuuming",
        LoadPhase::Distribution => "distributing rows",
    }
}

/// The NOTICEs of a load under way.
pub struct LoadReporter<'a> {
    fixture: &'a str,
    reported: Instant,
}

impl<'a> LoadReporter<'a> {
    /// For a load of this fixture.
    pub fn new(fixture: &'a str) -> Self {
        Self { fixture, reported: Instant::now() }
    }

    /// Says where the load stands, every few seconds.
    pub fn report(&mut self, segment: &Segment) {
        if self.reported.elapsed() < REPORT_EVERY || segment.header().state() == RunState::Finished {
            return;
        }
        self.reported = Instant::now();
        let standing = Standing::of(segment);
        let Standing { rows, ids, rows_per_sec, elapsed_secs, .. } = standing;
        let fixture = self.fixture;
        match standing.remaining_secs {
            Some(remaining) => pgrx::notice!(
                "loading \"{fixture}\": {rows} of {ids} rows ({:.0}%), {rows_per_sec:.0} rows/s, elapsed {elapsed_secs:.1} s, remaining {remaining:.1} s",
                rows as f64 * 100.0 / ids.max(1) as f64
            ),
            None => {
                let step = server_progress(segment).map_or_else(String::new, |step| format!(": {step}"));
                pgrx::notice!(
                    "loading \"{fixture}\": {}{step}, elapsed {elapsed_secs:.1} s",
                    title(standing.phase)
                );
            }
        }
    }
}

/// What the server itself tells of the statements that the leader and the loaders run.
fn server_progress(segment: &Segment) -> Option<String> {
    let loaders = segment.slots().map(|slot| slot.pid.load(Relaxed));
    let workers: Vec<i32> = loaders.chain([segment.header().coordinator_pid.load(Relaxed)]).collect();
    let sql = "SELECT string_agg(format('%s of %s, %s%%', phase, relation, \
                      round(100.0 * done / nullif(total, 0))), '; ' ORDER BY pid) FROM ( \
                   SELECT pid, phase, relid::regclass AS relation, \
                          CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END AS done, \
                          CASE WHEN tuples_total > 0 THEN tuples_total ELSE blocks_total END AS total \
                   FROM pg_stat_progress_create_index \
                   UNION ALL \
                   SELECT pid, phase, relid::regclass, heap_blks_scanned, heap_blks_total FROM pg_stat_progress_vacuum \
                   UNION ALL \
                   SELECT pid, phase, relid::regclass, sample_blks_scanned, sample_blks_total FROM pg_stat_progress_analyze \
               ) AS steps WHERE pid = ANY ($1)";
    forget_activity();
    // A report is not worth an error.
    store::as_owner(|| spi::fetch::<String>(sql, &[workers.into()])).ok().flatten()
}
