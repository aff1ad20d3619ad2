//! Whose sessions the clients of a run are, those of each workload of a mix, and how many workers that takes.

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

/// Whose sessions the clients of a run are: what its caller and the writers of its scripts could become, and what has no special
/// rights unless the caller has named it.
pub struct Sessions {
    /// The role that calls.
    pub caller: Role,
    /// The role of all sessions but those of scripts that have one of their own.
    pub role: Role,
    /// The caller has named it.
    is_named: bool,
    /// Who has written the scripts, where somebody else has.
    writers: RefCell<Vec<Role>>,
}

impl Sessions {
    /// For the calling role and these arguments.
    ///
    /// # Errors
    /// 42704 for a role that does not exist; 42501 for one that the caller or a writer could not become, and where there is none
    /// without special rights; 0A000 for connections as a role that does not log in.
    pub fn of(arguments: &RunArguments) -> Result<Self, UserError> {
        let caller = roles::current();
        let parts = parts(arguments);
        parts.iter().try_for_each(check_private)?;
        if let Some(name) = &arguments.run_as {
            let role = roles::named(name)?;
            roles::check_may_become(&role)?;
            return Ok(Self { caller, role, is_named: true, writers: RefCell::default() });
        }
        // The user mapping says whose sessions they are there.
        if arguments.target.is_some() {
            return Ok(Self { role: caller.clone(), caller, is_named: false, writers: RefCell::default() });
        }
        let mut all = parts.iter().map(|workload| role_of(&caller, workload));
        let first = all.next().transpose()?;
        let is_same = |role: &Role| first.as_ref().is_some_and(|first| first.oid == role.oid);
        let others = all.collect::<Result<Vec<_>, _>>()?.iter().any(|role| !is_same(role));
        let role = match first {
            Some(role) if !others => role,
            // Scripts of several roles have roles of their own.
            _ => session_of(&caller, &caller, None)?,
        };
        Ok(Self { caller, role, is_named: false, writers: RefCell::default() })
    }

    /// The role whose sessions execute a workload, where that is another one than that of the other sessions.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_script(&self, workload: &Workload, options: &RunOptions) -> Result<Option<Role>, UserError> {
        if self.is_named || options.target.is_some() {
            return self.check_writer(workload).map(|()| None);
        }
        Ok(Some(role_of(&self.caller, workload)?).filter(|role| role.oid != self.role.oid))
    }

    /// # Errors
    /// 42501 where the writer could not become the role whose sessions are to execute what it wrote, or that role has special rights
    /// and the caller is not the writer.
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
        let why = if is_special {
            "That role has special rights, and somebody else wrote the script.".to_owned()
        } else {
            format!("Role \"{}\", which wrote it, cannot SET ROLE to that one.", writer.name)
        };
        Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail(why)
            .hint("Read its script, and take it over with bench.create_workload; or leave run_as out."))
    }

    /// Those who answer for what the sessions execute: each could become their role.
    pub fn answering(&self) -> Vec<Role> {
        let mut all = self.writers.borrow().clone();
        all.push(self.caller.clone());
        all
    }

    /// The caller, where the sessions are of another role.
    pub fn other_caller(&self) -> Option<Role> {
        (self.caller.oid != self.role.oid).then(|| self.caller.clone())
    }

    /// Whether the sessions may have special rights: the caller has named their role, or a superuser has named it for all calls.
    pub fn may_be_special(&self) -> bool {
        may_be_special(&self.role, self.is_named.then_some(self.role.name.as_str()))
    }

    /// Does something as the role whose sessions a run is to have: what that role may not do, its sessions may not either.
    pub fn as_role<T>(&self, body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
        as_session_of(&self.role, body)
    }
}

/// The workloads of a run, as far as they are known: what is wrong with them is found out later.
fn parts(arguments: &RunArguments) -> Vec<Workload> {
    let Some(workload) = &arguments.workload else { return Vec::new() };
    let Ok(parts) = spec::mix(workload).and_then(|mix| expanded(&mix)) else { return Vec::new() };
    parts
        .into_iter()
        .filter_map(|(known, share)| known.or_else(|| store::workload(&share.workload).ok()?))
        .collect()
}

/// The role whose sessions execute a workload in a call of `caller`. What was captured runs in sessions of the role that executed
/// it.
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

/// What a run with sessions of several roles cannot have, and what each of these roles needs.
///
/// # Errors
/// 0A000; 22023 for fewer clients than roles; those of [`check_session_of`]; 53300.
pub fn check_sessions(spec: &RunSpec) -> Result<(), UserError> {
    let sessions = spec.sessions()?;
    let options = &spec.options;
    check_login(spec)?;
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

/// The extension's own role logs in nowhere: what takes connections takes another one.
///
/// # Errors
/// 0A000.
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

/// Says as whom clients run, where the caller has not said it.
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

/// # Errors
/// 42501 for a private workload of a role that the current one cannot become.
fn check_private(workload: &Workload) -> Result<(), UserError> {
    match writer_of(workload, &roles::current())? {
        Some(writer) if workload.private => roles::check_may_become(&writer),
        _ => Ok(()),
    }
}

/// The role that last wrote a workload; `None` for a built-in one, which is whoever's calls it, and in a superuser's call for what
/// was captured of superusers or imported by them, which belongs to the role of their clients.
///
/// # Errors
/// 42704 for a role that has been dropped: what it wrote runs nowhere until somebody has copied it.
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

/// The workloads of a mix by their names, where there are such.
pub fn expanded(mix: &[Share]) -> Result<Vec<(Option<Workload>, Share)>, UserError> {
    let mut known: HashMap<String, Workload> = HashMap::new();
    let shares = spec::expand(mix, |name| match store::workload(name)? {
        Some(Workload { mix: Some(mix), .. }) => spec::mix(&mix).map(Some),
        Some(workload) => {
            known.insert(name.to_owned(), workload);
            Ok(None)
        }
        None => captured(name),
    })?;
    Ok(shares.into_iter().map(|share| (known.remove(&share.workload), share)).collect())
}

/// The workloads that a capture has kept; `None` for a name that is no capture's.
fn captured(name: &str) -> Result<Option<Vec<Share>>, UserError> {
    let captured = store::mix(name)?;
    if captured.as_ref().is_some_and(Vec::is_empty) {
        let message = format!("capture \"{name}\" has kept no statement");
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
            .hint("Column reason of bench.capture_statements says why."));
    }
    Ok(captured)
}
