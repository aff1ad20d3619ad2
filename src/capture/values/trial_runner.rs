//! Trials of a statement that only reads, with values drawn by sampling strategies.

use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Call;
use bench_capture::statements::with_values;

use super::queries::trial_query;
use super::replay_plan::{
    FeederShape, ParameterSource, ParameterValues, ReplayPlan, SamplingStrategy, parameter_sql,
};
use super::trial_statement::{PlanKind, TrialStatement};
use crate::driver::parameters::How;
use crate::server::process::own_cpu_ns;
use crate::server::signals::{is_limit, limited};
use crate::server::spi::in_session::fetch_all;
use crate::server::transaction::rolled_back;

/// Rows of values that one query draws, and the longest that it may take.
const DRAWN_ROWS: usize = 40;
const MAX_DRAW_TIME: Duration = Duration::from_secs(5);

/// Shorter calls are made twice: the first one may clean up dead rows.
const SHORT_MS: f64 = 2.0;

/// The longest that a call may take: this multiple of the captured mean, within these bounds.
const CALL_LIMIT_FACTOR: f64 = 30.0;
const MIN_CALL_LIMIT_SECS: f64 = 0.3;
const MAX_CALL_LIMIT_SECS: f64 = 20.0;

/// Failed calls of one batch after which the rest of it is left out.
const MAX_FAILED_CALLS: usize = 3;

/// Calls after which the blocks of custom and generic plans are compared, and the difference up to which they are the same.
const COMPARED_CALLS: usize = 8;
const SAME_BLOCKS_RELATIVE: f64 = 0.02;
const SAME_BLOCKS_ABSOLUTE: f64 = 0.01;

/// The clock of trials. Limits are in processor time, so that other work on the machine does not shorten the trials, and in three
/// times as much elapsed time.
pub struct TrialBudget {
    began: Instant,
    cpu_ns: i64,
}

impl TrialBudget {
    /// Starts the clock.
    pub fn begin() -> Self {
        Self { began: Instant::now(), cpu_ns: own_cpu_ns() }
    }

    /// Returns the rest of a limit.
    pub fn remaining(&self, limit: Duration) -> Duration {
        let cpu = Duration::from_nanos((own_cpu_ns() - self.cpu_ns).max(0).cast_unsigned());
        limit.saturating_sub(cpu).min((3 * limit).saturating_sub(self.began.elapsed()))
    }
}

/// A call that was tried.
pub struct TriedCall {
    /// The number of the strategy that drew its values.
    pub strategy: usize,
    /// Its values before their wrapping.
    pub raw: ParameterValues,
    /// Its figures with the generic plan, and with a plan for its values.
    pub generic: Call,
    pub custom: Call,
    /// The planner's cost of the latter.
    pub cost: f64,
}

/// The values of one call.
#[derive(Clone)]
struct DrawnRow {
    values: ParameterValues,
    /// The values before their wrapping.
    raw: ParameterValues,
}

/// A strategy, and the rows of values that it has drawn.
struct StrategyRows {
    strategy: SamplingStrategy,
    rows: Vec<DrawnRow>,
    next: usize,
    /// Whether it is not tried again: it draws no rows, fails, or takes too long.
    is_closed: bool,
}

impl StrategyRows {
    fn new(strategy: SamplingStrategy) -> Self {
        Self { strategy, rows: Vec::new(), next: 0, is_closed: false }
    }
}

/// A prepared statement with the constants of one shape, and its trials.
pub struct TrialRunner<'a> {
    plan: &'a ReplayPlan<'a>,
    pub shape: FeederShape,
    budget: &'a TrialBudget,
    time_limit: Duration,
    call_limit: Duration,
    generic: TrialStatement,
    /// `None` after custom plans have turned out to access as many blocks as the generic plan.
    custom: Option<TrialStatement>,
    pub generic_cost: f64,
    highest_custom_cost: f64,
    strategies: Vec<StrategyRows>,
    pub tried: Vec<TriedCall>,
    /// Why the last failed call failed.
    pub error: Option<UserError>,
}

impl<'a> TrialRunner<'a> {
    /// Prepares the statement. Trials end at `time_limit` of the budget, except that one call is always tried.
    ///
    /// # Errors
    /// The server's.
    pub fn new(
        plan: &'a ReplayPlan<'a>,
        shape: FeederShape,
        captured: &Call,
        budget: &'a TrialBudget,
        time_limit: Duration,
        strategies: &[SamplingStrategy],
    ) -> Result<Self, UserError> {
        let placeholder = |index: usize| format!("${}", index + 1);
        let text = with_values(plan.text, |number| parameter_sql(plan, &shape, number, placeholder));
        let types: Vec<u32> = plan.analysed.parameters.iter().map(|parameter| parameter.type_oid).collect();
        let call_limit_secs =
            (captured.ms / 1e3 * CALL_LIMIT_FACTOR).clamp(MIN_CALL_LIMIT_SECS, MAX_CALL_LIMIT_SECS);
        Ok(Self {
            generic: TrialStatement::prepare(&text, &types, PlanKind::Generic)?,
            custom: Some(TrialStatement::prepare(&text, &types, PlanKind::Custom)?),
            strategies: strategies.iter().cloned().map(StrategyRows::new).collect(),
            plan,
            shape,
            budget,
            time_limit,
            call_limit: Duration::from_secs_f64(call_limit_secs),
            generic_cost: 0.0,
            highest_custom_cost: 0.0,
            tried: Vec::new(),
            error: None,
        })
    }

    pub fn is_time_over(&self) -> bool {
        self.budget.remaining(self.time_limit).is_zero()
    }

    pub fn plan(&self) -> &'a ReplayPlan<'a> {
        self.plan
    }

    pub fn set_time_limit(&mut self, time_limit: Duration) {
        self.time_limit = time_limit;
    }

    /// Returns whether custom plans differ from the generic one, as far as is known.
    pub fn has_custom_plans(&self) -> bool {
        self.custom.is_some()
    }

    pub fn strategy_count(&self) -> usize {
        self.strategies.len()
    }

    pub fn strategy(&self, index: usize) -> &SamplingStrategy {
        &self.strategies[index].strategy
    }

    /// Adds a strategy; returns its index, or `None` if it is there already.
    pub fn add_strategy(&mut self, strategy: SamplingStrategy) -> Option<usize> {
        if self.strategies.iter().any(|added| added.strategy == strategy) {
            return None;
        }
        self.strategies.push(StrategyRows::new(strategy));
        Some(self.strategies.len() - 1)
    }

    /// Tries up to `count` more rows of a strategy's values, as long as there is time.
    ///
    /// # Errors
    /// 57014 where the capture was canceled.
    pub fn try_rows(&mut self, index: usize, count: usize) -> Result<(), UserError> {
        let mut failed = 0;
        for _ in 0..count {
            let is_late = self.is_time_over() && !self.tried.is_empty();
            if is_late || self.strategies[index].is_closed || failed > MAX_FAILED_CALLS {
                break;
            }
            pgrx::check_for_interrupts!();
            if self.strategies[index].next >= self.strategies[index].rows.len() {
                self.draw_rows(index)?;
                if self.strategies[index].is_closed {
                    break;
                }
            }
            let strategy = &mut self.strategies[index];
            let row = strategy.rows[strategy.next].clone();
            strategy.next += 1;
            match self.try_call(index, row) {
                Ok(()) => {}
                Err(error) if is_canceled(&error) => return Err(error),
                Err(error) => {
                    failed += 1;
                    // Another call would take as long.
                    self.strategies[index].is_closed |= is_limit(&error);
                    self.error = Some(error);
                }
            }
        }
        Ok(())
    }

    fn draw_rows(&mut self, index: usize) -> Result<(), UserError> {
        let (plan, shape, strategy) = (self.plan, &self.shape, &self.strategies[index].strategy);
        let drawn = limited(MAX_DRAW_TIME, || rolled_back(|| draw_values(plan, shape, strategy)));
        let strategy = &mut self.strategies[index];
        match drawn {
            Ok(rows) => {
                strategy.is_closed = rows.is_empty();
                (strategy.rows, strategy.next) = (rows, 0);
            }
            Err(error) if is_canceled(&error) => return Err(error),
            Err(error) => {
                strategy.is_closed = true;
                self.error = Some(error);
            }
        }
        Ok(())
    }

    fn try_call(&mut self, strategy: usize, DrawnRow { values, raw }: DrawnRow) -> Result<(), UserError> {
        let Some(custom) = &self.custom else {
            let (generic, _) = self.measure(&self.generic, &values)?;
            self.tried.push(TriedCall { strategy, raw, generic, custom: generic, cost: 0.0 });
            return Ok(());
        };
        if self.tried.is_empty() {
            self.generic_cost = self.generic.cost(&values)?;
        }
        let (custom, cost) = self.measure(custom, &values)?;
        self.highest_custom_cost = self.highest_custom_cost.max(cost);
        // The server never takes a generic plan that costs more than all custom plans.
        let generic = if self.generic_cost > self.highest_custom_cost {
            custom
        } else {
            match self.measure(&self.generic, &values) {
                Ok((generic, _)) => generic,
                Err(error) if is_canceled(&error) => return Err(error),
                // The generic plan may take too long where the custom plan does not.
                Err(_) => custom,
            }
        };
        self.tried.push(TriedCall { strategy, raw, generic, custom, cost });
        self.drop_equal_custom_plans();
        Ok(())
    }

    /// Executes a call, a short one twice; returns the figures of the last execution, and the planner's cost.
    fn measure(
        &self,
        statement: &TrialStatement,
        values: &[Option<String>],
    ) -> Result<(Call, f64), UserError> {
        let (call, cost) = limited(self.call_limit, || statement.call(values))?;
        if call.ms < SHORT_MS { statement.call(values) } else { Ok((call, cost)) }
    }

    /// Tries only the generic plan from now on, if custom plans have accessed as many blocks and no parameter's value is likely
    /// to decide on the plan.
    fn drop_equal_custom_plans(&mut self) {
        let decisive = [How::Above, How::Below, How::Like, How::Words, How::Operator];
        if self.tried.len() != COMPARED_CALLS
            || self.generic_cost > self.highest_custom_cost
            || decisive.iter().any(|&how| self.plan.has_parameter(how))
        {
            return;
        }
        let has_same_blocks = |tried: &TriedCall| {
            let (custom, generic) = (tried.custom.blocks(), tried.generic.blocks());
            (custom - generic).abs() <= SAME_BLOCKS_RELATIVE * custom.max(generic) + SAME_BLOCKS_ABSOLUTE
        };
        if self.tried.iter().all(has_same_blocks) {
            self.custom = None;
        }
    }
}

/// Returns whether a user canceled the capture; our own limits have another code.
fn is_canceled(error: &UserError) -> bool {
    error.sqlstate == sqlstate::QUERY_CANCELED
}

/// Draws rows of values by a strategy, for each occurrence independently of the others.
fn draw_values(
    plan: &ReplayPlan,
    shape: &FeederShape,
    strategy: &SamplingStrategy,
) -> Result<Vec<DrawnRow>, UserError> {
    let nulls = vec![None; plan.analysed.parameters.len()];
    let empty_row = DrawnRow { values: nulls.clone(), raw: nulls };
    let mut rows: Vec<DrawnRow> = Vec::new();
    for occurrence in 0..plan.analysed.occurrences.len() {
        let Some(query) = trial_query(plan, occurrence, strategy, shape, DRAWN_ROWS)? else { continue };
        let drawn = fetch_all(&query, &[], |row| {
            let texts = |column| -> pgrx::spi::Result<ParameterValues> {
                Ok(row.get::<Vec<Option<String>>>(column)?.unwrap_or_default())
            };
            Ok(DrawnRow { values: texts(1)?, raw: texts(2)? })
        })?;
        if drawn.is_empty() {
            return Ok(Vec::new());
        }
        if rows.is_empty() {
            rows = vec![empty_row.clone(); drawn.len()];
        }
        for (row, drawn) in rows.iter_mut().zip(drawn.iter().cycle()) {
            for (place, index) in plan.parameters(occurrence).into_iter().enumerate() {
                row.values[index] = drawn.values.get(place).cloned().flatten();
                row.raw[index] = drawn.raw.get(place).cloned().flatten();
            }
        }
    }
    if rows.is_empty() {
        rows.push(empty_row);
    }
    let offset = (strategy.page * shape.limit).to_string();
    let is_offset = |index: &usize| matches!(plan.values[*index], ParameterSource::Offset);
    for index in (0..plan.values.len()).filter(is_offset) {
        for row in &mut rows {
            row.values[index] = Some(offset.clone());
            row.raw[index] = Some(offset.clone());
        }
    }
    Ok(rows)
}
