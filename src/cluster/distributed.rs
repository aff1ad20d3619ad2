//! Tables that are spread over the shards of a Citus cluster: here they are empty, and what a size or a statistic of
//! the server's says of them is of no account.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::citus;
use crate::server::guc::set_local;
use crate::server::relations::with_partitions;
use crate::server::spi::{fetch, fetch_all};

/// Those of the tables whose rows Citus has in shards: distributed by a column, or as a whole in a distributed schema,
/// reference tables, and local tables that it has in its metadata; and partitions of such.
pub fn distributed(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    if !citus::is_installed()? {
        return Ok(Vec::new());
    }
    let found = fetch::<Vec<pg_sys::Oid>>(
        "SELECT pg_catalog.array_agg(p.logicalrelid::pg_catalog.oid) FROM pg_catalog.pg_dist_partition p \
         WHERE p.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) ANY ($1)",
        &[tables.to_vec().into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// Whether a table of this name is distributed by a column's hash.
pub fn is_by_hash(name: &str) -> Result<bool, UserError> {
    let sql = "SELECT p.partmethod OPERATOR(pg_catalog.=) 'h'::pg_catalog.\"char\" FROM pg_catalog.pg_dist_partition p \
               WHERE p.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)::pg_catalog.oid";
    Ok(fetch::<bool>(sql, &[name.into()])? == Some(true))
}

/// The nodes that Citus puts shards on.
pub fn nodes_for_shards() -> Result<i64, UserError> {
    let nodes = fetch::<i64>(
        "SELECT pg_catalog.count(*) FROM pg_catalog.pg_dist_node n WHERE n.isactive AND n.shouldhaveshards \
           AND n.noderole OPERATOR(pg_catalog.=) 'primary'::pg_catalog.noderole",
        &[],
    )?;
    Ok(nodes.unwrap_or_default())
}

/// Whether Citus distributes the tables of a schema, each as a whole (schema-based sharding, Citus 12 on).
pub fn is_distributed_schema(schema: &str) -> Result<bool, UserError> {
    let catalog = "SELECT pg_catalog.to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL";
    if fetch::<bool>(catalog, &[])? != Some(true) {
        return Ok(false);
    }
    let sql = "SELECT true FROM pg_catalog.pg_dist_schema s \
               JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) s.schemaid::pg_catalog.oid \
               WHERE n.nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text";
    Ok(fetch::<bool>(sql, &[schema.into()])?.is_some())
}

/// The other tables.
pub fn local(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    let distributed = distributed(tables)?;
    Ok(tables.iter().copied().filter(|table| !distributed.contains(table)).collect())
}

/// Tables of a run, as far as they matter to what its clients need of other nodes.
#[derive(Debug, Default)]
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
    let found = fetch_all(
        "WITH named AS ( \
             SELECT c.oid, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, p.logicalrelid IS NOT NULL AS is_citus, \
                    p.partmethod OPERATOR(pg_catalog.=) 'n'::pg_catalog.\"char\" AND p.repmodel OPERATOR(pg_catalog.=) 't'::pg_catalog.\"char\" AS is_reference \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace \
             LEFT JOIN pg_catalog.pg_dist_partition p ON p.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) c.oid \
             WHERE c.oid OPERATOR(pg_catalog.=) ANY ($1)), \
         placed AS ( \
             SELECT t.oid, t.is_reference, s.shardid, p.groupid FROM named t \
             JOIN pg_catalog.pg_dist_shard s ON s.logicalrelid::pg_catalog.oid OPERATOR(pg_catalog.=) t.oid \
             JOIN pg_catalog.pg_dist_placement p ON p.shardid OPERATOR(pg_catalog.=) s.shardid) \
         SELECT (SELECT pg_catalog.array_agg(name ORDER BY oid) FROM named WHERE is_citus), \
                (SELECT pg_catalog.array_agg(name ORDER BY oid) FROM named WHERE NOT is_citus), \
                EXISTS (SELECT FROM placed p WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_dist_local_group g \
                                                               WHERE g.groupid OPERATOR(pg_catalog.=) p.groupid)), \
                (SELECT pg_catalog.bool_and(is_reference) FROM named WHERE is_citus), \
                EXISTS (SELECT FROM placed WHERE NOT is_reference GROUP BY shardid HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>) 1), \
                (SELECT pg_catalog.max(n) FROM (SELECT pg_catalog.count(*) AS n FROM placed GROUP BY oid, groupid) AS counted)",
        &[tables.to_vec().into()],
        |row| {
            Ok(Placed {
                names: row.get::<Vec<String>>(1)?.unwrap_or_default(),
                others: row.get::<Vec<String>>(2)?.unwrap_or_default(),
                is_remote: row.get::<bool>(3)?.unwrap_or_default(),
                are_all_copied: row.get::<bool>(4)?.unwrap_or_default(),
                has_copies: row.get::<bool>(5)?.unwrap_or_default(),
                most_shards: row.get::<i64>(6)?.unwrap_or_default().try_into().unwrap_or(u32::MAX),
            })
        },
    )?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// Has what this transaction does to distributed tables go to each node over one connection, so that each statement
/// finds there what those before it have done.
pub fn go_in_sequence() {
    set_local(c"citus.multi_shard_modify_mode", c"sequential");
}

/// Bytes of tables, their partitions included, and of their indexes, on whatever nodes they are.
pub fn sizes(tables: &[pg_sys::Oid]) -> Result<(i64, i64), UserError> {
    let sum = |sql: &str, tables: Vec<pg_sys::Oid>| {
        let sql = format!("SELECT pg_catalog.sum({sql})::pg_catalog.int8 FROM pg_catalog.unnest($1) AS t");
        fetch::<i64>(&sql, &[tables.into()]).map(Option::unwrap_or_default)
    };
    let all = with_partitions(tables)?;
    let (distributed, local) = (distributed(&all)?, local(&all)?);
    let mut bytes = sum("pg_catalog.pg_table_size(t)", local.clone())?;
    let mut index_bytes = sum("pg_catalog.pg_indexes_size(t)", local)?;
    if !distributed.is_empty() {
        let rows = sum("pg_catalog.citus_table_size(t)", distributed.clone())?;
        bytes += rows;
        index_bytes += sum("pg_catalog.citus_total_relation_size(t)", distributed)? - rows;
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
        "SELECT pg_catalog.format('%s:%s: %s', p.nodename, p.nodeport, p.result) \
         FROM pg_catalog.pg_class c, pg_catalog.run_command_on_placements(c.oid::pg_catalog.regclass, $2) AS p \
         WHERE c.oid OPERATOR(pg_catalog.=) $1 AND c.relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" AND NOT p.success LIMIT 1",
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
        "SELECT pg_catalog.array_agg(key ORDER BY shard) FROM ( \
             SELECT shard, pg_catalog.min(key) AS key FROM ( \
                 SELECT key, pg_catalog.get_shard_id_for_distribution_column($1::pg_catalog.regclass, key) AS shard \
                 FROM (SELECT pg_catalog.generate_series(1, 1000 + 20 * LEAST($2, n)) AS key \
                       FROM (SELECT pg_catalog.count(*) AS n FROM pg_catalog.pg_dist_shard s \
                             WHERE s.logicalrelid OPERATOR(pg_catalog.=) $1::pg_catalog.regclass) AS shards) AS candidates) AS placed \
             GROUP BY shard ORDER BY shard LIMIT $2) AS keys",
        &[table.into(), MAX_KEYS.into()],
    )
}
