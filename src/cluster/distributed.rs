//! Tables that are spread over the shards of a Citus cluster: here they are empty, and what a size or a statistic of
//! the server's says of them is of no account.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;
use serde::Deserialize;

use super::citus;
use crate::server::guc::set_local;
use crate::server::relations::with_partitions;
use crate::server::rows::select_one;
use crate::server::spi::fetch;

/// Those of the tables whose rows Citus has in shards: distributed by a column, or as a whole in a distributed schema,
/// reference tables, and local tables that it has in its metadata; and partitions of such.
pub fn distributed(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    if !citus::is_installed()? {
        return Ok(Vec::new());
    }
    let found = fetch::<Vec<pg_sys::Oid>>(
        "SELECT array_agg(p.logicalrelid::oid) FROM pg_dist_partition p \
         WHERE p.logicalrelid::oid = ANY ($1)",
        &[tables.to_vec().into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// Whether a table of this name is distributed by a column's hash.
pub fn is_by_hash(name: &str) -> Result<bool, UserError> {
    let sql = "SELECT p.partmethod = 'h'::\"char\" FROM pg_dist_partition p \
               WHERE p.logicalrelid::oid = to_regclass($1)::oid";
    Ok(fetch::<bool>(sql, &[name.into()])? == Some(true))
}

/// The nodes that Citus puts shards on.
pub fn nodes_for_shards() -> Result<i64, UserError> {
    let nodes = fetch::<i64>(
        "SELECT count(*) FROM pg_dist_node n WHERE n.isactive AND n.shouldhaveshards \
           AND n.noderole = 'primary'::noderole",
        &[],
    )?;
    Ok(nodes.unwrap_or_default())
}

/// Whether Citus distributes the tables of a schema, each as a whole (schema-based sharding, Citus 12 on).
pub fn is_distributed_schema(schema: &str) -> Result<bool, UserError> {
    let catalog = "SELECT to_regclass('pg_dist_schema') IS NOT NULL";
    if fetch::<bool>(catalog, &[])? != Some(true) {
        return Ok(false);
    }
    let sql = "SELECT true FROM pg_dist_schema s \
               JOIN pg_namespace n ON n.oid = s.schemaid::oid \
               WHERE n.nspname = $1::text";
    Ok(fetch::<bool>(sql, &[schema.into()])?.is_some())
}

/// The other tables.
pub fn local(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    let distributed = distributed(tables)?;
    Ok(tables.iter().copied().filter(|table| !distributed.contains(table)).collect())
}

/// Tables of a run, as far as they matter to what its clients need of other nodes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Placed {
    /// Those of Citus, by qualified names, quoted.
    pub names: Vec<String>,
    /// The others, likewise: only this node has them.
    pub others: Vec<String>,
    /// Whether shards are on other nodes.
    pub is_remote: bool,
    /// Whether all of Citus' are reference tables, which each node reads for itself.
    pub are_all_copied: bool,
    /// Whether shards of other tables than reference tables are on several nodes each.
    pub has_copies: bool,
    /// The most shards of one table that a node has.
    pub most_shards: u32,
}

/// What is to be known of the tables.
pub fn placed(tables: &[pg_sys::Oid]) -> Result<Placed, UserError> {
    if !citus::is_installed()? {
        return Ok(Placed::default());
    }
    // A reference table has neither a column to be distributed by nor one owner of its rows.
    let found = select_one(
        "WITH named AS ( \
             SELECT c.oid, format('%I.%I', n.nspname, c.relname) AS name, p.logicalrelid IS NOT NULL AS is_citus, \
                    p.partmethod = 'n'::\"char\" AND p.repmodel = 't'::\"char\" AS is_reference \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             LEFT JOIN pg_dist_partition p ON p.logicalrelid::oid = c.oid \
             WHERE c.oid = ANY ($1)), \
         placed AS ( \
             SELECT t.oid, t.is_reference, s.shardid, p.groupid FROM named t \
             JOIN pg_dist_shard s ON s.logicalrelid::oid = t.oid \
             JOIN pg_dist_placement p ON p.shardid = s.shardid) \
         SELECT (SELECT array_agg(name ORDER BY oid) FROM named WHERE is_citus) AS names, \
                (SELECT array_agg(name ORDER BY oid) FROM named WHERE NOT is_citus) AS others, \
                EXISTS (SELECT FROM placed p WHERE NOT EXISTS (SELECT FROM pg_dist_local_group g \
                                                               WHERE g.groupid = p.groupid)) AS is_remote, \
                (SELECT bool_and(is_reference) FROM named WHERE is_citus) AS are_all_copied, \
                EXISTS (SELECT FROM placed WHERE NOT is_reference GROUP BY shardid HAVING count(*) > 1) AS has_copies, \
                (SELECT max(n) FROM (SELECT count(*) AS n FROM placed GROUP BY oid, groupid) AS counted) AS most_shards",
        &[tables.to_vec().into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// Has what this transaction does to distributed tables go to each node over one connection, so that each statement
/// finds there what those before it have done.
pub fn go_in_sequence() {
    set_local(c"citus.multi_shard_modify_mode", c"sequential");
}

/// Bytes of tables, their partitions included, and of their indexes, on whatever nodes they are.
pub fn sizes(tables: &[pg_sys::Oid]) -> Result<(i64, i64), UserError> {
    let sum = |sql: &str, tables: Vec<pg_sys::Oid>| {
        let sql = format!("SELECT sum({sql})::int8 FROM unnest($1) AS t");
        fetch::<i64>(&sql, &[tables.into()]).map(Option::unwrap_or_default)
    };
    let all = with_partitions(tables)?;
    let (distributed, local) = (distributed(&all)?, local(&all)?);
    let mut bytes = sum("pg_table_size(t)", local.clone())?;
    let mut index_bytes = sum("pg_indexes_size(t)", local)?;
    if !distributed.is_empty() {
        let rows = sum("citus_table_size(t)", distributed.clone())?;
        bytes += rows;
        index_bytes += sum("citus_total_relation_size(t)", distributed)? - rows;
    }
    Ok((bytes, index_bytes))
}

/// Has the nodes read a table's shards, with their indexes, into shared buffers.
///
/// # Errors
/// 55000 where a node does not have this extension, or with what it has said.
pub fn prewarm_shards(table: pg_sys::Oid) -> Result<(), UserError> {
    for node in citus::nodes()?.iter().filter(|node| !node.is_local) {
        citus::check_extension(node)?;
    }
    // Where the table is partitioned, its partitions have the pages.
    let failed = fetch::<String>(
        "SELECT format('%s:%s: %s', p.nodename, p.nodeport, p.result) \
         FROM pg_class c, run_command_on_placements(c.oid::regclass, $2) AS p \
         WHERE c.oid = $1 AND c.relkind = 'r'::\"char\" AND NOT p.success LIMIT 1",
        &[table.into(), "SELECT bench_internal.prewarm('%s'::pg_catalog.regclass)".into()],
    )?;
    match failed {
        None => Ok(()),
        Some(answer) => Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            "could not read the shards on a node into shared buffers",
        )
        .detail(answer)),
    }
}

/// The most keys that a run is given.
const MAX_KEYS: i32 = 4096;

/// A value of the distribution column for each of a table's shards, in the order of the shards, or for so many of them
/// as clients can make use of; `None` for a table that is not distributed by hash.
pub fn shard_keys(table: pg_sys::Oid) -> Result<Option<Vec<i64>>, UserError> {
    if distributed(&[table])?.is_empty() {
        return Ok(None);
    }
    // Small numbers until each shard has one: of n shards, all but one in exp(20) are found among 20 n.
    fetch::<Vec<i64>>(
        "SELECT array_agg(key ORDER BY shard) FROM ( \
             SELECT shard, min(key) AS key FROM ( \
                 SELECT key, get_shard_id_for_distribution_column($1::regclass, key) AS shard \
                 FROM (SELECT generate_series(1, 1000 + 20 * LEAST($2, n)) AS key \
                       FROM (SELECT count(*) AS n FROM pg_dist_shard s \
                             WHERE s.logicalrelid = $1::regclass) AS shards) AS candidates) AS placed \
             GROUP BY shard ORDER BY shard LIMIT $2) AS keys",
        &[table.into(), MAX_KEYS.into()],
    )
}
