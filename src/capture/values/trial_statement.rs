//! Trial executions of a statement: rows and blocks of a call, as pg_stat_statements counts them in a run, and the planner's
//! cost.
//!
//! Server functions are called through guards, unlike in a client's loop.

use std::ffi::{CString, c_int};

use bench_base::error::UserError;
use bench_capture::fidelity::Call;
use bench_model::spec::Results;
use pgrx::{Spi, pg_sys};

use crate::driver::session::plans::only_plannable;
use crate::driver::session::results::ReceiverFactory;
use crate::error::internal;
use crate::server::process::accessed_blocks;
use crate::server::query::{list_first, list_length};
use crate::server::spi::without_jit;
use crate::server::transaction::rolled_back;

/// The kind of plan of each execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// A new plan for the values.
    Custom,
    /// One plan for all values.
    Generic,
}

/// A prepared statement, in a process without a client.
pub struct TrialStatement {
    plan: pg_sys::SPIPlanPtr,
    source: *mut pg_sys::CachedPlanSource,
    types: Vec<pg_sys::Oid>,
    plans: PlanKind,
    receivers: ReceiverFactory,
}

impl TrialStatement {
    /// Prepares a statement; `types` has the type of `$1` first, 0 for one that is not mentioned.
    ///
    /// # Errors
    /// The server's; XX000 for what is not one statement.
    pub fn prepare(sql: &str, types: &[u32], plans: PlanKind) -> Result<Self, UserError> {
        let text = CString::new(sql).map_err(|e| internal(e.to_string()))?;
        let types: Vec<pg_sys::Oid> = types.iter().map(|&oid| pg_sys::Oid::from(oid)).collect();
        let options = pg_sys::CURSOR_OPT_PARALLEL_OK
            | match plans {
                PlanKind::Custom => pg_sys::CURSOR_OPT_CUSTOM_PLAN,
                PlanKind::Generic => pg_sys::CURSOR_OPT_GENERIC_PLAN,
            };
        // SPI_keepplan moves the plan out of the transaction's memory.
        let plan = rolled_back(|| {
            Spi::connect(|_| {
                // SAFETY: connected; the server copies the text and `count` types.
                unsafe {
                    let (first, count) = (types.as_ptr().cast_mut(), types.len() as c_int);
                    let plan = pg_sys::SPI_prepare_cursor(text.as_ptr(), count, first, options.cast_signed());
                    if plan.is_null() || pg_sys::SPI_keepplan(plan) != 0 {
                        return Err(internal("a captured statement cannot be prepared".to_owned()));
                    }
                    Ok(plan)
                }
            })
        })?;
        let receivers = ReceiverFactory::new(Results::Serialize);
        let mut trial = Self { plan, source: std::ptr::null_mut(), types, plans, receivers };
        // SAFETY: the plan is kept until it is freed; this returns a list of its sources.
        unsafe {
            let sources = pg_sys::SPI_plan_get_plan_sources(plan);
            if list_length(sources) != 1 {
                return Err(internal("not one statement".to_owned()));
            }
            trial.source = list_first(sources).cast();
        }
        Ok(trial)
    }

    /// Returns the planner's cost of an execution; that of a custom plan includes planning.
    ///
    /// # Errors
    /// The server's.
    pub fn cost(&self, values: &[Option<String>]) -> Result<f64, UserError> {
        rolled_back(|| {
            // SAFETY: as in `call`.
            unsafe {
                pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                let (plan, cost) = self.plan_for(self.bind(values));
                pg_sys::ReleaseCachedPlan(plan, pg_sys::CurrentResourceOwner);
                pg_sys::PopActiveSnapshot();
                Ok(cost)
            }
        })
    }

    /// Executes the statement with values as texts, in a subtransaction. Returns the figures that pg_stat_statements would count,
    /// without planning, and the cost as [`Self::cost`].
    ///
    /// # Errors
    /// The server's.
    pub fn call(&self, values: &[Option<String>]) -> Result<(Call, f64), UserError> {
        rolled_back(|| {
            // SAFETY: inside a subtransaction, whose rollback releases everything after an ERROR; the calls are in the order of
            // `Session::run_directly`. Other extensions' executor hooks do not see trials.
            unsafe {
                pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                let params = self.bind(values);
                let (plan, cost) = self.plan_for(params);
                let Some(planned) = only_plannable((*plan).stmt_list) else {
                    return Err(internal("not one statement".to_owned()));
                };
                let receiver = pg_sys::ffi::pg_guard_ffi_boundary(|| self.receivers.receiver());
                let desc = pg_sys::CreateQueryDesc(
                    planned,
                    (*self.source).query_string,
                    pg_sys::GetActiveSnapshot(),
                    std::ptr::null_mut(),
                    receiver,
                    params,
                    std::ptr::null_mut(),
                    0,
                );
                pg_sys::standard_ExecutorStart(desc, 0);
                let (before, began) = (accessed_blocks(), std::time::Instant::now());
                let forward = pg_sys::ScanDirection::ForwardScanDirection;
                #[cfg(not(since_18))]
                pg_sys::standard_ExecutorRun(desc, forward, 0, true);
                #[cfg(since_18)]
                pg_sys::standard_ExecutorRun(desc, forward, 0);
                pg_sys::standard_ExecutorFinish(desc);
                let call = Call {
                    rows: (*(*desc).estate).es_processed as f64,
                    hit: (accessed_blocks() - before) as f64,
                    read: 0.0,
                    ms: began.elapsed().as_secs_f64() * 1e3,
                };
                pg_sys::standard_ExecutorEnd(desc);
                pg_sys::FreeQueryDesc(desc);
                pg_sys::ReleaseCachedPlan(plan, pg_sys::CurrentResourceOwner);
                pg_sys::PopActiveSnapshot();
                Ok((call, cost))
            }
        })
    }

    /// Returns the plan for these parameters, held by the current resource owner, and its cost.
    ///
    /// # Safety
    /// Inside a transaction with an active snapshot.
    unsafe fn plan_for(&self, params: pg_sys::ParamListInfo) -> (*mut pg_sys::CachedPlan, f64) {
        // SAFETY: by the caller; the source lives as long as the plan.
        unsafe {
            let before = (*self.source).total_custom_cost;
            let owner = pg_sys::CurrentResourceOwner;
            let plan =
                without_jit(|| pg_sys::GetCachedPlan(self.source, params, owner, std::ptr::null_mut()));
            let cost = match self.plans {
                PlanKind::Custom => (*self.source).total_custom_cost - before,
                PlanKind::Generic => (*self.source).generic_cost,
            };
            (plan, cost)
        }
    }

    /// Converts texts to parameters by the input functions of their types.
    ///
    /// # Safety
    /// Inside a transaction; the list lives in the current memory context.
    unsafe fn bind(&self, values: &[Option<String>]) -> pg_sys::ParamListInfo {
        if self.types.is_empty() {
            return std::ptr::null_mut();
        }
        // SAFETY: by the caller; the list has a place for each type. Input functions do not write to their argument.
        unsafe {
            let params = pg_sys::makeParamList(self.types.len() as c_int);
            for (index, &sql_type) in self.types.iter().enumerate() {
                let param = (*params).params.as_mut_ptr().add(index);
                (*param).ptype = sql_type;
                (*param).pflags = pg_sys::PARAM_FLAG_CONST as u16;
                let text = values.get(index).and_then(|value| value.as_deref());
                let text = text.and_then(|text| CString::new(text).ok());
                (*param).isnull = text.is_none();
                if let Some(text) = text.filter(|_| sql_type != pg_sys::InvalidOid) {
                    let (mut input, mut io_param) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
                    pg_sys::getTypeInputInfo(sql_type, &raw mut input, &raw mut io_param);
                    (*param).value =
                        pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), io_param, -1);
                }
            }
            params
        }
    }
}

/// Makes a statement's generic plan, which may fail where a plan with constants does not. `types` as
/// [`TrialStatement::prepare`].
///
/// # Errors
/// The server's; XX000 for what is not one statement.
pub fn plan_for_all_values(sql: &str, types: &[u32]) -> Result<(), UserError> {
    TrialStatement::prepare(sql, types, PlanKind::Generic)?.cost(&[]).map(drop)
}

impl Drop for TrialStatement {
    fn drop(&mut self) {
        // SAFETY: the plan is kept beyond any transaction; nothing else uses it.
        unsafe {
            pg_sys::SPI_freeplan(self.plan);
        }
    }
}
