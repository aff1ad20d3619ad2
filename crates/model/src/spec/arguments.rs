//! The arguments of a run, declared once: whatever makes runs takes them, behind its own. In SQL they stand in
//! `src/schema/run_arguments.sql`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::duel::Duel;

/// jsonb.
pub type Json = Value;
/// The name of a role.
pub type Name = String;

/// Calls a macro with what it is given, in braces, and the arguments of a run in their order: meaning, name, type, and the
/// default. Workload and clients are not among them: they have other forms in places.
#[macro_export]
macro_rules! run_arguments {
    ($callback:ident $(, $($given:tt)*)?) => {
        $callback! {
            { $($($given)*)? }
            /// Measured seconds, after the warm-up. With neither these nor transactions: 10.
            secs: f64 = None,
            /// Transactions of each client, instead of secs.
            transactions: i64 = None,
            /// Seconds run but not counted. NULL: until throughput is steady.
            warmup: f64 = Some(0.0),
            /// Transactions per second of all clients that are to be started: an open loop.
            rate: f64 = None,
            /// Rates that change over the measured time, instead of rate.
            rates: Json = None,
            /// Milliseconds above which a transaction is late.
            latency_limit: f64 = None,
            /// Tries per transaction at a serialization failure or deadlock. 0: no limit.
            max_tries: i32 = Some(1),
            /// Of the random numbers. NULL: one is drawn, and recorded.
            seed: i64 = None,
            /// Script variables, by name.
            variables: Json = Some(empty()),
            /// Configuration parameters of every client's session.
            settings: Json = Some(empty()),
            /// Seconds of a sample. NULL: as the length of the run has it.
            sample_interval: f64 = None,
            /// How transactions reach the server: engine or wire.
            driver: String = Some("engine".to_owned()),
            /// As pgbench -M: simple, extended or prepared.
            query_mode: String = Some("prepared".to_owned()),
            /// What becomes of rows: serialize or discard.
            results: String = Some("serialize".to_owned()),
            /// Of a Citus cluster: local, workers or all.
            nodes: String = Some("local".to_owned()),
            /// The user's own labels.
            tags: Json = Some(empty()),
            /// A script instead of a workload.
            script: String = None,
            /// What is done before the run, separated by commas.
            before: String = Some("none".to_owned()),
            /// Share of the transactions that are kept one by one.
            log_rate: f64 = Some(0.0),
            /// Whether the run ends as soon as an error ends a client.
            exit_on_abort: bool = Some(false),
            /// Whether clients go on after errors of statements, which then fail their transactions only.
            continue_on_error: bool = Some(false),
            /// A foreign server to connect to.
            target: String = None,
            /// Workers that share the connections.
            jobs: i32 = None,
            /// Whether each transaction has a connection of its own.
            reconnect: bool = Some(false),
            /// What a client does that loses its connection: end or reconnect.
            on_disconnect: String = Some("end".to_owned()),
            /// The role whose sessions the clients are. NULL: the caller's, or those of the roles that were captured.
            run_as: Name = None,
        }
    };
}

macro_rules! define {
    ({} $($(#[$meaning:meta])* $name:ident: $type:ident = $default:expr,)*) => {
        /// What SQL handed over, before anything was looked at. `None` is SQL's NULL.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct RunArguments {
            /// A workload's name or a weighted mix.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub workload: Option<String>,
            /// Concurrent sessions.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub clients: Option<i32>,
            $(
                $(#[$meaning])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
            /// Of a duel, which has functions of its own.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub duel: Option<Duel>,
        }

        impl RunArguments {
            /// What SQL hands over where nothing is said: without a workload.
            pub fn with_defaults() -> Self {
                Self { workload: None, clients: Some(1), $($name: $default,)* duel: None }
            }

            /// Those that are not NULL, by name.
            pub fn to_map(&self) -> Map<String, Value> {
                match serde_json::to_value(self) {
                    Ok(Value::Object(map)) => map,
                    _ => Map::new(),
                }
            }

            /// Those that are not NULL, as texts that SQL reads.
            pub fn texts(&self) -> Vec<(&'static str, String)> {
                let texts = [
                    ("workload", self.workload.as_ref().map(ToString::to_string)),
                    ("clients", self.clients.as_ref().map(ToString::to_string)),
                    $((stringify!($name), self.$name.as_ref().map(ToString::to_string)),)*
                ];
                texts.into_iter().filter_map(|(name, text)| Some((name, text?))).collect()
            }
        }
    };
}

run_arguments!(define);

/// An empty JSON object.
fn empty() -> Value {
    Value::Object(Map::new())
}
