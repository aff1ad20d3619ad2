//! What the arms of a duel did: bench_internal.duel_log.

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::ARMS;
use bench_core::stats::duel::{ArmBatch, BATCHES};

use super::as_owner;
use super::document::check_visible;
use crate::server::spi::{fetch_all, run};

/// Writes the batches of a duel, those without transactions left out.
pub fn put_duel(run_id: i64, batches: &[[ArmBatch; 2]]) -> Result<(), UserError> {
    for (batch, arms) in (0i32..).zip(batches) {
        for (name, sums) in ARMS.into_iter().zip(arms) {
            if sums.transactions == 0 {
                continue;
            }
            run(
                "INSERT INTO bench_internal.duel_log (run_id, arm, batch, transactions, latency_ms, timed, busy_us) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                &[
                    run_id.into(),
                    name.into(),
                    batch.into(),
                    sums.transactions.cast_signed().into(),
                    sums.latency_ms.into(),
                    sums.timed.cast_signed().into(),
                    sums.cpu_us.into(),
                ],
            )?;
        }
    }
    Ok(())
}

/// The batches of a duel.
///
/// # Errors
/// 55000 for a run that is none, and those of a run that the caller may not see.
pub fn duel_of(run_id: i64) -> Result<Vec<[ArmBatch; 2]>, UserError> {
    check_visible(run_id)?;
    let found = as_owner(|| {
        let sql = "SELECT batch, arm, transactions, latency_ms, timed, busy_us FROM bench_internal.duel_log WHERE run_id = $1";
        fetch_all(sql, &[run_id.into()], |row| {
            let number =
                |place| Ok::<_, pgrx::spi::Error>(row.get::<i64>(place)?.unwrap_or_default().unsigned_abs());
            let sums = ArmBatch {
                transactions: number(3)?,
                latency_ms: row.get::<f64>(4)?.unwrap_or_default(),
                timed: number(5)?,
                cpu_us: row.get::<f64>(6)?.unwrap_or_default(),
            };
            let batch = row.get::<i32>(1)?.unwrap_or_default().unsigned_abs() as usize;
            let arm = row.get::<String>(2)?.unwrap_or_default();
            Ok((batch, ARMS.iter().position(|name| *name == arm).unwrap_or_default(), sums))
        })
    })?;
    if found.is_empty() {
        let message = format!("run {run_id} is not a duel, or none of its transactions was measured");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("bench.duel and bench.start_duel make duels."));
    }
    let mut batches = vec![[ArmBatch::default(); 2]; BATCHES];
    for (batch, arm, sums) in found {
        if let Some(place) = batches.get_mut(batch) {
            place[arm] = sums;
        }
    }
    Ok(batches)
}
