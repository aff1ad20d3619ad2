//! bench.capture and its kin.

use bench_base::error::UserError;
use bench_capture::fidelity::Call;
use pgrx::JsonB;
use pgrx::prelude::*;
use serde_json::Value;

use super::required;
use super::runs::deadline;
use crate::capture::spec::CaptureSpec;
use crate::capture::{document, launch, worker};
use crate::error::OrRaise;
use crate::server::jsonb::Jsonb;
use crate::store::fidelity;
use crate::store::fidelity::{Fidelity, FidelityLine};

/// The document of a capture: about as much as a jsonb can hold.
type CaptureJsonb = Jsonb<{ 255 << 20 }>;

pgrx::impl_sql_translatable!(CaptureJsonb, "jsonb");

fn spec(
    name: Option<String>,
    secs: Option<f64>,
    statements: Option<i32>,
    options: Option<Jsonb>,
) -> Result<CaptureSpec, UserError> {
    let options = options.map_or_else(|| Value::Object(serde_json::Map::new()), |options| options.0);
    CaptureSpec::new(
        required("name", name)?,
        required("secs", secs)?,
        required("statements", statements)?,
        options,
    )
}

/// Captures and waits. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn capture_statements(
    name: Option<String>,
    secs: Option<f64>,
    statements: Option<i32>,
    options: Option<Jsonb>,
) -> TableIterator<
    'static,
    (
        name!(workload, Option<String>),
        name!(weight, Option<i32>),
        name!(calls, i64),
        name!(share, f64),
        name!(kept, bool),
        name!(reason, Option<String>),
    ),
> {
    let lines = spec(name, secs, statements, options).and_then(|spec| worker::to_the_end(&spec)).or_raise();
    TableIterator::new(lines.into_iter().map(|line| {
        let kept = line.workload.is_some();
        (line.workload, line.weight, line.calls, line.share, kept, line.reason)
    }))
}

/// Captures in a background worker. See the COMMENT ON.
#[pg_extern(sql = false)]
fn start_capture(name: Option<String>, secs: Option<f64>, statements: Option<i32>, options: Option<Jsonb>) {
    spec(name, secs, statements, options).and_then(|spec| worker::start(&spec)).or_raise();
}

/// Waits for a capture. See the COMMENT ON.
#[pg_extern(sql = false)]
fn wait_capture(name: Option<String>, timeout: Option<f64>) -> String {
    required("name", name).and_then(|name| launch::wait(&name, deadline(timeout)?)).or_raise()
}

/// Stops a capture under way. See the COMMENT ON.
#[pg_extern(sql = false)]
fn stop_capture(name: Option<String>) -> bool {
    required("name", name).and_then(|name| launch::stop(&name)).or_raise()
}

/// Removes a capture. See the COMMENT ON.
#[pg_extern(sql = false)]
fn drop_capture(name: Option<String>) {
    required("name", name).and_then(|name| launch::drop(&name)).or_raise();
}

/// A capture as a document. See the COMMENT ON.
#[pg_extern(sql = false)]
fn export_capture(name: Option<String>, with_values: Option<bool>) -> JsonB {
    let document = required("name", name)
        .and_then(|name| document::export(&name, required("with_values", with_values)?));
    JsonB(document.or_raise())
}

/// The capture of a document. See the COMMENT ON.
#[pg_extern(sql = false)]
fn import_capture(document: Option<CaptureJsonb>) -> String {
    required("document", document).and_then(|document| document::import(document.0)).or_raise()
}

/// A run beside what was captured. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn fidelity_of_run(
    run_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(workload, Option<String>),
        name!(calls, i64),
        name!(rows_captured, Option<f64>),
        name!(rows_replayed, Option<f64>),
        name!(blocks_captured, Option<f64>),
        name!(blocks_replayed, Option<f64>),
        name!(score, Option<f64>),
        name!(hit_captured, Option<f64>),
        name!(hit_replayed, Option<f64>),
        name!(read_captured, Option<f64>),
        name!(read_replayed, Option<f64>),
        name!(ms_captured, Option<f64>),
        name!(ms_replayed, Option<f64>),
        name!(failed, i64),
        name!(reason, Option<String>),
    ),
> {
    let Fidelity { lines, .. } = required("run_id", run_id).and_then(fidelity::of_run).or_raise();
    TableIterator::new(lines.into_iter().map(|line| {
        let captured = |of: fn(&Call) -> f64| line.captured.as_ref().map(of);
        let replayed = |of: fn(&Call) -> f64| line.replayed.as_ref().map(of);
        let figures = (
            captured(|call| call.rows),
            replayed(|call| call.rows),
            captured(Call::blocks),
            replayed(Call::blocks),
            captured(|call| call.hit),
            replayed(|call| call.hit),
            captured(|call| call.read),
            replayed(|call| call.read),
            captured(|call| call.ms),
            replayed(|call| call.ms),
        );
        let (r1, r2, b1, b2, h1, h2, d1, d2, m1, m2) = figures;
        let FidelityLine { workload, calls, score, failed, reason, .. } = line;
        (workload, calls, r1, r2, b1, b2, score, h1, h2, d1, d2, m1, m2, failed, reason)
    }))
}

/// What a run's fidelity is made of. See the COMMENT ON.
#[pg_extern(sql = false)]
#[allow(clippy::type_complexity)]
fn fidelity_parts(
    run_id: Option<i64>,
) -> TableIterator<
    'static,
    (
        name!(part, String),
        name!(captured, Option<f64>),
        name!(replayed, Option<f64>),
        name!(score, Option<f64>),
        name!(reason, Option<String>),
    ),
> {
    let Fidelity { parts, .. } = required("run_id", run_id).and_then(fidelity::of_run).or_raise();
    TableIterator::new(
        parts.into_iter().map(|part| (part.part, part.captured, part.replayed, part.score, part.reason)),
    )
}
