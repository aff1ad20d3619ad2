//! Citus 11.1 or newer (<https://github.com/citusdata/citus>): its nodes, its distributed tables, and queries on other nodes.

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
    let sql = "SELECT true FROM pg_extension WHERE extname = 'citus'::name";
    Ok(fetch::<bool>(sql, &[])?.is_some())
}

/// Checks that this database has Citus, which `what` needs.
///
/// # Errors
/// 55000 if it does not.
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

/// Checks that this node is no worker of a cluster: fixtures, workloads and results belong to one node, the coordinator.
///
/// # Errors
/// 55000 with `message` on a worker.
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

/// Returns the cluster's active nodes in the order of their ids, with 0 clients each.
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
    // A coordinator that is missing from pg_dist_node counts as a node, too.
    if !nodes.iter().any(|node| node.is_local) {
        let port = database::port();
        let host = guc::current("citus.local_hostname").unwrap_or_default();
        nodes.insert(0, NodeSpec { node: 0, host, port, is_coordinator: true, is_local: true, clients: 0 });
    }
    Ok(nodes)
}

/// Parameters that published benchmarks set and Citus has removed, with the version and the behavior since then
/// (Citus' CHANGELOG).
const REMOVED_PARAMETERS: [(&str, &str, &str); 3] = [
    ("citus.multi_shard_commit_protocol", "11.0", COMMIT_BEHAVIOR),
    ("citus.single_shard_commit_protocol", "11.0", COMMIT_BEHAVIOR),
    ("citus.shard_placement_policy", "11.0", "Shards are placed round robin."),
];

const COMMIT_BEHAVIOR: &str = "Citus commits a transaction that wrote over several connections in two phases, and one that wrote over a single connection in one phase.";

/// Returns the error for a parameter that this database's Citus has removed; `None` for others.
pub fn removed_parameter(name: &str) -> Result<Option<UserError>, UserError> {
    let Some((name, since, instead)) =
        REMOVED_PARAMETERS.iter().find(|(removed, ..)| removed.eq_ignore_ascii_case(name))
    else {
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

/// Runs a query that returns one text on a node through Citus, as the current role.
///
/// # Errors
/// 08006 with the message of the node or of the failed connection.
pub fn ask(node: &NodeSpec, command: &str) -> Result<String, UserError> {
    let answer = ask_all(&[(node.clone(), command.to_owned())])?.into_iter().next();
    answer.unwrap_or_else(|| Err(failure(node, UserError::new(sqlstate::CONNECTION_FAILURE, "no answer"))))
}

/// As [`ask`], on several nodes at once. Returns one answer for each question, in their order.
///
/// # Errors
/// Those of Citus' function as a whole; an error of a single node is its answer.
pub fn ask_all(questions: &[(NodeSpec, String)]) -> Result<Vec<Result<String, UserError>>, UserError> {
    let hosts: Vec<String> = questions.iter().map(|(node, _)| node.host.clone()).collect();
    let ports: Vec<i32> = questions.iter().map(|(node, _)| node.port).collect();
    let commands: Vec<String> = questions.iter().map(|(_, command)| command.clone()).collect();
    // The function under run_command_on_workers, which asks all workers.
    let answers = guc::with_setting(c"citus.node_connection_timeout", CONNECTION_TIMEOUT, || {
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

/// Citus' limit for connecting to a node; its default of 30 s is long for a caller who waits.
const CONNECTION_TIMEOUT: &CStr = c"5s";

/// Turns the error of a node, or of the connection to it, into one that names the node.
pub fn failure(node: &NodeSpec, error: UserError) -> UserError {
    UserError {
        sqlstate: sqlstate::CONNECTION_FAILURE.to_owned(),
        message: format!("node {}: {}", node.name(), error.message),
        hint: Some(error.hint.unwrap_or_else(|| CONNECTION_HINT.to_owned())),
        ..error
    }
}

const CONNECTION_HINT: &str =
    "The calling role must be able to connect to the nodes: see pg_hba.conf and pg_dist_authinfo.";

/// Runs CHECKPOINT on all nodes.
///
/// # Errors
/// 08006 with the message of the first node that fails.
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

/// Returns the query for the version of a node's extension. Its answer is empty if the node does not have the extension, or
/// if bench_internal.node_state is not the extension's.
pub fn version_question() -> String {
    VERSION_QUERY.replace("{version}", LIBRARY_VERSION)
}

const VERSION_QUERY: &str = "\
    SELECT coalesce(pg_catalog.min(e.extversion), '') FROM pg_catalog.pg_extension e \
    WHERE e.extname OPERATOR(pg_catalog.=) 'pgbench_ext' \
      AND (e.extversion OPERATOR(pg_catalog.<>) '{version}' OR EXISTS ( \
        SELECT FROM pg_catalog.pg_depend d \
        WHERE (d.refclassid, d.refobjid, d.deptype, d.classid, d.objid) OPERATOR(pg_catalog.=) \
          ROW('pg_catalog.pg_extension'::pg_catalog.regclass, e.oid, 'e', 'pg_catalog.pg_proc'::pg_catalog.regclass, \
              pg_catalog.to_regprocedure('bench_internal.node_state(pg_catalog.text[])'))))";

/// Checks that a node has this version of the extension, before any of its functions is called there.
///
/// # Errors
/// 55000 if it does not, 08006 if it does not answer.
pub fn check_extension(node: &NodeSpec) -> Result<(), UserError> {
    check_version(node, &ask(node, &version_question())?)
}

/// Checks the answer to [`version_question`].
///
/// # Errors
/// 55000 if the node does not have this version.
pub fn check_version(node: &NodeSpec, answer: &str) -> Result<(), UserError> {
    match answer {
        LIBRARY_VERSION => Ok(()),
        "" => Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("node {} does not have extension \"pgbench_ext\"", node.name()),
        )
        .hint("Install its files on all nodes; CREATE EXTENSION on the coordinator then creates it on all of them.")),
        version => Err(other_version(node, version)),
    }
}

/// Returns the error for a node with another version of the extension.
pub fn other_version(node: &NodeSpec, version: &str) -> UserError {
    UserError::new(
        sqlstate::NOT_IN_PREREQUISITE_STATE,
        format!("node {} has pgbench_ext {version}, but this node has {LIBRARY_VERSION}", node.name()),
    )
    .hint("Install the same version on all nodes.")
}

// Distributed tables: the local table is empty, so the server's sizes and statistics of it mean nothing.

/// Returns those of the tables whose rows are in Citus' shards: tables distributed by a column or with their schema,
/// reference tables, local tables in Citus' metadata, and partitions of these.
pub fn distributed(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    if !is_installed()? {
        return Ok(Vec::new());
    }
    let distributed = fetch::<Vec<pg_sys::Oid>>(
        "SELECT array_agg(p.logicalrelid::oid) FROM pg_dist_partition p \
         WHERE p.logicalrelid::oid = ANY ($1)",
        &[tables.to_vec().into()],
    )?;
    Ok(distributed.unwrap_or_default())
}

/// Whether a table of this name is distributed by a column's hash.
pub fn is_by_hash(name: &str) -> Result<bool, UserError> {
    let sql = "SELECT p.partmethod = 'h'::\"char\" FROM pg_dist_partition p \
               WHERE p.logicalrelid::oid = to_regclass($1)::oid";
    Ok(fetch::<bool>(sql, &[name.into()])? == Some(true))
}

/// Counts the nodes that Citus puts shards on.
pub fn nodes_for_shards() -> Result<i64, UserError> {
    let nodes = fetch::<i64>(
        "SELECT count(*) FROM pg_dist_node n WHERE n.isactive AND n.shouldhaveshards \
           AND n.noderole = 'primary'::noderole",
        &[],
    )?;
    Ok(nodes.unwrap_or_default())
}

/// Whether a schema is distributed, that is each of its tables is one shard (schema-based sharding, Citus 12 or newer).
pub fn is_distributed_schema(schema: &str) -> Result<bool, UserError> {
    let has_catalog = "SELECT to_regclass('pg_dist_schema') IS NOT NULL";
    if fetch::<bool>(has_catalog, &[])? != Some(true) {
        return Ok(false);
    }
    let sql = "SELECT true FROM pg_dist_schema s \
               JOIN pg_namespace n ON n.oid = s.schemaid::oid \
               WHERE n.nspname = $1::text";
    Ok(fetch::<bool>(sql, &[schema.into()])?.is_some())
}

/// Returns the tables that are not [`distributed`].
pub fn local(tables: &[pg_sys::Oid]) -> Result<Vec<pg_sys::Oid>, UserError> {
    let distributed = distributed(tables)?;
    Ok(tables.iter().copied().filter(|table| !distributed.contains(table)).collect())
}

/// The placement of a run's tables, which decides what its clients need of other nodes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Placed {
    /// Distributed tables: qualified names, quoted.
    pub names: Vec<String>,
    /// Tables that only this node has: qualified names, quoted.
    pub others: Vec<String>,
    /// Whether shards are on other nodes.
    pub is_remote: bool,
    /// Whether all distributed tables are reference tables, of which each node reads its own copy.
    pub are_all_copied: bool,
    /// Whether shards of other tables than reference tables have several placements.
    pub has_copies: bool,
    /// The most shards of one table on one node.
    pub most_shards: u32,
}

/// Reads the placement of the tables.
pub fn placed(tables: &[pg_sys::Oid]) -> Result<Placed, UserError> {
    if !is_installed()? {
        return Ok(Placed::default());
    }
    // Reference tables have partmethod 'n' (no distribution column) and repmodel 't' (two-phase commit).
    let placement = select_one(
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
    Ok(placement.unwrap_or_default())
}

/// Makes this transaction use one connection to each node, so that its statements see each other's changes to distributed
/// tables.
pub fn go_in_sequence() {
    set_local(c"citus.multi_shard_modify_mode", c"sequential");
}

/// Returns the sizes in bytes, over all nodes, of tables with their partitions, and of their indexes.
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

/// Reads a table's shards and their indexes into the nodes' shared buffers.
///
/// # Errors
/// 55000 if a node does not have this extension, or with its message.
pub fn prewarm_shards(table: pg_sys::Oid) -> Result<(), UserError> {
    for node in nodes()?.iter().filter(|node| !node.is_local) {
        check_extension(node)?;
    }
    // A partitioned table has no pages of its own.
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

/// The most shards for which a run gets keys, more than clients can use.
const MAX_KEYS: i32 = 4096;

/// Returns a value of the distribution column for each of a table's shards, in the order of the shards, for at most
/// [`MAX_KEYS`]; `None` for a table that is not distributed.
pub fn shard_keys(table: pg_sys::Oid) -> Result<Option<Vec<i64>>, UserError> {
    if distributed(&[table])?.is_empty() {
        return Ok(None);
    }
    // The first 20 n integers hit all but one in exp(20) of n shards.
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
