//! Citus 11.1 or newer (<https://github.com/citusdata/citus>): what nodes and distributed tables there are, and questions to
//! other nodes.

use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::NodeSpec;

use crate::guard::extension::LIBRARY_VERSION;
use crate::server::rows::select;
use crate::server::spi::{fetch, run};
use crate::server::{database, guc};

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
