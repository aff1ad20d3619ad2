//! Citus 11.1 or newer (<https://github.com/citusdata/citus>): what nodes and distributed tables there are, and questions to
//! other nodes.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::NodeSpec;
use pgrx::pg_sys;
use serde::Deserialize;

use crate::guard::extension::LIBRARY_VERSION;
use crate::server::database;
use crate::server::guc::{self, set_local};
use crate::server::relations::with_partitions;
use crate::server::rows::{select, select_one};
use crate::server::spi::{fetch, run};

/// Whether this database has Citus.
pub fn is_installed() -> Result<bool, UserError> {
    let created = "SELECT true FROM pg_extension WHERE extname = 'citus'::name";
    Ok(fetch::<bool>(created, &[])?.is_some())
}

/// # Errors
/// 55000 where this database has no Citus.
pub fn check_installed(what: &str) -> Result<(), UserError> {
    if is_installed()? {
        return Ok(());
    }
    Err(UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("{what} needs extension \"citus\", which this database does not have"),
    )
    .hint("Install Citus from its packages, put citus first in shared_preload_libraries, restart the server, and CREATE EXTENSION citus."))
}

/// Fixtures, workloads and results are each node's own, and a cluster has them on its coordinator.
///
/// # Errors
/// 55000 with this message on another node.
pub fn check_coordinator(message: &str) -> Result<(), UserError> {
    let is_worker =
        is_installed()? && fetch::<bool>("SELECT groupid <> 0 FROM pg_dist_local_group", &[])? == Some(true);
    if !is_worker {
        return Ok(());
    }
    let coordinator = nodes()?.into_iter().find(|node| node.is_coordinator).map(|node| node.name());
    Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
        .detail("Each node of a Citus cluster has fixtures, workloads and results of its own.")
        .hint(format!(
            "Call it on the coordinator{}; with nodes => 'workers', its clients run on the workers.",
            coordinator.map_or(String::new(), |name| format!(", {name}"))
        )))
}

/// The cluster's active nodes, without clients, in the order of their numbers.
pub fn nodes() -> Result<Vec<NodeSpec>, UserError> {
    let mut nodes = select::<NodeSpec>(
        "SELECT n.nodeid AS node, n.nodename AS host, n.nodeport AS port, n.groupid = 0 AS is_coordinator, \
                n.groupid = (SELECT g.groupid FROM pg_dist_local_group g) AS is_local, 0 AS clients \
         FROM pg_dist_node n \
         WHERE n.isactive AND n.noderole = 'primary'::noderole \
           AND n.nodecluster = current_setting('citus.cluster_name')::name \
         ORDER BY n.nodeid",
        &[],
    )?;
    // A coordinator that was not made known to its workers is a node all the same.
    if !nodes.iter().any(|node| node.is_local) {
        let port = database::port();
        let host = guc::current("citus.local_hostname").unwrap_or_default();
        nodes.insert(0, NodeSpec { node: 0, host, port, is_coordinator: true, is_local: true, clients: 0 });
    }
    Ok(nodes)
}

/// Parameters that published benchmarks of Citus set and its newer versions no longer have: since when, and what happens
/// instead (Citus' CHANGELOG).
const GONE: [(&str, &str, &str); 3] = [
    ("citus.multi_shard_commit_protocol", "11.0", TWO_PHASES),
    ("citus.single_shard_commit_protocol", "11.0", TWO_PHASES),
    ("citus.shard_placement_policy", "11.0", "Shards are placed round robin."),
];

const TWO_PHASES: &str = "Citus commits a transaction that wrote over several connections in two phases, and one that wrote over a single connection in one phase.";

/// The error for a parameter that the Citus of this database no longer has; `None` for one that is no such, or still there.
pub fn gone_parameter(name: &str) -> Result<Option<UserError>, UserError> {
    let Some((name, since, instead)) = GONE.iter().find(|gone| gone.0.eq_ignore_ascii_case(name)) else {
        return Ok(None);
    };
    if !is_installed()? || guc::current(name).is_some() {
        return Ok(None);
    }
    let error = UserError::new(
        sqlstate::UNDEFINED_OBJECT,
        format!("configuration parameter \"{name}\" was removed in Citus {since}"),
    );
    Ok(Some(error.detail(*instead).hint("Remove it from the settings.")))
}

/// Asks another node, or this one, in a session of the current role's there. The command is one that returns one text.
///
/// # Errors
/// 08006 with what the node, or the way to it, has said.
pub fn ask(node: &NodeSpec, command: &str) -> Result<String, UserError> {
    let answer = ask_all(&[(node.clone(), command.to_owned())])?.into_iter().next();
    answer.unwrap_or_else(|| Err(failure(node, UserError::new(sqlstate::CONNECTION_FAILURE, "no answer"))))
}

/// As [`ask`], several nodes at once. An answer for each question, in their order.
///
/// # Errors
/// Those of the function of Citus as a whole.
pub fn ask_all(questions: &[(NodeSpec, String)]) -> Result<Vec<Result<String, UserError>>, UserError> {
    let hosts: Vec<String> = questions.iter().map(|(node, _)| node.host.clone()).collect();
    let ports: Vec<i32> = questions.iter().map(|(node, _)| node.port).collect();
    let commands: Vec<String> = questions.iter().map(|(_, command)| command.clone()).collect();
    // As run_command_on_workers does, which is this function for all of them.
    let answers = guc::with_setting(c"citus.node_connection_timeout", CONNECT, || {
        select::<(bool, Option<String>)>(
            "SELECT success, result FROM master_run_on_worker($1, $2, $3, $4)",
            &[hosts.into(), ports.into(), commands.into(), (questions.len() > 1).into()],
        )
    })?;
    let answer = |((node, _), (is_answer, text)): (&(NodeSpec, String), (bool, Option<String>))| {
        let text = text.unwrap_or_default();
        if is_answer {
            return Ok(text);
        }
        let text = text.trim().trim_start_matches("ERROR:").trim();
        Err(failure(node, UserError::new(sqlstate::CONNECTION_FAILURE, text)))
    };
    Ok(questions.iter().zip(answers).map(answer).collect())
}

/// How long Citus has for a connection to a node, of which its own default is 30 s.
const CONNECT: &CStr = c"5s";

/// What is wrong with the way to a node, or with its answer, with the node's name.
pub fn failure(node: &NodeSpec, error: UserError) -> UserError {
    UserError {
        sqlstate: sqlstate::CONNECTION_FAILURE.to_owned(),
        message: format!("node {}: {}", node.name(), error.message),
        hint: Some(error.hint.unwrap_or_else(|| MAY_CONNECT.to_owned())),
        ..error
    }
}

const MAY_CONNECT: &str =
    "The calling role must be able to connect to the nodes: see pg_hba.conf and pg_dist_authinfo.";

/// CHECKPOINT on all nodes.
///
/// # Errors
/// 08006 with what the first of those has said where it was not possible.
pub fn checkpoint() -> Result<(), UserError> {
    for node in nodes()? {
        if node.is_local {
            run("CHECKPOINT", &[])?;
        } else {
            ask(&node, "CHECKPOINT")?;
        }
    }
    Ok(())
}

/// Asks for the version of a node's extension; the answer is empty where it has none, or where bench_internal.node_state is
/// not its own.
pub fn version_question() -> String {
    VERSION_THERE.replace("{version}", LIBRARY_VERSION)
}

const VERSION_THERE: &str = "\
    SELECT coalesce(pg_catalog.min(e.extversion), '') FROM pg_catalog.pg_extension e \
    WHERE e.extname OPERATOR(pg_catalog.=) 'pgbench_ext' \
      AND (e.extversion OPERATOR(pg_catalog.<>) '{version}' OR EXISTS ( \
        SELECT FROM pg_catalog.pg_depend d \
        WHERE (d.refclassid, d.refobjid, d.deptype, d.classid, d.objid) OPERATOR(pg_catalog.=) \
          ROW('pg_catalog.pg_extension'::pg_catalog.regclass, e.oid, 'e', 'pg_catalog.pg_proc'::pg_catalog.regclass, \
              pg_catalog.to_regprocedure('bench_internal.node_state(pg_catalog.text[])'))))";

/// That a node has this extension in this version, before any of its functions is called there.
///
/// # Errors
/// 55000 where it does not, 08006 where it does not answer.
pub fn check_extension(node: &NodeSpec) -> Result<(), UserError> {
    check_version(node, &ask(node, &version_question())?)
}

/// As [`check_extension`], by the answer to [`version_question`].
///
/// # Errors
/// 55000.
pub fn check_version(node: &NodeSpec, answer: &str) -> Result<(), UserError> {
    match answer {
        LIBRARY_VERSION => Ok(()),
        "" => Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("node {} does not have extension \"pgbench_ext\"", node.name()),
        )
        .hint("Install its files on all nodes; CREATE EXTENSION on the coordinator then creates it on all of them.")),
        there => Err(other_version(node, there)),
    }
}

/// The error for a node whose extension is of another version.
pub fn other_version(node: &NodeSpec, there: &str) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("node {} has pgbench_ext {there}, but this node has {LIBRARY_VERSION}", node.name()),
    )
    .hint("Install the same version on all nodes.")
}

// Tables that are spread over the shards of a Citus cluster: here they are empty, and what a size or a statistic of
// the server's says of them is of no account.

/// Those of the tables whose rows Citus has in shards: distributed by a column, or as a whole in a distributed schema,
/// reference tables, and local tables that it has in its metadata; and partitions of such.
pub fn distributed(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    if !is_installed()? {
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
    if !is_installed()? {
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
    for node in nodes()?.iter().filter(|node| !node.is_local) {
        check_extension(node)?;
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
