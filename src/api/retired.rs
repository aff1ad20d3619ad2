//! Functions of earlier versions whose arguments or result have changed. Their symbols stay, because a database whose
//! extension has not been updated names them, and can be created at the old version.

use bench_core::error::{UserError, sqlstate};

use crate::error::OrRaise;

/// A symbol that only the SQL of an earlier version calls. `pgrx::pg_extern` in full: no install SQL is held against it.
macro_rules! retired {
    ($($name:ident),*) => {
        $(
            #[pgrx::pg_extern(sql = false)]
            fn $name() {
                Err::<(), _>(
                    UserError::new(
                        sqlstate::NOT_IN_PREREQUISITE_STATE,
                        "this function belongs to an earlier version of pgbench_ext than the library",
                    )
                    .detail(format!("The library has version {}.", env!("CARGO_PKG_VERSION")))
                    .hint("Run ALTER EXTENSION pgbench_ext UPDATE."),
                )
                .or_raise()
            }
        )*
    };
}

retired!(change_points);
