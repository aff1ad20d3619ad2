//! The only place with SQL on the bench.* tables.
//!
//! In a caller's session the tables are read and written as the extension's owner, after checks of the caller's privileges;
//! in the coordinator, which is connected as the bootstrap superuser, by [`recorder`]. The search_path is pg_catalog.
//! [`crate::guard::own_tables`] checks that the tables belong to superusers.

mod captures;
mod deletion;
mod document;
mod duels;
mod export;
pub mod extension_owner;
pub mod fidelity;
mod fixtures;
mod horizon;
mod import;
mod loads;
pub mod nodes;
pub mod pg_cron;
pub mod recorder;
pub mod sweeps;
mod totals;
mod work;
mod workloads;

pub use captures::*;
pub use deletion::{delete_runs, forget_runs, prune};
pub use document::{
    document, headline, index_lines, rehearsal_lines, screen_lines, sweep_document, visible_headline,
};
pub use duels::{compare_duels, duel_of, find_duel, statements_of};
pub use export::{chunk, chunks, export, export_piece};
pub use extension_owner::{as_owner, may_see, reassign_owned};
pub use fixtures::*;
pub use horizon::*;
pub use import::{Imported, import, samples_after, take_part, take_samples};
pub use loads::*;
pub use nodes::{
    add_up_again, fetched, is_of_several_nodes, is_part, may_run, names_of, run_error, table_of,
};
pub use sweeps::*;
pub use work::*;
pub use workloads::*;
