//! The question to a session that compares answers, for bench.answers and bench.recall.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{ARMS, Driver, Duel, RunArguments};
use bench_questions::answers::StatementAnswers;
use pgrx::pg_sys;
use serde_json::Value as Json;

use super::request::{AnswerOptions, RecallRequest, Request, SessionAnswer};
use super::session::KIND;
use super::wire::compare_targets;
use crate::launch::role_session::{Fed, ask_with, segment_of, with_segment};
use crate::run::feeders::RowLimit;
use crate::run::nodes::node_connectivity::NodePairs;
use crate::run::prepare::prepared::{PreparedRun, prepare};
use crate::run::prepare::sessions::tell_role;
use crate::server::spi::fetch;
use crate::store;

/// More executions, and more examples, are taken for a mistake.
const MAX_EXECUTIONS: i32 = 1_000_000;
const MAX_EXAMPLES: i32 = 100;

/// A week.
const MAX_LIMIT_SECS: f64 = 604_800.0;

fn check(options: &AnswerOptions) -> Result<(), UserError> {
    let AnswerOptions { executions, tolerance, examples, limit_secs, .. } = options;
    if !(1..=MAX_EXECUTIONS).contains(executions) {
        let message = format!("executions must be between 1 and {MAX_EXECUTIONS}, not {executions}");
        return Err(UserError::invalid(message));
    }
    if !(0.0..1.0).contains(tolerance) {
        let message = format!("tolerance must be at least 0 and less than 1, not {tolerance}");
        return Err(UserError::invalid(message)
            .hint("It is the relative difference up to which two floating-point numbers are the same."));
    }
    if !(0..=MAX_EXAMPLES).contains(examples) {
        let message = format!("examples must be between 0 and {MAX_EXAMPLES}, not {examples}");
        return Err(UserError::invalid(message));
    }
    if !(0.001..=MAX_LIMIT_SECS).contains(limit_secs) {
        let message =
            format!("limit_secs must be between 0.001 and {MAX_LIMIT_SECS} seconds, not {limit_secs}");
        return Err(UserError::invalid(message));
    }
    Ok(())
}

/// Compares the answers of a workload's statements in two arms, which are those of a duel.
///
/// # Errors
/// 22023 for arguments, 0A000 for arms with variables of their own; those of a run and of its sessions.
pub fn compare_arms(
    a: &Json,
    b: &Json,
    options: AnswerOptions,
    run: RunArguments,
) -> Result<Vec<StatementAnswers>, UserError> {
    let SessionAnswer { mut statements, .. } = ask_session(a, b, options, None, run)?;
    statements.iter_mut().try_for_each(name_objects)?;
    Ok(statements)
}

/// Asks a session, or the arms' targets, to execute a workload's statements in two arms.
///
/// # Errors
/// As [`compare_arms`].
pub fn ask_session(
    a: &Json,
    b: &Json,
    options: AnswerOptions,
    recall: Option<RecallRequest>,
    run: RunArguments,
) -> Result<SessionAnswer, UserError> {
    check(&options)?;
    let duel = Duel::new(a, b)?;
    if duel.arms.iter().any(|arm| !arm.variables.is_empty()) {
        let message = "arms of bench.answers cannot differ in variables";
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .hint("Both arms get the same values. Set variables for both: variables => '{…}'."));
    }
    let mut run = duel.run(RunArguments { continue_on_error: Some(true), ..run })?;
    let has_two_targets = run.duel.as_ref().is_some_and(|duel| duel.other_target().is_some());
    run.clients = Some(if has_two_targets { 2 } else { 1 });
    let driver = if run.target.is_some() { Driver::Wire } else { Driver::Engine };
    run.driver = Some(driver.as_str().to_owned());
    let PreparedRun { spec, secrets, fed, .. } = prepare(run, RowLimit::All, NodePairs::Try)?;
    tell_role(&spec)?;
    let masked = spec.scripts.iter().map(|script| {
        let name = script.arm.and_then(|arm| script.name.strip_suffix(&format!(" [{}]", ARMS[arm])));
        Ok(script.captured && store::is_masked(name.unwrap_or(&script.name))?)
    });
    let masked = masked.collect::<Result<Vec<bool>, UserError>>()?;
    let request = Request { spec, options, masked, recall };
    let fed = Fed { bytes: &fed.bytes, feeders: fed.feeders };
    if driver == Driver::Wire {
        return with_segment(segment_of(&(), fed)?, |segment| compare_targets(&request, &secrets, segment));
    }
    let (role, run_as) = (request.spec.own_role(), request.spec.options.run_as.as_deref());
    ask_with(KIND, &role, run_as, &request, fed, &mut |_| ()).map(|(answer, _)| answer)
}

/// Replaces the session's OIDs by names.
fn name_objects(statement: &mut StatementAnswers) -> Result<(), UserError> {
    if let Some((arm, index)) = statement.wrong_index.take() {
        let index = pg_sys::Oid::from(index);
        let name = fetch::<String>("SELECT $1::regclass::text", &[index.into()])?.unwrap_or_default();
        statement.cause = Some(format!("index {name}: without it, arm {} answers differently", ARMS[arm]));
        statement.advice = Some(format!(
            "Check the index with amcheck, then REINDEX INDEX {name}. If it is an approximate one, measure its recall."
        ));
    }
    for example in statement.examples.iter_mut().filter(|example| example.are_types) {
        for (_, shown) in example.rows.iter_mut().flatten().flatten() {
            // Types of targets have names.
            if let Some(oid) = shown.as_deref().and_then(|oid| oid.parse::<u32>().ok()) {
                *shown = fetch::<String>("SELECT format_type($1, NULL)", &[pg_sys::Oid::from(oid).into()])?;
            }
        }
    }
    Ok(())
}
