//! Whose sessions the clients of a run are, and how many workers that takes.

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::{ClusterSpec, Nodes};
use bench_model::spec;
use bench_model::spec::{Driver, Role, RunArguments, RunOptions, RunSpec};

use super::mixes::expanded;
use crate::guard::switch_role::as_run_role;
use crate::guard::trust::objects::guarded;
use crate::launch::checks::{check_connection_limit_of, check_session_of};
use crate::observe::machine;
use crate::server::roles;
use crate::server::roles::current_role_oid;
use crate::store;
use crate::store::Workload;

/// The role whose sessions all of a run's clients are, where that is not the current one: the one that is named, or else the
/// one that has executed all that was captured.
///
/// # Errors
/// 42704, and 42501 for a role that the current one cannot become.
pub fn session_role(arguments: &RunArguments) -> Result<Option<Role>, UserError> {
    let role = match (&arguments.run_as, &arguments.workload) {
        (Some(name), _) => Some(roles::named(name)?),
        (None, Some(workload)) if arguments.target.is_none() => captured_role(workload)?,
        _ => None,
    };
    let role = role.filter(|role| role.oid != current_role_oid().to_u32());
    role.as_ref().map_or(Ok(()), roles::check_may_become)?;
    Ok(role)
}

/// Does something as a role whose sessions a run is to have: what that role may not do, its sessions may not either.
pub fn as_sessions_of<T>(
    role: Option<&Role>,
    body: impl FnOnce() -> Result<T, UserError>,
) -> Result<T, UserError> {
    match role {
        Some(role) => as_run_role(role.oid.into(), body),
        None => body(),
    }
}

/// What a run with sessions of several roles cannot have, and what each of these roles needs.
///
/// # Errors
/// 0A000; 22023 for fewer clients than roles; those of [`check_session_of`]; 53300.
pub fn check_sessions(spec: &RunSpec) -> Result<(), UserError> {
    let sessions = spec.sessions()?;
    let options = &spec.options;
    // Over a connection, nobody judges what a statement leads to when it runs.
    let is_captured = spec.scripts.iter().any(|script| script.captured);
    if options.driver == Driver::Wire && is_captured && guarded()?.is_some() {
        let message =
            "driver => 'wire' is not supported with captured statements of a role with special rights";
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .detail(format!("Role \"{}\" executed them.", spec.role))
            .hint("Use driver => 'engine', or capture what roles without special rights execute."));
    }
    if sessions.len() < 2 {
        return Ok(());
    }
    let others = [
        (options.rate.is_some(), "rate"),
        (options.driver == Driver::Wire, "driver => 'wire'"),
        (options.nodes != Nodes::Local, "nodes"),
        (spec.scripts.iter().any(|script| script.is_dealt), "a deck"),
    ];
    if let Some((_, what)) = others.into_iter().find(|(is, _)| *is) {
        let names: Vec<String> = sessions.iter().map(|(role, _)| format!("\"{}\"", role.name)).collect();
        let message = format!("{what} is not supported with sessions of several roles");
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .detail(format!("The statements were captured of roles {}.", names.join(", ")))
            .hint("Capture each role by itself, with option roles."));
    }
    for (role, clients) in &sessions {
        check_session_of(role)?;
        check_connection_limit_of(role, *clients)?;
    }
    Ok(())
}

/// The workers of a run's clients: each is one, or its jobs share them.
pub fn workers_of(options: &RunOptions) -> u32 {
    match options.driver {
        Driver::Engine => options.clients,
        // Half of the processors: a server has the rest, and to serve a connection takes it more than it takes a job.
        Driver::Wire => {
            let jobs = options.jobs.unwrap_or_else(|| machine::processors_granted() / 2);
            jobs.clamp(1, options.clients)
        }
    }
}

/// Slots of background workers that a run takes on this node: those of its clients' workers, one that leads them, and on a
/// Citus cluster one for each node, and one that leads the whole where several have clients.
pub fn slots_of(options: &RunOptions, cluster: Option<&ClusterSpec>) -> u64 {
    let here = u64::from(workers_of(options)) + 1;
    let Some(cluster) = cluster else { return here };
    let is_here = cluster.nodes.iter().any(|node| node.is_local && node.clients > 0);
    let whole = u64::from(options.nodes != Nodes::Local);
    let here = if is_here { here } else { 0 };
    here + cluster.nodes.len() as u64 + whole
}

/// The role that has executed all that a mix consists of; `None` where that is not one role, or not all of it was captured.
/// What is wrong with the mix is found out later.
pub fn captured_role(workload: &str) -> Result<Option<Role>, UserError> {
    let Ok(parts) = spec::mix(workload).and_then(|mix| expanded(&mix)) else { return Ok(None) };
    let mut role = None;
    for part in parts {
        let found = match part {
            (None, share) => store::workload(&share.workload)?,
            (found, _) => found,
        };
        let Some(workload) = found else { return Ok(None) };
        if !workload.captured
            || role.as_ref().is_some_and(|role: &Role| role.oid != workload.owner_oid.to_u32())
        {
            return Ok(None);
        }
        role = Some(owner_of(&workload)?);
    }
    Ok(role)
}

/// The role whose sessions execute a captured workload, where that is another one than the current role: the role that has
/// executed it before. On another server, the user mapping says whose sessions they are.
///
/// # Errors
/// 42501 where the current role cannot become it; 22023 where another one was asked for.
pub fn role_of_captured(workload: &Workload, options: &RunOptions) -> Result<Option<Role>, UserError> {
    let owner = owner_of(workload)?;
    if options.target.is_some() || owner.oid == roles::current().oid {
        return Ok(None);
    }
    if let Some(given) = &options.run_as {
        let message =
            format!("workload \"{}\" runs only in sessions of role \"{}\"", workload.name, owner.name);
        return Err(UserError::invalid(message)
            .detail(format!("That role executed it before it was captured; run_as is '{given}'."))
            .hint("Leave run_as out."));
    }
    roles::check_may_become(&owner)?;
    Ok(Some(owner))
}

/// The role that a workload belongs to.
///
/// # Errors
/// 42704 for a role that has been dropped.
pub fn owner_of(workload: &Workload) -> Result<Role, UserError> {
    roles::existing(workload.owner_oid, &workload.owner)
}
