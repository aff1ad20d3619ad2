//! Configuration parameters of the whole server, for a time: for the runs of a sweep's variant, and for what a capture has
//! the server log.
//!
//! ALTER SYSTEM writes them to postgresql.auto.conf, and every process reads them. Where sessions that begin afterwards are all
//! that matters, the file gets back what it had at once, while the processes keep what they have read. So a restart of the
//! server, whatever its reason, finds its own settings; what is left to be done at the end is to have them read again. Where
//! sessions that are there already have to read them, the file keeps them until the end: an idle session reads with its next
//! statement. A crash, which the postmaster survives with what it has read, is followed by the leader's return
//! ([`WorkerKind::returns_after_crash`](crate::server::background_worker::WorkerKind)), for that alone. What the file had is
//! written down before, so that any of these can put it back: the leader as it is terminated, or when it returns,
//! or the next sweep or capture of a superuser where the server has lost its power meanwhile. Only one at a time may do this,
//! in all databases.

use std::collections::BTreeMap;

use bench_base::error::{UserError, sqlstate};
use serde_json::Value;

use super::before::execute;
use crate::driver::session::Session;
use crate::error::warn;
use crate::guard::switch_role::as_bootstrap_superuser;
use crate::server::guc::{self, is_own};
use crate::server::process::{forget_cancel, nap_until_canceled};
use crate::server::relations::OwnLock;
use crate::server::spi::{self, quote_identifier, quote_literal};
use crate::server::transaction::{durable_transaction, transaction};
use crate::store::{self, Changer, FileSettings, ForRestart, Forgotten, SavedSettings};

/// How long a reload may take to reach this process, in looks of 20 ms.
const LOOKS: u32 = 500;

/// Parameters of the server that are changed for a time.
pub struct ServerParameters {
    changer: Changer,
    /// Every one that may be changed, in lower case.
    names: Vec<String>,
    in_force: InForce,
}

/// Which sessions are to have the parameters.
pub enum Reach<'a> {
    /// Those that begin when they are set, after a checkpoint: there is one before, too, so that what follows begins alike.
    New,
    /// Those that are there as well; and what shows that the parameters are in force is waited for.
    All(&'a mut dyn FnMut() -> Result<(), UserError>),
}

/// What is in force of the parameters.
enum InForce {
    /// The server's own, as they were at the begin.
    Own,
    Changed {
        /// As they were written.
        wanted: BTreeMap<String, String>,
        /// All that may be changed, as the server has them, each in its own unit.
        read: BTreeMap<String, String>,
    },
    /// Something went wrong on the way.
    Unknown,
}

impl ServerParameters {
    /// Parameters of these names, none of them changed yet.
    pub fn new(changer: Changer, mut names: Vec<String>) -> Self {
        names.sort();
        names.dedup();
        Self { changer, names, in_force: InForce::Own }
    }

    /// Puts these values in force, by name in lower case as ALTER SYSTEM takes them, in place of others.
    pub fn set(
        &mut self,
        session: &mut Session,
        wanted: BTreeMap<String, String>,
        reach: Reach,
    ) -> Result<(), UserError> {
        match &self.in_force {
            _ if self.names.is_empty() => return Ok(()),
            InForce::Own if wanted.is_empty() => {
                read_pending_reload()?;
                self.in_force = InForce::Changed { wanted, read: server_settings(&self.names)? };
                return Ok(());
            }
            InForce::Changed { wanted: there, .. } if *there == wanted => return Ok(()),
            _ => {}
        }
        self.in_force = InForce::Unknown;
        let is_for_new = matches!(reach, Reach::New);
        if is_for_new {
            // What the checkpoint in `write_and_read` has to write is little then, and the time short for which the file is
            // not as it was.
            execute(session, "CHECKPOINT")?;
        }
        let saved = SavedSettings { own: transaction(|| file_settings(&self.names))?, set: wanted.clone() };
        durable_transaction(|| store::keep_system_settings(&self.changer, Some(&saved)))?;
        let result = write_and_read(session, &wanted, reach);
        if is_for_new || result.is_err() {
            put_into_file(session, &saved)?;
            durable_transaction(|| store::keep_system_settings(&self.changer, None))?;
        }
        result?;
        self.in_force = InForce::Changed { wanted, read: server_settings(&self.names)? };
        Ok(())
    }

    /// Whether what was put in force still is: anybody may have the files read.
    ///
    /// # Errors
    /// 55000.
    pub fn check(&mut self) -> Result<(), UserError> {
        let InForce::Changed { read, .. } = &self.in_force else { return Ok(()) };
        read_pending_reload()?;
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
            InForce::Changed { wanted, .. } if wanted.is_empty() => return Ok(()),
            _ => {}
        }
        // A cancel must not come between; one that does is over at the second try.
        forget_cancel();
        put_back_forgotten(session, Some(&self.changer)).or_else(|_| {
            forget_cancel();
            put_back_forgotten(session, Some(&self.changer))
        })?;
        guc::reload();
        self.in_force = InForce::Own;
        Ok(())
    }
}

/// Writes parameters to the file, and waits until all processes have read it.
fn write_and_read(
    session: &mut Session,
    wanted: &BTreeMap<String, String>,
    reach: Reach,
) -> Result<(), UserError> {
    write_into_file(session, wanted)?;
    reload_and_read()?;
    // This session has its own of these: what its runs' clients have is in the files.
    for name in wanted.keys().filter(|name| !is_own(name)) {
        let sql = "SELECT source = 'configuration file' AND NOT pending_restart \
                   FROM pg_settings WHERE lower(name) = $1";
        if transaction(|| spi::fetch::<bool>(sql, &[name.as_str().into()]))? != Some(true) {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!("parameter \"{name}\" is not set by the configuration files"),
            )
            .hint(PRECEDENCE));
        }
    }
    // The checkpointer reads the files before it does what it is asked for; and all runs of a variant begin alike.
    nap_until_canceled(200)?;
    // What was read above may have been another's reload, and this one's come only now.
    read_pending_reload()?;
    match reach {
        Reach::New => execute(session, "CHECKPOINT"),
        Reach::All(wait) => wait(),
    }
}

const PRECEDENCE: &str =
    "The server's command line, ALTER ROLE and ALTER DATABASE take precedence over them.";

fn write_into_file(session: &mut Session, wanted: &BTreeMap<String, String>) -> Result<(), UserError> {
    wanted.iter().try_for_each(|(name, value)| execute(session, &alter_system(name, value)?))
}

/// Has all processes read the files, and waits until this one has.
fn reload_and_read() -> Result<(), UserError> {
    guc::reload();
    for _ in 0..LOOKS {
        if read_pending_reload()? {
            return Ok(());
        }
        nap_until_canceled(20)?;
    }
    let message = "the server has not reloaded its configuration files";
    Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message))
}

/// Puts back what the file had before [`write_for_restart`].
///
/// # Errors
/// Those of ALTER SYSTEM.
pub fn put_back_own(
    session: &mut Session,
    changer: &Changer,
    saved: &SavedSettings,
) -> Result<(), UserError> {
    put_into_file(session, saved)?;
    durable_transaction(|| store::keep_system_settings(changer, None))?;
    guc::reload();
    Ok(())
}

/// Writes parameters that need a restart; `names` are all that any variant sets, of which the server is to have its own but
/// for those `wanted`. `None` where it was started with all of this: then the file has its own again, so that the next
/// restart, whatever its reason, brings the server's own back. Else the file keeps them, and what it had is written down.
///
/// # Errors
/// 55000 for a parameter that is not the file's, and those of ALTER SYSTEM.
pub fn write_for_restart(
    session: &mut Session,
    changer: &Changer,
    names: &[String],
    wanted: BTreeMap<String, String>,
) -> Result<Option<ForRestart>, UserError> {
    let saved = SavedSettings { own: transaction(|| file_settings(names))?, set: wanted };
    durable_transaction(|| store::keep_system_settings(changer, Some(&saved)))?;
    let found = write_into_file(session, &saved.set)
        .and_then(|()| reload_and_read())
        .and_then(|()| transaction(|| pending(names, &saved.set)));
    match found {
        Ok(pending) if !pending.is_empty() => Ok(Some(ForRestart { saved, pending })),
        found => {
            put_back_own(session, changer, &saved)?;
            found.map(|_| None)
        }
    }
}

/// Those of these parameters that a restart would give another value.
///
/// # Errors
/// 55000 where none would, as the files are not what the server has it from.
fn pending(names: &[String], wanted: &BTreeMap<String, String>) -> Result<Vec<String>, UserError> {
    let rows = spi::fetch_all(
        "SELECT lower(name), pending_restart, source = 'configuration file' \
         FROM pg_settings WHERE lower(name) = ANY ($1) ORDER BY 1",
        &[names.to_vec().into()],
        |row| {
            let is = |place| Ok::<_, pgrx::spi::Error>(row.get::<bool>(place)?.unwrap_or_default());
            Ok((row.get::<String>(1)?.unwrap_or_default(), is(2)?, is(3)?))
        },
    )?;
    let of_others =
        rows.iter().find(|(name, pending, of_file)| !pending && !of_file && wanted.contains_key(name));
    match of_others {
        None => Ok(rows.into_iter().filter(|(_, pending, _)| *pending).map(|(name, ..)| name).collect()),
        Some((name, ..)) => Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("parameter \"{name}\" is not set by the configuration files"),
        )
        .hint(PRECEDENCE)),
    }
}

/// Reads the configuration files if a reload is pending, and returns whether it was.
fn read_pending_reload() -> Result<bool, UserError> {
    transaction(|| Ok(guc::read_pending_reload()))
}

/// What the server has for these parameters, each in its own unit.
fn server_settings(names: &[String]) -> Result<BTreeMap<String, String>, UserError> {
    let rows = transaction(|| {
        spi::fetch_all(
            "SELECT lower(name), setting FROM pg_settings \
             WHERE lower(name) = ANY ($1)",
            &[names.to_vec().into()],
            |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
        )
    })?;
    Ok(rows.into_iter().collect())
}

/// What the file has for these parameters; null for nothing.
fn file_settings(names: &[String]) -> Result<FileSettings, UserError> {
    let rows = spi::fetch_all(
        "SELECT n, (SELECT f.setting FROM pg_show_all_file_settings() f \
                    WHERE lower(f.name) = n AND f.sourcefile ~ '/postgresql\\.auto\\.conf$' \
                    ORDER BY f.seqno DESC LIMIT 1) \
         FROM unnest($1) AS n",
        &[names.to_vec().into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?)),
    )?;
    Ok(rows.into_iter().map(|(name, value)| (name, value.map_or(Value::Null, Value::String))).collect())
}

/// Puts back the entries in whose place others were written, but for those that an administrator has changed since. As the
/// bootstrap superuser, for this process's role may have lost its rights meanwhile.
fn put_into_file(session: &mut Session, saved: &SavedSettings) -> Result<(), UserError> {
    // A cancel must not come between.
    forget_cancel();
    let names: Vec<String> = saved.set.keys().cloned().collect();
    as_bootstrap_superuser(|| {
        let present = transaction(|| file_settings(&names))?;
        for (name, written) in &saved.set {
            if !has_entry(&present, name, written)? {
                continue;
            }
            let statement = match saved.own.get(name) {
                Some(Value::String(value)) => alter_system(name, value)?,
                _ => format!("ALTER SYSTEM RESET {}", quote_name(name)),
            };
            forget_cancel();
            execute(session, &statement)?;
        }
        Ok(())
    })
}

/// Whether the file has what ALTER SYSTEM writes of a value: of a parameter that is a list, each element is quoted anew.
fn has_entry(file: &FileSettings, name: &str, value: &str) -> Result<bool, UserError> {
    let Some(Value::String(entry)) = file.get(name) else { return Ok(false) };
    Ok(entry == value
        || guc::list_elements(name, value)?
            .is_some_and(|elements| guc::list_elements(name, entry).is_ok_and(|file| file == Some(elements))))
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

/// Puts back what `own` has changed in the file, and then what sweeps and captures have left there whose processes are gone:
/// where that fails, the server's log says so. Nothing of theirs while another process has changed it.
///
/// # Errors
/// Why `own`'s could not be put back.
pub fn put_back_forgotten(session: &mut Session, own: Option<&Changer>) -> Result<(), UserError> {
    let Forgotten { mut settings, is_in_use } = transaction(|| store::forgotten_system_settings(own))?;
    if is_in_use {
        settings.retain(|(changer, _)| Some(changer) == own);
    }
    settings.sort_by_key(|(changer, _)| Some(changer) != own);
    let mut result = Ok(());
    for (changer, settings) in &settings {
        let put_back = put_into_file(session, settings)
            .and_then(|()| durable_transaction(|| store::keep_system_settings(changer, None)));
        match put_back {
            Err(error) if Some(changer) == own => result = Err(error),
            Err(error) => warn_of(&error),
            Ok(()) => {}
        }
    }
    if !settings.is_empty() {
        guc::reload();
    }
    result
}

/// As [`put_back_forgotten`], where that must not keep the process from its own work: the server's log says so.
pub fn put_back_or_warn(session: &mut Session, own: Option<&Changer>) {
    if let Err(error) = put_back_forgotten(session, own) {
        warn_of(&error);
    }
}

fn warn_of(error: &UserError) {
    warn(
        format!(
            "could not restore what a sweep or a capture changed in postgresql.auto.conf: {}",
            error.message
        ),
        "Restore it by hand, then UPDATE bench_internal.sweep_log SET system_settings = NULL, and the same of \
         bench_internal.capture_list.",
    );
}

/// Keeps all other sweeps and captures of the server from changing its parameters for as long as this process lives.
///
/// # Errors
/// 55006 when another one does.
pub fn exclude_others() -> Result<(), UserError> {
    // In no database: advisory locks of SQL are all in one. The other numbers are "bench system".
    let lock = OwnLock::new(0, u32::from_be_bytes(*b"benc"), u32::from_be_bytes(*b"hsys"));
    if !lock.try_acquire_for_session() {
        return Err(UserError::new(
            sqlstate::OBJECT_IN_USE,
            "another sweep or capture is setting server parameters",
        )
        .hint("Wait for its end: SELECT sweep_id FROM bench.sweeps WHERE status = 'running'."));
    }
    Ok(())
}
