//! The arguments of a rehearsal.

use bench_base::error::{UserError, sqlstate};
use bench_base::words::{Word, hint};
use bench_model::cluster::Nodes;
use bench_model::spec::{Before, RunArguments, check_text, required};
use bench_questions::rehearsal::{ALTERNATIVE, Better, CHANGE, CLOSED_LOOP, better};
use bench_questions::sweep::{Asked, Question, variant_of};
use bench_results::experiment::{AppliedSql, Variant};
use bench_results::rehearsal::{RehearsalPlan, Undo};
use serde_json::{Value, json};

use crate::experiment::parameters::fixtures_of;
use crate::server::known_change::known_statement;
use crate::store;

/// The time of the closed loop that finds the rate, in seconds.
const CLOSED_LOOP_SECS: f64 = 3.0;

/// Short enough for three of them to show soon that throughput is back.
const SAMPLE_INTERVAL_SECS: f64 = 0.25;

/// Longer times are taken for a mistake.
const MAX_SECS: f64 = 86_400.0;

const MAX_TRIES: i32 = 10_000;

const EXAMPLE: &str = "For example: change => '{\"apply\": \"ALTER TABLE t ADD c int\", \"revert\": \"ALTER TABLE t DROP c\"}'.";

/// What SQL handed over; `None` is NULL.
pub struct RehearsalArguments {
    pub change: Option<Value>,
    pub blocker: Option<String>,
    pub blocker_secs: Option<f64>,
    pub lock_timeout: Option<f64>,
    pub tries: Option<i32>,
    pub pause: Option<f64>,
    pub quiet_secs: Option<f64>,
    pub wait_limit: Option<f64>,
    pub give_up: Option<f64>,
    pub change_limit: Option<f64>,
    pub alternative: Option<bool>,
    pub undo: Option<String>,
}

/// Returns the question and the arguments of its runs.
///
/// # Errors
/// 22023 for values out of range, a change that cannot be undone, and arguments that the rehearsal sets itself; 0A000 for a target
/// and for several nodes; 55006 while another rehearsal is under way in this database.
pub fn ask(arguments: RehearsalArguments, run: RunArguments) -> Result<(Asked, RunArguments), UserError> {
    let undo = undo_of(required("undo", arguments.undo)?)?;
    let run = run_arguments(run)?;
    let run = if undo == Undo::Reload { with_reload(run)? } else { run };
    let variant = change_of(arguments.change, undo)?;
    let better = better_of(&variant)?;
    let plan = RehearsalPlan {
        blocker: arguments.blocker,
        blocker_secs: secs("blocker_secs", arguments.blocker_secs, 0.0)?,
        lock_timeout_secs: arguments
            .lock_timeout
            .map(|timeout| secs("lock_timeout", Some(timeout), MIN_TIMEOUT_SECS))
            .transpose()?,
        tries: tries_of(arguments.tries)?,
        pause_secs: secs("pause", arguments.pause, 0.0)?,
        quiet_secs: secs("quiet_secs", arguments.quiet_secs, MIN_QUIET_SECS)?,
        wait_limit_secs: secs("wait_limit", arguments.wait_limit, MIN_TIMEOUT_SECS)?,
        give_up_secs: secs("give_up", arguments.give_up, MIN_TIMEOUT_SECS)?,
        change_limit_secs: secs("change_limit", arguments.change_limit, MIN_TIMEOUT_SECS)?,
        undo,
        better: better.as_ref().map(|better| better.advice.clone()),
    };
    plan.blocker.iter().try_for_each(|text| check_text("blocker", text))?;
    if plan.tries > 1 && plan.lock_timeout_secs.is_none() {
        return Err(UserError::invalid(
            "tries without lock_timeout never begin: the first one waits for its lock",
        )
        .hint("Set both: lock_timeout => 0.2, tries => 10."));
    }
    let alternative = required("alternative", arguments.alternative)?
        .then(|| alternative_of(&variant, better.and_then(|better| better.apply)))
        .transpose()?;
    if let Some(sweep_id) = store::sweeps::rehearsal_under_way()? {
        let message = "another rehearsal is under way in this database";
        return Err(UserError::new(sqlstate::OBJECT_IN_USE, message)
            .detail(format!("It is sweep {sweep_id}. Each would be taken for the load of the other."))
            .hint(format!("Wait for it: SELECT bench.wait_sweep({sweep_id}).")));
    }
    let mut variants: Vec<Variant> = [variant].into_iter().chain(alternative).collect();
    if run.rate.is_none() && run.rates.is_none() {
        variants.insert(0, Variant { name: CLOSED_LOOP.to_owned(), ..Variant::default() });
    }
    Ok((Asked { question: Question::Rehearsal(plan), variants }, run))
}

/// Returns the safer way to a change of one statement, if one is known.
fn better_of(variant: &Variant) -> Result<Option<Better>, UserError> {
    let texts = variant.sql.as_ref().map(|sql| &sql.apply[..]);
    let Some([text]) = texts else { return Ok(None) };
    Ok(known_statement(text)?.as_ref().map(better))
}

/// Returns the variant that makes a change in the safer way.
fn alternative_of(variant: &Variant, apply: Option<Vec<String>>) -> Result<Variant, UserError> {
    let Some(apply) = apply else {
        return Err(UserError::invalid(
            "no alternative to the change is known whose statements follow from its own",
        )
        .hint("Rehearse yours in a call of its own, and compare the answers."));
    };
    let revert = variant.sql.as_ref().map(|sql| sql.revert.clone()).unwrap_or_default();
    let sql = Some(AppliedSql { apply, revert });
    Ok(Variant { name: ALTERNATIVE.to_owned(), sql, ..variant.clone() })
}

/// The least lock_timeout, which has milliseconds.
const MIN_TIMEOUT_SECS: f64 = 0.001;

/// The least quiet part: several samples.
const MIN_QUIET_SECS: f64 = 1.0;

fn secs(name: &str, value: Option<f64>, least: f64) -> Result<f64, UserError> {
    let value = required(name, value)?;
    if (least..=MAX_SECS).contains(&value) {
        return Ok(value);
    }
    Err(UserError::invalid(format!("{name} must be between {least} and {MAX_SECS} seconds, not {value}")))
}

fn tries_of(tries: Option<i32>) -> Result<u32, UserError> {
    let tries = required("tries", tries)?;
    if (1..=MAX_TRIES).contains(&tries) {
        return Ok(tries.unsigned_abs());
    }
    Err(UserError::invalid(format!("tries must be between 1 and {MAX_TRIES}, not {tries}")))
}

fn undo_of(word: String) -> Result<Undo, UserError> {
    Undo::from_word(&word).ok_or_else(|| {
        let list = format!("Known are {}.", Undo::words().collect::<Vec<_>>().join(", "));
        UserError::invalid(format!("unrecognized undo \"{word}\"")).hint(hint(&word, Undo::words(), list))
    })
}

/// Returns the variant that makes the change.
fn change_of(change: Option<Value>, undo: Undo) -> Result<Variant, UserError> {
    let Some(Value::Object(mut group)) = change else {
        return Err(UserError::invalid("change must be a JSON object with apply and revert").hint(EXAMPLE));
    };
    if undo != Undo::Revert {
        group.insert("revert".to_owned(), json!([]));
    } else if !group.contains_key("revert") {
        return Err(nothing_to_undo());
    }
    let variant = variant_of(CHANGE.to_owned(), json!({ "sql": group }))?;
    let has_revert = variant.sql.as_ref().is_some_and(|sql| !sql.revert.is_empty());
    if has_revert || undo != Undo::Revert { Ok(variant) } else { Err(nothing_to_undo()) }
}

fn nothing_to_undo() -> UserError {
    UserError::invalid("change has no statements that revert it").hint(format!(
        "{EXAMPLE} Or undo => 'reload', which loads the workload's fixture anew, or undo => 'none', which leaves the change."
    ))
}

/// Returns the arguments of runs that load their fixtures anew before they begin, as after a crash nothing else undoes the change.
fn with_reload(run: RunArguments) -> Result<RunArguments, UserError> {
    if fixtures_of(RunArguments { clients: Some(1), ..run.clone() })?.is_empty() {
        return Err(UserError::invalid("the workload has no fixture to be loaded anew")
            .hint("Give the change statements that revert it, or use undo => 'none', which leaves it."));
    }
    let mut steps = run.before.as_deref().map_or(Ok(Vec::new()), Before::parse)?;
    steps.push(Before::Reload);
    Ok(RunArguments { before: Some(Before::text(&steps)), ..run })
}

/// Returns the arguments of the runs.
fn run_arguments(mut run: RunArguments) -> Result<RunArguments, UserError> {
    let refused = [
        ("secs", run.secs.is_some()),
        ("transactions", run.transactions.is_some()),
        ("latency_limit", run.latency_limit.is_some()),
    ];
    if let Some((name, _)) = refused.iter().find(|(_, is_given)| *is_given) {
        return Err(UserError::invalid(format!("a rehearsal takes no {name}"))
            .hint("Its run ends with the change: see quiet_secs, wait_limit, give_up and change_limit."));
    }
    if run.target.is_some() {
        return Err(UserError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            "a change cannot be rehearsed on a target",
        )
        .hint("Install the extension there."));
    }
    if run.nodes.as_deref().is_some_and(|nodes| nodes != Nodes::Local.as_str()) {
        let message = "a change cannot be rehearsed with clients on several nodes";
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint("Leave nodes out."));
    }
    run.secs = Some(CLOSED_LOOP_SECS);
    run.sample_interval = run.sample_interval.or(Some(SAMPLE_INTERVAL_SECS));
    // Clients must survive the errors that the change brings, and transactions that wait too long are logged.
    run.continue_on_error = Some(true);
    run.log_rate = Some(1.0);
    Ok(run)
}
