//! Values for the parameters of captured statements: their sources, and the search for those under which calls take as many rows
//! and blocks as the captured calls did.

mod queries;
mod replay_plan;
mod search;
mod trial_runner;
mod trial_statement;

use std::time::Duration;

use bench_base::error::UserError;
use bench_capture::fidelity::Counts;
use bench_capture::options::CaptureOptions;
use bench_capture::statements::{
    arbiter, expanded, grouped, has_constants, highest_parameter, masked, parsable, script, squashed,
    with_texts, with_types, with_values,
};
use bench_model::feeder::{Feeder, MAX_COLUMNS, Pick};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::sessions::{Refusal, check_privileges, untriable};
use crate::driver::parameters::{self, Analysed, How, Parameter, ParameterPlace};
use crate::server::guc;
use crate::server::spi::in_session::{call, fetch, fetch_all};
use crate::server::spi::{quote_identifier, quote_literal};
use crate::server::transaction::rolled_back;
use crate::store::kept_values;
use queries::feeder_query;
use replay_plan::{
    FeederShape, ParameterSource, ParameterValues, ReplayPlan, SampledRelation, column_name, parameter_sql,
    read_relation, read_statistics,
};
use search::{ChosenFeeders, search_feeders};

pub use search::{TrialTime, desired_trial_time};
pub use trial_statement::plan_for_all_values;

/// Most rows of a feeder.
const MAX_ROWS: u32 = 100_000;

/// Most parameters of a statement, by the protocol.
const MAX_PARAMETERS: u32 = 65_535;

/// Elements of a squashed list where the returned rows do not show how many there were, and the most where they do.
const AGGREGATED_LIST_LENGTH: usize = 5;
const MAX_LIST_LENGTH: usize = 10;

/// A feeder, with its values where they are stored rather than drawn from a relation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilledFeeder {
    pub feeder: Feeder,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
    /// Stored values with their weights; empty where the query is over a relation.
    pub rows: Vec<(Option<f64>, Value)>,
    /// SQL for the parameters' values over the stored columns, as `q`; empty where the stored values are the parameters'.
    pub wrapped: Vec<String>,
}

impl FilledFeeder {
    /// Returns the feeder's query, from the query of the stored values.
    pub fn select(&self, kept: &str) -> String {
        if self.wrapped.is_empty() {
            return kept.to_owned();
        }
        format!("SELECT {}, q.weight FROM ({kept}) q", self.wrapped.join(", "))
    }
}

/// How a statement is replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatementReplay {
    pub script: String,
    pub fed: Vec<FilledFeeder>,
    /// Omissions and assumptions of the replay.
    pub notes: Vec<String>,
}

/// Runs `body` with the search_path that this role's sessions begin with, as a run's clients do, and rolls back.
fn with_initial_path<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let path = guc::initial_search_path()?;
    rolled_back(|| guc::with_search_path(&path, body))
}

/// Analyses a statement; also returns the places of its parameters that are texts for want of another type.
fn analyse_with_texts(text: &str) -> Result<(Analysed, Vec<usize>), Refusal> {
    let (mut analysed, texts) = with_initial_path(|| parameters::analyse_with_texts(text))
        .map_err(|error| Refusal::from(error).after("it cannot be parsed again"))?;
    // Alone, set_config() may outlast its transaction.
    analysed.writes |= analysed.sets;
    Ok((analysed, texts))
}

fn analyse(text: &str) -> Result<Analysed, Refusal> {
    analyse_with_texts(text).map(|(analysed, _)| analysed)
}

/// Adds casts to the parameters that need one, and analyses the statement with one element in each squashed list.
fn with_parameter_types(text: &str) -> Result<(String, Analysed), Refusal> {
    let untyped = match analyse_with_casts(text) {
        Ok(analysed) => return Ok(analysed),
        Err(refusal) => refusal,
    };
    with_types(text).iter().find_map(|text| analyse_with_casts(text).ok()).ok_or(untyped)
}

/// Analyses a statement with one element in each squashed list; casts its parameters that are texts.
fn analyse_with_casts(text: &str) -> Result<(String, Analysed), Refusal> {
    let (analysed, texts) = analyse_with_texts(&expanded(text, |_| 1))?;
    let numbers: Vec<u32> = texts.into_iter().map(|place| place as u32 + 1).collect();
    Ok((with_texts(text, &numbers), analysed))
}

/// Conditions of a table's valid partial unique indexes.
const INDEX_CONDITIONS: &str = "\
    SELECT pg_catalog.pg_get_expr(i.indpred, i.indrelid) FROM pg_catalog.pg_index i \
    WHERE i.indrelid OPERATOR(pg_catalog.=) $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NOT NULL \
    ORDER BY i.indexrelid";

/// Replaces the condition of ON CONFLICT by that of a unique index, if it has parameters: the server infers an index from
/// constants only, and these are lost.
fn with_index_condition(
    text: String,
    analysed: Analysed,
    notes: &mut Vec<String>,
) -> Result<(String, Analysed), Refusal> {
    let Some(range) = arbiter(&text) else { return Ok((text, analysed)) };
    let targets = analysed.occurrences.iter().filter(|occurrence| occurrence.is_target);
    for target in targets {
        let conditions = fetch_all(INDEX_CONDITIONS, &[target.relation.into()], |row| row.get::<String>(1))?;
        for condition in conditions.into_iter().flatten() {
            pgrx::check_for_interrupts!();
            let mut with_condition = text.clone();
            with_condition.replace_range(range.clone(), &condition);
            let Ok(analysed) = analyse(&expanded(&with_condition, |_| 1)) else { continue };
            let is_inferred = untriable(&analysed.objects)?.is_none()
                && plan(&expanded(&with_condition, |_| 1), &analysed).is_ok();
            if is_inferred {
                notes.push(format!("ON CONFLICT has the condition of an index: {condition}"));
                return Ok((with_condition, analysed));
            }
        }
    }
    Ok((text, analysed))
}

/// Plans a statement for all values of its parameters.
fn plan(text: &str, analysed: &Analysed) -> Result<(), Refusal> {
    let types: Vec<u32> = analysed.parameters.iter().map(|parameter| parameter.type_oid).collect();
    with_initial_path(|| plan_for_all_values(text, &types))
        .map_err(|error| Refusal::from(error).after("it cannot be planned"))
}

/// Returns how a statement can be replayed, or why it cannot; trials end after `limit`.
pub fn replay(
    text: &str,
    counts: &Counts,
    limit: Duration,
    options: &CaptureOptions,
) -> Result<StatementReplay, Refusal> {
    let text = parsable(&grouped(text));
    if highest_parameter(&text) > MAX_PARAMETERS {
        return Err(format!("it has more than {MAX_PARAMETERS} parameters").into());
    }
    let mut notes = Vec::new();
    let (text, single_element) = with_parameter_types(&text)?;
    check_replayable(&single_element, options)?;
    check_privileges(&single_element.privileges)?;
    let (text, single_element) = with_index_condition(text, single_element, &mut notes)?;
    if options.mask && has_constants(&text) {
        return Err("it has a constant that cannot be a variable (option mask)".into());
    }
    let lists = squashed(&text);
    let rows_per_call = counts.rows as f64 / counts.calls.max(1) as f64;
    let aggregates = single_element.aggregates;
    let list_length = match options.list_length {
        Some(length) => length as usize,
        None if aggregates => AGGREGATED_LIST_LENGTH,
        // Each element finds a row.
        None => (rows_per_call.round() as usize).clamp(1, MAX_LIST_LENGTH),
    };
    let text = expanded(&text, |_| list_length);
    let analysed = if lists.is_empty() { single_element } else { analyse(&text)? };
    if !lists.is_empty() {
        notes.push(format!("lists were squashed: replayed with {list_length} elements"));
    }
    let relations = analysed
        .occurrences
        .iter()
        .map(|occurrence| {
            read_relation(occurrence.relation)?.ok_or_else(|| "a relation has been dropped".into())
        })
        .collect::<Result<Vec<SampledRelation>, Refusal>>()?;
    let values = (0..analysed.parameters.len())
        .map(|index| choose_source(&analysed, index, rows_per_call, &mut notes))
        .collect::<Result<Vec<ParameterSource>, Refusal>>()?;
    let replay_plan = ReplayPlan { text: &text, analysed: &analysed, relations, values };
    let has_too_many = |occurrence| replay_plan.parameters(occurrence).len() > MAX_COLUMNS;
    if (0..analysed.occurrences.len()).any(has_too_many) {
        return Err(format!("more than {MAX_COLUMNS} parameters get values of one relation").into());
    }
    // Reading or planning a view may call a function.
    let untriable = untriable(&analysed.objects)?;
    let ChosenFeeders { shape, kept } = match &untriable {
        None => search_feeders(&replay_plan, counts, limit, options.mask).map_err(|error| {
            Refusal::of_values("it fails with the values that were found", error, options.mask)
        })?,
        Some(object) => {
            notes.push(format!("not tried: it uses {object}"));
            ChosenFeeders::default()
        }
    };
    let fed = if kept.is_empty() {
        let mut fed = Vec::new();
        for occurrence in 0..analysed.occurrences.len() {
            fed.extend(relation_feeder(&replay_plan, occurrence, &shape, options, untriable.is_none())?);
        }
        if untriable.is_none() {
            explain_with_values(&replay_plan, &shape, &fed)
                .map_err(|error| Refusal::of_values("it cannot be planned", error, options.mask))?;
        }
        fed
    } else {
        vec![kept_values_feeder(&replay_plan, &shape, &kept)]
    };
    if untriable.is_none() {
        plan(&text, &analysed)?;
        fed.iter()
            .filter(|fed| !fed.rows.is_empty())
            .try_for_each(read_kept_values)
            .map_err(|error| Refusal::of_values("its values cannot be read again", error, options.mask))?;
    }
    for (index, source) in replay_plan.values.iter().enumerate() {
        if matches!(source, ParameterSource::Compared(_)) {
            let sql = parameter_sql(&replay_plan, &shape, index as u32 + 1, |_| String::new());
            notes.push(format!("${} meets no column: {sql}", index + 1));
        }
    }
    if analysed.writes && !analysed.takes_back && analysed.occurrences.iter().any(|o| o.is_target) {
        notes.push("writes: each call changes the data that later ones find".to_owned());
    }
    Ok(StatementReplay { script: script_text(&replay_plan, &shape, !kept.is_empty()), fed, notes })
}

/// Returns the one feeder that has stored values of all parameters.
fn kept_values_feeder(
    plan: &ReplayPlan,
    shape: &FeederShape,
    kept: &[(f64, ParameterValues)],
) -> FilledFeeder {
    let is_fed = |index: &usize| match plan.values[*index] {
        ParameterSource::Feeder => true,
        ParameterSource::Offset => shape.is_paged,
        _ => false,
    };
    let indexes: Vec<usize> = (0..plan.values.len()).filter(is_fed).collect();
    let parameter = |index: usize| &plan.analysed.parameters[index];
    let wrap = |index: usize| parameter(index).meeting.as_ref().and_then(|meeting| meeting.wrap.as_ref());
    let column = |&index: &usize| {
        let sql_type = wrap(index).map_or(&parameter(index).sql_type, |wrap| &wrap.sql_type);
        (column_name(index), sql_type.clone())
    };
    let wrapped_column = |&index: &usize| {
        let name = format!("q.{}", column_name(index));
        match wrap(index) {
            Some(wrap) => format!("{} AS {}", plan.wrap_value(wrap, &name, shape), column_name(index)),
            None => name,
        }
    };
    let is_wrapped = indexes.iter().any(|&index| wrap(index).is_some());
    let wrapped = if is_wrapped { indexes.iter().map(wrapped_column).collect() } else { Vec::new() };
    let row = |values: &ParameterValues| {
        let field =
            |&index: &usize| (column_name(index), values[index].clone().map_or(Value::Null, Value::String));
        Value::Object(indexes.iter().map(field).collect())
    };
    let rows = kept.iter().map(|(weight, values)| (Some(*weight), row(values))).collect();
    let columns = indexes.iter().map(column).collect();
    FilledFeeder { feeder: new_feeder(0, String::new(), Pick::Weighted), columns, rows, wrapped }
}

/// Reads stored values as a run will read them.
fn read_kept_values(fed: &FilledFeeder) -> Result<(), UserError> {
    let rows: Vec<String> = fed.rows.iter().map(|(_, row)| row.to_string()).collect();
    let kept = format!(
        "SELECT {}, 1 AS weight FROM (SELECT t::pg_catalog.jsonb AS row FROM pg_catalog.unnest($1) AS t) AS r",
        kept_values(&fed.columns).join(", ")
    );
    let sql = format!("SELECT pg_catalog.count(q.*) FROM ({}) AS q", fed.select(&kept));
    with_initial_path(|| fetch::<i64>(&sql, &[rows.into()])).map(drop)
}

fn new_feeder(occurrence: usize, query: String, pick: Pick) -> Feeder {
    Feeder { prefix: prefix(occurrence), query, pick, once: false, max_rows: MAX_ROWS, rows: None }
}

/// Refuses statements that are never replayed.
fn check_replayable(analysed: &Analysed, options: &CaptureOptions) -> Result<(), Refusal> {
    if analysed.is_utility {
        return Err("utility command".into());
    }
    if analysed.calls_us {
        return Err("it uses objects of pgbench_ext or pg_stat_statements".into());
    }
    if analysed.administers {
        return Err("it administers the server".into());
    }
    for &oid in &analysed.relations {
        if read_relation(oid)?.is_some_and(|relation| relation.is_temporary) {
            return Err("it uses a temporary table".into());
        }
    }
    if analysed.writes && !options.writes {
        return Err("it writes: use option writes".into());
    }
    Ok(())
}

/// Chooses the source of a parameter's values.
fn choose_source(
    analysed: &Analysed,
    index: usize,
    rows_per_call: f64,
    notes: &mut Vec<String>,
) -> Result<ParameterSource, Refusal> {
    let parameter = &analysed.parameters[index];
    if parameter.sql_type.is_empty() {
        return Ok(ParameterSource::Sql("NULL".to_owned()));
    }
    if let Some(meeting) = &parameter.meeting {
        let relation = analysed.occurrences[meeting.occurrence].relation;
        if meeting.how == How::Insert
            && !analysed.takes_back
            && let Some(column) = meeting.column
            && let Some(sql) = queries::inserted_value(relation, column, &parameter.sql_type)?
        {
            return Ok(ParameterSource::Sql(sql));
        }
        return Ok(ParameterSource::Feeder);
    }
    Ok(match &parameter.place {
        ParameterPlace::Limit => ParameterSource::Limit,
        // A statement that writes changes as many rows as this part of it returns.
        ParameterPlace::InnerLimit if analysed.writes => {
            ParameterSource::Sql((rows_per_call.ceil().max(1.0) as i64).to_string())
        }
        ParameterPlace::InnerLimit => ParameterSource::InnerLimit,
        ParameterPlace::Offset => ParameterSource::Offset,
        ParameterPlace::Compared if queries::is_number(parameter.type_oid) => {
            ParameterSource::Compared(parameter.sql_type.clone())
        }
        ParameterPlace::Argument(function, place) => {
            match queries::argument(function, *place, rows_per_call) {
                Some(text) => ParameterSource::Sql(literal(Some(text), &parameter.sql_type)),
                None => plain_source(parameter, index, notes)?,
            }
        }
        _ => plain_source(parameter, index, notes)?,
    })
}

/// Returns a plain value of its type for a parameter that meets no column.
fn plain_source(
    parameter: &Parameter,
    index: usize,
    notes: &mut Vec<String>,
) -> Result<ParameterSource, Refusal> {
    let Some(text) = queries::plain_value(parameter.type_oid)? else {
        let reason = format!("parameter ${} of type {} meets no column", index + 1, parameter.sql_type);
        return Err(reason.into());
    };
    let sql = literal(Some(&text), &parameter.sql_type);
    notes.push(format!("${} meets no column: {sql}", index + 1));
    Ok(ParameterSource::Sql(sql))
}

/// Returns the prefix of an occurrence's feeder.
fn prefix(occurrence: usize) -> String {
    if occurrence == 0 { String::new() } else { format!("r{}_", occurrence + 1) }
}

/// Returns the feeder over an occurrence's relation, or with values of pg_stats if it has no rows; `None` without parameters.
fn relation_feeder(
    plan: &ReplayPlan,
    occurrence: usize,
    shape: &FeederShape,
    options: &CaptureOptions,
    is_tried: bool,
) -> Result<Option<FilledFeeder>, Refusal> {
    let Some(query) = feeder_query(plan, occurrence, shape)? else { return Ok(None) };
    let columns = plan.columns(occurrence);
    let has_rows = || with_initial_path(|| fetch::<i32>(&format!("SELECT 1 FROM ({query}) q LIMIT 1"), &[]));
    if !is_tried || has_rows()?.is_some() {
        let pick = if shape.strategies.len() > 1 { Pick::Weighted } else { Pick::Random };
        let feeder = new_feeder(occurrence, query, pick);
        return Ok(Some(FilledFeeder { feeder, columns, rows: Vec::new(), wrapped: Vec::new() }));
    }
    let rows = rows_of_statistics(plan, occurrence, &columns, options.mask)?;
    let feeder = new_feeder(occurrence, String::new(), Pick::Weighted);
    Ok(Some(FilledFeeder { feeder, columns, rows, wrapped: Vec::new() }))
}

/// Returns weighted rows of values that pg_stats has for the columns. Columns are independent: pg_stats does not show which
/// values occur together.
fn rows_of_statistics(
    plan: &ReplayPlan,
    occurrence: usize,
    columns: &[(String, String)],
    mask: bool,
) -> Result<Vec<(Option<f64>, Value)>, Refusal> {
    let mut rows: Vec<(Option<f64>, Value)> = Vec::new();
    for (place, ((name, _), index)) in columns.iter().zip(plan.parameters(occurrence)).enumerate() {
        let column = plan.analysed.parameters[index].meeting.as_ref().and_then(|meeting| meeting.column);
        let relation = plan.analysed.occurrences[occurrence].relation;
        let values = match column {
            Some(column) => read_statistics(relation, column)?,
            None => Vec::new(),
        };
        if values.is_empty() {
            let name = &plan.relations[occurrence].name;
            let reason =
                format!("{name} has no rows, nor statistics, from which ${} could get a value", index + 1);
            return Err(reason.into());
        }
        if place == 0 {
            rows = values.iter().map(|(weight, _)| (Some(*weight), Value::Object(Map::new()))).collect();
        }
        for ((_, row), (_, text)) in rows.iter_mut().zip(values.iter().cycle()) {
            let text = if mask { masked(text) } else { text.clone() };
            if let Value::Object(fields) = row {
                fields.insert(name.clone(), Value::String(text));
            }
        }
    }
    Ok(rows)
}

/// Returns the script; `is_joint` where one feeder has the values of all parameters.
fn script_text(plan: &ReplayPlan, shape: &FeederShape, is_joint: bool) -> String {
    let sql_type =
        |number: u32| plan.analysed.parameters.get(number as usize - 1).map(|p| p.sql_type.clone());
    let mention = |number: u32| {
        let mut variable = None;
        let sql = parameter_sql(plan, shape, number, |index| {
            let meeting = plan.analysed.parameters[index].meeting.as_ref();
            let occurrence = meeting.filter(|_| !is_joint).map_or(0, |meeting| meeting.occurrence);
            variable = Some(format!("{}{}", prefix(occurrence), column_name(index)));
            String::new()
        });
        variable.ok_or(sql)
    };
    script(plan.text, mention, sql_type)
}

/// Fetches the first row of a feeder's query, as texts; empty where it has none.
fn fetch_first_row(query: &str, columns: &[(String, String)]) -> Result<Vec<Option<String>>, UserError> {
    let list: Vec<String> =
        columns.iter().map(|(name, _)| format!("q.{}::pg_catalog.text", quote_identifier(name))).collect();
    let sql = format!("SELECT ARRAY[{}]::pg_catalog.text[] FROM ({query}) q LIMIT 1", list.join(", "));
    let rows = fetch_all(&sql, &[], |row| Ok(row.get::<Vec<Option<String>>>(1)?.unwrap_or_default()))?;
    Ok(rows.into_iter().next().unwrap_or_default())
}

/// Writes a value as a literal of its type.
fn literal(value: Option<&str>, sql_type: &str) -> String {
    match value {
        Some(text) => format!("{}::{sql_type}", quote_literal(text)),
        None => format!("NULL::{sql_type}"),
    }
}

/// Plans the statement with one row of each feeder's values, so that errors appear before a run.
fn explain_with_values(
    plan: &ReplayPlan,
    shape: &FeederShape,
    feeders: &[FilledFeeder],
) -> Result<(), UserError> {
    let mut values: ParameterValues = vec![None; plan.values.len()];
    for occurrence in 0..plan.analysed.occurrences.len() {
        let indexes = plan.parameters(occurrence);
        let feeder = feeders.iter().find(|filled| filled.feeder.prefix == prefix(occurrence));
        let Some(filled) = feeder.filter(|filled| filled.rows.is_empty() && !indexes.is_empty()) else {
            continue;
        };
        let row = with_initial_path(|| fetch_first_row(&filled.feeder.query, &filled.columns))?;
        indexes.into_iter().zip(row).for_each(|(index, value)| values[index] = value);
    }
    let text = with_values(plan.text, |number| {
        parameter_sql(plan, shape, number, |index| {
            literal(values[index].as_deref(), &plan.analysed.parameters[index].sql_type)
        })
    });
    with_initial_path(|| call::<String>(&format!("EXPLAIN {text}"), &[])).map(drop)
}
