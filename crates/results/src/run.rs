//! How a run was asked for and how it ended.

use bench_model::rates::Rates;
use bench_stats::until_steady::LONGEST_SECS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How the run was asked for and how it ended; see the comments of `bench.runs`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    pub run_id: i64,
    pub workload: String,
    pub fixture: Option<String>,
    /// Rows that each of the fixtures was loaded with.
    pub fixture_rows: Option<Vec<i64>>,
    /// MD5 of the script as run and of its feeders, in hexadecimal: whether two runs ran the same.
    pub script_hash: String,
    /// On each node that clients ran on.
    pub clients: u32,
    /// Measured seconds asked for.
    pub secs: Option<f64>,
    /// Transactions per client asked for.
    pub transactions: Option<u64>,
    /// Seconds asked for; `None`: until throughput was steady.
    pub warmup: Option<f64>,
    /// Seconds that the warm-up took; `None` where nothing was run.
    pub warmup_took: Option<f64>,
    /// Transactions per second of an open loop.
    pub rate: Option<f64>,
    /// Where it changed over the measured time; then `rate` is its mean.
    pub rates: Option<Value>,
    /// Milliseconds.
    pub latency_limit: Option<f64>,
    pub max_tries: u32,
    pub seed: i64,
    /// Empty in documents without it.
    pub driver: String,
    pub query_mode: String,
    /// With the wire driver: the foreign server that was connected to; `None`: this server.
    pub target: Option<String>,
    /// With the wire driver: workers that shared the connections.
    pub jobs: Option<u32>,
    /// Whether each transaction had a connection of its own.
    pub reconnect: bool,
    /// `end` or `reconnect`: what clients did that lost their connections.
    pub on_disconnect: String,
    pub results: String,
    pub variables: Map<String, Value>,
    pub settings: Map<String, Value>,
    /// Statements by which its sweep had changed the database for it.
    pub applied: Vec<String>,
    pub tags: Map<String, Value>,
    /// Seconds.
    pub sample_interval: f64,
    /// Share of the transactions that were to be logged.
    pub log_rate: f64,
    /// Lines of bench.transactions; `None` without a log.
    pub logged: Option<u64>,
    /// Lines that there was no room for.
    pub log_lost: Option<u64>,
    pub status: String,
    /// ISO 8601, as PostgreSQL writes a timestamptz into JSON.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    pub role: String,
    /// Runs of this database that were measured at the same time, of whatever role.
    pub other_runs: Vec<i64>,
    /// sqlstate, message, detail and hint of what kept it from completing.
    pub error: Option<Value>,
    /// Whether the waiting caller held back the xmin horizon.
    pub horizon_held: bool,
    pub server_version: String,
    pub extension_version: String,
    /// Where an imported run ran; `None` for a run made here.
    pub origin: Option<Value>,
}

impl Run {
    /// Its rates, where they changed over the measured time.
    pub fn changing_rates(&self) -> Option<Rates> {
        Rates::parse(self.rates.as_ref()?).ok()
    }

    /// Seconds that it ran before the measurement, as far as they are known.
    pub fn warmed_up_secs(&self) -> f64 {
        self.warmup_took.or(self.warmup).unwrap_or_default()
    }

    /// Whether the warm-up was to last until throughput was steady, and ended because that took too long.
    pub fn is_unsteady(&self) -> bool {
        self.warmup.is_none() && self.warmup_took.is_some_and(|secs| secs >= LONGEST_SECS)
    }
}
