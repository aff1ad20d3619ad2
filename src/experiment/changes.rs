//! Statements by which a sweep's variants change the database for their runs, and those that undo it.
//!
//! That a variant is to be undone is written down before its first statement. So whoever comes next can do it: the leader as it
//! is terminated, or `bench.resume_sweep` where the server went down meanwhile. What of it had been done is not known then, and
//! a statement that finds nothing to undo has nothing left to do.

use std::collections::HashSet;
use std::ffi::CString;
use std::time::Instant;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Before, RunOptions};
use bench_questions::sweep::{SweepOptions, Variant};
use pgrx::pg_sys;
use serde_json::json;

use crate::driver::session::Session;
use crate::error::internal;
use crate::run::before::execute;
use crate::server::own_settings::is_own;
use crate::server::process::forget_cancel;
use crate::server::transaction::{durable_transaction, transaction};
use crate::server::{parser, spi};
use crate::store;

/// Classes of errors of a statement that undoes what is not there: undefined and duplicate objects of all kinds.
const UNDONE: [&str; 10] =
    ["42704", "42703", "42P01", "42883", "3F000", "42710", "42701", "42P06", "42P07", "42723"];

/// Begins the detail of a statement's error that has no detail of its own.
const STATEMENT: &str = "Statement: ";

/// What a variant has changed.
struct InForce {
    round: u32,
    variant: String,
    settings: Vec<(String, String)>,
    revert: Vec<String>,
    /// All of it is done for certain.
    is_complete: bool,
}

/// What a sweep's variants change, one after the other.
pub(super) struct Changes {
    sweep_id: i64,
    in_force: Option<InForce>,
}

impl Changes {
    /// With what an earlier leader of the sweep has not undone.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn new(sweep_id: i64, options: &SweepOptions) -> Result<Self, UserError> {
        let in_force = match options.applies_sql() {
            true => transaction(|| store::sweep_change_left(sweep_id))?,
            false => None,
        };
        let in_force = in_force.and_then(|(round, name)| {
            let variant = options.variants.iter().find(|variant| variant.name == name)?;
            let settings = settings_of(options, variant).ok()?;
            let revert = variant.sql.clone()?.revert;
            Some(InForce { round, variant: name, settings, revert, is_complete: false })
        });
        Ok(Self { sweep_id, in_force })
    }

    /// Before a run's fixture is loaded: undoes what another variant, or another round, has changed. Where each run has its
    /// fixture loaded anew, each undoes what was made of the last one.
    ///
    /// # Errors
    /// Why it could not be undone: the run would begin on a state that nobody asked for.
    pub fn revert_others(
        &mut self,
        session: &mut Session,
        options: &SweepOptions,
        variant: &Variant,
        round: u32,
    ) -> Result<(), UserError> {
        let stays = !options.before.contains(&Before::Reload)
            && self.in_force.as_ref().is_some_and(|it| {
                it.is_complete && (it.round, it.variant.as_str()) == (round, variant.name.as_str())
            });
        if stays { Ok(()) } else { self.revert(session) }
    }

    /// Before a run, on its fixture as it was loaded: changes the database as its variant has it, unless that is done.
    ///
    /// # Errors
    /// The server's, with the statement.
    pub fn apply(
        &mut self,
        session: &mut Session,
        options: &SweepOptions,
        variant: &Variant,
        round: u32,
    ) -> Result<(), UserError> {
        let Some(sql) = variant.sql.as_ref().filter(|_| self.in_force.is_none()) else { return Ok(()) };
        let settings = settings_of(options, variant)?;
        let sweep_id = self.sweep_id;
        durable_transaction(|| store::begin_sweep_change(sweep_id, round, &variant.name))?;
        let change = self.in_force.insert(InForce {
            round,
            variant: variant.name.clone(),
            settings,
            revert: sql.revert.clone(),
            is_complete: false,
        });
        let before = transaction(files)?;
        let began = Instant::now();
        let applied = execute_all(session, &change.settings, &sql.apply, &[], &mut 0);
        let secs = began.elapsed().as_secs_f64();
        let noted = match &applied {
            Ok(()) => {
                let (made, bytes) = transaction(|| made_since(&before))?;
                json!({"apply_secs": secs, "made": made, "made_bytes": bytes})
            }
            Err(error) => json!({"error": error.message}),
        };
        change.is_complete = applied.is_ok();
        durable_transaction(|| store::note_sweep_change(sweep_id, &noted))?;
        applied
    }

    /// Undoes what is in force.
    ///
    /// # Errors
    /// The server's, with the statement.
    fn revert(&mut self, session: &mut Session) -> Result<(), UserError> {
        let Some(change) = &mut self.in_force else { return Ok(()) };
        let began = Instant::now();
        let passes: &[&str] = if change.is_complete { &[] } else { &UNDONE };
        let mut done = 0;
        let reverted = execute_all(session, &change.settings, &change.revert, passes, &mut done);
        // Another try goes on with the one that failed.
        change.revert.drain(..done);
        let noted = match &reverted {
            Ok(()) => json!({"revert_secs": began.elapsed().as_secs_f64()}),
            Err(error) => json!({"error": error.message}),
        };
        let sweep_id = self.sweep_id;
        durable_transaction(|| store::note_sweep_change(sweep_id, &noted))?;
        reverted.map_err(|error| {
            let name = &change.variant;
            // The statement that failed is the first of those left.
            let servers = error.detail.filter(|detail| !detail.starts_with(STATEMENT));
            let left = format!("Not reverted: {}", change.revert.join("; "));
            let details: Vec<String> = servers.into_iter().chain([left]).collect();
            UserError::new(&error.sqlstate, format!("could not revert variant \"{name}\": {}", error.message))
                .detail(details.join(" "))
                .hint(format!(
                    "Revert it by hand (bench.sweep_changes, column to_revert); bench.resume_sweep({sweep_id}) tries again."
                ))
        })?;
        self.in_force = None;
        Ok(())
    }

    /// At the sweep's end: undoes what is in force, whatever has ended the sweep, without waiting long for a lock.
    ///
    /// # Errors
    /// As of [`revert`](Self::revert).
    pub fn revert_last(&mut self, session: &mut Session) -> Result<(), UserError> {
        if self.in_force.is_none() {
            return Ok(());
        }
        // A cancel must not come between.
        forget_cancel();
        session.set(c"lock_timeout", c"10s").map_err(UserError::from)?;
        self.revert(session)
    }
}

/// What an ended leader of a sweep has left to be undone, as it is terminated.
///
/// # Errors
/// Those of the catalog, and why it could not be undone.
pub(super) fn revert_left(sweep_id: i64) -> Result<(), UserError> {
    let options = transaction(|| store::sweep_options(sweep_id))?;
    Changes::new(sweep_id, &options)?.revert(&mut Session::new(bench_model::spec::Results::Discard))
}

/// What can be found wrong with variants' statements before the first run.
///
/// # Errors
/// 0A000 for runs on other servers; the parser's are raised.
pub(super) fn check(options: &SweepOptions) -> Result<(), UserError> {
    for variant in &options.variants {
        let Some(sql) = &variant.sql else { continue };
        let name = &variant.name;
        if options.run_arguments(variant, options.clients[0], None).target.is_some() {
            let message = format!("sql of variant \"{name}\" cannot be applied on a target");
            return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                .hint("Apply it there between two runs, and compare them with bench.compare."));
        }
        for text in sql.apply.iter().chain(&sql.revert) {
            parser::parse(&CString::new(text.as_str()).map_err(|e| internal(e.to_string()))?);
        }
    }
    Ok(())
}

/// The settings of a variant's clients.
fn settings_of(options: &SweepOptions, variant: &Variant) -> Result<Vec<(String, String)>, UserError> {
    Ok(RunOptions::new(options.run_arguments(variant, options.clients[0], None))?.settings)
}

/// Executes texts as a session of the calling role with these settings does, but for those that limit how long it may take;
/// an error with one of these codes is passed over. Counts those that are done. Leaves this session as it was.
fn execute_all(
    session: &mut Session,
    settings: &[(String, String)],
    texts: &[String],
    passes: &[&str],
    done: &mut usize,
) -> Result<(), UserError> {
    let result = transaction(|| set(settings)).and_then(|()| {
        for text in texts {
            match execute_one(session, text) {
                Err(error) if !passes.contains(&error.sqlstate.as_str()) => {
                    let detail = error.detail.clone().unwrap_or_else(|| format!("{STATEMENT}{text}"));
                    return Err(error.detail(detail));
                }
                _ => *done += 1,
            }
        }
        Ok(())
    });
    // The role first: another one may not reset all that this one could set.
    for statement in ["RESET SESSION AUTHORIZATION", "RESET ALL"] {
        execute(session, statement)?;
    }
    result
}

fn execute_one(session: &mut Session, text: &str) -> Result<(), UserError> {
    execute(session, text)?;
    if !session.in_block() {
        return Ok(());
    }
    session.abort().map_err(UserError::from)?;
    Err(UserError::new(sqlstate::ACTIVE_SQL_TRANSACTION, "the statements leave a transaction open"))
}

/// Sets parameters for the session, up to RESET ALL.
fn set(settings: &[(String, String)]) -> Result<(), UserError> {
    for (name, value) in settings.iter().filter(|(name, _)| !is_own(&name.to_ascii_lowercase())) {
        spi::in_session::run(
            "SELECT pg_catalog.set_config($1, $2, false)",
            &[name.as_str().into(), value.as_str().into()],
        )?;
    }
    Ok(())
}

/// The files of all relations that other sessions see.
fn files() -> Result<HashSet<(pg_sys::Oid, pg_sys::Oid)>, UserError> {
    let rows = spi::fetch_all(
        "SELECT oid, relfilenode FROM pg_catalog.pg_class \
         WHERE relfilenode OPERATOR(pg_catalog.<>) 0::pg_catalog.oid AND relpersistence OPERATOR(pg_catalog.<>) 't'::pg_catalog.\"char\"",
        &[],
        |row| Ok((row.get::<pg_sys::Oid>(1)?, row.get::<pg_sys::Oid>(2)?)),
    )?;
    Ok(rows.into_iter().filter_map(|(oid, file)| oid.zip(file)).collect())
}

/// The relations with files that were not there, TOAST tables left out, and the size of all.
fn made_since(before: &HashSet<(pg_sys::Oid, pg_sys::Oid)>) -> Result<(Vec<String>, i64), UserError> {
    let made: Vec<pg_sys::Oid> = files()?.difference(before).map(|(oid, _)| *oid).collect();
    let rows = spi::in_session::fetch_all(
        "SELECT CASE WHEN relkind OPERATOR(pg_catalog.<>) 't'::pg_catalog.\"char\" \
                      AND relnamespace OPERATOR(pg_catalog.<>) 99::pg_catalog.oid \
                     THEN oid::pg_catalog.regclass::pg_catalog.text END, pg_catalog.pg_relation_size(oid) \
         FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) ANY ($1) ORDER BY oid",
        &[made.into()],
        |row| Ok((row.get::<String>(1)?, row.get::<i64>(2)?)),
    )?;
    let bytes = rows.iter().filter_map(|(_, bytes)| *bytes).fold(0, i64::saturating_add);
    Ok((rows.into_iter().filter_map(|(name, _)| name).collect(), bytes))
}
