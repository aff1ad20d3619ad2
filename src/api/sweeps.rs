//! bench.sweep and its kin.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_findings::findings;
use bench_model::spec::{RunArguments, check_text};
use bench_questions::sweep::{Resumption, SweepArguments, SweepSpec};
use bench_report::Format;
use bench_report::experiment::{Experiment, render, schema};
use bench_results::Finding;
use bench_results::experiment::{ExperimentDocument, ExperimentRun, RunFinding};
use pgrx::prelude::*;
use serde_json::{Value, json};

use super::arguments::{Argument, Json, Name, run_function, run_functions, with_run_arguments};
use super::reports::format_of;
use super::required;
use super::runs::{deadline, status_shown};
use crate::error::{OrRaise, for_client};
use crate::experiment::launch::{answer, check, look_at_run, spec_of, start, start_spec};
use crate::experiment::parameters;
use crate::guard::session_role::check_stored_run_as;
use crate::launch::handle::Watch;
use crate::run::prepare::under_way;
use crate::server::jsonb::Jsonb;
use crate::server::roles;
use crate::server::rows::{Rows, rows};
use crate::server::spi::quote_identifier;
use crate::shm::{Segment, Work, is_under_way};
use crate::store;

run_functions! {
    /// Runs a workload at several rungs of clients and waits for it. See the COMMENT ON.
    bench_sweep,
    /// Starts a sweep and returns at once. See the COMMENT ON.
    bench_start_sweep(
        workload: [Option<String>], clients: [Option<Vec<Option<i32>>>], rounds: [Option<i32>],
        variants: [Option<Jsonb>]
    ) -> [i64] = |workload, clients, rounds, variants: Option<Jsonb>, run| {
        let (variants, run) = (variants.map(|variants| variants.0), RunArguments { workload, ..run });
        Ok(SweepArguments { clients, rounds, variants, run, ..SweepArguments::default() })
    }, answer, start
}

/// Waits for a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait_sweep(sweep_id: Option<i64>, timeout: Option<f64>) -> String {
    let mut watch = Watch::new(None, false);
    required("sweep_id", sweep_id)
        .and_then(|sweep_id| {
            let look = |segment: &Segment| look_at_run(segment, &mut watch);
            under_way::wait(Work::Sweep(sweep_id), deadline(timeout)?, look)
        })
        .or_raise()
}

/// A sweep's status: what its row says, unless its leader is gone. See the COMMENT ON.
#[pg_extern(sql = false)]
fn sweep_status_of(status: Option<String>, segment: Option<i64>, sweep_id: Option<i64>) -> Option<String> {
    status_shown(status, segment, sweep_id.map(Work::Sweep))
}

/// Where a sweep stands: a row for bench.sweeps, or none when it is over. See the COMMENT ON.
#[pg_extern(sql = false)]
fn sweep_progress(segment: Option<i64>, sweep_id: Option<i64>) -> Rows {
    let row = segment.zip(sweep_id).and_then(|(segment, sweep_id)| {
        Segment::peek(segment as u32, |segment| {
            let progress = &segment.header().sweep;
            (segment.is_of(Work::Sweep(sweep_id)) && is_under_way(segment)).then(|| {
                // How many runs a search makes is not known.
                let total = Some(progress.total.load(Relaxed)).filter(|total| *total > 0);
                json!({ "done": progress.done.load(Acquire), "total": total })
            })
        })
        .flatten()
        .filter(|_| store::visible(Work::Sweep(sweep_id)).is_ok())
    });
    rows(row)
}

/// Ends a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop_sweep(sweep_id: Option<i64>) -> bool {
    (|| {
        let work = Work::Sweep(required("sweep_id", sweep_id)?);
        if under_way::stop(work)? {
            return Ok(true);
        }
        if store::status(work)? != WAITING {
            return Ok(false);
        }
        // What it has written is put back by a leader: ALTER SYSTEM stands in no function.
        let options = store::sweep_options(work.id())?;
        parameters::check(&options)?;
        start_spec(&SweepSpec { resumption: Resumption::GivesUp, ..spec_of(options, Some(work.id())) })?;
        under_way::wait(work, None, |_| {}).map(|status| status != WAITING)
    })()
    .or_raise()
}

/// The status of a sweep that waits for a restart of the server.
const WAITING: &str = "waiting for restart";

/// Takes up a sweep that ended early. See the COMMENT ON.
#[pg_extern(sql = false)]
fn bench_resume_sweep(sweep_id: Option<i64>, start_failure: Option<String>) -> i64 {
    (|| {
        let sweep_id = required("sweep_id", sweep_id)?;
        start_failure.iter().try_for_each(|text| check_text("start_failure", text))?;
        let handle = store::handle_of(Work::Sweep(sweep_id))?;
        // A workload runs as the role that called, and all of a sweep's as the same.
        if handle.owner_oid != roles::current_role_oid() {
            return Err(UserError::new(
                sqlstate::INSUFFICIENT_PRIVILEGE,
                format!("sweep {sweep_id} belongs to role \"{}\"", handle.role),
            )
            .hint(format!("SET ROLE {} before the call.", quote_identifier(&handle.role))));
        }
        let status = store::status(Work::Sweep(sweep_id))?;
        match status.as_str() {
            "running" => return Err(store::under_way(sweep_id)),
            "completed" => {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    format!("sweep {sweep_id} is completed"),
                ));
            }
            WAITING => {}
            _ if start_failure.is_some() => {
                return Err(UserError::new(
                    sqlstate::NOT_IN_PREREQUISITE_STATE,
                    format!("sweep {sweep_id} does not wait for a restart"),
                )
                .hint("Leave start_failure out."));
            }
            _ => {}
        }
        crate::launch::checks::check_server()?;
        let options = store::sweep_options(sweep_id)?;
        let run_as = options.setup.run.get("run_as").and_then(Value::as_str);
        check_stored_run_as(run_as)
            .map_err(|error| error.hint("Start the sweep anew, with run_as in that call."))?;
        check(&options)?;
        let resumption = start_failure.map_or(Resumption::GoesOn, Resumption::DoesNotStart);
        start_spec(&SweepSpec { resumption, ..spec_of(options, Some(sweep_id)) })
    })()
    .or_raise()
}

/// A report of a sweep. See the COMMENT ON.
#[pg_extern(sql = false)]
fn sweep_report(sweep_id: Option<i64>, format: Option<String>) -> String {
    (|| {
        let format = format_of(format)?;
        if format == Format::Schema {
            return Ok(schema());
        }
        let document = store::sweep_document(required("sweep_id", sweep_id)?)?;
        Ok(for_client(render(&Experiment::new(with_findings(document)?, None), format)))
    })()
    .or_raise()
}

/// The sweep with the findings on each of its completed runs, and what else is known of these.
fn with_findings(mut document: ExperimentDocument) -> Result<ExperimentDocument, UserError> {
    for run in document.runs.iter_mut().filter(|run| run.is_completed()) {
        let Some(run_id) = run.run_id else { continue };
        let of_run = store::document(run_id)?;
        let found = findings(&of_run).into_iter();
        let findings = found
            .map(|Finding { severity, topic, finding, .. }| RunFinding { severity, topic, finding })
            .collect();
        *run = ExperimentRun { findings, ..std::mem::take(run).with_figures(&of_run) };
    }
    Ok(document)
}
