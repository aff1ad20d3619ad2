//! Captures as documents: what a server has seen, to be run on another one with a copy of the data.

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_base::number::percent;
use bench_model::feeder::Feeder;
use bench_model::part::KeptRows;
use bench_script::{Symbols, parse};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec;
use crate::error::{internal, notice};
use crate::guard::session_role::session_of;
use crate::launch::checks::{check_length, check_server};
use crate::run::feeders::check_select;
use crate::server::process::current_timestamp;
use crate::server::roles;
use crate::server::spi::quote_literal;
use crate::store::{self, CaptureEnd, CapturedStatement, Workload};

/// The version of the document that bench.export_capture makes and bench.import_capture reads.
const FORMAT_VERSION: i32 = 1;

/// A capture.
#[derive(Serialize, Deserialize)]
struct CaptureDocument {
    format_version: i32,
    name: String,
    #[serde(flatten)]
    head: store::CaptureHead,
    statements: Vec<CapturedStatement>,
    workloads: Vec<WorkloadDocument>,
}

/// A workload that was made of a statement.
#[derive(Serialize, Deserialize)]
struct WorkloadDocument {
    name: String,
    script: String,
    feeders: Vec<Feeder>,
    /// The values that the capture has kept; none where they are left out.
    #[serde(default)]
    rows: Vec<KeptRows>,
}

/// A capture of this role's as a document.
///
/// # Errors
/// 42704 for an unknown one, 42501 for another role's, 55000 for one that is not complete, and for scripts with values where
/// these are to be left out.
pub fn export(name: &str, with_values: bool) -> Result<Value, UserError> {
    if !spec::check_owner(name)? {
        let message = format!("capture \"{name}\" does not exist");
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message));
    }
    let not_now = |message: String| UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message);
    if store::capture(name)?.is_none_or(|capture| capture.status != "completed") {
        return Err(not_now(format!("capture \"{name}\" is not complete")));
    }
    let head = store::head_of_capture(name)?;
    if head.source == "log" && !with_values {
        return Err(not_now(format!("the scripts of capture \"{name}\" have values of the server's log"))
            .hint("Export them with its values: leave with_values => false out."));
    }
    let statements = store::captured_statements(name)?;
    let mut workloads = Vec::new();
    for stored in statements.iter().filter_map(|statement| statement.workload.as_deref()) {
        // One may have been dropped since.
        let Some(workload) = store::workload(stored)? else { continue };
        let feeders = store::feeders(stored)?;
        let rows = if with_values { store::kept_rows(stored, &feeders)? } else { Vec::new() };
        let Workload { name, script, .. } = workload;
        workloads.push(WorkloadDocument { name, script, feeders, rows });
    }
    let document = CaptureDocument {
        format_version: FORMAT_VERSION,
        name: name.to_owned(),
        head,
        statements,
        workloads,
    };
    serde_json::to_value(document).map_err(|e| internal(e.to_string()))
}

/// Stores a document's capture as this role's, over one of the same name; the name. Whoever has written the document: its
/// scripts and queries are what this role could have stored itself, and what it says about roles is shown, not believed.
///
/// # Errors
/// 22023 for what is no such document; those of a capture for its name; those of scripts.
pub fn import(document: Value) -> Result<String, UserError> {
    let document: CaptureDocument = serde_json::from_value(document).map_err(|e| invalid(e.to_string()))?;
    let CaptureDocument { format_version, name, head, statements, workloads } = document;
    if format_version != FORMAT_VERSION {
        let message = format!("the document of a capture has format_version {format_version}");
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .hint(format!("This version reads format_version {FORMAT_VERSION}.")));
    }
    if !["statements", "log"].contains(&head.source.as_str()) {
        return Err(invalid(format!("its source is \"{}\"", head.source)));
    }
    check_server()?;
    spec::check(&name)?;
    check_length(workloads.iter().map(|workload| workload.script.as_str()))?;
    let role = roles::current_role_oid();
    // As of what a capture keeps: the role whose sessions run it. Where there is none, runs need run_as.
    let caller = roles::current();
    let owner = session_of(&caller, &caller, None).unwrap_or(caller);
    store::begin_capture(
        &name,
        role,
        &head.source,
        &head.options,
        head.secs.unwrap_or_default(),
        current_timestamp(),
    )?;
    let mut stored = Vec::new();
    let mut without = Vec::new();
    for workload in workloads {
        let number = workload.name.strip_prefix(&name).and_then(|rest| rest.strip_prefix('/'));
        let is_own = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_own || stored.contains(&workload.name) || workload.name.len() > 63 {
            return Err(invalid(format!("\"{}\" is no name of a workload of it", workload.name)));
        }
        let is_used = |statement: &CapturedStatement| {
            statement.workload.as_ref() == Some(&workload.name) && statement.weight.is_some_and(|w| w > 0)
        };
        // Dropping the capture drops the workloads of its statements.
        if !statements.iter().any(is_used) {
            continue;
        }
        let lacks = |feeder: &Feeder| {
            feeder.query.contains("bench.captured_rows")
                && !workload.rows.iter().any(|r| r.prefix == feeder.prefix)
        };
        if workload.feeders.iter().any(lacks) {
            without.push(workload.name);
            continue;
        }
        stored.push(workload.name.clone());
        store(&name, owner.oid.into(), workload)?;
    }
    let mut statements = statements;
    for (place, statement) in statements.iter_mut().enumerate() {
        statement.number = i32::try_from(place + 1).unwrap_or(i32::MAX);
        let weight = statement.weight.unwrap_or_default();
        statement.statements = statement.statements.filter(|&statements| statements > 0);
        let missing = statement.workload.take_if(|workload| !stored.contains(workload) || weight < 1);
        if let Some(workload) = missing {
            statement.weight = None;
            let reason =
                if without.contains(&workload) { "its values were not exported" } else { "it was dropped" };
            statement.reason = Some(reason.to_owned());
        }
    }
    store::put_captured_statements(&name, &statements)?;
    tell_missing(&name, &statements, without.len());
    let end = CaptureEnd {
        status: "completed".to_owned(),
        calls: head.calls,
        exec_ms: head.exec_ms,
        dealloc: head.dealloc,
        notes: head.notes,
        activity: head.activity,
        error: None,
    };
    store::end_capture(&name, &end)?;
    Ok(name)
}

/// Says what of a capture cannot be replayed, `without` of it for lack of values.
fn tell_missing(name: &str, statements: &[CapturedStatement], without: usize) {
    let missing = statements.iter().filter(|statement| statement.workload.is_none());
    let (count, share) = missing.fold((0, 0.0), |(count, share), of| (count + 1, share + of.share));
    if count == 0 {
        return;
    }
    let values = match without {
        0 => String::new(),
        count => format!("; the values of {count} were not exported"),
    };
    notice(
        format!(
            "capture {name}: {count} of {} statements, with {} of the captured time, cannot be replayed{values}",
            statements.len(),
            percent(Some(share))
        ),
        format!(
            "See SELECT query, reason FROM bench.capture_statements WHERE capture = {} AND NOT kept.",
            quote_literal(name)
        ),
    );
}

fn store(capture: &str, role: pg_sys::Oid, document: WorkloadDocument) -> Result<(), UserError> {
    let WorkloadDocument { name, script, feeders, rows } = document;
    parse(&name, &script, &mut Symbols::new())?;
    store::put_workload(&name, role, None, &script, Some(&format!("Captured as a part of {capture}")))?;
    store::hide_workload(&name)?;
    let Some(workload) = store::workload(&name)? else {
        return Err(internal("the workload no longer exists"));
    };
    for Feeder { prefix, query, pick, once, max_rows, .. } in feeders {
        check_select(&query)?;
        let max_rows = i32::try_from(max_rows).unwrap_or(i32::MAX);
        store::put_feeder(&workload, &Feeder::new(prefix, query, pick.as_str(), once, max_rows)?)?;
    }
    let mut prefixes = HashSet::new();
    for KeptRows { prefix, rows, .. } in rows {
        if !prefixes.insert(prefix.clone()) {
            return Err(invalid(format!("workload \"{name}\" has values for prefix \"{prefix}\" twice")));
        }
        store::put_captured_rows(&name, &prefix, rows)?;
    }
    Ok(())
}

fn invalid(detail: String) -> UserError {
    UserError::invalid("not a document of bench.export_capture").detail(detail)
}
