//! The hold on the extension during each of a run's transactions.

use std::cell::Cell;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use crate::guard::own_tables::on_own_tables_for_good;
use crate::store::extension_owner::hold_extension;

thread_local! {
    /// The extension's table of runs as it was at the run's beginning.
    static RUN_LOG: Cell<Option<pg_sys::Oid>> = const { Cell::new(None) };
}

/// Holds the extension, the very one that the run began with.
///
/// # Errors
/// 42501 where something of it is not a superuser's, 42704 where it was dropped; those of [`hold_extension`].
pub fn hold() -> Result<(), UserError> {
    let table = hold_extension()?;
    on_own_tables_for_good()?;
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
