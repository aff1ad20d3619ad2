//! Configuration parameters of the whole server, for the runs of a variant.
//!
//! ALTER SYSTEM writes them to postgresql.auto.conf, every process reads them, and the file gets back what it had at
//! once, while the processes keep what they have read. So a restart of the server, whatever its reason, finds its own
//! settings; what is left to be done at the end is to have them read again. A crash, which the postmaster survives with
//! what it has read, is followed by the leader's return ([`WorkerKind::returns_after_crash`]), for that alone.
//! What the file had is written down before, so that it can be put back by whoever comes next: the leader as it is
//! terminated, or when it returns, or the next sweep of a superuser where the server has lost its power between the two writes.
//! Only one sweep at a time may do this, in all databases.

use std::collections::BTreeMap;

use bench_core::error::{UserError, sqlstate};
use bench_core::sweep::{SweepOptions, Variant};
use serde_json::{Map, Value};

use crate::catalog::{self, Forgotten};
use crate::engine::Session;
use crate::server::guc;
use crate::server::locks::OwnLock;
use crate::server::own_settings::is_own;
use crate::server::process::{forget_cancel, nap_until_canceled};
use crate::server::roles::superuser;
use crate::server::spi::{self, fetch, quote_identifier, quote_literal};
use crate::server::transaction::{durable_transaction, transaction};
use crate::worker::initial_state::execute;

/// How long a reload may take to reach this process, in looks of 20 ms.
const LOOKS: u32 = 500;

/// The parameters of the server that a sweep changes.
pub struct ServerParameters {
    sweep_id: i64,
    /// Every one that any variant sets.
    names: Vec<String>,
    in_force: InForce,
}

/// What is in force of the parameters.
enum InForce {
    /// The server's own, as they were at the begin.
    Own,
    Variants {
        /// As they were written.
        wanted: BTreeMap<String, String>,
        /// All that any variant sets, as the server has them, each in its own unit.
        read: BTreeMap<String, String>,
    },
    /// Something went wrong on the way.
    Unknown,
}

/// A variant's parameters, as ALTER SYSTEM takes them.
fn wanted(variant: &Variant) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    variant.system.iter().map(|(name, value)| (name.to_ascii_lowercase(), text(value))).collect()
}

impl ServerParameters {
    /// The parameters that any variant of the sweep sets, none of them changed yet.
    pub fn new(sweep_id: i64, options: &SweepOptions) -> Self {
        let mut names: Vec<String> =
            options.variants.iter().flat_map(|variant| wanted(variant).into_keys()).collect();
        names.sort();
        names.dedup();
        Self { sweep_id, names, in_force: InForce::Own }
    }

    /// Puts a variant's parameters in force, in place of another's.
    pub fn set(&mut self, session: &mut Session, variant: &Variant) -> Result<(), UserError> {
        let wanted = wanted(variant);
        match &self.in_force {
            _ if self.names.is_empty() => return Ok(()),
            InForce::Own if wanted.is_empty() => {
                read_if_told()?;
                self.in_force = InForce::Variants { wanted, read: server_settings(&self.names)? };
                return Ok(());
            }
            InForce::Variants { wanted: there, .. } if *there == wanted => return Ok(()),
            _ => {}
        }
        self.in_force = InForce::Unknown;
        // What the checkpoint in `write_and_read` has to write is little then, and the time short for which the file is not as it was.
        execute(session, "CHECKPOINT")?;
        let had = transaction(|| file_settings(&self.names))?;
        durable_transaction(|| catalog::keep_system_settings(self.sweep_id, Some(had.clone())))?;
        let result = write_and_read(session, &wanted);
        put_into_file(session, &had)?;
        durable_transaction(|| catalog::keep_system_settings(self.sweep_id, None))?;
        result?;
        self.in_force = InForce::Variants { wanted, read: server_settings(&self.names)? };
        Ok(())
    }

    /// Whether what was put in force still is: anybody may have the files read.
    ///
    /// # Errors
    /// 55000.
    pub fn check(&mut self) -> Result<(), UserError> {
        let InForce::Variants { read, .. } = &self.in_force else { return Ok(()) };
        read_if_told()?;
        if server_settings(&self.names)? == *read {
            return Ok(());
        }
        self.in_force = InForce::Unknown;
        Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            "the configuration files, with the variant's parameters, were reloaded during the run",
        )
        .hint("Do not reload the configuration while a sweep sets server parameters; bench.resume_sweep repeats the run."))
    }

    /// Has the server's own settings read again.
    pub fn put_back(&mut self, session: &mut Session) -> Result<(), UserError> {
        match &self.in_force {
            InForce::Own => return Ok(()),
            InForce::Variants { wanted, .. } if wanted.is_empty() => return Ok(()),
            _ => {}
        }
        let result = put_back_forgotten(session, Some(self.sweep_id));
        guc::reload();
        self.in_force = InForce::Own;
        result
    }
}

/// Writes parameters to the file, and waits until all processes have read it.
fn write_and_read(session: &mut Session, wanted: &BTreeMap<String, String>) -> Result<(), UserError> {
    for (name, value) in wanted {
        execute(session, &alter_system(name, value)?)?;
    }
    guc::reload();
    let mut has_read = false;
    for _ in 0..LOOKS {
        has_read = read_if_told()?;
        if has_read {
            break;
        }
        nap_until_canceled(20)?;
    }
    if !has_read {
        let message = "the server has not reloaded its configuration files";
        return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message));
    }
    // This session has its own of these: what its runs' clients have is in the files.
    for name in wanted.keys().filter(|name| !is_own(name)) {
        let sql = "SELECT source OPERATOR(pg_catalog.=) 'configuration file' AND NOT pending_restart \
                   FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) $1";
        if transaction(|| spi::fetch::<bool>(sql, &[name.as_str().into()]))? != Some(true) {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("parameter \"{name}\" is not set by the configuration files"),
            )
            .hint("The server's command line, ALTER ROLE and ALTER DATABASE take precedence over them."));
        }
    }
    // The checkpointer reads the files before it does what it is asked for; and all runs of a variant begin alike.
    nap_until_canceled(200)?;
    // What was read above may have been another's reload, and this one's come only now.
    read_if_told()?;
    execute(session, "CHECKPOINT")
}

/// Reads the files where the postmaster has told this process to, and says whether it has.
fn read_if_told() -> Result<bool, UserError> {
    transaction(|| Ok(guc::read_if_told()))
}

/// What the server has for these parameters, each in its own unit.
fn server_settings(names: &[String]) -> Result<BTreeMap<String, String>, UserError> {
    let rows = transaction(|| {
        spi::fetch_all(
            "SELECT pg_catalog.lower(name), setting FROM pg_catalog.pg_settings \
             WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY ($1)",
            &[names.to_vec().into()],
            |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
        )
    })?;
    Ok(rows.into_iter().collect())
}

/// What the file has for these parameters; null for nothing.
fn file_settings(names: &[String]) -> Result<Map<String, Value>, UserError> {
    let rows = spi::fetch_all(
        "SELECT n, (SELECT f.setting FROM pg_catalog.pg_file_settings f \
                    WHERE pg_catalog.lower(f.name) OPERATOR(pg_catalog.=) n AND f.sourcefile OPERATOR(pg_catalog.~) '/postgresql\\.auto\\.conf$' \
                    ORDER BY f.seqno DESC LIMIT 1) \
         FROM pg_catalog.unnest($1) AS n",
        &[names.to_vec().into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?)),
    )?;
    Ok(rows.into_iter().map(|(name, value)| (name, value.map_or(Value::Null, Value::String))).collect())
}

fn put_into_file(session: &mut Session, had: &Map<String, Value>) -> Result<(), UserError> {
    for (name, value) in had {
        let statement = match value {
            Value::String(value) => alter_system(name, value)?,
            _ => format!("ALTER SYSTEM RESET {}", quote_name(name)),
        };
        // A cancel must not come between.
        forget_cancel();
        execute(session, &statement)?;
    }
    Ok(())
}

/// The statement that sets a parameter to a value as the file has it. Of some that are lists each element is a literal of
/// its own (as pg_dump's dumputils.c has to write them, variable_is_guc_list_quote).
fn alter_system(name: &str, value: &str) -> Result<String, UserError> {
    let values = match guc::list_elements(name, value)? {
        Some(elements) if !elements.is_empty() => elements,
        _ => vec![value.to_owned()],
    };
    let values: Vec<String> = values.iter().map(|value| quote_literal(value)).collect();
    Ok(format!("ALTER SYSTEM SET {} = {}", quote_name(name), values.join(", ")))
}

/// A parameter's name may have a dot, whose parts are quoted apart.
fn quote_name(name: &str) -> String {
    name.split('.').map(quote_identifier).collect::<Vec<_>>().join(".")
}

/// Puts back what sweeps have left in the file whose leaders are gone, and this one's own.
pub fn put_back_forgotten(session: &mut Session, own: Option<i64>) -> Result<(), UserError> {
    let forgotten = transaction(|| catalog::forgotten_system_settings(own))?;
    for Forgotten { sweep_id, settings } in &forgotten {
        put_into_file(session, settings)?;
        durable_transaction(|| catalog::keep_system_settings(*sweep_id, None))?;
    }
    if !forgotten.is_empty() {
        guc::reload();
    }
    Ok(())
}

/// Keeps all other sweeps of the server from changing its parameters for as long as this process lives.
///
/// # Errors
/// 55006 when another one does.
pub fn exclude_other_sweeps() -> Result<(), UserError> {
    // In no database: advisory locks of SQL are all in one. The other numbers are "bench system".
    let lock = OwnLock::new(0, u32::from_be_bytes(*b"benc"), u32::from_be_bytes(*b"hsys"));
    if !lock.try_acquire_for_session() {
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, "another sweep is setting server parameters")
            .hint("Wait for its end: SELECT sweep_id FROM bench.sweeps WHERE status = 'running'."));
    }
    Ok(())
}

/// # Errors
/// 0A000 for several nodes, 42501 for others than superusers, 42704 for an unknown parameter, 55P02 for one that needs a restart, and what the
/// server says of the value.
pub fn check(options: &SweepOptions) -> Result<(), UserError> {
    if options.changes_system() && !superuser() {
        return Err(UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            "must be superuser to set server parameters",
        )
        .hint("Put parameters of the clients' sessions beside \"system\", not into it."));
    }
    if options.changes_system() && options.nodes != "local" {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("a sweep with nodes => '{}' cannot set server parameters", options.nodes),
        )
        .hint("They would be set on this node only. Set them on each node with ALTER SYSTEM, and run one sweep per value."));
    }
    for (name, value) in options.variants.iter().flat_map(wanted) {
        check_of_system(&name, &value)?;
    }
    Ok(())
}

/// Checks a parameter of the whole server as ALTER SYSTEM and a reload would, without changing anything.
///
/// # Errors
/// 42704 for an unknown one, 55P02 for one that a reload does not change; the server's own errors for the rest.
fn check_of_system(name: &str, value: &str) -> Result<(), UserError> {
    let sql = "SELECT context FROM pg_catalog.pg_settings WHERE pg_catalog.lower(name) OPERATOR(pg_catalog.=) pg_catalog.lower($1)";
    match fetch::<String>(sql, &[name.into()])?.as_deref() {
        None => Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
        Some("internal" | "postmaster") => Err(UserError::new(
            sqlstate::CANT_CHANGE_RUNTIME_PARAM,
            format!("parameter \"{name}\" cannot be changed without restarting the server"),
        )
        .hint("Run a sweep before the restart and one after it, and compare them with bench.compare.")),
        Some(_) => guc::check_for_reload(name, value),
    }
}
