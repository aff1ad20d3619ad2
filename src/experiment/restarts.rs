//! Variants that need a restart of the server, which a sweep cannot make itself.
//!
//! The leader writes a variant's parameters into postgresql.auto.conf and ends. What resumes the sweep after the restart writes
//! them again: where none of them asks for a restart any more, the server has them, and the file gets back what it had. So an
//! end of the server that nobody asked for brings its own settings back.

use bench_base::error::{UserError, sqlstate};
use bench_questions::sweep::{Resumption, SweepOptions, Variant};

use super::parameters;
use crate::driver::session::Session;
use crate::run::server_parameters::{put_back_own, write_for_restart};
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::store;
use crate::store::{Changer, Wait};

/// What the server was started with, as far as a sweep's variants say it.
pub(super) struct Restarts {
    changer: Changer,
    names: Vec<String>,
    /// The variant that it was found to be started for.
    in_force: Option<String>,
    /// What an earlier leader waited for, and variants that it found not to start.
    waited: Option<Wait>,
    /// What is waited for now.
    pub waits: Option<Wait>,
}

impl Restarts {
    /// # Errors
    /// Those of the catalog.
    pub fn new(sweep_id: i64, options: &SweepOptions, resumption: &Resumption) -> Result<Self, UserError> {
        let mut names: Vec<String> = options
            .setup
            .variants
            .iter()
            .flat_map(|variant| parameters::wanted_at_start(variant).into_keys())
            .collect();
        names.sort();
        names.dedup();
        let waited = if names.is_empty() { None } else { transaction(|| store::end_wait(sweep_id))? };
        let mut this = Self { changer: Changer::Sweep(sweep_id), names, in_force: None, waited, waits: None };
        if let (Some(wait), Resumption::DoesNotStart(reason)) = (&mut this.waited, resumption) {
            wait.failed.push((wait.variant.clone(), reason.clone()));
        }
        Ok(this)
    }

    /// The run from which on those planned are to be made: earlier ones were tried before the restart.
    pub fn first_place(&self) -> i32 {
        self.waited.as_ref().map_or(0, |wait| wait.place)
    }

    /// Whether the server is known to have a variant's parameters.
    pub fn is_in_force(&self, variant: &Variant) -> bool {
        self.names.is_empty() || self.in_force.as_ref() == Some(&variant.name)
    }

    /// Whether the server has a variant's parameters. If not, they are in the file when this returns, and are to be waited for.
    ///
    /// # Errors
    /// Why it cannot have them.
    pub fn are_done(
        &mut self,
        session: &mut Session,
        place: i32,
        variant: &Variant,
    ) -> Result<bool, UserError> {
        if self.is_in_force(variant) {
            return Ok(true);
        }
        let failed = self.waited.iter().flat_map(|wait| &wait.failed).find(|(name, _)| *name == variant.name);
        if let Some((name, reason)) = failed {
            return Err(does_not_start(name, reason));
        }
        self.in_force = None;
        let wanted = parameters::wanted_at_start(variant);
        let Some(missing) = write_for_restart(session, &self.changer, &self.names, wanted)? else {
            self.in_force = Some(variant.name.clone());
            return Ok(true);
        };
        let failed = self.waited.as_ref().map(|wait| wait.failed.clone()).unwrap_or_default();
        let wait = Wait { place, variant: variant.name.clone(), missing, failed, ..transaction(this_start)? };
        let is_restarted =
            |earlier: &Wait| earlier.place == place && earlier.server_start != wait.server_start;
        if self.waited.as_ref().is_some_and(is_restarted) {
            put_back_own(session, &self.changer, &wait.missing.saved)?;
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                format!(
                    "the restarted server does not have \"{}\" as the variant wants it",
                    wait.missing.pending.join("\", \"")
                ),
            )
            .hint("The server's command line takes precedence over its configuration files."));
        }
        self.waits = Some(wait);
        Ok(false)
    }
}

fn does_not_start(variant: &str, reason: &str) -> UserError {
    let message = format!("the server does not start with variant \"{variant}\": {reason}");
    UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
}

/// The start of this server, and what restarts it.
fn this_start() -> Result<Wait, UserError> {
    let start = fetch::<String>("SELECT pg_postmaster_start_time()::text", &[])?;
    let sql = "SELECT format('%s/pg_ctl restart -D ''%s''', \
                   (SELECT setting FROM pg_config() WHERE name = 'BINDIR'), \
                   replace(current_setting('data_directory'), '''', '''\\'''''))";
    let command = fetch::<String>(sql, &[])?.unwrap_or_default();
    Ok(Wait { command, server_start: start.unwrap_or_default(), ..Wait::default() })
}
