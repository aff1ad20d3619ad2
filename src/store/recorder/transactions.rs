//! The lines of bench.transactions.

use bench_base::error::UserError;
use bench_model::transaction_log::{LogRecord, LoggedOutcome};
use pgrx::datum::TimestampWithTimeZone;

use super::end;
use super::extension_hold::hold;
use crate::server::spi::{run, timestamp};
use crate::server::transaction::transaction;
use crate::store::totals::ms;

/// A line of bench.transactions.
pub struct Logged {
    /// When it started, or was skipped, a TimestampTz.
    pub started: i64,
    pub entry: LogRecord,
}

/// Writes transactions that clients have logged, all of them or none.
pub fn transactions(run_id: i64, rows: &[Logged]) -> Result<(), UserError> {
    let of = |entry: &LogRecord, ns: u64| (entry.outcome != LoggedOutcome::Skipped).then(|| ms(ns as f64));
    let clients: Vec<i32> = rows.iter().map(|row| row.entry.client.cast_signed()).collect();
    let numbers: Vec<i64> = rows.iter().map(|row| row.entry.transaction.cast_signed()).collect();
    let scripts: Vec<i32> = rows.iter().map(|row| row.entry.script.cast_signed()).collect();
    let started: Vec<Option<TimestampWithTimeZone>> = rows.iter().map(|row| timestamp(row.started)).collect();
    let lags: Vec<f64> = rows.iter().map(|row| ms(row.entry.lag_ns as f64)).collect();
    let latencies: Vec<Option<f64>> = rows.iter().map(|row| of(&row.entry, row.entry.latency_ns)).collect();
    let retries: Vec<i32> =
        rows.iter().map(|row| i32::try_from(row.entry.retries).unwrap_or(i32::MAX)).collect();
    let outcomes: Vec<&str> = rows.iter().map(|row| row.entry.outcome.as_str()).collect();
    let written = transaction(std::panic::AssertUnwindSafe(move || {
        hold()?;
        run(
            "INSERT INTO bench.transactions (run_id, client, transaction, script, started, lag_ms, latency_ms, retries, outcome) \
             SELECT r.run_id, x.client, x.transaction, x.script, x.started, CASE WHEN r.rate IS NOT NULL THEN x.lag_ms END, \
                 x.latency_ms, x.retries, x.outcome \
             FROM bench_internal.run_log r, ROWS FROM (unnest($2), unnest($3), unnest($4), \
                 unnest($5), unnest($6), unnest($7), unnest($8), unnest($9)) \
                 AS x (client, transaction, script, started, lag_ms, latency_ms, retries, outcome) \
             WHERE r.run_id = $1",
            &[
                run_id.into(),
                clients.into(),
                numbers.into(),
                scripts.into(),
                started.into(),
                lags.into(),
                latencies.into(),
                retries.into(),
                outcomes.into(),
            ],
        )
    }))?;
    if written < rows.len() { Err(end::gone(run_id)) } else { Ok(()) }
}
