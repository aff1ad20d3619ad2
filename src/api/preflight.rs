//! bench.preflight: what would spoil a run now.

use bench_core::error::UserError;
use bench_core::spec::RunArguments;
use pgrx::prelude::*;

use super::runs::run_function;
use crate::error::OrRaise;
use crate::launch::preflight::look;
use crate::server::jsonb::Jsonb;

run_function!(
    /// Says what would spoil a run that started now. See the COMMENT ON.
    preflight,
    rows
    => TableIterator<
        'static,
        (name!(topic, String), name!(severity, String), name!(finding, String), name!(advice, String)),
    >
);

type Row = (String, String, String, String);

fn rows(arguments: RunArguments) -> Result<TableIterator<'static, Row>, UserError> {
    Ok(TableIterator::new(
        look(arguments)?.into_iter().map(|risk| {
            (risk.topic.to_owned(), risk.severity.as_str().to_owned(), risk.finding, risk.advice)
        }),
    ))
}
