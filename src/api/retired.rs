//! Symbols of functions whose arguments are others in an earlier version. A database whose extension has not been updated
//! calls them with arguments of other types, so that none is read here; and the server looks for them where such a database
//! is made, by CREATE EXTENSION at that version or by pg_upgrade.

use bench_base::error::{UserError, sqlstate};
use pgrx::prelude::*;

use crate::error::OrRaise;
use crate::store::version;

macro_rules! retired {
    ($($name:ident),* $(,)?) => {
        $(
            #[pg_extern(sql = false)]
            fn $name() {
                version::check().and_then(|()| Err::<(), _>(gone())).or_raise()
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
    .hint("Drop the function: the extension in this database does not have it.")
}

// Of 0.2.0.
retired! {
    ab, calibrate_workload, capacity_of_workload, compare, is_visible, level_changes, preflight, resume_sweep, run_fidelity, run_workload, schedule_workload,
    start_capacity_of_workload, start_scheduled_workload, start_sweep_of_workload, start_workload, sweep_workload, usable_fixture,
}
