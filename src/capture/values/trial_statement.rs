//! A statement that is executed to see what a call takes: its rows and blocks, as pg_stat_statements counts them in a run, and
//! what the planner thinks that it costs.
//!
//! As the analysis of parameters, and unlike a client's loop, this calls the server's functions through guards.

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

/// Which plans an execution gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanKind {
    /// One for the values at hand.
    Custom,
    /// One for all values.
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
        // A plan that is kept lives outside of the transaction.
        let plan = rolled_back(|| {
            Spi::connect(|_| {
                // SAFETY: connected; the server copies text and types, of which there are as many as it is told.
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
        // SAFETY: a plan that is kept until it is freed; its sources are a list of them.
        unsafe {
            let sources = pg_sys::SPI_plan_get_plan_sources(plan);
            if list_length(sources) != 1 {
                return Err(internal("not one statement".to_owned()));
            }
            trial.source = list_first(sources).cast();
        }
        Ok(trial)
    }

    /// What the planner says that an execution costs, planning included where each execution is planned.
    ///
    /// # Errors
    /// The server's.
    pub fn cost(&self, values: &[Option<String>]) -> Result<f64, UserError> {
        rolled_back(|| {
            // SAFETY: as in `call`.
            unsafe {
                pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                let (plan, cost) = self.planned(self.bind(values));
                pg_sys::ReleaseCachedPlan(plan, pg_sys::CurrentResourceOwner);
                pg_sys::PopActiveSnapshot();
                Ok(cost)
            }
        })
    }

    /// Executes it with the values as texts, in a subtransaction; what it takes, and the cost as [`Self::cost`] has it. Counted is
    /// what pg_stat_statements would count: not what planning takes.
    ///
    /// # Errors
    /// The server's.
    pub fn call(&self, values: &[Option<String>]) -> Result<(Call, f64), UserError> {
        rolled_back(|| {
            // SAFETY: inside a subtransaction, whose rollback gives back what an ERROR leaves; the order of the calls is that of
            // `Session::run_directly`. The standard executor: to the hooks of others this is no execution.
            unsafe {
                pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot());
                let params = self.bind(values);
                let (plan, cost) = self.planned(params);
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

    /// The plan for these parameters, held by the current resource owner, and its cost.
    ///
    /// # Safety
    /// Inside a transaction with an active snapshot.
    unsafe fn planned(&self, params: pg_sys::ParamListInfo) -> (*mut pg_sys::CachedPlan, f64) {
        // SAFETY: by the caller; the source lasts as long as the plan that is kept.
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

    /// A list of parameters, through the input functions of their types as a client's texts are.
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

/// Plans a statement for all values of its parameters, as a session does that has executed it some times: what the server
/// infers from constants, it cannot infer from these. `types` as [`TrialStatement::prepare`].
///
/// # Errors
/// The server's; XX000 for what is not one statement.
pub fn plan_for_all_values(sql: &str, types: &[u32]) -> Result<(), UserError> {
    TrialStatement::prepare(sql, types, PlanKind::Generic)?.cost(&[]).map(drop)
}

impl Drop for TrialStatement {
    fn drop(&mut self) {
        // SAFETY: the plan is kept, so it is there, whatever became of the transaction; nothing else uses it.
        unsafe {
            pg_sys::SPI_freeplan(self.plan);
        }
    }
}
