//! Sweeps: a row of bench_internal.sweep_log for each, and one of bench_internal.sweep_run_log for each planned run.
//!
//! A sweep's leader is a session of the calling role, so that it writes these rows as the extension's owner. The results of
//! its runs are written by their recorder.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use bench_questions::capacity::{CapacityAnswer, NextTrial, Trial, TrialOutcome};
use bench_questions::sweep::{SweepCell, SweepOptions, SweepSpec};
use bench_results::experiment::{ExperimentRun, SweepChange};
use bench_results::rehearsal::Rehearsal;
use pgrx::{JsonB, pg_sys};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::extension_owner::{read, write};
use super::recorder::RunStatus;
use super::work::missing;
use super::{as_owner, is_led, is_open};
use crate::error::internal;
use crate::server::database;
use crate::server::jsonb::json_of;
use crate::server::rows::{select, select_one};
use crate::server::spi::{self, fetch, run};
use crate::shm::{Segment, Work};

/// A run that a sweep has not completed.
pub struct Planned {
    pub place: i32,
    pub cell: SweepCell,
}

/// Writes a sweep and its plan, and returns its id.
pub fn begin_sweep(spec: &SweepSpec, segment: &Segment) -> Result<i64, UserError> {
    as_owner(|| {
        let sweep_id =
            fetch::<i64>("SELECT nextval('bench_internal.sweep_id_seq')", &[])?.unwrap_or_default();
        segment.claim(Work::Sweep(sweep_id));
        run(
            "INSERT INTO bench_internal.sweep_log (sweep_id, options, status, role, segment, owner_oid, extension_version) \
             SELECT $1, $2, 'running', bench_internal.role_name($5, $3), $4, $5, extversion FROM pg_extension WHERE extname = 'pgbench_ext'",
            &[
                sweep_id.into(),
                JsonB(json_of(&spec.options)).into(),
                spec.role.as_str().into(),
                i64::from(segment.handle()).into(),
                pg_sys::Oid::from(spec.role_oid).into(),
            ],
        )?;
        insert_plan(sweep_id, &spec.options, &spec.options.plan())?;
        Ok(sweep_id)
    })
}

/// Appends runs to a sweep's plan.
fn insert_plan(sweep_id: i64, options: &SweepOptions, plan: &[SweepCell]) -> Result<(), UserError> {
    let column = |value: &dyn Fn(&SweepCell) -> i32| plan.iter().map(value).collect::<Vec<i32>>();
    let variants: Vec<String> =
        plan.iter().map(|cell| options.setup.variants[cell.variant].name.clone()).collect();
    run(
        "INSERT INTO bench_internal.sweep_run_log (sweep_id, place, round, variant, clients) \
         SELECT $1, place + COALESCE((SELECT max(l.place) FROM bench_internal.sweep_run_log l WHERE l.sweep_id = $1), 0), \
             round, variant, clients \
         FROM ROWS FROM (unnest($2), unnest($3), unnest($4)) \
             WITH ORDINALITY AS p (round, variant, clients, place)",
        &[
            sweep_id.into(),
            column(&|cell| cell.round.cast_signed()).into(),
            variants.into(),
            column(&|cell| cell.clients.cast_signed()).into(),
        ],
    )
    .map(drop)
}

/// Makes this process the leader of a sweep that ended early.
///
/// # Errors
/// 55006 if it has another leader, 42704 if it was pruned.
pub fn take_up_sweep(sweep_id: i64, segment: &Segment) -> Result<(), UserError> {
    as_owner(|| {
        let sql = "SELECT status, segment FROM bench_internal.sweep_log WHERE sweep_id = $1 FOR UPDATE";
        let rows = spi::locked_rows(sql, &[sweep_id.into()], |row| {
            Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<i64>(2)?.unwrap_or_default() as u32))
        })?;
        match rows.first() {
            None => return Err(missing(Work::Sweep(sweep_id))),
            Some((status, segment)) if is_open(status) && is_led(Work::Sweep(sweep_id), *segment) => {
                return Err(under_way(sweep_id));
            }
            Some(_) => {}
        }
        segment.claim(Work::Sweep(sweep_id));
        // A copy of the database waits for no restart.
        run(
            "UPDATE bench_internal.sweep_log SET status = 'running', resumed_at = clock_timestamp(), finished_at = NULL, \
                 error = NULL, segment = $2, waits_for = CASE WHEN system_settings ->> 'server' = $3 THEN waits_for END \
             WHERE sweep_id = $1",
            &[sweep_id.into(), i64::from(segment.handle()).into(), database::identity().into()],
        )
        .map(drop)
    })
}

/// Returns the error for a sweep under way.
pub fn under_way(sweep_id: i64) -> UserError {
    UserError::new(sqlstate::OBJECT_IN_USE, format!("sweep {sweep_id} is under way"))
        .hint(format!("Wait for it: SELECT bench.wait_sweep({sweep_id})."))
}

/// A restart that a sweep waits for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wait {
    /// The command that restarts the server.
    pub command: String,
    /// The place of the run to make after the restart.
    pub place: i32,
    pub variant: String,
    #[serde(flatten)]
    pub missing: ForRestart,
    /// The start time of the server that waits for the restart.
    pub server_start: String,
    /// Variants that the server does not start with, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// Writes that a sweep waits for a restart of the server.
pub fn wait_for_restart(sweep_id: i64, wait: &Wait) -> Result<(), UserError> {
    let wait = JsonB(json_of(wait));
    let sql = "UPDATE bench_internal.sweep_log SET status = 'waiting for restart', waits_for = $2 WHERE sweep_id = $1";
    write(sql, &[sweep_id.into(), wait.into()])
}

/// Reads the restart that a sweep waits for.
pub fn waited_for(sweep_id: i64) -> Result<Option<Wait>, UserError> {
    let sql = "SELECT waits_for FROM bench_internal.sweep_log WHERE sweep_id = $1";
    read(sql, &[sweep_id.into()])
}

/// Ends a sweep's wait for a restart, and returns it.
pub fn end_wait(sweep_id: i64) -> Result<Option<Wait>, UserError> {
    let wait = waited_for(sweep_id)?;
    let sql =
        "UPDATE bench_internal.sweep_log SET waits_for = NULL WHERE sweep_id = $1 AND waits_for IS NOT NULL";
    write(sql, &[sweep_id.into()])?;
    Ok(wait)
}

/// Whether a sweep has begun under this segment and has no end.
pub fn is_unfinished(segment: u32) -> Result<bool, UserError> {
    let sql = "SELECT true FROM bench_internal.sweep_log WHERE segment = $1 AND status = 'running'";
    Ok(read::<bool>(sql, &[i64::from(segment).into()])?.is_some())
}

/// Reads the runs from a place on that a sweep has not completed, in their order.
pub fn planned(sweep_id: i64, first_place: i32, options: &SweepOptions) -> Result<Vec<Planned>, UserError> {
    #[derive(Deserialize)]
    struct Row {
        place: i32,
        #[serde(flatten)]
        cell: RowOfCell,
    }
    let rows = as_owner(|| {
        select::<Row>(
            "SELECT s.place, s.round, s.variant, s.clients \
             FROM bench_internal.sweep_run_log s LEFT JOIN bench_internal.run_log r USING (run_id) \
             WHERE s.sweep_id = $1 AND s.place >= $2 AND (s.error IS NOT NULL OR r.status IS DISTINCT FROM 'completed') \
             ORDER BY s.place",
            &[sweep_id.into(), first_place.into()],
        )
    })?;
    let planned = |row: Row| Some(Planned { place: row.place, cell: row.cell.cell(options)? });
    Ok(rows.into_iter().filter_map(planned).collect())
}

/// A cell of a sweep, with its variant by name.
#[derive(Deserialize)]
struct RowOfCell {
    round: u32,
    variant: String,
    clients: u32,
}

impl RowOfCell {
    /// Converts the row; `None` if the sweep has no such variant.
    fn cell(&self, options: &SweepOptions) -> Option<SweepCell> {
        let variant = options.setup.variants.iter().position(|variant| variant.name == self.variant)?;
        Some(SweepCell { round: self.round, variant, clients: self.clients })
    }
}

/// Reads the tps of a sweep's completed runs without an error.
pub fn completed_cells(sweep_id: i64, options: &SweepOptions) -> Result<Vec<(SweepCell, f64)>, UserError> {
    #[derive(Deserialize)]
    struct Row {
        #[serde(flatten)]
        cell: RowOfCell,
        tps: Option<f64>,
    }
    let sql = "SELECT round, variant, clients, tps FROM bench.sweep_runs \
               WHERE sweep_id = $1 AND status = 'completed' AND error IS NULL";
    let rows = as_owner(|| select::<Row>(sql, &[sweep_id.into()]))?;
    Ok(rows.into_iter().filter_map(|row| Some((row.cell.cell(options)?, row.tps?))).collect())
}

/// Returns [`SweepOptions::reached`], the precision of a sweep without a given number of rounds.
pub fn reached(sweep_id: i64, options: &SweepOptions) -> Result<Option<f64>, UserError> {
    match options.until {
        Some(_) => Ok(options.reached(&completed_cells(sweep_id, options)?)),
        None => Ok(None),
    }
}

/// Plans the further rounds of a sweep without a given number of rounds, after its first rounds, and returns the number of runs.
pub fn plan_further(sweep_id: i64, options: &SweepOptions) -> Result<usize, UserError> {
    let completed = completed_cells(sweep_id, options)?;
    // Only once: the first rounds alone determine the number of further ones.
    if completed.iter().any(|(cell, _)| cell.round > options.setup.rounds) {
        return Ok(0);
    }
    let further = options.further(&completed);
    as_owner(|| insert_plan(sweep_id, options, &further))?;
    Ok(further.len())
}

/// Counts the runs in a sweep's plan.
pub fn sweep_runs(sweep_id: i64) -> Result<u32, UserError> {
    let sql = "SELECT count(*) FROM bench_internal.sweep_run_log WHERE sweep_id = $1";
    Ok(read(sql, &[sweep_id.into()])?.unwrap_or_default())
}

/// Records that a run of a sweep has begun.
pub fn sweep_run_started(sweep_id: i64, place: i32, run_id: i64) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_run_log SET run_id = $3, error = NULL WHERE sweep_id = $1 AND place = $2";
    write(sql, &[sweep_id.into(), place.into(), run_id.into()])
}

/// Records that a run of a sweep failed or does not count.
pub fn sweep_run_failed(sweep_id: i64, place: i32, error: &UserError) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_run_log SET error = $3 WHERE sweep_id = $1 AND place = $2";
    write(sql, &[sweep_id.into(), place.into(), error.message.as_str().into()])
}

/// Marks a completed run as incomplete.
pub fn run_does_not_count(run_id: i64, error: &UserError) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.run_log SET status = 'incomplete', error = $2 WHERE run_id = $1 AND status = 'completed'";
    write(sql, &[run_id.into(), JsonB(json_of(error)).into()])
}

/// The status of an ended sweep whose last change was not reverted.
const REVERT_FAILED: &str = "revert failed";

/// Writes the status of an ended sweep: [`REVERT_FAILED`], or by the number of its completed runs and whether it was canceled. A
/// search's trial with an outcome counts as completed, even if errors ended it.
pub fn finish_sweep(sweep_id: i64, canceled: bool, error: Option<&UserError>) -> Result<(), UserError> {
    let counts = as_owner(|| {
        select_one::<(i64, i64, bool)>(
            "SELECT count(*), count(*) FILTER (WHERE s.error IS NULL AND (r.status = 'completed' OR s.outcome IS NOT NULL)), \
                 EXISTS (SELECT FROM bench_internal.sweep_log l WHERE l.sweep_id = $1 AND l.answers IS NULL \
                     AND jsonb_exists(l.options, 'search')) \
             FROM bench_internal.sweep_run_log s LEFT JOIN bench_internal.run_log r USING (run_id) WHERE s.sweep_id = $1",
            &[sweep_id.into()],
        )
    })?;
    let (all, completed, seeks) = counts.unwrap_or_default();
    let status = match completed {
        _ if sweep_change_left(sweep_id)?.is_some() => REVERT_FAILED,
        n if n == all && !seeks => RunStatus::Completed.as_str(),
        _ if canceled => RunStatus::Canceled.as_str(),
        0 => RunStatus::Failed.as_str(),
        _ => RunStatus::Incomplete.as_str(),
    };
    let error = error.map(|e| JsonB(json_of(e)));
    write(
        "UPDATE bench_internal.sweep_log SET status = $2, finished_at = clock_timestamp(), error = $3 WHERE sweep_id = $1",
        &[sweep_id.into(), status.into(), error.into()],
    )
}

/// Records that a variant of a sweep is about to change the database.
pub fn begin_sweep_change(sweep_id: i64, round: u32, variant: &str) -> Result<(), UserError> {
    let change = JsonB(serde_json::json!([{"round": round, "variant": variant}]));
    let sql =
        "UPDATE bench_internal.sweep_log SET changes = COALESCE(changes, '[]') || $2 WHERE sweep_id = $1";
    write(sql, &[sweep_id.into(), change.into()])
}

/// Merges `noted` into the record of the last change, which counts as reverted when it has `revert_secs`.
pub fn note_sweep_change(sweep_id: i64, noted: &Value) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_log SET changes = jsonb_set(changes, '{-1}', changes -> -1 || $2) \
               WHERE sweep_id = $1 AND jsonb_array_length(changes) > 0";
    write(sql, &[sweep_id.into(), JsonB(noted.clone()).into()])
}

/// Adds what happened in a rehearsal's run to the record of its change, which has what the change's session noted.
pub fn note_rehearsal(sweep_id: i64, rehearsal: &Rehearsal) -> Result<(), UserError> {
    let sql = "SELECT changes -> -1 -> 'rehearsal' FROM bench_internal.sweep_log \
               WHERE sweep_id = $1 AND jsonb_typeof(changes) = 'array'";
    let noted: Rehearsal = read(sql, &[sweep_id.into()])?.unwrap_or_default();
    let Rehearsal { tries, wal_bytes, lock_mode, locked, .. } = noted;
    let held_secs = rehearsal.held_secs.filter(|_| lock_mode.is_some());
    let rehearsal = Rehearsal { tries, wal_bytes, lock_mode, locked, held_secs, ..rehearsal.clone() };
    note_sweep_change(sweep_id, &json!({ "rehearsal": rehearsal }))?;
    // Reports of the run show it as well.
    let sql = "INSERT INTO bench_internal.event_log (run_id, event, kind, relation, started, ended) \
               SELECT $1, row_number() OVER () + (SELECT count(*) FROM bench_internal.event_log WHERE run_id = $1), \
                   v.kind, v.relation, v.started, v.ended \
               FROM (VALUES ('blocker', NULL, $2, $3), ('change', $4, $5, $6)) AS v (kind, relation, started, ended) \
               WHERE v.started IS NOT NULL AND EXISTS (SELECT FROM bench_internal.run_log r WHERE r.run_id = $1)";
    let Rehearsal { run_id, blocker_begin, blocker_end, locked, change_begin, change_end, .. } = rehearsal;
    let arguments = [
        run_id.into(),
        blocker_begin.into(),
        blocker_end.into(),
        locked.into(),
        change_begin.into(),
        change_end.into(),
    ];
    write(sql, &arguments)
}

/// Returns a rehearsal that is under way in this database.
pub fn rehearsal_under_way() -> Result<Option<i64>, UserError> {
    let sql = "SELECT sweep_id, segment FROM bench_internal.sweep_log \
               WHERE status = 'running' AND jsonb_exists(options -> 'question', 'rehearsal')";
    let running = as_owner(|| select::<(i64, i64)>(sql, &[]))?;
    let is_alive = |(sweep_id, segment): &(i64, i64)| is_led(Work::Sweep(*sweep_id), *segment as u32);
    Ok(running.into_iter().find(is_alive).map(|(sweep_id, _)| sweep_id))
}

/// Returns round and variant of the last change if it was not reverted.
pub fn sweep_change_left(sweep_id: i64) -> Result<Option<(u32, String)>, UserError> {
    let sql = "SELECT changes -> -1 FROM bench_internal.sweep_log \
               WHERE sweep_id = $1 AND jsonb_typeof(changes) = 'array' AND NOT jsonb_exists(changes -> -1, 'revert_secs')";
    // In an imported sweep it may be any JSON.
    let change = read::<Value>(sql, &[sweep_id.into()])?.and_then(|json| serde_json::from_value(json).ok());
    Ok(change.map(|change: SweepChange| (change.round, change.variant)))
}

/// Reads the options of a sweep.
pub fn sweep_options(sweep_id: i64) -> Result<SweepOptions, UserError> {
    let sql = "SELECT options FROM bench_internal.sweep_log WHERE sweep_id = $1";
    read(sql, &[sweep_id.into()])?.ok_or_else(|| missing(Work::Sweep(sweep_id)))
}

/// Reads the runs of a sweep, in their order.
pub(super) fn sweep_runs_of(sweep_id: i64) -> Result<Vec<ExperimentRun>, UserError> {
    let sql = "SELECT jsonb_strip_nulls(jsonb_agg(r ORDER BY r.place)) FROM bench.sweep_runs r WHERE r.sweep_id = $1";
    Ok(read(sql, &[sweep_id.into()])?.unwrap_or_default())
}

/// Returns the pairs of completed runs of two variants with the same round and clients.
pub fn sweep_pairs(sweep_id: i64, first: &str, second: &str) -> Result<Vec<(i64, i64)>, UserError> {
    as_owner(|| {
        select(
            "SELECT a.run_id, b.run_id FROM bench_internal.sweep_run_log a JOIN bench_internal.sweep_run_log b USING (sweep_id, round, clients) \
             JOIN bench_internal.run_log ra ON ra.run_id = a.run_id JOIN bench_internal.run_log rb ON rb.run_id = b.run_id \
             WHERE a.sweep_id = $1 AND a.variant = $2 AND b.variant = $3 \
               AND ra.status = 'completed' AND rb.status = 'completed' AND a.error IS NULL AND b.error IS NULL ORDER BY round",
            &[sweep_id.into(), first.into(), second.into()],
        )
    })
}

/// Returns the pairs of the bench.ab or bench.verify that a run belongs to; none for other runs.
pub fn pairs_with(run_id: i64) -> Result<Vec<(i64, i64)>, UserError> {
    let sweep_id = read::<i64>(
        "SELECT s.sweep_id FROM bench_internal.sweep_run_log r JOIN bench_internal.sweep_log s USING (sweep_id) \
         WHERE r.run_id = $1 AND jsonb_typeof(s.options -> 'clients') = 'array' \
           AND jsonb_array_length(s.options -> 'clients') = 1",
        &[run_id.into()],
    )?;
    sweep_id.map_or_else(|| Ok(Vec::new()), |sweep_id| sweep_pairs(sweep_id, "a", "b"))
}

/// Returns a line about the result of a sweep's run.
pub fn sweep_run_line(sweep_id: i64, place: i32) -> Result<String, UserError> {
    let line = read(
        "SELECT format('%s client%s%s, round %s: %s', s.clients, CASE WHEN s.clients > 1 THEN 's' ELSE '' END, \
                    CASE WHEN s.variant <> '' THEN ', ' || s.variant ELSE '' END, s.round, \
                    CASE WHEN s.status = 'completed' AND s.error IS NULL \
                         THEN concat_ws(', ', round(s.tps::numeric, 1) || ' tps' || \
                             COALESCE(' of ' || round(s.rate::numeric, 1), ''), \
                             round(((s.outcome -> 'latency_ms') #>> '{}')::numeric, 3) || ' ms') \
                         ELSE concat_ws(': ', s.status, s.error) END) \
         FROM bench.sweep_runs s WHERE s.sweep_id = $1 AND s.place = $2",
        &[sweep_id.into(), place.into()],
    )?;
    Ok(line.unwrap_or_default())
}

// The old settings in postgresql.auto.conf that a sweep or a capture has changed there, until they are restored.

/// A sweep or a capture that has changed server-wide parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changer {
    Sweep(i64),
    /// By its name.
    Capture(String),
}

/// Values by parameter; null for one that the file did not have.
pub type FileSettings = Map<String, Value>;

/// The settings written into the file, and its old ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedSettings {
    /// The new values, by name.
    pub set: BTreeMap<String, String>,
    /// The old values.
    pub own: FileSettings,
}

/// The settings in the file during the wait for a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForRestart {
    #[serde(flatten)]
    pub saved: SavedSettings,
    /// Parameters that a restart gives other values.
    pub pending: Vec<String>,
}

/// Records the file's old and new settings before they are changed; `None` when the old ones are restored.
pub fn keep_system_settings(changer: &Changer, settings: Option<&SavedSettings>) -> Result<(), UserError> {
    let settings = settings.map(|SavedSettings { set, own }| {
        JsonB(json!({"server": database::identity(), "set": set, "own": own}))
    });
    as_owner(|| {
        match changer {
            Changer::Sweep(sweep_id) => run(
                "UPDATE bench_internal.sweep_log SET system_settings = $2 WHERE sweep_id = $1",
                &[(*sweep_id).into(), settings.into()],
            ),
            Changer::Capture(name) => run(
                "UPDATE bench_internal.capture_list SET system_settings = $2 WHERE name = $1",
                &[name.as_str().into(), settings.into()],
            ),
        }
        .map(drop)
    })
}

/// Settings that have not been restored.
pub struct Forgotten {
    /// Those of `own`, and of sweeps and captures whose processes have ended.
    pub settings: Vec<(Changer, SavedSettings)>,
    /// Whether a live process has changed settings in the file.
    pub is_in_use: bool,
}

/// Deletes records about another server's file, or made in a database that this one is a copy of: a restored dump or CREATE
/// DATABASE copies such rows.
fn disown_copies() -> Result<(), UserError> {
    for table in ["sweep_log", "capture_list"] {
        run(
            &format!(
                "UPDATE bench_internal.{table} SET system_settings = NULL WHERE system_settings IS NOT NULL \
                 AND system_settings ->> 'server' IS DISTINCT FROM $1"
            ),
            &[database::identity().into()],
        )?;
    }
    Ok(())
}

/// Returns the settings that `own`, and sweeps and captures whose processes have ended, have not restored.
pub fn forgotten_system_settings(own: Option<&Changer>) -> Result<Forgotten, UserError> {
    let of_sweeps = "SELECT sweep_id, segment, system_settings, status = 'waiting for restart' \
                     FROM bench_internal.sweep_log WHERE system_settings IS NOT NULL";
    let of_captures = "SELECT l.name, EXISTS (SELECT FROM pg_stat_get_activity(l.pid) a WHERE a.pid IS NOT NULL AND a.backend_start <= l.started_at), \
                           l.system_settings FROM bench_internal.capture_list l WHERE l.system_settings IS NOT NULL";
    let (sweeps, captures) = as_owner(|| {
        disown_copies()?;
        let sweeps = select::<(i64, i64, Value, bool)>(of_sweeps, &[])?;
        Ok((sweeps, select::<(String, bool, Value)>(of_captures, &[])?))
    })?;
    let sweeps = sweeps
        .into_iter()
        // A sweep that waits for a restart is alive, though it has no leader.
        .map(|(id, segment, settings, waits)| {
            (Changer::Sweep(id), waits || is_led(Work::Sweep(id), segment as u32), settings)
        });
    let captures =
        captures.into_iter().map(|(name, lives, settings)| (Changer::Capture(name), lives, settings));
    let mut forgotten = Forgotten { settings: Vec::new(), is_in_use: false };
    for (changer, lives, settings) in sweeps.chain(captures) {
        if lives && Some(&changer) != own {
            forgotten.is_in_use = true;
        } else {
            forgotten.settings.push((changer, serde_json::from_value(settings).unwrap_or_default()));
        }
    }
    Ok(forgotten)
}

// Searches for a capacity: sweeps whose runs are trials, each of which determines the next.

/// Reads the trials that a search has made, in their order.
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

/// Plans a search's next trial, and returns its place. Deletes an earlier trial without an outcome.
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

/// Records the outcome of a trial.
pub fn keep_outcome(sweep_id: i64, place: i32, outcome: &TrialOutcome) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_run_log SET outcome = $3 WHERE sweep_id = $1 AND place = $2";
    write(sql, &[sweep_id.into(), place.into(), JsonB(json_of(outcome)).into()])
}

/// Records the answers of a search, which end it.
pub fn keep_answers(sweep_id: i64, answers: &[CapacityAnswer]) -> Result<(), UserError> {
    let sql = "UPDATE bench_internal.sweep_log SET answers = $2 WHERE sweep_id = $1";
    write(sql, &[sweep_id.into(), JsonB(json_of(answers)).into()])
}

/// Reads the answers of a search; none if it has not ended.
pub fn answers(sweep_id: i64) -> Result<Vec<CapacityAnswer>, UserError> {
    let sql = "SELECT answers FROM bench_internal.sweep_log WHERE sweep_id = $1";
    Ok(read(sql, &[sweep_id.into()])?.unwrap_or_default())
}
