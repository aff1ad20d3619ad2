//! The arguments of a run, declared once: whatever makes runs takes them, behind its own. In SQL they stand in
//! `src/schema/run_arguments.sql`.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::duel::{ARMS, Duel};

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

impl Duel {
    /// The arguments of the run that is this duel. Its own workload and target are those of arm a, and arm b has others only
    /// where they differ.
    ///
    /// # Errors
    /// 22023 for a workload that neither arm runs, and for a target of one arm alone.
    pub fn run(mut self, mut run: RunArguments) -> Result<RunArguments, UserError> {
        let [a, b] = &mut self.arms;
        if a.has_own_script() {
            let is_given = run.workload.is_some() || run.script.is_some();
            if b.has_own_script() && is_given {
                return Err(UserError::invalid("both arms have a workload of their own")
                    .hint("Leave workload and script NULL, or out of one of the arms."));
            }
            let of_run = (run.workload.take(), run.script.take());
            (run.workload, run.script) = (a.workload.take(), a.script.take());
            if !b.has_own_script() {
                (b.workload, b.script) = of_run;
            }
        }
        let [of_a, of_b] = [&a.target, &b.target].map(|own| own.as_ref().or(run.target.as_ref()).cloned());
        if of_a.is_some() != of_b.is_some() {
            let without = ARMS[usize::from(of_a.is_some())];
            return Err(UserError::invalid(format!("arm {without} has no target"))
                .hint("Name a target in both arms; this server may be one."));
        }
        (a.target, b.target) = (None, of_b.filter(|of_b| Some(of_b) != of_a.as_ref()));
        run.target = of_a;
        Ok(RunArguments { duel: Some(self), ..run })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_clients_of_two_targets_are_divided() {
        let run = |a: Value, b: Value, target: Option<&str>| {
            let run = RunArguments { target: target.map(str::to_owned), ..RunArguments::with_defaults() };
            let run = Duel::new(&a, &b).unwrap().run(run)?;
            let duel = run.duel.unwrap();
            Ok::<_, UserError>((run.target, duel.other_target().map(str::to_owned), duel.arm_of(3)))
        };
        let some = |text: &str| Some(text.to_owned());
        let (old, new) = (json!({"target": "old"}), json!({"target": "new"}));
        assert_eq!(run(old.clone(), new.clone(), None).unwrap(), (some("old"), some("new"), Some(1)));
        assert_eq!(run(json!({}), new.clone(), Some("old")).unwrap(), (some("old"), some("new"), Some(1)));
        assert_eq!(run(new.clone(), json!({}), Some("old")).unwrap(), (some("new"), some("old"), Some(1)));
        assert_eq!(run(new.clone(), new.clone(), None).unwrap(), (some("new"), None, None));
        assert_eq!(run(json!({}), json!({}), Some("new")).unwrap(), (some("new"), None, None));
        assert_eq!(run(old, json!({}), None).unwrap_err().message, "arm b has no target");
        assert_eq!(run(json!({}), new, None).unwrap_err().message, "arm a has no target");
    }

    #[test]
    fn the_workload_of_a_run_is_that_of_its_first_arm() {
        let run = |a: Value, b: Value, workload: Option<&str>| {
            let run = RunArguments { workload: workload.map(str::to_owned), ..RunArguments::with_defaults() };
            let run = Duel::new(&a, &b).unwrap().run(run)?;
            let [_, b] = run.duel.unwrap().arms;
            Ok::<_, UserError>((run.workload, run.script, b.workload, b.script))
        };
        let some = |text: &str| Some(text.to_owned());
        let (own, other) = (json!({"workload": "own"}), json!({"script": "SELECT 1"}));
        assert_eq!(run(json!({}), json!({}), Some("x")).unwrap(), (some("x"), None, None, None));
        assert_eq!(run(json!({}), own.clone(), Some("x")).unwrap(), (some("x"), None, some("own"), None));
        assert_eq!(run(own.clone(), json!({}), Some("x")).unwrap(), (some("own"), None, some("x"), None));
        assert_eq!(
            run(other.clone(), own.clone(), None).unwrap(),
            (None, some("SELECT 1"), some("own"), None)
        );
        assert_eq!(run(own, other, Some("x")).unwrap_err().message, "both arms have a workload of their own");
    }
}
