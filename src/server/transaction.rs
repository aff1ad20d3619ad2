//! Transactions of workers that have none open, and subtransactions.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe};

use bench_base::error::UserError;
use pgrx::{PgTryBuilder, pg_sys};

use super::horizon::forget_catalog_snapshot;
use super::spi::set_local;
use crate::error::from_caught;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of this process's calls of [`transaction`].
pub fn count() -> u64 {
    COUNT.get()
}

/// Runs `body` in a transaction of its own, in a worker that has none open. An error rolls it
/// back and is returned.
pub fn transaction<T>(
    body: impl FnOnce() -> Result<T, UserError> + UnwindSafe + RefUnwindSafe,
) -> Result<T, UserError> {
    COUNT.set(COUNT.get() + 1);
    framed(|| {
        // SAFETY: inside the transaction that `framed` has begun; an error's abort pops the snapshot as well.
        unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot()) };
        let result = body();
        if result.is_ok() {
            // SAFETY: the snapshot that was pushed above.
            unsafe { pg_sys::PopActiveSnapshot() };
        }
        result
    })
    .inspect(|_| {
        // SAFETY: outside a transaction; sends what it has counted, no more often than the server allows.
        unsafe { pg_sys::pgstat_report_stat(false) };
    })
}

/// Runs `body` without the snapshot of a worker's [`transaction`], so that it does not hold back the horizon. Call it outside of
/// subtransactions and statements. The extension's own statements take snapshots of their own.
///
/// # Errors
/// Those of `body`.
pub fn without_snapshot<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    // SAFETY: inside the transaction that `transaction` has begun, outside of subtransactions and statements: the active snapshot
    // is the one that was pushed there, and another one is there when this returns. An error that leaves from here ends the
    // transaction.
    unsafe {
        pg_sys::PopActiveSnapshot();
        let result = body();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
        result
    }
}

/// Replaces the snapshot of a worker's [`transaction`] by a new one, as [`without_snapshot`] does at its end.
pub fn renew_snapshot() {
    // SAFETY: as in `without_snapshot`.
    unsafe {
        pg_sys::PopActiveSnapshot();
        forget_catalog_snapshot();
        pg_sys::PushActiveSnapshot(pg_sys::GetTransactionSnapshot());
    }
}

/// Whether this session's transaction continues after its statement, or is in a subtransaction.
pub fn is_in_block() -> bool {
    // SAFETY: looks at variables of the transaction's.
    unsafe { pg_sys::IsTransactionBlock() || pg_sys::IsSubTransaction() }
}

/// As [`transaction`], but its commit survives a crash of the server regardless of synchronous_commit. Does not wait for standbys.
pub fn durable_transaction<T>(
    body: impl FnOnce() -> Result<T, UserError> + UnwindSafe + RefUnwindSafe,
) -> Result<T, UserError> {
    transaction(|| {
        // The setting lasts until after the commit.
        set_local(c"synchronous_commit", c"local");
        body()
    })
}

/// Runs `body` with locks on tables, in a worker that has no transaction open. Without a snapshot, it does not hold back the horizon.
pub fn locked<T>(
    tables: &[pg_sys::Oid],
    mode: i32,
    body: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    framed(|| {
        // SAFETY: locks that the transaction gives back.
        tables.iter().for_each(|&table| unsafe { pg_sys::LockRelationOid(table, mode) });
        body()
    })
}

/// Runs `body` in a worker's transaction without a snapshot.
fn framed<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let whole = || {
        // SAFETY: no transaction is open; an error unwinds to the catch below.
        unsafe {
            pg_sys::SetCurrentStatementStartTimestamp();
            pg_sys::StartTransactionCommand();
        }
        let result = body();
        if result.is_ok() {
            // SAFETY: the transaction that was begun above.
            unsafe { pg_sys::CommitTransactionCommand() };
        }
        result
    };
    let result =
        PgTryBuilder::new(AssertUnwindSafe(whole)).catch_others(|caught| Err(from_caught(caught))).execute();
    if result.is_err() {
        roll_back();
    }
    result
}

/// Aborts the open transaction, if there is one.
fn roll_back() {
    // SAFETY: as PostgresMain does after an error.
    unsafe {
        pg_sys::AbortOutOfAnyTransaction();
        pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
    }
}

/// Runs `body` in a subtransaction that is rolled back, which also releases its locks.
///
/// # Errors
/// Those of `body`, whether returned or raised by the server.
pub fn rolled_back<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    subtransaction(body, |_| false)
}

/// Runs `body` in a subtransaction that is rolled back after an error, so that the transaction can continue.
///
/// # Errors
/// Those of `body`, whether returned or raised by the server.
pub fn all_or_nothing<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    subtransaction(body, Result::is_ok)
}

fn subtransaction<T>(
    body: impl FnOnce() -> Result<T, UserError>,
    stays: impl FnOnce(&Result<T, UserError>) -> bool,
) -> Result<T, UserError> {
    // SAFETY: as PL/pgSQL opens and leaves a subtransaction (exec_stmt_block in pl_exec.c); an error out of it
    // ends the whole transaction as it would without one.
    unsafe {
        let context = pg_sys::CurrentMemoryContext;
        let owner = pg_sys::CurrentResourceOwner;
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        // The result outlives the subtransaction's memory: it is Rust's own.
        let result = PgTryBuilder::new(AssertUnwindSafe(body))
            .catch_others(|caught| Err(from_caught(caught)))
            .execute();
        if stays(&result) {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::CurrentMemoryContext = context;
        pg_sys::CurrentResourceOwner = owner;
        result
    }
}
