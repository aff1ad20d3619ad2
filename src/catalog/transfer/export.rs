//! Runs as one document.

use std::panic::AssertUnwindSafe;

use bench_core::error::{UserError, sqlstate};
use pgrx::PgTryBuilder;

use super::{FORMAT_VERSION, RESULT_TABLES, RUN_LOG, StoredJsonb};
use crate::catalog::{as_owner, fetch};
use crate::error::{from_caught, internal};

/// Everything that is kept of these runs, in their order.
///
/// One statement, and so one snapshot: a bench.prune meanwhile leaves no half of a run. The caller has made sure that
/// the runs may be seen and are over.
///
/// # Errors
/// 54000 when it is more than a jsonb can hold.
pub fn export(run_ids: &[i64]) -> Result<StoredJsonb, UserError> {
    PgTryBuilder::new(AssertUnwindSafe(|| {
        as_owner(|| {
            let system_identifier = system_identifier()?;
            let document = fetch::<StoredJsonb>(
                &document_query(),
                &[run_ids.to_vec().into(), FORMAT_VERSION.into(), system_identifier.into()],
            )?;
            document.ok_or_else(|| internal("the query of an export has no row"))
        })
    }))
    .catch_others(|caught| Err(explain(from_caught(caught))))
    .execute()
}

/// The identifier that initdb gave to this cluster; `None` where the extension's owner may not read it.
fn system_identifier() -> Result<Option<String>, UserError> {
    let may_read = "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')";
    if fetch::<bool>(may_read, &[])? != Some(true) {
        return Ok(None);
    }
    fetch::<String>("SELECT system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system()", &[])
}

fn document_query() -> String {
    let lists: Vec<String> = RESULT_TABLES
        .iter()
        .map(|table| {
            // Each table's columns begin with its primary key, so rows compare by that.
            format!(
                "'{table}', (SELECT coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_strip_nulls({}) ORDER BY x), '[]') \
                     FROM bench.{table} x WHERE x.run_id = ANY ($1))",
                row_of(table)
            )
        })
        .collect();
    format!(
        "SELECT pg_catalog.jsonb_build_object( \
             'format_version', $2, 'exported_at', pg_catalog.now(), \
             'server', pg_catalog.jsonb_build_object( \
                 'system_identifier', $3, 'database', pg_catalog.current_database(), \
                 'server_version', pg_catalog.current_setting('server_version'), \
                 'extension_version', (SELECT extversion FROM pg_catalog.pg_extension WHERE extname = 'pgbench_ext')), \
             '{RUN_LOG}', (SELECT pg_catalog.jsonb_agg( \
                     pg_catalog.to_jsonb(r) - '{{segment,coordinator_pid}}'::pg_catalog.text[] \
                     || pg_catalog.jsonb_build_object('status', bench.status_of(r.status, r.segment, r.run_id)) \
                     ORDER BY pg_catalog.array_position($1, r.run_id)) \
                 FROM bench.{RUN_LOG} r WHERE r.run_id = ANY ($1)), \
             {})",
        lists.join(", ")
    )
}

/// The row `x` of a table as JSON.
fn row_of(table: &str) -> &'static str {
    match table {
        // Which runs were in the way of an audit is known only here, beside them.
        "audit_log" => {
            "(SELECT pg_catalog.to_jsonb(x) \
                  || pg_catalog.jsonb_build_object('judged', x.judged AND v.reason = x.reason, 'reason', v.reason) \
              FROM bench.audits v WHERE v.run_id = x.run_id AND v.counter = x.counter)"
        }
        _ => "pg_catalog.to_jsonb(x)",
    }
}

/// The limits of jsonb are 256 MB of elements in an array or an object (JENTRY_OFFLENMASK, utils/jsonb.h), and a
/// palloc of 1 GB.
fn explain(error: UserError) -> UserError {
    if error.sqlstate == sqlstate::PROGRAM_LIMIT_EXCEEDED
        || error.message.contains("invalid memory alloc request size")
    {
        return UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, "the runs are too large for one document")
            .detail(error.message)
            .hint("Export fewer of them at a time. pg_dump has no such limit.");
    }
    error
}
