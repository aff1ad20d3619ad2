//! The roles of a run's sessions, and the number of workers.

use std::cell::RefCell;
use std::collections::HashMap;

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::{ClusterSpec, Nodes};
use bench_model::spec::{self, Driver, Role, RunArguments, RunOptions, RunSpec, Share};

use crate::guard::session_role::{self, CLIENT, is_special, may_be_special, session_of, session_of_writer};
use crate::guard::switch_role::as_session_of;
use crate::launch::checks::{check_connection_limit_of, check_session_of};
use crate::load::fixture;
use crate::observe::machine;
use crate::server::roles::{self, may_become};
use crate::store::{self, Workload};

/// The roles of a run's sessions. The caller and the scripts' writers can SET ROLE to each of them, and none has special rights
/// unless the caller has named it.
pub struct Sessions {
    pub caller: Role,
    /// The role of all sessions except those of scripts with a role of their own.
    pub role: Role,
    /// The caller passed `run_as`.
    is_named: bool,
    /// Writers of scripts other than the caller.
    writers: RefCell<Vec<Role>>,
}

impl Sessions {
    /// Determines the roles for a call with these arguments by the current role.
    ///
    /// # Errors
    /// 42704 for a role that does not exist; 42501 for one that the caller or a writer cannot SET ROLE to, and if there is no
    /// role without special rights.
    pub fn of(arguments: &RunArguments) -> Result<Self, UserError> {
        let caller = roles::current();
        let parts = parts(arguments);
        parts.iter().try_for_each(check_private)?;
        if let Some(name) = &arguments.run_as {
            let role = roles::named(name)?;
            roles::check_may_become(&role)?;
            return Ok(Self { caller, role, is_named: true, writers: RefCell::default() });
        }
        // The user mapping determines the role on a target.
        if arguments.target.is_some() {
            return Ok(Self { role: caller.clone(), caller, is_named: false, writers: RefCell::default() });
        }
        let roles = parts.iter().map(|workload| role_of(&caller, workload)).collect::<Result<Vec<_>, _>>()?;
        let role = match roles.split_first() {
            Some((first, rest)) if rest.iter().all(|role| role.oid == first.oid) => first.clone(),
            // Each script then has a role of its own, see `of_script`.
            _ => session_of(&caller, &caller, None)?,
        };
        Ok(Self { caller, role, is_named: false, writers: RefCell::default() })
    }

    /// Returns the role whose sessions execute a workload, if it differs from [`role`](Self::role).
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_script(&self, workload: &Workload, options: &RunOptions) -> Result<Option<Role>, UserError> {
        if self.is_named || options.target.is_some() {
            return self.check_writer(workload).map(|()| None);
        }
        Ok(Some(role_of(&self.caller, workload)?).filter(|role| role.oid != self.role.oid))
    }

    /// Checks that sessions of the named role may execute a workload.
    ///
    /// # Errors
    /// 42501 if another role than the caller wrote it and cannot SET ROLE to the named role, or that has special rights.
    fn check_writer(&self, workload: &Workload) -> Result<(), UserError> {
        let Some(writer) = writer_of(workload, &self.caller)? else { return Ok(()) };
        if writer.oid == self.caller.oid {
            return Ok(());
        }
        self.writers.borrow_mut().push(writer.clone());
        let is_special = is_special(self.role.oid.into())?;
        if !is_special && may_become(writer.oid, &self.role)? {
            return Ok(());
        }
        let message = format!(
            "workload \"{}\" of role \"{}\" cannot run in sessions of role \"{}\"",
            workload.name, writer.name, self.role.name
        );
        let detail = if is_special {
            "That role has special rights, and somebody else wrote the script.".to_owned()
        } else {
            format!("Role \"{}\", which wrote it, cannot SET ROLE to that one.", writer.name)
        };
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail(detail)
            .hint("Read its script, and take it over with bench.create_workload; or leave run_as out."))
    }

    /// Returns the caller and the writers, who answer for what the sessions execute: each can SET ROLE to their role.
    pub fn answering(&self) -> Vec<Role> {
        let mut all = self.writers.borrow().clone();
        all.push(self.caller.clone());
        all
    }

    /// Returns the caller if the sessions are of another role.
    pub fn other_caller(&self) -> Option<Role> {
        (self.caller.oid != self.role.oid).then(|| self.caller.clone())
    }

    /// Whether the sessions may have special rights: the caller has named their role, or a superuser has in
    /// pgbench_ext.client_role.
    pub fn may_be_special(&self) -> bool {
        may_be_special(&self.role, self.is_named.then_some(self.role.name.as_str()))
    }

    /// Runs `body` as the sessions' role, so that checks fail where the sessions would.
    pub fn as_role<T>(&self, body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
        as_session_of(&self.role, body)
    }
}

/// Returns the workloads of a run, without unknown ones: later checks report them.
fn parts(arguments: &RunArguments) -> Vec<Workload> {
    let Some(workload) = &arguments.workload else { return Vec::new() };
    let Ok(parts) = spec::mix(workload).and_then(|mix| expanded(&mix)) else { return Vec::new() };
    parts
        .into_iter()
        .filter_map(|(known, share)| known.or_else(|| store::workload(&share.workload).ok()?))
        .collect()
}

/// Returns the role whose sessions execute a workload in a call of `caller`. Captured statements run as the role that executed
/// them.
///
/// # Errors
/// 42704 for a writer that has been dropped; those of [`session_of`].
pub fn role_of(caller: &Role, workload: &Workload) -> Result<Role, UserError> {
    let writer = writer_of(workload, caller)?.unwrap_or_else(|| caller.clone());
    if workload.captured {
        return session_of_writer(caller, &writer, None);
    }
    let owner = match &workload.fixture {
        Some(name) if roles::is_superuser(caller.oid.into()) => fixture::owner_of(name)?,
        _ => None,
    };
    session_of(caller, &writer, owner)
}

/// Checks a run whose sessions have several roles: its options, and what each role needs.
///
/// # Errors
/// 0A000 for options that are not supported; 22023 for fewer clients than roles; those of [`check_session_of`]; 53300 for a
/// role's CONNECTION LIMIT.
pub fn check_sessions(spec: &RunSpec) -> Result<(), UserError> {
    let sessions = spec.sessions()?;
    let options = &spec.options;
    check_login(spec)?;
    if sessions.len() < 2 {
        return Ok(());
    }
    let unsupported = [
        (options.rate.is_some(), "rate"),
        (options.driver == Driver::Wire, "driver => 'wire'"),
        (options.nodes != Nodes::Local, "nodes"),
        (spec.scripts.iter().any(|script| script.is_dealt), "a deck"),
    ];
    if let Some((_, what)) = unsupported.into_iter().find(|(is_used, _)| *is_used) {
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

/// Checks that a run with connections does not use the extension's own role, which cannot log in.
///
/// # Errors
/// 0A000 if it does.
fn check_login(spec: &RunSpec) -> Result<(), UserError> {
    let what = match spec.options.nodes {
        _ if spec.options.driver == Driver::Wire => "driver => 'wire'".to_owned(),
        Nodes::Local if spec.cluster.is_some() => "a distributed table".to_owned(),
        Nodes::Local => return Ok(()),
        nodes => format!("nodes => '{}'", nodes.as_str()),
    };
    if !session_role::is_own(&spec.role) {
        return Ok(());
    }
    let message = format!("{what} takes sessions of a role that may log in");
    Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        .detail(format!("A superuser's clients are sessions of role \"{}\", to which connections are refused.", spec.role))
        .hint("Pass run_as, or set pgbench_ext.client_role to a role that may log in on all nodes; or SET ROLE before the call."))
}

/// Raises a NOTICE with the role of the clients' sessions if the caller did not choose it and it is not the caller's.
///
/// # Errors
/// Those of the catalog.
pub fn tell_role(spec: &RunSpec) -> Result<(), UserError> {
    if spec.options.run_as.is_some() || spec.target.is_some() {
        return Ok(());
    }
    let names: Vec<String> = spec.roles().iter().map(|role| format!("\"{}\"", role.name)).collect();
    let noun = if names.len() > 1 { "roles" } else { "role" };
    if spec.may_be_special && is_special(spec.role_oid.into())? {
        pgrx::notice!(
            "clients are sessions of {noun} {}, with special rights, as pgbench_ext.client_role has it",
            names.join(", ")
        );
    } else if spec.run_as().is_some() {
        pgrx::notice!("clients are sessions of {noun} {}", names.join(", "));
    }
    Ok(())
}

/// Returns the number of workers for a run's clients: one for each client, or one for each job of the wire driver.
pub fn workers_of(options: &RunOptions) -> u32 {
    match options.driver {
        Driver::Engine => options.clients,
        // Half of the processors: the server's side of a connection needs more than the job's.
        Driver::Wire => {
            let jobs = options.jobs.unwrap_or_else(|| machine::processors_granted() / 2);
            jobs.clamp(1, options.clients)
        }
    }
}

/// Returns the number of background worker slots that a run takes on this node: the clients' workers and their coordinator; on
/// a Citus cluster also one for each node, and a coordinator of the whole run if it has clients on several nodes.
pub fn slots_of(options: &RunOptions, cluster: Option<&ClusterSpec>) -> u64 {
    let run_slots = u64::from(workers_of(options)) + 1;
    let Some(cluster) = cluster else { return run_slots };
    let has_local_clients = cluster.nodes.iter().any(|node| node.is_local && node.clients > 0);
    let local_slots = if has_local_clients { run_slots } else { 0 };
    let whole_run_slots = u64::from(options.nodes != Nodes::Local);
    local_slots + cluster.nodes.len() as u64 + whole_run_slots
}

/// Checks that the current role may run a workload if it is private.
///
/// # Errors
/// 42501 if it cannot SET ROLE to the writer.
fn check_private(workload: &Workload) -> Result<(), UserError> {
    match writer_of(workload, &roles::current())? {
        Some(writer) if workload.private => roles::check_may_become(&writer),
        _ => Ok(()),
    }
}

/// Returns the role that last wrote a workload; `None` for a built-in one and, in a superuser's call, for workloads of the
/// extension's client role, which owns superusers' captures and imports.
///
/// # Errors
/// 42704 for a role that has been dropped: another role must copy the workload first.
fn writer_of(workload: &Workload, caller: &Role) -> Result<Option<Role>, UserError> {
    if workload.builtin || workload.owner == CLIENT && roles::is_superuser(caller.oid.into()) {
        return Ok(None);
    }
    roles::existing(workload.owner_oid, &workload.owner).map(Some).map_err(|error| {
        error
            .detail(format!("It wrote workload \"{}\".", workload.name))
            .hint("Read its script, and take it over with bench.create_workload.")
    })
}

/// Expands built-in mixes and captures in a mix, and looks up the workloads; `None` for unknown names.
pub fn expanded(mix: &[Share]) -> Result<Vec<(Option<Workload>, Share)>, UserError> {
    let mut known: HashMap<String, Workload> = HashMap::new();
    let shares = spec::expand(mix, |name| match store::workload(name)? {
        Some(Workload { mix: Some(mix), .. }) => spec::mix(&mix).map(Some),
        Some(workload) => {
            known.insert(name.to_owned(), workload);
            Ok(None)
        }
        None => captured_shares(name),
    })?;
    Ok(shares.into_iter().map(|share| (known.remove(&share.workload), share)).collect())
}

/// Returns the workloads of a capture; `None` if there is no capture of this name.
///
/// # Errors
/// 55000 for a capture without any.
fn captured_shares(name: &str) -> Result<Option<Vec<Share>>, UserError> {
    let captured = store::mix(name)?;
    if captured.as_ref().is_some_and(Vec::is_empty) {
        let message = format!("capture \"{name}\" has kept no statement");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("Column reason of bench.capture_statements says why."));
    }
    Ok(captured)
}
