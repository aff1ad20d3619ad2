//! What a server's statistics views say, this one's and a target's: the queries, in each version of the server, and their
//! answers.

mod counters;
mod query;
mod replication;
mod setting;

pub use counters::{ServerCounters, counters_query};
pub use query::{Views, ViewsAnswer, ViewsQuery};
pub use replication::{Lag, Replication, Standby, replication_query};
pub use setting::{SETTINGS_QUERY, ServerSetting, SettingsAnswer};

#[cfg(test)]
mod tests;
