//! What a report says, apart from how it looks: titled sections of facts and tables, in the order of interest.

mod database;
mod duel;
mod headline;
mod latency_limit;
mod machine;
mod nodes;
mod open_loop;
mod orders;
mod run;
mod section;
mod table;
mod transactions;
mod values;

pub use duel::duel_sentence;
pub use headline::{closing, closing_lines, outcome, run_outcome, subtitle, unreplayed};
pub use machine::{environment, settings};
pub use open_loop::OpenLoop;
pub use run::{conclusion, sections};
pub use section::{Body, Plan, Section, StatementPlans};
pub use table::{ColumnKind, Table, TableOf};
pub use transactions::wait_name;
pub use values::{figures, given, latency, more_in_json, or_missing, pairs};
