//! The part of pgbench_ext that needs no PostgreSQL server: scripts, run specifications, time lines, statistics, findings
//! and reports. Plain `cargo test` covers it.
//!
//! The rooms, each of which imports only from those above it (`tests/rooms.rs` holds this order):
//!
//! | room | what is in it |
//! |---|---|
//! | `error` | an error with SQLSTATE, DETAIL and HINT |
//! | `interrupts` | looks at interrupts from long loops |
//! | `allocation` | memory for what others have written |
//! | `tokens` | the tokens of SQL statements |
//! | `untrusted` | texts of others, cut and cleaned |
//! | `similar` | the name that was probably meant by a mistyped one |
//! | `progress` | the figures of a line of progress |
//! | `unwritten_parts` | the parts of a run's end that could not be written |
//! | `script` | pgbench's script language: parser, expressions, random numbers |
//! | `feeder` | rows of queries that give a script's variables their values |
//! | `target` | what a foreign server and a user mapping say of a connection |
//! | `wire` | PostgreSQL's protocol, as a client speaks it |
//! | `stats` | histograms, moments, comparisons, change points, the scalability law |
//! | `timeline` | phases and intervals of a run |
//! | `rates` | a rate of transactions that changes over time |
//! | `tally` | counts of one client in one interval |
//! | `intervals` | tallies of all clients, in shared memory |
//! | `transaction_log` | single transactions, in shared memory |
//! | `views` | what statistics views say: queries in each version of the server, and their answers |
//! | `document` | everything known of a run or a sweep: the JSON report |
//! | `fidelity` | how well a run replays what was captured |
//! | `wait_events` | names of wait events in each version of the server |
//! | `findings` | sentences about a run, drawn from its document |
//! | `comparison` | differences between groups of runs, and how much equal runs vary |
//! | `capacity` | how much load a server sustains: trials, what they say, and which comes next |
//! | `report` | documents as text, Markdown, JSON and HTML |
//! | `help` | the documentation of the SQL functions, for `bench.help` |
//! | `schedule` | start times of an open loop |
//! | `client` | one client: which transaction comes next, its commands, and what follows from errors |
//! | `rows` | rows of the built-in fixtures |
//! | `shard_keys` | values that reach each shard of a distributed table |
//! | `cluster` | nodes of a Citus cluster: placing clients, limits, clocks |
//! | `spec` | arguments and specification of a run |
//! | `captured` | captured statements as scripts |
//! | `part` | messages between nodes about the parts of a run |
//! | `chunks` | a large document in parts |
//! | `sweep` | arguments, plan and variants of a sweep |
//! | `log_capture` | transactions of an application, taken from the server's log |
//! | `preflight` | what would spoil a run that is to start |

// Nothing here needs it; tests call the functions of C that they compare with.
#![cfg_attr(not(test), forbid(unsafe_code))]

pub mod allocation;
pub mod capacity;
pub mod captured;
pub mod chunks;
pub mod client;
pub mod cluster;
pub mod comparison;
pub mod document;
pub mod error;
pub mod feeder;
pub mod fidelity;
pub mod findings;
pub mod help;
pub mod interrupts;
pub mod intervals;
pub mod log_capture;
pub mod part;
pub mod preflight;
pub mod progress;
pub mod rates;
pub mod report;
pub mod rows;
pub mod schedule;
pub mod script;
pub mod shard_keys;
pub mod similar;
pub mod spec;
pub use bench_stats as stats;
pub mod sweep;
pub mod tally;
pub mod target;
pub mod timeline;
pub mod tokens;
pub mod transaction_log;
pub mod untrusted;
pub mod unwritten_parts;
pub mod views;
pub mod wait_events;
pub mod wire;
