//! bench.preflight: what would spoil a run now.

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use pgrx::prelude::*;

use super::arguments::{Argument, Json, Name, run_function, with_run_arguments};
use super::runs::run_of;
use crate::error::{OrRaise, for_client};
use crate::run::prepare::preflight::look;

run_function! {
    /// Says what would spoil a run that started now. See the COMMENT ON.
    bench_preflight(workload: [Option<String>], clients: [Option<i32>]) -> [TableIterator<
        'static,
        (name!(topic, String), name!(severity, String), name!(finding, String), name!(advice, String)),
    >] = |workload, clients, run| rows(run_of(workload, clients, run)).or_raise()
}

type PreflightRow = (String, String, String, String);

fn rows(arguments: RunArguments) -> Result<TableIterator<'static, PreflightRow>, UserError> {
    Ok(TableIterator::new(look(arguments)?.into_iter().map(|risk| {
        let [finding, advice] = [risk.finding, risk.advice].map(for_client);
        (risk.topic.as_str().to_owned(), risk.severity.as_str().to_owned(), finding, advice)
    })))
}
