//! Functions of earlier versions whose arguments or result have changed. Their symbols stay, because a database whose
//! extension has not been updated names them, and can be created at the old version.

use bench_core::error::{UserError, sqlstate};

use crate::catalog;
use crate::error::OrRaise;

/// A symbol that only the SQL of an earlier version calls. `pgrx::pg_extern` in full: no install SQL is held against it.
macro_rules! retired {
    ($($name:ident),*) => {
        $(
            #[pgrx::pg_extern(sql = false)]
            fn $name() {
                catalog::check_version().and_then(|()| Err::<(), _>(gone())).or_raise()
            }
        )*
    };
}

/// The error in a database whose extension is of this version.
fn gone() -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        "this function belongs to an earlier version of pgbench_ext than the library",
    )
    .detail(format!("The library has version {}.", env!("CARGO_PKG_VERSION")))
    .hint("Drop the function: no version of the extension in this database has it.")
}

retired!(change_points, run, start, schedule, start_scheduled, sweep, start_sweep);
