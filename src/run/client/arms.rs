//! The two arms of a duel in one client's session: what is switched between their stretches.

use std::cell::OnceCell;
use std::ffi::CString;

use bench_base::error::{SqlError, sqlstate};
use bench_model::spec::{ARMS, Results, RunSpec};
use pgrx::pg_sys;

use super::setters::with_setters;
use super::statements::ClientStatements;
use crate::driver::session::{Session, hidden_indexes, nested_plans};
use crate::server::guc;

/// Both arms.
pub struct Arms {
    arms: [ArmOfSession; 2],
    /// Whether the planner may plan the same statement otherwise in the other arm.
    plan_differently: bool,
}

struct ArmOfSession {
    /// Every parameter that one of the arms sets, with the role with whose rights it is set.
    settings: Vec<(CString, CString, pg_sys::Oid)>,
    /// What the server says of these parameters in the arm's stretches.
    values: OnceCell<Vec<Option<String>>>,
    hidden: Vec<pg_sys::Oid>,
    results: Results,
}

impl Arms {
    /// Those of a run, over the settings that the session has now; `None` where the run is no duel.
    pub fn of(spec: &RunSpec) -> Result<Option<Self>, SqlError> {
        let Some(duel) = &spec.options.duel else { return Ok(None) };
        let arm = |arm: usize| {
            let settings = with_setters(spec, &duel.settings_of(arm, guc::current)?)?;
            let hidden = duel.arms[arm].hidden.iter().map(|&oid| oid.into()).collect();
            let results = duel.arms[arm].results.unwrap_or(spec.options.results);
            Ok::<_, SqlError>(ArmOfSession { settings, values: OnceCell::new(), hidden, results })
        };
        let arms = [arm(0)?, arm(1)?];
        let concerns_plans = |(name, value, _): &(CString, CString, _)| {
            guc::concerns_plans(name)
                && !arms[1].settings.iter().any(|(other, set, _)| (other, set) == (name, value))
        };
        let plan_differently =
            arms[0].hidden != arms[1].hidden || arms[0].settings.iter().any(concerns_plans);
        if plan_differently {
            nested_plans::watch();
        }
        Ok(Some(Self { arms, plan_differently }))
    }

    /// Drops the plans that functions, triggers and foreign keys have kept of the other arm, if there are any; whether there were.
    pub fn drop_nested_plans(&self, statements: &ClientStatements) -> bool {
        self.plan_differently && nested_plans::drop_shared(statements.plan_sources())
    }

    /// What the session does from here on is of this arm.
    ///
    /// # Errors
    /// The server's, where it does not take a parameter.
    pub fn enter(&self, session: &Session, arm: usize) -> Result<(), SqlError> {
        let ArmOfSession { settings, values, hidden, results } = &self.arms[arm];
        hidden_indexes::hide(hidden);
        session.set_results(*results);
        for (name, value, setter) in settings {
            session.set_with_rights_of(*setter, name, value)?;
        }
        values.get_or_init(|| self.arms[arm].values_now());
        Ok(())
    }

    /// Looks at the parameters where a stretch of this arm ends.
    ///
    /// # Errors
    /// 55000 where a script has set one of them: the arm has measured something else.
    pub fn leave(&self, arm: usize) -> Result<(), SqlError> {
        let of_arm = &self.arms[arm];
        let Some(values) = of_arm.values.get() else { return Ok(()) };
        let now = of_arm.values_now();
        let names = of_arm.settings.iter().map(|(name, ..)| name);
        let Some((name, (value, now))) =
            names.zip(values.iter().zip(&now)).find(|(_, (value, now))| value != now)
        else {
            return Ok(());
        };
        let shown = |value: &Option<String>| value.clone().unwrap_or_default();
        let (name, arm) = (name.to_string_lossy(), ARMS[arm]);
        let message = format!("parameter \"{name}\" has lost the value that arm {arm} of the duel gives it");
        Err(SqlError {
            detail: Some(format!("It is '{}' instead of '{}' after a stretch.", shown(now), shown(value))),
            hint: Some("Take SET and set_config of this parameter out of the script.".to_owned()),
            ..SqlError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
        })
    }
}

impl ArmOfSession {
    fn values_now(&self) -> Vec<Option<String>> {
        self.settings.iter().map(|(name, ..)| name.to_str().ok().and_then(guc::current)).collect()
    }
}
