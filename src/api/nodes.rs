//! What nodes of a Citus cluster ask each other for a run on several of them.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::part::{PartAnswer, PartState};
use bench_model::spec::MAX_ARGUMENT;
use bench_protocol::foreign_server::{OptionOf, check_options as check_all};
use pgrx::prelude::*;
use pgrx::{JsonB, pg_sys};
use serde::Serialize;

use super::required;
use crate::cluster::citus;
use crate::error::{OrRaise, internal};
use crate::launch::checks::MAX_SCRIPT;
use crate::observe::machine::{self, NodeState};
use crate::run::nodes::node_connectivity;
use crate::run::prepare::start;
use crate::server::jsonb::{Jsonb, json_of};
use crate::server::process::{current_timestamp, now_ns, wake};
use crate::server::roles::{self, superuser};
use crate::shm::{RunState, Segment, StopReason, Work, ask_to_stop, is_under_way};
use crate::store;

/// What a node asks another for: scripts, and what is as large as other arguments.
type PartJsonb = Jsonb<{ MAX_SCRIPT + 4 * MAX_ARGUMENT }>;

pgrx::impl_sql_translatable!(PartJsonb, "jsonb");

fn json(value: &impl Serialize) -> JsonB {
    JsonB(json_of(&value))
}

/// The state of this node.
#[pg_extern(sql = false)]
fn node_state(tables: Option<Vec<Option<String>>>) -> JsonB {
    (|| {
        let tables = required("tables", tables)?;
        let tables =
            tables.into_iter().map(|table| required("a table", table)).collect::<Result<Vec<_>, _>>()?;
        // Sessions of other roles hide from everybody else.
        let is_superuser = superuser();
        citus::check_installed("the state of a node")?;
        let may_run = store::may_run()?;
        store::as_owner(|| machine::read_node(&tables, is_superuser))
            .map(|state| json(&NodeState { may_run, ..state }))
    })()
    .or_raise()
}

/// The nodes that this one does not reach.
#[pg_extern(sql = false)]
fn unreached_nodes() -> JsonB {
    (|| {
        citus::check_installed("a look at the nodes")?;
        node_connectivity::unreached().map(|unreached| json(&unreached))
    })()
    .or_raise()
}

/// Fetches what nodes still have of a run.
#[pg_extern(sql = false)]
fn fetch(run_id: Option<i64>) -> i64 {
    required("run_id", run_id).and_then(node_connectivity::fetch).or_raise()
}

/// Starts this node's part of another's run.
#[pg_extern(sql = false)]
fn start_part(request: Option<PartJsonb>) -> JsonB {
    // What is wrong is told as JSON: an error would get there without its SQLSTATE.
    let answer = match required("request", request).and_then(|request| start::start_part(request.0)) {
        Ok(run_id) => PartAnswer::RunId(run_id),
        Err(error) => PartAnswer::Error(error),
    };
    json(&answer)
}

/// The part that this role has been asked for.
///
/// # Errors
/// 42704 for one that does not exist, 42501 for another role's, 42809 for a run that is no part.
fn part_handle(run_id: Option<i64>) -> Result<(i64, store::WorkHandle), UserError> {
    let run_id = required("run_id", run_id)?;
    let handle = store::handle_of(Work::Run(run_id))?;
    if handle.owner_oid != roles::current_role_oid() {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("run {run_id} belongs to role \"{}\"", handle.role),
        ));
    }
    if !store::is_part(run_id)? {
        return Err(UserError::new(
            sqlstate::WRONG_OBJECT_TYPE,
            format!("run {run_id} is not a part of another node's run"),
        ));
    }
    Ok((run_id, handle))
}

/// How far a part is.
#[pg_extern(sql = false)]
fn part_state(run_id: Option<i64>, stop: Option<bool>) -> JsonB {
    (|| {
        let (run_id, handle) = part_handle(run_id)?;
        let stop = required("stop", stop)?;
        let state = Segment::peek(handle.segment, |segment| {
            (segment.is_of(Work::Run(run_id)) && is_under_way(segment)).then(|| state_of(segment, stop))
        });
        if let Some(state) = state.flatten() {
            return Ok(json(&state));
        }
        let status = store::status(Work::Run(run_id))?;
        let is_over = !matches!(&*status, "starting" | "running");
        let error = store::run_error(run_id)?;
        Ok(json(&PartState { status: is_over.then_some(status), error, ..PartState::default() }))
    })()
    .or_raise()
}

/// What a part has sampled since then.
#[pg_extern(sql = false)]
fn part_samples(run_id: Option<i64>, after: Option<f64>) -> Option<JsonB> {
    (|| {
        let (run_id, _) = part_handle(run_id)?;
        store::samples_after(run_id, required("after", after)?)
    })()
    .or_raise()
}

fn state_of(segment: &Segment, stop: bool) -> PartState {
    let header = segment.header();
    header.heard_ns.store(now_ns(), Release);
    if stop {
        ask_to_stop(header, StopReason::Requested);
    }
    let progress = &header.progress;
    let figures = progress.figures();
    let timeline = header.timeline.load();
    let has_begun = header.state() != RunState::Starting;
    PartState {
        is_ready: header.is_ready.load(Acquire) != 0,
        began_us: has_begun.then(|| current_timestamp() + (timeline.warmup_start_ns - now_ns()) / 1000),
        in_warmup: progress.in_warmup.load(Relaxed) != 0,
        samples: progress.samples.load(Acquire),
        elapsed_secs: figures.elapsed_secs,
        tps: figures.tps,
        latency_avg_ms: figures.latency_avg_ms,
        latency_stddev_ms: figures.latency_stddev_ms,
        lag_avg_ms: figures.lag_avg_ms,
        transactions: progress.transactions.get(),
        failed: progress.failed.get(),
        aborted: progress.aborted.get(),
        skipped: progress.skipped.get(),
        clients: segment.sessions().filter(|session| !session.is_over()).count() as u32,
        ..PartState::default()
    }
}

/// Nobody agrees on an instant farther off.
const MOST_AHEAD_US: i64 = 600_000_000;

/// Says when a part is to begin.
#[pg_extern(sql = false)]
fn begin_part(run_id: Option<i64>, begins_us: Option<i64>) -> bool {
    (|| {
        let (run_id, handle) = part_handle(run_id)?;
        let begins_us = required("begins_us", begins_us)?;
        let told = Segment::peek(handle.segment, |segment| {
            let header = segment.header();
            let left_us = begins_us.saturating_sub(current_timestamp());
            let is_in_time = (1..=MOST_AHEAD_US).contains(&left_us);
            let is_there = segment.is_of(Work::Run(run_id)) && is_under_way(segment) && is_in_time;
            if is_there {
                header.heard_ns.store(now_ns(), Release);
                header.begins_us.store(begins_us, Release);
                wake(header.coordinator_pid.load(Relaxed));
            }
            is_there
        });
        Ok(told == Some(true))
    })()
    .or_raise()
}

/// Forgets a part that has been fetched, or is not wanted.
#[pg_extern(sql = false)]
fn drop_part(run_id: Option<i64>) -> bool {
    (|| {
        let (run_id, handle) = part_handle(run_id)?;
        let is_at_work = |segment: &Segment| segment.is_of(Work::Run(run_id)) && is_under_way(segment);
        if Segment::peek(handle.segment, is_at_work) == Some(true) {
            return Err(UserError::new(sqlstate::OBJECT_IN_USE, format!("run {run_id} is under way")));
        }
        store::delete_runs(vec![run_id]).map(|_| true).map_err(|e| internal(e.message))
    })()
    .or_raise()
}

// The validator of foreign-data wrapper bench_wire.

/// Checks the options of a foreign server or a user mapping.
#[pg_extern(sql = false)]
fn check_options(options: Option<Vec<Option<String>>>, catalog: Option<pg_sys::Oid>) {
    check(&options.unwrap_or_default(), catalog.unwrap_or(pg_sys::InvalidOid)).or_raise();
}

fn check(options: &[Option<String>], catalog: pg_sys::Oid) -> Result<(), UserError> {
    let of = match catalog {
        pg_sys::ForeignServerRelationId => OptionOf::Server,
        pg_sys::UserMappingRelationId => OptionOf::UserMapping,
        pg_sys::ForeignTableRelationId => OptionOf::ForeignTable,
        _ => OptionOf::Wrapper,
    };
    let options: Vec<(String, String)> = options
        .iter()
        .flatten()
        .map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            (name.to_owned(), value.to_owned())
        })
        .collect();
    check_all(of, &options, superuser())
}
