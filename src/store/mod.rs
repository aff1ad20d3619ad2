//! The only place with SQL on the bench.* tables.
//!
//! In a caller's session the tables are read and written as the extension's owner, whatever the
//! caller may do with them, after the question who may do what has been answered; in the
//! coordinator, which is connected as the bootstrap superuser, by [`recorder`]. All names are
//! qualified, and the search_path is pg_catalog. [`guard`] sees to it that what is touched belongs to superusers.

mod captured_rows;
mod captures;
mod definitions;
mod document;
mod duels;
mod feeders;
pub mod fidelity;
mod fixtures;
mod history;
mod horizon;
mod in_use;
mod index_worth;
mod loads;
pub mod lock_timeout;
pub mod nodes;
mod owners;
pub mod pg_cron;
pub mod recorder;
mod runs;
mod screens;
pub mod searches;
mod statements;
mod sweep_document;
mod sweeps;
mod system_settings;
mod totals;
mod transfer;
pub mod version;
mod work;
mod workloads;

use bench_base::error::UserError;
use pgrx::pg_sys;

use crate::error::internal;
use crate::guard::extension::anchor;
use crate::guard::switch_role::as_role;
use crate::server::locks;
use crate::server::relations::owner_of;
use crate::server::roles;
use crate::server::roles::acts_for;

pub use captured_rows::*;
pub use captures::*;
pub use definitions::*;
pub use document::{document, headline, visible_headline};
pub use duels::{duel_of, find_duel};
pub use feeders::*;
pub use fixtures::*;
pub use history::{Past, calibration_of, history};
pub use horizon::*;
pub use in_use::{check_clients, check_unused, clients_of, runs_of_job};
pub use index_worth::index_lines;
pub use loads::*;
pub use nodes::{
    add_up_again, fetched, is_of_several_nodes, is_part, may_run, names_of, run_error, table_of,
};
pub use owners::reassign_owned;
pub use runs::*;
pub use screens::screen_lines;
pub use statements::{calls_per_script, statements_of};
pub use sweep_document::sweep_document;
pub use sweeps::*;
pub use system_settings::*;
pub use transfer::{
    Imported, chunk, chunks, delete_runs, export, export_piece, forget_runs, import, prune, samples_after,
    take_part, take_samples,
};
pub use work::{
    WorkHandle, check_visible, current_status, handle_of, is_led, is_open, may_stop, status, visible,
};
pub use workloads::*;

/// Locks the anchor against DROP EXTENSION until the transaction ends.
///
/// # Errors
/// 42704 when the extension has gone. Without this a table that somebody made in its place, with
/// a trigger, would be written to as a superuser. 55000 when its SQL is another version's.
fn hold_extension() -> Result<pg_sys::Oid, UserError> {
    let table = anchor()?;
    locks::lock(table, pg_sys::AccessShareLock);
    if anchor()? != table {
        return Err(internal("the extension was replaced meanwhile"));
    }
    version::check()?;
    Ok(table)
}

/// Runs `body` as the extension's owner, with a search_path of pg_catalog, and goes back. An
/// error goes back as well: the end of the (sub)transaction restores role and settings.
pub fn as_owner<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let table = hold_extension()?;
    let result = as_role(owner_of(table)?, body);
    // Not until the transaction ends: a caller that waits for its run must not stand in the
    // way of what waits for this table, and so of its own recorder. What was written keeps
    // the locks of its own tables.
    locks::unlock(table, pg_sys::AccessShareLock);
    result
}

/// The extension's owner, for [`as_role`] when the extension may have gone.
fn extension_owner() -> Result<pg_sys::Oid, UserError> {
    owner_of(anchor()?)
}

/// The rule of who sees what belongs to a run, a load or a sweep of this role: who has its privileges or those of
/// pg_read_all_stats, and superusers. What a role has left that no longer exists is for the latter two.
pub fn may_see(role: pg_sys::Oid) -> bool {
    acts_for(role) || acts_for(roles::READ_ALL_STATS)
}
