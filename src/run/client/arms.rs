//! The two arms of a duel in one client's session: what is switched between their stretches.

use std::ffi::CString;

use bench_base::error::SqlError;
use bench_model::spec::{Results, RunSpec};
use pgrx::pg_sys;

use super::internal_error::text;
use crate::driver::session::{Session, hidden_indexes};
use crate::server::guc;

/// Both arms.
pub struct Arms {
    arms: [ArmOfSession; 2],
}

struct ArmOfSession {
    /// Every parameter that one of the arms sets.
    settings: Vec<(CString, CString)>,
    hidden: Vec<pg_sys::Oid>,
    results: Results,
}

impl Arms {
    /// Those of a run, over the settings that the session has now; `None` where the run is no duel.
    pub fn of(spec: &RunSpec) -> Result<Option<Self>, SqlError> {
        let Some(duel) = &spec.options.duel else { return Ok(None) };
        let arm = |arm: usize| {
            let settings = duel.settings_of(arm, guc::current)?;
            let settings: Result<_, SqlError> =
                settings.iter().map(|(name, value)| Ok((text(name)?, text(value)?))).collect();
            let hidden = duel.arms[arm].hidden.iter().map(|&oid| oid.into()).collect();
            let results = duel.arms[arm].results.unwrap_or(spec.options.results);
            Ok::<_, SqlError>(ArmOfSession { settings: settings?, hidden, results })
        };
        Ok(Some(Self { arms: [arm(0)?, arm(1)?] }))
    }

    /// What the session does from here on is of this arm.
    ///
    /// # Errors
    /// The server's, where it does not take a parameter.
    pub fn enter(&self, session: &Session, arm: usize) -> Result<(), SqlError> {
        let ArmOfSession { settings, hidden, results } = &self.arms[arm];
        hidden_indexes::hide(hidden);
        session.set_results(*results);
        settings.iter().try_for_each(|(name, value)| session.set(name, value))
    }
}
