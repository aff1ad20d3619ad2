//! bench_internal.is_visible, by which views and policies go.

use pgrx::prelude::*;

use crate::catalog;
use crate::error::OrRaise;

/// Whether the current role may see what belongs to a run of another. See the COMMENT ON.
#[pg_extern(sql = false)]
fn is_visible(role: Option<&str>) -> bool {
    // There is no role without a name.
    catalog::may_see(role.unwrap_or_default()).or_raise()
}
