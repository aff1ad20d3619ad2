//! What a run is to do and to work on.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::options::RunOptions;
use super::script::{Role, ScriptSpec};
use super::target::TargetSpec;
use crate::cluster::{ClusterSpec, Nodes, PartOf};
use crate::feeder::{Feeder, Stride};

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
    /// As many clients its role may have in all of its runs; `None`: any number.
    pub max_clients: Option<u64>,
}

/// The session that has asked for a run, as the audit has to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starter {
    /// 0: none that could change the fixture's tables meanwhile.
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
