//! A statement that only reads, tried with values that are drawn in several ways.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Call;
use bench_capture::statements::with_values;

use super::queries::trial_query;
use super::replay_plan::{
    FeederShape, ParameterSource, ParameterValues, ReplayPlan, SamplingStrategy, has, sql_of,
};
use super::trial_statement::{PlanKind, TrialStatement};
use crate::driver::parameters::How;
use crate::server::process::own_cpu_ns;
use crate::server::signals::{is_limit, limited};
use crate::server::spi::in_session::fetch_all;
use crate::server::transaction::rolled_back;

/// Rows of values that are drawn at a time.
const DRAWN: usize = 40;

/// The longest that drawing them takes.
const DRAWING: Duration = Duration::from_secs(5);

/// Calls below so many milliseconds are made twice: the first one may find what it has to clear away.
const SHORT_MS: f64 = 2.0;

/// How long trials may take: in processor time, so that other work on the machine does not spoil them, and thrice that by the
/// clock.
pub struct TrialBudget {
    began: Instant,
    cpu_ns: i64,
}

impl TrialBudget {
    /// From now on.
    pub fn begin() -> Self {
        Self { began: Instant::now(), cpu_ns: own_cpu_ns() }
    }

    /// What is left of such a time.
    pub fn left(&self, limit: Duration) -> Duration {
        let cpu = Duration::from_nanos((own_cpu_ns() - self.cpu_ns).max(0).cast_unsigned());
        limit.saturating_sub(cpu).min((3 * limit).saturating_sub(self.began.elapsed()))
    }

    /// Whether it has lasted so long.
    fn is_over(&self, limit: Duration) -> bool {
        self.left(limit).is_zero()
    }
}

/// What was tried.
pub struct TriedCall {
    /// Which of the ways its values were drawn in.
    pub strategy: usize,
    /// What its values are made of.
    pub raw: ParameterValues,
    /// What a call takes with the plan for all values, and with one for these.
    pub generic: Call,
    pub custom: Call,
    /// What the planner says that the latter costs.
    pub cost: f64,
}

/// A way, and the rows of values that were drawn in it: values, and what these are made of.
struct StrategyRows {
    strategy: SamplingStrategy,
    rows: Vec<(ParameterValues, ParameterValues)>,
    next: usize,
    /// Nothing came of it.
    is_closed: bool,
}

/// A statement with such limits.
pub struct TrialRunner<'a> {
    plan: &'a ReplayPlan<'a>,
    pub shape: FeederShape,
    began: &'a TrialBudget,
    until: Duration,
    /// The longest that a call takes.
    limit: Duration,
    generic: TrialStatement,
    /// `None` once plans for the values at hand have been found to take what the other takes.
    custom: Option<TrialStatement>,
    pub generic_cost: f64,
    highest_cost: f64,
    lanes: Vec<StrategyRows>,
    pub tried: Vec<TriedCall>,
    /// Why the last call failed.
    pub error: Option<UserError>,
}

impl<'a> TrialRunner<'a> {
    /// Prepares it. It works until so long after the beginning, but for one call.
    ///
    /// # Errors
    /// The server's.
    pub fn new(
        plan: &'a ReplayPlan<'a>,
        shape: FeederShape,
        captured: &Call,
        began: &'a TrialBudget,
        until: Duration,
        strategies: &[SamplingStrategy],
    ) -> Result<Self, UserError> {
        let text = with_values(plan.text, |number| sql_of(plan, &shape, number, |at| format!("${}", at + 1)));
        let types: Vec<u32> = plan.analysed.parameters.iter().map(|parameter| parameter.type_oid).collect();
        let lane = |strategy: &SamplingStrategy| StrategyRows {
            strategy: strategy.clone(),
            rows: Vec::new(),
            next: 0,
            is_closed: false,
        };
        let limit = Duration::from_secs_f64((captured.ms / 1e3 * 30.0).clamp(0.3, 20.0));
        Ok(Self {
            generic: TrialStatement::prepare(&text, &types, PlanKind::Generic)?,
            custom: Some(TrialStatement::prepare(&text, &types, PlanKind::Custom)?),
            lanes: strategies.iter().map(lane).collect(),
            plan,
            shape,
            began,
            until,
            limit,
            generic_cost: 0.0,
            highest_cost: 0.0,
            tried: Vec::new(),
            error: None,
        })
    }

    /// Whether the time is over.
    pub fn is_late(&self) -> bool {
        self.began.is_over(self.until)
    }

    pub fn plan(&self) -> &'a ReplayPlan<'a> {
        self.plan
    }

    /// Gives it time until so long after the beginning.
    pub fn extend(&mut self, until: Duration) {
        self.until = until;
    }

    /// Whether the values decide on the plan, as far as is known.
    pub fn has_plans(&self) -> bool {
        self.custom.is_some()
    }

    pub fn strategies(&self) -> usize {
        self.lanes.len()
    }

    pub fn strategy(&self, place: usize) -> &SamplingStrategy {
        &self.lanes[place].strategy
    }

    /// Adds a way; its place, if there is none like it.
    pub fn add(&mut self, strategy: SamplingStrategy) -> Option<usize> {
        if self.lanes.iter().any(|lane| lane.strategy == strategy) {
            return None;
        }
        self.lanes.push(StrategyRows { strategy, rows: Vec::new(), next: 0, is_closed: false });
        Some(self.lanes.len() - 1)
    }

    /// Tries so many rows of values of a way, as long as there is time.
    ///
    /// # Errors
    /// 57014 where the capture was canceled.
    pub fn try_some(&mut self, place: usize, count: usize) -> Result<(), UserError> {
        let mut failed = 0;
        for _ in 0..count {
            if self.is_late() && !self.tried.is_empty() || self.lanes[place].is_closed || failed > 3 {
                break;
            }
            pgrx::check_for_interrupts!();
            if self.lanes[place].next >= self.lanes[place].rows.len() {
                self.draw(place)?;
                if self.lanes[place].is_closed {
                    break;
                }
            }
            let lane = &mut self.lanes[place];
            let (values, raw) = lane.rows[lane.next].clone();
            lane.next += 1;
            match self.measure(place, &values, raw) {
                Ok(()) => {}
                Err(error) => {
                    failed += 1;
                    // Another one would take as long.
                    self.lanes[place].is_closed |= is_limit(&error);
                    self.error = Some(error);
                }
            }
            if let Some(error) = self.error.take_if(|error| is_canceled(error)) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn draw(&mut self, place: usize) -> Result<(), UserError> {
        let strategy = self.lanes[place].strategy.clone();
        let drawn = limited(DRAWING, || rolled_back(|| drawn(self.plan, &self.shape, &strategy)));
        let lane = &mut self.lanes[place];
        match drawn {
            Ok(rows) => {
                lane.is_closed = rows.is_empty();
                (lane.rows, lane.next) = (rows, 0);
            }
            Err(error) if is_canceled(&error) => return Err(error),
            Err(error) => {
                lane.is_closed = true;
                self.error = Some(error);
            }
        }
        Ok(())
    }

    fn measure(
        &mut self,
        strategy: usize,
        values: &ParameterValues,
        raw: ParameterValues,
    ) -> Result<(), UserError> {
        let steady = |trial: &TrialStatement| -> Result<(Call, f64), UserError> {
            let (call, cost) = limited(self.limit, || trial.call(values))?;
            if call.ms < SHORT_MS { trial.call(values) } else { Ok((call, cost)) }
        };
        let Some(custom) = &self.custom else {
            let (generic, _) = steady(&self.generic)?;
            self.tried.push(TriedCall { strategy, raw, generic, custom: generic, cost: 0.0 });
            return Ok(());
        };
        if self.tried.is_empty() {
            self.generic_cost = self.generic.cost(values)?;
        }
        let (custom, cost) = steady(custom)?;
        self.highest_cost = self.highest_cost.max(cost);
        // A plan that costs more than those for the values is never taken.
        let generic = if self.generic_cost > self.highest_cost {
            custom
        } else {
            // One that takes too long with it may not with the other.
            match steady(&self.generic) {
                Ok((generic, _)) => generic,
                Err(error) if is_canceled(&error) => return Err(error),
                Err(_) => custom,
            }
        };
        self.tried.push(TriedCall { strategy, raw, generic, custom, cost });
        self.forget_plans();
        Ok(())
    }

    /// Where the values hardly decide on the plan, one kind of plan is enough.
    fn forget_plans(&mut self) {
        let decisive = [How::Above, How::Below, How::Like, How::Words, How::Operator];
        if self.tried.len() != 8
            || self.generic_cost > self.highest_cost
            || decisive.iter().any(|&how| has(self.plan, how))
        {
            return;
        }
        let is_same = |tried: &TriedCall| {
            let (one, other) = (tried.custom.blocks(), tried.generic.blocks());
            (one - other).abs() <= 0.02 * one.max(other) + 0.01
        };
        if self.tried.iter().all(is_same) {
            self.custom = None;
        }
    }
}

/// A cancel by a user, unlike one by our own limits.
fn is_canceled(error: &UserError) -> bool {
    error.sqlstate == sqlstate::QUERY_CANCELED
}

/// Rows of values, drawn in a way: those of each occurrence independently of the others'.
fn drawn(
    plan: &ReplayPlan,
    shape: &FeederShape,
    strategy: &SamplingStrategy,
) -> Result<Vec<(ParameterValues, ParameterValues)>, UserError> {
    let nothing = vec![None; plan.analysed.parameters.len()];
    let mut all: Vec<(ParameterValues, ParameterValues)> = Vec::new();
    for occurrence in 0..plan.analysed.occurrences.len() {
        let Some(query) = trial_query(plan, occurrence, strategy, shape, DRAWN)? else { continue };
        let found = fetch_all(&query, &[], |row| {
            let texts = |column| -> pgrx::spi::Result<ParameterValues> {
                Ok(row.get::<Vec<Option<String>>>(column)?.unwrap_or_default())
            };
            Ok((texts(1)?, texts(2)?))
        })?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        if all.is_empty() {
            all = vec![(nothing.clone(), nothing.clone()); found.len()];
        }
        for (at, (values, raw)) in all.iter_mut().enumerate() {
            let (found_values, found_raw) = &found[at % found.len()];
            for (place, index) in plan.parameters(occurrence).into_iter().enumerate() {
                values[index] = found_values.get(place).cloned().flatten();
                raw[index] = found_raw.get(place).cloned().flatten();
            }
        }
    }
    if all.is_empty() {
        all.push((nothing.clone(), nothing));
    }
    let offset = (strategy.page * shape.limit).to_string();
    for (index, _) in
        plan.values.iter().enumerate().filter(|(_, value)| matches!(value, ParameterSource::Offset))
    {
        for (values, raw) in &mut all {
            values[index] = Some(offset.clone());
            raw[index] = Some(offset.clone());
        }
    }
    Ok(all)
}
