//! What a sweep's variants change in the database by their statements, as the leader sees it: one after the other, each by a hand
//! of its own.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Before;
use bench_questions::sweep::{SweepOptions, SweepSpec, Variant};

use super::hand::{self, HandRole, Revert, STATEMENT, Task, hand_role, settings_of};
use super::stops::{await_end, await_launched, await_launched_until};
use crate::launch::checks::check_session_of;
use crate::launch::handle::LaunchHandle;
use crate::server::roles::superuser;
use crate::server::transaction::transaction;
use crate::shm::{Header, RunState};
use crate::store;

/// What a variant has changed.
struct InForce<'a> {
    round: u32,
    variant: &'a Variant,
    /// Statements that undo it and are not done.
    revert: Vec<String>,
    /// All of it is done for certain.
    is_complete: bool,
    /// The session that has changed it and is to undo it; `None`: it has ended, and has not undone all.
    hand: Option<LaunchHandle>,
}

/// What a sweep's variants change.
pub(super) struct Changes<'a> {
    sweep_id: i64,
    spec: &'a SweepSpec,
    /// The sweep's.
    header: &'a Header,
    in_force: Option<InForce<'a>>,
}

impl<'a> Changes<'a> {
    /// With what an earlier leader of the sweep has not undone.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn new(sweep_id: i64, spec: &'a SweepSpec, header: &'a Header) -> Result<Self, UserError> {
        let mut changes = Self { sweep_id, spec, header, in_force: None };
        if spec.options.applies_sql() {
            changes.in_force = changes.left()?;
        }
        Ok(changes)
    }

    /// What was changed and is not undone, by what was written down.
    fn left(&self) -> Result<Option<InForce<'a>>, UserError> {
        let sweep_id = self.sweep_id;
        let left = transaction(|| store::sweep_change_left(sweep_id))?;
        Ok(left.and_then(|(round, name)| {
            let variant = self.spec.options.setup.variants.iter().find(|variant| variant.name == name)?;
            let revert = variant.sql.clone()?.revert;
            Some(InForce { round, variant, revert, is_complete: false, hand: None })
        }))
    }

    /// Before a run's fixture is loaded: undoes what another variant, or another round, has changed. Where each run has its
    /// fixture loaded anew, each undoes what was made of the last one.
    ///
    /// # Errors
    /// Why it could not be undone: the run would begin on a state that nobody asked for.
    pub fn revert_others(&mut self, variant: &Variant, round: u32) -> Result<(), UserError> {
        let stays = !self.spec.options.before.contains(&Before::Reload)
            && self
                .in_force
                .as_ref()
                .is_some_and(|it| it.is_complete && (it.round, &it.variant.name) == (round, &variant.name));
        if stays { Ok(()) } else { self.revert(Revert::Patiently) }
    }

    /// Before a run, on its fixture as it was loaded: changes the database as its variant has it, unless that is done.
    ///
    /// # Errors
    /// The server's, with the statement.
    pub fn apply(&mut self, variant: &'a Variant, round: u32) -> Result<(), UserError> {
        let Some(sql) = variant.sql.as_ref().filter(|_| self.in_force.is_none()) else { return Ok(()) };
        let (apply, revert) = (Some(sql.apply.clone()), sql.revert.clone());
        let hand = self.start_hand(variant, round, apply, revert.clone(), false)?;
        let mut is_applied = |hand: &LaunchHandle| Ok(hand.segment.header().state() == RunState::Running);
        let applied = await_launched_until(self.header, &hand, &mut is_applied);
        if let Err(error) = applied {
            hand::leave(hand);
            self.in_force = self.left()?;
            return Err(error);
        }
        self.in_force = Some(InForce { round, variant, revert, is_complete: true, hand: Some(hand) });
        Ok(())
    }

    /// Sees that what was changed for a run was so until its end.
    ///
    /// # Errors
    /// 55000.
    pub fn check(&self) -> Result<(), UserError> {
        let has_ended = |it: &InForce| it.hand.as_ref().is_some_and(|hand| hand.outcome().is_some());
        let Some(change) = self.in_force.as_ref().filter(|it| has_ended(it)) else { return Ok(()) };
        Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("the changes of variant \"{}\" were reverted during the run", change.variant.name),
        )
        .detail("The session that makes and reverts them was ended.")
        .hint(format!("bench.resume_sweep({}) repeats the run.", self.sweep_id)))
    }

    /// At the sweep's end: undoes what is in force, whatever has ended the sweep, without waiting long for a lock.
    ///
    /// # Errors
    /// As of [`revert_others`](Self::revert_others).
    pub fn revert_last(&mut self) -> Result<(), UserError> {
        self.revert(Revert::Certainly)
    }

    /// Undoes what is in force.
    fn revert(&mut self, how: Revert) -> Result<(), UserError> {
        let Some(mut change) = self.in_force.take() else { return Ok(()) };
        if let Some(ended) = change.hand.take_if(|hand| hand.outcome().is_some()) {
            // It undoes its change as it ends.
            hand::leave(ended);
            match self.left()? {
                None => return Ok(()),
                Some(left) => change = left,
            }
        }
        let reverted = self.revert_change(&mut change, how);
        reverted.map_err(|error| {
            let name = &change.variant.name;
            // The statement that failed is the first of those left.
            let servers = error.detail.filter(|detail| !detail.starts_with(STATEMENT));
            let left = format!("Not reverted: {}", change.revert.join("; "));
            let details: Vec<String> = servers.into_iter().chain([left]).collect();
            self.in_force = Some(change);
            UserError::new(&error.sqlstate, format!("could not revert variant \"{name}\": {}", error.message))
                .detail(details.join(" "))
                .hint(format!(
                    "Revert it by hand (bench.sweep_changes, column to_revert); bench.resume_sweep({}) tries again.",
                    self.sweep_id
                ))
        })
    }

    /// Has its hand undo a change; another one where that has ended.
    fn revert_change(&self, change: &mut InForce, how: Revert) -> Result<(), UserError> {
        let hand = match change.hand.take() {
            Some(hand) => hand,
            None => {
                let (variant, revert) = (change.variant, change.revert.clone());
                self.start_hand(variant, change.round, None, revert, change.is_complete)?
            }
        };
        hand::order(&hand, how);
        let reverted = match how {
            Revert::Patiently => await_launched(self.header, &hand),
            Revert::Certainly => await_end(self.header, &hand),
        };
        // Another try goes on with the statement that failed.
        let done = hand.segment.header().sweep.done.load(Acquire) as usize;
        hand::leave(hand);
        change.revert.drain(..done.min(change.revert.len()));
        reverted
    }

    /// Starts a hand for a variant.
    fn start_hand(
        &self,
        variant: &Variant,
        round: u32,
        apply: Option<Vec<String>>,
        revert: Vec<String>,
        is_complete: bool,
    ) -> Result<LaunchHandle, UserError> {
        let (sweep_id, spec) = (self.sweep_id, self.spec);
        let (apply, revert) = (std::panic::AssertUnwindSafe(apply), std::panic::AssertUnwindSafe(revert));
        transaction(|| {
            let options = &spec.options;
            let HandRole { role, may_be_special } = hand_role(options, variant, spec.resumes.is_some())?;
            let task = Task {
                sweep_id,
                round,
                variant: variant.name.clone(),
                role,
                may_be_special,
                settings: settings_of(options, variant)?,
                schemas: if superuser() { variant.schemas.clone() } else { Vec::new() },
                apply: apply.clone(),
                revert: revert.clone(),
                is_complete,
            };
            hand::start(&task)
        })
    }
}

/// What can be found wrong with variants' statements, and with the role that is to execute them, before the first run.
///
/// # Errors
/// Those of [`hand::check`] and [`hand_role`], and 28000 for a role that may not log in.
pub(super) fn check(options: &SweepOptions) -> Result<(), UserError> {
    for variant in options.setup.variants.iter().filter(|variant| variant.sql.is_some()) {
        hand::check(options, variant)?;
        check_session_of(&hand_role(options, variant, false)?.role)?;
    }
    Ok(())
}
