//! Work of which nothing stays in the transaction it is part of.

use std::panic::AssertUnwindSafe;

use bench_core::error::UserError;
use pgrx::{PgTryBuilder, pg_sys};

use crate::error::from_caught;

/// Runs `body` in a subtransaction that is rolled back, and so gives back the locks that it took.
///
/// # Errors
/// Those of `body`, whether returned or raised by the server.
pub fn rolled_back<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
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
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::CurrentMemoryContext = context;
        pg_sys::CurrentResourceOwner = owner;
        result
    }
}
