//! What a run is to do and to work on, on which server, and whose sessions its clients are.

use std::net::SocketAddr;
use std::path::PathBuf;

use bench_base::error::UserError;
use bench_protocol::foreign_server::{Host, Target};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::options::RunOptions;
use super::script::{Role, ScriptSpec};
use crate::cluster::{ClusterSpec, Nodes, PartOf};
use crate::feeder::{Feeder, Stride};
use crate::views::{ServerSetting, Views};

/// The loaded fixture that a run works on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixtureSpec {
    pub name: String,
    /// Its schema; `None` for tables that are not the extension's own but are on the role's search_path.
    pub schema: Option<String>,
    /// Ids loaded are 1 … rows.
    pub rows: i64,
    /// pgbench's scale of its own tables, 100,000 accounts each; 1 for other fixtures.
    pub scale: i64,
    /// OIDs of its tables, partitions among them.
    pub tables: Vec<u32>,
    /// As given to bench.load; null for tables that are not the extension's own.
    #[serde(default)]
    pub options: Value,
    /// For fixture shards, a value of its column for each shard.
    #[serde(default)]
    pub shard_keys: Vec<i64>,
}

/// Whether the server is observed while the clients run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observation {
    #[default]
    On,
    Off,
    /// In every other interval: so the cost of it is measured.
    Alternate,
}

/// Everything the coordinator and the clients of one run need to know; travels as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSpec {
    pub options: RunOptions,
    /// The seed in force, drawn if the user gave none.
    pub seed: i64,
    pub scripts: Vec<ScriptSpec>,
    /// The fixtures that the scripts work on, each once.
    pub fixtures: Vec<FixtureSpec>,
    /// Name of the role that the clients connect as, but for scripts with a role of their own.
    pub role: String,
    pub role_oid: u32,
    /// The role that called, and that the run belongs to; `None`: the same.
    pub caller: Option<Role>,
    /// Its sessions may have special rights: the caller has named their role in this call, or a superuser has for all.
    pub may_be_special: bool,
    /// The caller, and the writers of its scripts where the caller has named their role: each of them could become it.
    pub answering: Vec<Role>,
    pub database_oid: u32,
    /// The database's name.
    pub database: String,
    /// The caller's wait could not release the xmin horizon.
    pub horizon_held: bool,
    /// The sweep that it is part of.
    pub sweep_id: Option<i64>,
    /// Parameters of the whole server that its variant of the sweep has set.
    pub system: Map<String, Value>,
    /// Statements by which its variant has changed the database.
    pub applied: Vec<String>,
    /// With a log, transactions are logged that fail or take at least this long; 0: all.
    #[serde(default)]
    pub logged_from_ms: f64,
    pub observation: Observation,
    /// `None` for a run that has nothing to do with Citus.
    pub cluster: Option<ClusterSpec>,
    /// The whole run, where this one is a part that another node has asked for.
    pub part_of: Option<PartOf>,
    /// The server that the connections lead to; `None`: this one.
    pub target: Option<TargetSpec>,
    /// That of arm b, in a duel of two.
    pub other_target: Option<TargetSpec>,
    pub starter: Starter,
    /// The most clients that its role may have in all of its runs; `None`: any number.
    pub max_clients: Option<u64>,
}

/// The session that has asked for a run, for the audit, which compares counters of the fixture's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starter {
    /// Process id; 0 for a session that cannot change the fixture's tables during the run.
    pub pid: i32,
    /// It has read or changed the fixture's tables, and the server's statistics do not show it yet.
    pub has_unsent: bool,
}

impl RunSpec {
    /// Whether other nodes have clients of it, or may have.
    pub fn is_of_several_nodes(&self) -> bool {
        self.cluster.is_some() && self.options.nodes != Nodes::Local
    }

    /// OIDs of all tables that the run works on.
    pub fn tables(&self) -> impl Iterator<Item = u32> {
        self.fixtures.iter().flat_map(|fixture| &fixture.tables).copied()
    }

    /// Which rows of a feeder in sequence its clients take.
    pub fn stride(&self) -> Stride {
        let part = self.part_of.as_ref().filter(|part| part.place < part.places);
        part.map_or(Stride::WHOLE, |part| Stride { first: part.place.into(), of: part.places.into() })
    }

    /// The feeders of all scripts, each with the index of its script.
    pub fn feeders(&self) -> impl Iterator<Item = (usize, &Feeder)> {
        let scripts = self.scripts.iter().enumerate();
        scripts.flat_map(|(at, script)| script.feeders.iter().map(move |feeder| (at, feeder)))
    }

    /// The feeders of all scripts, as bench.runs shows them; `None` where there are none.
    pub fn fed(&self) -> Option<Value> {
        let shown = |(script, feeder): (usize, &Feeder)| {
            json!({
                "workload": self.scripts[script].name,
                "prefix": feeder.prefix,
                "query": feeder.query,
                "pick": feeder.pick.as_str(),
                "once": feeder.once,
                "max_rows": feeder.max_rows,
                "rows": feeder.rows,
            })
        };
        let all: Vec<Value> = self.feeders().map(shown).collect();
        (!all.is_empty()).then_some(Value::Array(all))
    }

    /// The rows that each of the fixtures was loaded with; `None` where there are none.
    pub fn fixture_rows(&self) -> Option<Vec<i64>> {
        let rows: Vec<i64> = self.fixtures.iter().map(|fixture| fixture.rows).collect();
        (!rows.is_empty()).then_some(rows)
    }

    /// The options that each of the fixtures was loaded with; `None` where there are none.
    pub fn fixture_options(&self) -> Option<Value> {
        let options: Vec<Value> = self.fixtures.iter().map(|fixture| fixture.options.clone()).collect();
        (!options.is_empty()).then_some(Value::Array(options))
    }

    /// The fixtures' names, separated by commas; `None` where there are none.
    pub fn fixture_names(&self) -> Option<String> {
        let names: Vec<&str> = self.fixtures.iter().map(|fixture| fixture.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(","))
    }
}

impl RunSpec {
    /// The role that the run belongs to.
    pub fn owner(&self) -> Role {
        self.caller.clone().unwrap_or_else(|| self.own_role())
    }

    /// The roles whose sessions the clients are, where these are others than the caller, separated by commas.
    pub fn run_as(&self) -> Option<String> {
        let roles = self.roles();
        let owner = self.owner();
        let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
        (self.target.is_none() && roles.iter().any(|role| role.oid != owner.oid)).then(|| names.join(", "))
    }

    /// The role of all sessions but those of scripts with a role of their own.
    pub fn own_role(&self) -> Role {
        Role { name: self.role.clone(), oid: self.role_oid }
    }

    /// The role whose sessions execute a script.
    fn role_of(&self, script: &ScriptSpec) -> Role {
        script.role.clone().unwrap_or_else(|| self.own_role())
    }

    /// The roles whose sessions the clients are, each once, in the order of the scripts.
    pub fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = Vec::new();
        for role in self.scripts.iter().map(|script| self.role_of(script)) {
            if !roles.iter().any(|known| known.oid == role.oid) {
                roles.push(role);
            }
        }
        roles
    }

    /// How many clients are sessions of each role: the first ones of the first role, and so on. As many of a role as its
    /// transactions took of the captured time, for by Little's law that is how many of them were under way; one at least.
    ///
    /// # Errors
    /// 22023 for fewer clients than roles.
    pub fn sessions(&self) -> Result<Vec<(Role, u32)>, UserError> {
        let roles = self.roles();
        let clients = self.options.clients;
        if roles.len() > clients as usize {
            let message = format!("clients must be at least {}, not {clients}", roles.len());
            return Err(UserError::invalid(message)
                .detail("Each client is a session of one role, and the statements are those of several.")
                .hint("bench.capture_statements shows the role of each statement."));
        }
        let busy = |role: &Role| -> f64 {
            let own = self.scripts.iter().filter(|script| self.role_of(script).oid == role.oid);
            own.map(|script| f64::from(script.weight) * script.captured_ms.unwrap_or(1.0).max(1e-6)).sum()
        };
        let busy: Vec<f64> = roles.iter().map(busy).collect();
        let counts = divided(clients, &busy);
        Ok(roles.into_iter().zip(counts).collect())
    }

    /// The role that a client is a session of.
    pub fn role_of_client(&self, client: u32) -> Role {
        let mut first = 0;
        let own = self.sessions().unwrap_or_default().into_iter().find(|(_, clients)| {
            first += clients;
            client < first
        });
        own.map_or_else(|| self.own_role(), |(role, _)| role)
    }

    /// Which of the scripts a client executes: those whose role is the client's.
    pub fn executed_by(&self, client: u32) -> Vec<bool> {
        let own = self.role_of_client(client);
        self.scripts.iter().map(|script| self.role_of(script).oid == own.oid).collect()
    }
}

/// Divides a number by weights, by the method of largest remainders; each part is at least 1.
fn divided(whole: u32, weights: &[f64]) -> Vec<u32> {
    let sum: f64 = weights.iter().sum();
    let free = whole - weights.len() as u32;
    let exact: Vec<f64> = weights
        .iter()
        .map(|weight| if sum > 0.0 { (weight / sum * f64::from(whole) - 1.0).max(0.0) } else { 0.0 })
        .collect();
    let wanted: f64 = exact.iter().sum();
    let scale = if wanted > 0.0 { f64::from(free) / wanted } else { 0.0 };
    let mut counts: Vec<u32> = exact.iter().map(|part| 1 + (part * scale) as u32).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    let remainder = |at: usize| (exact[at] * scale).fract();
    order.sort_by(|&a, &b| remainder(b).total_cmp(&remainder(a)));
    let left = whole.saturating_sub(counts.iter().sum());
    order.iter().cycle().take(left as usize).for_each(|&at| counts[at] += 1);
    counts
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// A Unix-domain socket; an abstract one begins with "@".
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    None,
    /// By TLS, where the server knows it.
    Preferred,
    /// By TLS, or there is no connection.
    Required,
}

/// One way to a server: an address of one of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAddress {
    pub host: Host,
    pub address: Address,
    pub encryption: Encryption,
}

/// A target, as it was found before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// The name of the foreign server.
    pub name: String,
    pub options: Target,
    /// All ways to it in the order in which they are tried: first the one that was found suitable.
    pub candidates: Vec<HostAddress>,
    /// What its version() says.
    pub version: String,
    /// Its configuration parameters that are not at their defaults.
    pub settings: Vec<ServerSetting>,
    pub is_standby: bool,
    /// A password has to be asked for: the run's role is no superuser.
    pub needs_password: bool,
    /// It is behind a pooler: the process id in the protocol's BackendKeyData is not the backend's.
    pub is_pooled: bool,
    /// What of its statistics the role can read.
    #[serde(default)]
    pub views: Views,
    /// The view pg_stat_statements there, quoted; `None` without the extension.
    #[serde(default)]
    pub statements: Option<String>,
    /// The clients' search_path there; `None`: the role's own.
    pub search_path: Option<String>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn clients_are_divided_by_the_time_of_the_roles() {
        assert_eq!(divided(10, &[9.0, 1.0]), [9, 1]);
        assert_eq!(divided(2, &[1e9, 1e-9]), [1, 1]);
        assert_eq!(divided(64, &[1.0, 1.0, 2.0]), [16, 16, 32]);
        assert_eq!(divided(3, &[0.0, 0.0]).iter().sum::<u32>(), 3);
    }

    proptest! {
        #[test]
        fn all_clients_are_somebodys_and_nobody_is_left_out(
            weights in prop::collection::vec(0.0..1e6f64, 1..20),
            more in 0u32..1000,
        ) {
            let whole = weights.len() as u32 + more;
            let counts = divided(whole, &weights);
            prop_assert_eq!(counts.iter().sum::<u32>(), whole);
            prop_assert!(counts.iter().all(|&count| count >= 1));
        }
    }
}
