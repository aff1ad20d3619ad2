//! bench.answers: whether two arms return the same rows; bench.recall: how much of the exact ones an approximate index returns.

use bench_base::error::UserError;
use bench_model::spec::RunArguments;
use bench_questions::answers::{StatementAnswers, sentence};
use pgrx::prelude::*;
use serde_json::{Map, Value};

use super::arguments::{Argument, Json, Name};
use super::required;
use crate::error::{OrRaise, for_client};
use crate::experiment::answers::recall::{CombinationRecall, RecallQuestion, measure};
use crate::experiment::answers::{AnswerOptions, compare_arms};
use crate::server::jsonb::json_of;
use crate::server::rows::{Rows, rows};

/// Compares what the statements of a workload return in two arms.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn answers(
    workload: Option<String>,
    a: Option<Json>,
    b: Option<Json>,
    executions: Option<i32>,
    tolerance: Option<f64>,
    key: Option<String>,
    examples: Option<i32>,
    limit_secs: Option<f64>,
    seed: Option<i64>,
    variables: Option<Json>,
    settings: Option<Json>,
    query_mode: Option<String>,
    script: Option<String>,
    run_as: Option<Name>,
) -> Rows {
    let compared = (|| -> Result<_, UserError> {
        let options = AnswerOptions {
            executions: required("executions", executions)?,
            tolerance: required("tolerance", tolerance)?,
            key,
            examples: required("examples", examples)?,
            limit_secs: required("limit_secs", limit_secs)?,
        };
        let run = RunArguments {
            query_mode,
            ..run_of_session((workload, script), (variables, settings), seed, run_as)
        };
        let tolerance = options.tolerance;
        let statements = compare_arms(&required("a", a)?.0, &required("b", b)?.0, options, run)?;
        Ok((statements, tolerance))
    })();
    let (mut statements, tolerance) = compared.or_raise();
    pgrx::notice!("{}", for_client(sentence(&statements)));
    // The most urgent ones come first.
    statements.sort_by_key(StatementAnswers::urgency);
    rows(statements.into_iter().map(move |statement| statement.row(tolerance)))
}

/// The arguments of a run that a session executes statements of, one at a time.
fn run_of_session(
    (workload, script): (Option<String>, Option<String>),
    (variables, settings): (Option<Json>, Option<Json>),
    seed: Option<i64>,
    run_as: Option<Name>,
) -> RunArguments {
    RunArguments {
        workload,
        script,
        variables: variables.map(Argument::kept),
        settings: settings.map(Argument::kept),
        seed,
        run_as: run_as.map(Argument::kept),
        ..RunArguments::with_defaults()
    }
}

/// Measures how much of the exact answers an approximate index returns.
#[pg_extern(sql = false)]
#[allow(clippy::too_many_arguments)]
fn recall(
    workload: Option<String>,
    index: Option<pg_sys::Oid>,
    vary: Option<Json>,
    at_least: Option<f64>,
    executions: Option<i32>,
    key: Option<String>,
    limit_secs: Option<f64>,
    seed: Option<i64>,
    variables: Option<Json>,
    settings: Option<Json>,
    script: Option<String>,
    run_as: Option<Name>,
) -> Rows {
    let measured = (|| -> Result<_, UserError> {
        let at_least = required("at_least", at_least)?;
        let question =
            RecallQuestion { index: required("index", index)?, vary: required("vary", vary)?.0, at_least };
        let options = AnswerOptions {
            executions: required("executions", executions)?,
            tolerance: 0.0,
            key,
            examples: 0,
            limit_secs: required("limit_secs", limit_secs)?,
        };
        let run = run_of_session((workload, script), (variables, settings), seed, run_as);
        Ok((measure(&question, options, run)?, at_least))
    })();
    let (combinations, at_least) = measured.or_raise();
    let sentence = match combinations.iter().find(|one| one.is_picked) {
        Some(picked) => format!("the mean recall is at least {at_least} with {}", picked.settings),
        None => format!("no combination has a mean recall of {at_least}"),
    };
    pgrx::notice!("{}", for_client(sentence));
    rows(combinations.into_iter().map(|CombinationRecall { settings, recall, is_picked }| {
        // Without an execution that says anything, the figures are NULL.
        let is_unknown = recall.is_none();
        let Value::Object(mut row) = json_of(&recall.unwrap_or_default()) else { return Map::new() };
        row.values_mut().filter(|_| is_unknown).for_each(|figure| *figure = Value::Null);
        row.insert("settings".to_owned(), settings);
        row.insert("picks".to_owned(), is_picked.into());
        row
    }))
}
