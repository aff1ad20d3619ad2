//! How a run was asked for and how it ended.

use bench_model::schedule::Rates;
use bench_stats::until_steady::LONGEST_SECS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Arguments and status of a run, as in `bench.runs`. Status `incomplete`: clients were lost, or some results could not
/// be written; `error` says which. `failed`: nothing was measured. `crashed`: the server or the run's coordinator
/// crashed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Run {
    /// The run.
    pub run_id: i64,
    /// Name of the workload, or the mix as given.
    pub workload: String,
    /// Fixture used; several are separated by commas.
    pub fixture: Option<String>,
    /// Rows loaded into each of these fixtures.
    pub fixture_rows: Option<Vec<i64>>,
    /// MD5 of the script as run: equal for runs of the same script.
    pub script_hash: String,
    /// Concurrent clients, on each node that clients ran on.
    pub clients: u32,
    /// Requested measured time, in seconds.
    pub secs: Option<f64>,
    /// Requested transactions per client.
    pub transactions: Option<u64>,
    /// Requested warm-up, in seconds; null: until throughput was steady.
    pub warmup: Option<f64>,
    /// Actual warm-up, in seconds; null if nothing was run.
    pub warmup_took: Option<f64>,
    /// Target transactions per second over all clients; null: each client starts a transaction when its previous one
    /// has ended.
    pub rate: Option<f64>,
    /// Rates that changed over the measured time, by the second from which on they were due; `rate` is then their mean.
    pub rates: Option<Value>,
    /// Latency above which a transaction is late, in milliseconds.
    pub latency_limit: Option<f64>,
    /// Tries per transaction at a serialization failure or deadlock; 0: no limit.
    pub max_tries: u32,
    /// Seed of the random numbers, given or drawn; signed.
    pub seed: i64,
    /// `engine` or `wire`.
    pub driver: String,
    /// `simple`, `extended` or `prepared`, as pgbench's `-M`.
    pub query_mode: String,
    /// With the wire driver: the foreign server that the connections went to; null: the server itself.
    pub target: Option<String>,
    /// With the wire driver: background workers that shared the connections.
    pub jobs: Option<u32>,
    /// With the wire driver: whether each transaction opened its own connection.
    pub reconnect: bool,
    /// With the wire driver: `end`: a client ended when its connection was lost; `reconnect`: it connected again.
    pub on_disconnect: String,
    /// `serialize`: rows are converted to text and dropped; `discard`: rows are dropped unread.
    pub results: String,
    /// Script variables given: name to value.
    pub variables: Map<String, Value>,
    /// Configuration parameters set for every client: name to value.
    pub settings: Map<String, Value>,
    /// Statements by which a sweep had changed the database for the run.
    pub applied: Vec<String>,
    /// The user's own labels, as given.
    pub tags: Map<String, Value>,
    /// Requested length of an interval, in seconds.
    pub sample_interval: f64,
    /// Share of the transactions to log in bench.transactions, from 0 to 1.
    pub log_rate: f64,
    /// Transactions logged; null without a log.
    pub logged: Option<u64>,
    /// Transactions lost from the log because they ended faster than they could be written; null without a log.
    pub log_lost: Option<u64>,
    /// `starting`, `running`, `completed`, `incomplete`, `canceled`, `failed` or `crashed`.
    pub status: String,
    /// When the clients began.
    pub started_at: Option<String>,
    /// When the results were written.
    pub finished_at: Option<String>,
    /// Calling role.
    pub role: String,
    /// Runs of the same database, of any role, that were measured at the same time.
    pub other_runs: Vec<i64>,
    /// Reason for not completing: `sqlstate`, `message`, `detail`, `hint`, and `context` where it is known.
    pub error: Option<Value>,
    /// Whether the waiting caller held back the xmin horizon, so that dead rows could not be pruned.
    pub horizon_held: bool,
    /// `server_version` of the server at that time.
    pub server_version: String,
    /// Version of the extension at that time.
    pub extension_version: String,
    /// For a run imported by `bench.import`: `run_id`, `role`, `database`, `system_identifier` and `started_at` on the
    /// original server, `exported_at`, `imported_at`.
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
