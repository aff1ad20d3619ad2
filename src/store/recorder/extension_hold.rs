//! The hold on the extension during each of a run's transactions.

use std::cell::Cell;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::guard::planner_hook;
use crate::store::extension_owner::hold_extension;

thread_local! {
    /// The extension's table of runs as it was at the run's beginning.
    static RUN_LOG: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
}

/// Holds the extension, the very one that the run began with.
pub fn hold() -> Result<(), UserError> {
    planner_hook::for_good();
    let table = hold_extension()?;
    match RUN_LOG.get() {
        Some(first) if first != table => Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            "extension \"pgbench_ext\" was dropped during the run",
        )),
        _ => {
            RUN_LOG.set(Some(table));
            Ok(())
        }
    }
}
