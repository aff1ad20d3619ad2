//! What a server's statistics views say, this one's and a target's: the queries, in each version of the server, and their
//! answers.

mod counters;
mod question;
mod replication;

pub use counters::{ServerCounters, counters_query};
pub use question::{Answer, Question, Views};
pub use replication::{Lag, Replication, Standby, replication_query};

#[cfg(test)]
mod tests;
