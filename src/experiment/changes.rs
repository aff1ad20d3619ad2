//! The changes that a sweep's variants make to the database by their statements, from the leader's side. One is in force at a
//! time, made and reverted by a hand, a session of its own.

use std::sync::atomic::Ordering::*;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Before;
use bench_questions::sweep::{SweepOptions, SweepSpec, Variant};
use bench_results::rehearsal::RehearsalPlan;

use super::hand::{self, HandPart, HandRole, Patience, Revert, STATEMENT, Task, hand_role, settings_of};
use super::stops::{LOOK_MS, await_end, await_launched, await_launched_until};
use crate::launch::checks::check_session_of;
use crate::launch::handle::LaunchHandle;
use crate::server::roles::superuser;
use crate::server::transaction::transaction;
use crate::shm::{Header, RunState};
use crate::store;

/// The change of a variant that has not been reverted.
struct InForce<'a> {
    round: u32,
    variant: &'a Variant,
    /// The statements that still have to be executed to revert it.
    revert: Vec<String>,
    /// Whether all of its statements are known to have been executed.
    is_complete: bool,
    /// The session that has made the change and reverts it; `None` if it ended without reverting all.
    hand: Option<LaunchHandle>,
}

/// How far the change of a rehearsal is.
pub(super) struct ChangeProgress {
    /// The process that makes it; 0: not started yet.
    pub pid: i32,
    /// When its statements began and ended, by CLOCK_MONOTONIC; 0 before.
    pub began_ns: i64,
    pub ended_ns: i64,
    /// Whether it has been made.
    pub is_applied: bool,
    /// Whether its session has ended.
    pub is_over: bool,
}

/// The changes of a sweep's variants.
pub(super) struct Changes<'a> {
    sweep_id: i64,
    spec: &'a SweepSpec,
    /// The header of the sweep's segment.
    header: &'a Header,
    in_force: Option<InForce<'a>>,
}

impl<'a> Changes<'a> {
    /// Starts with the change that an earlier leader of the sweep has not reverted.
    ///
    /// # Errors
    /// Those of queries.
    pub fn new(sweep_id: i64, spec: &'a SweepSpec, header: &'a Header) -> Result<Self, UserError> {
        let mut changes = Self { sweep_id, spec, header, in_force: None };
        if spec.options.applies_sql() {
            changes.in_force = changes.read_unreverted()?;
        }
        Ok(changes)
    }

    /// Reads the recorded change that has not been reverted.
    fn read_unreverted(&self) -> Result<Option<InForce<'a>>, UserError> {
        let sweep_id = self.sweep_id;
        let change = transaction(|| store::sweep_change_left(sweep_id))?;
        Ok(change.and_then(|(round, name)| {
            let variant = self.spec.options.setup.variants.iter().find(|variant| variant.name == name)?;
            let revert = variant.sql.clone()?.revert;
            Some(InForce { round, variant, revert, is_complete: false, hand: None })
        }))
    }

    /// Reverts the change of another variant or round, before a run's fixture is loaded; any change if each run has its fixture
    /// reloaded.
    ///
    /// # Errors
    /// Those of the revert: the run would begin on a wrong state.
    pub fn revert_others(&mut self, variant: &Variant, round: u32) -> Result<(), UserError> {
        let stays = !self.spec.options.before.contains(&Before::Reload)
            && self.in_force.as_ref().is_some_and(|change| {
                change.is_complete && (change.round, &change.variant.name) == (round, &variant.name)
            });
        if stays { Ok(()) } else { self.revert(Revert::Patiently) }
    }

    /// Makes a variant's change before a run, on its fixture as loaded, unless it is in force.
    ///
    /// # Errors
    /// The server's, with the statement.
    pub fn apply(&mut self, variant: &'a Variant, round: u32) -> Result<(), UserError> {
        let Some(sql) = variant.sql.as_ref().filter(|_| self.in_force.is_none()) else { return Ok(()) };
        let (apply, revert) = (Some(sql.apply.clone()), sql.revert.clone());
        let hand = self.start_hand(variant, round, apply, revert.clone(), false)?;
        let mut is_applied = |hand: &LaunchHandle| Ok(hand.segment.header().state() == RunState::Running);
        let applied = await_launched_until(self.header, &hand, LOOK_MS, &mut is_applied);
        if let Err(error) = applied {
            hand::leave(hand);
            self.in_force = self.read_unreverted()?;
            return Err(error);
        }
        self.in_force = Some(InForce { round, variant, revert, is_complete: true, hand: Some(hand) });
        Ok(())
    }

    /// Starts to make the change of a rehearsal, without waiting for it.
    ///
    /// # Errors
    /// Those of the hand's start.
    pub fn begin(&mut self, variant: &'a Variant, round: u32) -> Result<(), UserError> {
        let Some(sql) = variant.sql.as_ref().filter(|_| self.in_force.is_none()) else { return Ok(()) };
        let (apply, revert) = (Some(sql.apply.clone()), sql.revert.clone());
        let hand = self.start_hand(variant, round, apply, revert.clone(), false)?;
        self.in_force = Some(InForce { round, variant, revert, is_complete: false, hand: Some(hand) });
        Ok(())
    }

    /// Returns how far the change of a rehearsal is; `None` before it was begun.
    pub fn progress(&self) -> Option<ChangeProgress> {
        let hand = self.in_force.as_ref()?.hand.as_ref()?;
        let header = hand.segment.header();
        Some(ChangeProgress {
            pid: header.coordinator_pid.load(Acquire),
            began_ns: header.sweep.began_ns.load(Acquire),
            ended_ns: header.sweep.ended_ns.load(Acquire),
            is_applied: header.state() == RunState::Running,
            is_over: hand.outcome().is_some(),
        })
    }

    /// Returns the error of a rehearsal's change that failed, and was undone by its hand as far as possible.
    ///
    /// # Errors
    /// Those of queries.
    pub fn failure(&mut self) -> Result<Option<UserError>, UserError> {
        let Some(change) = &mut self.in_force else { return Ok(None) };
        let is_applied = |hand: &LaunchHandle| hand.segment.header().state() == RunState::Running;
        change.is_complete = change.hand.as_ref().is_some_and(is_applied);
        let Some(ended) = change.hand.take_if(|hand| hand.outcome().is_some()) else { return Ok(None) };
        let failure = ended.outcome().and_then(Result::err);
        hand::leave(ended);
        self.in_force = self.read_unreverted()?;
        Ok(failure)
    }

    /// Checks at a run's end that its variant's change is still in force.
    ///
    /// # Errors
    /// 55000 if the hand has ended, and so reverted it.
    pub fn check(&self) -> Result<(), UserError> {
        let has_ended = |change: &InForce| change.hand.as_ref().is_some_and(|hand| hand.outcome().is_some());
        let Some(change) = self.in_force.as_ref().filter(|change| has_ended(change)) else { return Ok(()) };
        Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("the changes of variant \"{}\" were reverted during the run", change.variant.name),
        )
        .detail("The session that makes and reverts them was ended.")
        .hint(format!("bench.resume_sweep({}) repeats the run.", self.sweep_id)))
    }

    /// Reverts the change in force at the sweep's end, whatever ended it, without waiting long for locks.
    ///
    /// # Errors
    /// As of [`revert_others`](Self::revert_others).
    pub fn revert_last(&mut self) -> Result<(), UserError> {
        self.revert(Revert::Certainly)
    }

    /// Reverts the change of a rehearsal after its run.
    ///
    /// # Errors
    /// As of [`revert_others`](Self::revert_others).
    pub fn revert_rehearsed(&mut self) -> Result<(), UserError> {
        self.revert(Revert::Patiently)
    }

    /// Returns the task of a blocker, which the hand's role executes.
    ///
    /// # Errors
    /// Those of [`hand_role`].
    pub fn blocker_task(&self, variant: &Variant, round: u32, text: &str) -> Result<Task, UserError> {
        let task = self.task(variant, round, Some(vec![text.to_owned()]), Vec::new(), false)?;
        Ok(Task { part: HandPart::Blocker, schemas: Vec::new(), ..task })
    }

    /// Reverts the change in force.
    fn revert(&mut self, how: Revert) -> Result<(), UserError> {
        let Some(mut change) = self.in_force.take() else { return Ok(()) };
        if let Some(ended) = change.hand.take_if(|hand| hand.outcome().is_some()) {
            // A hand reverts its change when it ends.
            hand::leave(ended);
            match self.read_unreverted()? {
                None => return Ok(()),
                Some(unreverted) => change = unreverted,
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

    /// Reverts a change by its hand, or by a new one if that has ended.
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
        // The next attempt continues with the statement that failed.
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
        let task = self.task(variant, round, apply, revert, is_complete)?;
        transaction(|| hand::start(&task))
    }

    /// Returns the task of a hand for a variant.
    fn task(
        &self,
        variant: &Variant,
        round: u32,
        apply: Option<Vec<String>>,
        revert: Vec<String>,
        is_complete: bool,
    ) -> Result<Task, UserError> {
        let (sweep_id, spec) = (self.sweep_id, self.spec);
        let (apply, revert) = (std::panic::AssertUnwindSafe(apply), std::panic::AssertUnwindSafe(revert));
        transaction(|| {
            let options = &spec.options;
            let HandRole { role, may_be_special } = hand_role(options, variant, spec.resumes.is_some())?;
            Ok(Task {
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
                part: if options.rehearsal().is_some() { HandPart::Change } else { HandPart::Variant },
                patience: options.rehearsal().map_or(Patience::OF_SESSION, patience_of),
            })
        })
    }
}

/// Returns how the change of a rehearsal waits for locks.
fn patience_of(plan: &RehearsalPlan) -> Patience {
    let ms = |secs: f64| (secs * 1e3).ceil() as i64;
    Patience {
        lock_timeout_ms: plan.lock_timeout_secs.map(ms),
        tries: plan.tries,
        pause_ms: ms(plan.pause_secs),
    }
}

/// Checks the variants' statements, and the role that executes them, before the first run.
///
/// # Errors
/// Those of [`hand::check`], [`hand_role`] and [`check_session_of`].
pub(super) fn check(options: &SweepOptions) -> Result<(), UserError> {
    for variant in options.setup.variants.iter().filter(|variant| variant.sql.is_some()) {
        hand::check(options, variant)?;
        check_session_of(&hand_role(options, variant, false)?.role)?;
    }
    Ok(())
}
