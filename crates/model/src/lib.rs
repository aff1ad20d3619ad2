//! What a run is: its specification, its clients' state machine, its schedule, and what it counts.
//!
//! | module | contents |
//! |---|---|
//! | [`spec`] | arguments and specification of a run |
//! | [`client`] | one client: its next transaction, its commands, and what follows from errors |
//! | [`schedule`] | start times of an open loop, whose rate may change over time |
//! | [`timeline`] | phases and intervals of a run |
//! | [`tally`] | counts of one client in one interval |
//! | [`intervals`] | tallies of all clients, in shared memory |
//! | [`transaction_log`] | single transactions, in shared memory |
//! | [`feeder`] | rows of queries that give a script's variables their values |
//! | [`rows`] | rows of the built-in fixtures |
//! | [`shard_keys`] | values that reach each shard of a distributed table |
//! | [`cluster`] | nodes of a Citus cluster: placing clients, limits, clocks |
//! | [`part`] | messages between nodes about the parts of a run |
//! | [`processor_samples`] | executions of a duel's statements whose processor time is read |
//! | [`progress`] | the figures of a line of progress |
//! | [`views`] | queries on statistics views in each version of the server, and their answers |

#![forbid(unsafe_code)]

pub mod client;
pub mod cluster;
pub mod feeder;
pub mod intervals;
pub mod part;
pub mod processor_samples;
pub mod progress;
pub mod rows;
pub mod schedule;
pub mod shard_keys;
pub mod spec;
pub mod tally;
pub mod timeline;
pub mod transaction_log;
pub mod views;
