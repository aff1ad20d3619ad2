//! The state of a node of a Citus cluster, which other nodes read before and after a run.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use bench_model::cluster::Limits;
use serde::{Deserialize, Serialize};

use super::machine::{self, CpuTicks};
use crate::guard::extension::LIBRARY_VERSION;
use crate::server::guc::{current, initial};
use crate::server::process::{forget_statistics, processors};
use crate::server::rows::select_one;
use crate::server::spi::fetch;
use crate::server::{database, worker_slots};

/// One reading. Counters only ever grow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeState {
    pub processors: Option<u32>,
    /// What tells the machine, whose processors these are, from others; `None` where the platform has no such thing.
    pub machine: Option<String>,
    pub cpu: Option<CpuTicks>,
    /// Which of the tables' shards are on which nodes, as a hash.
    pub placements: String,
    /// Rows written to those of the tables' shards on this node whose other copies, if there are any, are not counted.
    pub inserted: u64,
    pub updated: u64,
    pub deleted: u64,
    /// Transactions that this node, as the one that coordinates, has had others prepare.
    pub prepared: u64,
    /// Citus' prepared transactions that are there now.
    pub prepared_left: u64,
    /// Connections to other nodes, where Citus counts them.
    pub connections_opened: Option<u64>,
    pub connections_reused: Option<u64>,
    pub limits: Limits,
    /// Of this extension, as it is installed on the node.
    pub extension_version: String,
    /// Whether the role that asks may start runs on it.
    pub may_run: bool,
    pub settings: BTreeMap<String, String>,
}

/// Parameters that decide what is measured; that of the connections' TLS is told apart from it.
const SETTINGS: [&str; 8] = [
    "citus.max_cached_conns_per_worker",
    "citus.max_cached_connection_lifetime",
    "citus.max_adaptive_executor_pool_size",
    "citus.executor_slow_start_interval",
    "citus.max_shared_pool_size",
    "citus.local_shared_pool_size",
    "citus.enable_local_execution",
    "max_connections",
];

/// What the connections between nodes are made with; of it only sslmode is anybody's business.
const CONNINFO: &str = "citus.node_conninfo";

/// Reads the state of this node, with the counters of the shards of these tables, given by qualified names, and with the limits
/// for a role that is a superuser or none.
pub fn read(tables: &[String], is_superuser: bool) -> Result<NodeState, UserError> {
    forget_statistics();
    let LocalShards { placements, tuples: [inserted, updated, deleted] } = shards(tables)?;
    let (connections_opened, connections_reused) = connections()?.unzip();
    Ok(NodeState {
        processors: processors(),
        machine: machine::identity(),
        placements,
        cpu: machine::read().cpu,
        inserted,
        updated,
        deleted,
        prepared: count("SELECT pg_stat_get_tuples_inserted('pg_dist_transaction'::regclass)")?,
        prepared_left: count(
            "SELECT count(*) FROM pg_prepared_xacts \
             WHERE database = current_database() AND starts_with(gid, 'citus_')",
        )?,
        connections_opened,
        connections_reused,
        limits: limits(is_superuser)?,
        extension_version: LIBRARY_VERSION.to_owned(),
        may_run: true,
        settings: settings(),
    })
}

fn count(sql: &str) -> Result<u64, UserError> {
    Ok(fetch::<i64>(sql, &[])?.unwrap_or_default().unsigned_abs())
}

/// What this node knows of the shards of tables.
#[derive(Default)]
struct LocalShards {
    placements: String,
    /// Rows inserted, updated and deleted.
    tuples: [u64; 3],
}

/// Of shards that several nodes have, as those of reference tables, the copy in the lowest group of nodes is counted. A shard
/// is called as its table with its number (AppendShardIdToName), and hidden from some applications' look at pg_class, not
/// from to_regclass.
fn shards(tables: &[String]) -> Result<LocalShards, UserError> {
    if tables.is_empty() {
        return Ok(LocalShards::default());
    }
    let read = select_one::<(Option<i64>, Option<i64>, Option<i64>, Option<String>)>(
        "WITH placed AS ( \
             SELECT n.nspname, c.relname, s.shardid, p.placementid, p.groupid, \
                    row_number() OVER (PARTITION BY s.shardid ORDER BY p.groupid, p.placementid) AS copy \
             FROM unnest($1) AS t (name) \
             JOIN pg_class c ON c.oid = to_regclass(t.name) \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             JOIN pg_dist_shard s ON s.logicalrelid = c.oid \
             JOIN pg_dist_placement p ON p.shardid = s.shardid), \
         here AS ( \
             SELECT to_regclass(format('%I.%I', nspname, concat(relname, '_', shardid))) AS shard \
             FROM placed JOIN pg_dist_local_group g ON g.groupid = placed.groupid \
             WHERE copy = 1) \
         SELECT sum(pg_stat_get_tuples_inserted(shard))::int8, \
                sum(pg_stat_get_tuples_updated(shard))::int8, \
                sum(pg_stat_get_tuples_deleted(shard))::int8, \
                (SELECT md5(string_agg(concat_ws(' ', shardid, placementid, groupid), ',' \
                                                             ORDER BY shardid, placementid)) FROM placed) \
         FROM here",
        &[tables.to_vec().into()],
    )?;
    let (inserted, updated, deleted, placements) = read.unwrap_or_default();
    let tuples = [inserted, updated, deleted].map(|sum| sum.unwrap_or_default().unsigned_abs());
    Ok(LocalShards { placements: placements.unwrap_or_default(), tuples })
}

/// What citus_stat_counters (13.1 on) has counted, where it counts.
fn connections() -> Result<Option<(u64, u64)>, UserError> {
    let is_there = "SELECT true FROM pg_proc WHERE proname = 'citus_stat_counters'::name \
                    AND pronamespace = 'pg_catalog'::regnamespace";
    if current("citus.enable_stat_counters").as_deref() != Some("on")
        || fetch::<bool>(is_there, &[])?.is_none()
    {
        return Ok(None);
    }
    let database = database::oid();
    let sql = "SELECT connection_establishment_succeeded, connection_reused FROM citus_stat_counters($1)";
    Ok(Some(select_one(sql, &[database.into()])?.unwrap_or_default()))
}

/// What this node has to give to a role that is a superuser or none.
pub fn limits(is_superuser: bool) -> Result<Limits, UserError> {
    let number = |name: &str| current(name).and_then(|value| value.parse::<i32>().ok()).unwrap_or_default();
    // What this session has SET does not count for the clients'.
    let of_new_session = |name: &str| initial(name).and_then(|value| value.parse().ok()).unwrap_or(1);
    // reserved_connections is from PostgreSQL 16 on.
    let reserved = number("superuser_reserved_connections") + number("reserved_connections");
    Ok(Limits {
        max_connections: number("max_connections").unsigned_abs(),
        reserved: reserved.unsigned_abs(),
        in_use: count("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")? as u32,
        max_worker_processes: number("max_worker_processes").unsigned_abs(),
        workers_in_use: worker_slots::workers_in_use() as u32,
        max_shared_pool_size: number("citus.max_shared_pool_size"),
        // From Citus 11.0 on; it does not count for superusers.
        max_client_connections: if is_superuser {
            -1
        } else {
            current("citus.max_client_connections").and_then(|value| value.parse().ok()).unwrap_or(-1)
        },
        cached_connections: of_new_session("citus.max_cached_conns_per_worker"),
        executor_pool: of_new_session("citus.max_adaptive_executor_pool_size"),
    })
}

fn settings() -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> =
        SETTINGS.iter().filter_map(|&name| Some((name.to_owned(), current(name)?))).collect();
    let sslmode = current(CONNINFO).and_then(|conninfo| {
        conninfo.split_whitespace().find_map(|pair| pair.strip_prefix("sslmode=").map(str::to_owned))
    });
    settings.extend(sslmode.map(|sslmode| (format!("{CONNINFO} sslmode"), sslmode)));
    settings
}
