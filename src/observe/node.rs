//! The state of a node of a Citus cluster, which other nodes read before and after a run.

use std::collections::BTreeMap;

use bench_base::error::UserError;
use bench_model::cluster::Limits;
use serde::{Deserialize, Serialize};

use super::machine::{self, CpuTicks};
use crate::guard::extension::LIBRARY_VERSION;
use crate::server::guc::{current, initial};
use crate::server::process::{forget_statistics, processors};
use crate::server::spi::{fetch, fetch_all};
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
        prepared: count(
            "SELECT pg_catalog.pg_stat_get_tuples_inserted('pg_catalog.pg_dist_transaction'::pg_catalog.regclass)",
        )?,
        prepared_left: count(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_xacts \
             WHERE database OPERATOR(pg_catalog.=) pg_catalog.current_database() AND pg_catalog.starts_with(gid, 'citus_')",
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
    let read = fetch_all(
        "WITH placed AS ( \
             SELECT n.nspname, c.relname, s.shardid, p.placementid, p.groupid, \
                    pg_catalog.row_number() OVER (PARTITION BY s.shardid ORDER BY p.groupid, p.placementid) AS copy \
             FROM pg_catalog.unnest($1) AS t (name) \
             JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(t.name) \
             JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
             JOIN pg_catalog.pg_dist_shard s ON s.logicalrelid OPERATOR(pg_catalog.=) c.oid \
             JOIN pg_catalog.pg_dist_placement p ON p.shardid OPERATOR(pg_catalog.=) s.shardid), \
         here AS ( \
             SELECT pg_catalog.to_regclass(pg_catalog.format('%I.%I', nspname, pg_catalog.concat(relname, '_', shardid))) AS shard \
             FROM placed JOIN pg_catalog.pg_dist_local_group g ON g.groupid OPERATOR(pg_catalog.=) placed.groupid \
             WHERE copy OPERATOR(pg_catalog.=) 1) \
         SELECT pg_catalog.sum(pg_catalog.pg_stat_get_tuples_inserted(shard))::pg_catalog.int8, \
                pg_catalog.sum(pg_catalog.pg_stat_get_tuples_updated(shard))::pg_catalog.int8, \
                pg_catalog.sum(pg_catalog.pg_stat_get_tuples_deleted(shard))::pg_catalog.int8, \
                (SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws(' ', shardid, placementid, groupid), ',' \
                                                             ORDER BY shardid, placementid)) FROM placed) \
         FROM here",
        &[tables.to_vec().into()],
        |row| {
            let sum = |column| row.get::<i64>(column).map(|sum| sum.unwrap_or_default().unsigned_abs());
            let placements = row.get::<String>(4)?.unwrap_or_default();
            Ok(LocalShards { placements, tuples: [sum(1)?, sum(2)?, sum(3)?] })
        },
    )?;
    Ok(read.into_iter().next().unwrap_or_default())
}

/// What citus_stat_counters (13.1 on) has counted, where it counts.
fn connections() -> Result<Option<(u64, u64)>, UserError> {
    let is_there = "SELECT true FROM pg_catalog.pg_proc WHERE proname OPERATOR(pg_catalog.=) 'citus_stat_counters'::pg_catalog.name \
                    AND pronamespace OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace";
    if current("citus.enable_stat_counters").as_deref() != Some("on")
        || fetch::<bool>(is_there, &[])?.is_none()
    {
        return Ok(None);
    }
    let database = database::oid();
    let counters = fetch_all(
        "SELECT connection_establishment_succeeded, connection_reused FROM pg_catalog.citus_stat_counters($1)",
        &[database.into()],
        |row| {
            let count = |column| row.get::<i64>(column).map(|count| count.unwrap_or_default().unsigned_abs());
            Ok((count(1)?, count(2)?))
        },
    )?;
    Ok(Some(counters.first().copied().unwrap_or_default()))
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
        in_use: count(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'",
        )? as u32,
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
