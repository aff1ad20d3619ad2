//! How far a load under way is: bench.progress, and the NOTICEs of bench.load.

use std::sync::atomic::Ordering::*;
use std::time::{Duration, Instant};

use bench_core::error::UserError;
use pgrx::prelude::*;

use crate::catalog;
use crate::fixture::LoadSpec;
use crate::server::process::{forget_activity, now_ns};
use crate::server::spi;
use crate::shm::{LoadPhase, RunState, Segment, is_under_way};
use crate::worker::load_leader::rows_written;

/// How often bench.load reports its progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Where a load stands.
struct Standing {
    phase: LoadPhase,
    elapsed_secs: f64,
    rows: u64,
    ids: u64,
    rows_per_sec: f64,
    /// Until the rows are written; it cannot be told in other phases.
    remaining_secs: Option<f64>,
}

impl Standing {
    fn of(segment: &Segment) -> Self {
        let load = &segment.header().load;
        let phase = load.phase();
        let now = now_ns();
        let since = |began_ns: i64| (now - began_ns).max(0) as f64 / 1e9;
        let (rows, ids) = (rows_written(segment), load.ids.get());
        let in_phase_secs = since(load.phase_began_ns.load(Relaxed));
        let rows_per_sec =
            if phase == LoadPhase::Rows && in_phase_secs > 0.0 { rows as f64 / in_phase_secs } else { 0.0 };
        let remaining_secs = (rows_per_sec > 0.0).then(|| ids.saturating_sub(rows) as f64 / rows_per_sec);
        let elapsed_secs = since(load.began_ns.load(Relaxed));
        Self { phase, elapsed_secs, rows, ids, rows_per_sec, remaining_secs }
    }
}

fn title(phase: LoadPhase) -> &'static str {
    match phase {
        LoadPhase::Starting => "starting",
        LoadPhase::Rows => "loading rows",
        LoadPhase::Indexes => "building indexes",
        LoadPhase::Vacuum => "vacuuming",
        LoadPhase::Distribution => "distributing rows",
    }
}

/// The NOTICEs of a load under way.
pub struct Reporter<'a> {
    fixture: &'a str,
    reported: Instant,
}

impl<'a> Reporter<'a> {
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

/// What the server itself tells of the statement that the leader runs.
fn server_progress(segment: &Segment) -> Option<String> {
    let leader = segment.header().coordinator_pid.load(Relaxed);
    let sql = "SELECT pg_catalog.format('%s of %s, %s%%', phase, relation, pg_catalog.round(100.0 * done / nullif(total, 0))) FROM ( \
                   SELECT pid, phase, relid::pg_catalog.regclass AS relation, \
                          CASE WHEN tuples_total > 0 THEN tuples_done ELSE blocks_done END AS done, \
                          CASE WHEN tuples_total > 0 THEN tuples_total ELSE blocks_total END AS total \
                   FROM pg_catalog.pg_stat_progress_create_index \
                   UNION ALL \
                   SELECT pid, phase, relid::pg_catalog.regclass, heap_blks_scanned, heap_blks_total FROM pg_catalog.pg_stat_progress_vacuum \
                   UNION ALL \
                   SELECT pid, phase, relid::pg_catalog.regclass, sample_blks_scanned, sample_blks_total FROM pg_catalog.pg_stat_progress_analyze \
               ) AS steps WHERE pid = $1 LIMIT 1";
    forget_activity();
    // A report is not worth an error.
    catalog::as_owner(|| spi::fetch::<String>(sql, &[leader.into()])).ok().flatten()
}

/// What a load has made, and how long each part took.
pub fn closing_report(spec: &LoadSpec) -> Result<(), UserError> {
    let report = catalog::as_owner(|| {
        spi::fetch::<String>(
            "SELECT pg_catalog.format('loaded \"%s\": %s rows in %s s%s, indexes %s s, vacuum and analyze %s s; tables %s, indexes %s', \
                        name, rows, pg_catalog.round(load_secs::pg_catalog.numeric, 2), \
                        ' (' || pg_catalog.round(rows_per_sec) || ' rows/s)', \
                        pg_catalog.round(index_secs::pg_catalog.numeric, 2), pg_catalog.round(vacuum_secs::pg_catalog.numeric, 2), \
                        pg_catalog.pg_size_pretty(table_bytes), pg_catalog.pg_size_pretty(index_bytes)) \
             FROM bench.fixtures WHERE name = $1 AND schema = $2",
            &[spec.name.as_str().into(), spec.schema.as_str().into()],
        )
    })?;
    if let Some(report) = report {
        pgrx::notice!("{report}");
    }
    Ok(())
}

/// Where a load stands: a row for bench.progress, or none when it is over.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn load_progress(
    segment: Option<i64>,
    load_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(phase, String),
        name!(elapsed, f64),
        name!(remaining, Option<f64>),
        name!(rows, i64),
        name!(rows_per_sec, Option<f64>),
        name!(loaders, i32),
    ),
> {
    let row = |segment: &Segment, load_id: i64| {
        if !segment.is_of_load(load_id) || !is_under_way(segment) {
            return None;
        }
        let standing = Standing::of(segment);
        let at_work = |state| state == crate::shm::ClientState::Done;
        let loaders = segment.slots().filter(|slot| slot.pid.load(Relaxed) != 0 && !at_work(slot.state()));
        Some((
            title(standing.phase).to_owned(),
            standing.elapsed_secs,
            standing.remaining_secs,
            standing.rows.cast_signed(),
            (standing.rows_per_sec > 0.0).then_some(standing.rows_per_sec),
            loaders.count() as i32,
        ))
    };
    let found = match (segment, load_id) {
        (Some(segment), Some(load_id)) => Segment::peek(segment as u32, |s| row(s, load_id))
            .flatten()
            .filter(|_| catalog::may_see_load(load_id) == Ok(true)),
        _ => None,
    };
    TableIterator::new(found)
}
