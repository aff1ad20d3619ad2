//! The only place with SQL on the bench.* tables.
//!
//! In a caller's session the tables are read and written as the extension's owner, whatever the
//! caller may do with them, after the question who may do what has been answered; in the
//! coordinator, which is connected as the bootstrap superuser, by [`recorder`]. The
//! search_path is pg_catalog. [`guard::own_tables`] sees to it that what is touched belongs to superusers.

mod captured_rows;
mod captures;
mod definitions;
mod document;
mod duels;
mod extension_owner;
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

pub use captured_rows::*;
pub use captures::*;
pub use definitions::*;
pub use document::{document, headline, visible_headline};
pub use duels::{duel_of, find_duel};
pub use extension_owner::{as_owner, may_see};
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
pub use statements::statements_of;
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
