//! The statements of a run on its target before it begins: whether they are right, and how they are planned.

use bench_base::error::{SqlError, UserError};
use bench_model::client::ClientWorkload;
use bench_model::spec::{QueryMode, RunSpec};
use bench_script::Action;
use serde_json::Value;

use crate::driver::connection::BlockingSession;
use crate::run::client;
use crate::run::client::statements::point_at;
use crate::server::spi::quote_literal;

/// Words with which statements begin after which others can still be parsed, first those that have plans.
const HARMLESS: [&str; 11] =
    ["select", "insert", "update", "delete", "merge", "with", "values", "begin", "start", "commit", "end"];
const WITH_PLANS: usize = 7;

/// Characters of a plan that are kept.
const LONGEST_PLAN: usize = 10_000;

/// The generic plan of a command, without costs.
pub struct PlanOfCommand {
    pub script: usize,
    /// From 1.
    pub command: u32,
    pub plan: String,
    /// As pg_stat_statements there has it.
    pub query_id: Option<i64>,
}

/// Has the statements parsed there, as far as they do not depend on those before them, and planned: those of an arm of a duel,
/// or all.
pub fn plan(
    session: &mut BlockingSession,
    run: &RunSpec,
    arm: Option<usize>,
    workload: &mut ClientWorkload,
) -> Result<Vec<PlanOfCommand>, SqlError> {
    let beginning = client::beginning(run, 0, &mut workload.symbols);
    let mut variables = beginning.variables;
    let mut plans = Vec::new();
    let programs = workload.programs.iter().zip(&beginning.own).zip(&run.scripts);
    for (place, ((program, own), script)) in programs.enumerate() {
        for (variable, value) in own {
            variables.set(*variable, value.clone());
        }
        let is_elsewhere = arm.is_some() && script.arm != arm;
        if is_elsewhere || run.options.query_mode_of(script) == QueryMode::Simple {
            continue;
        }
        let duel = run.options.duel.as_ref().zip(script.arm);
        let settings = duel.map_or(&[][..], |(duel, arm)| &duel.arms[arm].settings);
        for (at, command) in program.script.commands.iter().enumerate() {
            pgrx::check_for_interrupts!();
            match &command.action {
                Action::Sql(sql) => {
                    let text = sql.parameterized(&variables)?.text;
                    let result = session.parse(&text).map_err(|error| point_at(&text, error));
                    result.map_err(|error| program.script.locate(at, error))?;
                    let word: String =
                        text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
                    let Some(known) = HARMLESS.iter().position(|known| word.eq_ignore_ascii_case(known))
                    else {
                        break;
                    };
                    if known < WITH_PLANS
                        && let Some((plan, query_id)) =
                            explain(session, settings, &text, sql.parameters().count())?
                    {
                        plans.push(PlanOfCommand { script: place, command: at as u32 + 1, plan, query_id });
                    }
                }
                // Nobody knows whether its branch will ever be entered.
                Action::If { .. } => break,
                _ => {}
            }
        }
    }
    Ok(plans)
}

/// The plan that serves all values of a statement, which has been parsed and is one, under these settings, and its identifier;
/// `None` where it has none. It is not executed.
fn explain(
    session: &mut BlockingSession,
    settings: &[(String, String)],
    text: &str,
    parameters: usize,
) -> Result<Option<(String, Option<i64>)>, UserError> {
    session.value("SAVEPOINT bench_plan")?;
    let set = |(name, value): &(String, String)| {
        format!("SELECT pg_catalog.set_config({}, {}, true); ", quote_literal(name), quote_literal(value))
    };
    let set: String = settings.iter().map(set).collect();
    let prepare =
        format!("{set}SET LOCAL plan_cache_mode = force_generic_plan; PREPARE bench_plan AS {text}");
    let is_prepared = session.value(&prepare).is_ok();
    let mut found = None;
    if is_prepared {
        let nulls = vec!["NULL"; parameters].join(", ");
        let values = if nulls.is_empty() { nulls } else { format!("({nulls})") };
        let explained = session.rows(&format!("EXPLAIN (COSTS OFF) EXECUTE bench_plan{values}"), |table| {
            let lines = table.rows().filter_map(|row| row.first().copied().flatten());
            let lines: Vec<_> = lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
            Ok(format!("generic plan:\n{}", lines.join("\n")).chars().take(LONGEST_PLAN).collect())
        });
        if let Ok(plan) = explained {
            // Before PostgreSQL 14, and without compute_query_id, there is none.
            let verbose = format!("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) EXECUTE bench_plan{values}");
            let explained = session.value(&verbose).ok().flatten();
            let explained: Option<Value> = explained.and_then(|json| serde_json::from_str(&json).ok());
            let query_id = explained.as_ref().and_then(|all| all.get(0)?.get("Query Identifier")?.as_i64());
            found = Some((plan, query_id));
        }
    }
    session.value("ROLLBACK TO bench_plan")?;
    if is_prepared {
        session.value("DEALLOCATE bench_plan")?;
    }
    Ok(found)
}
