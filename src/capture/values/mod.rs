//! Values for the parameters of captured statements: where they come from, and which of them take as many rows and blocks as
//! the captured calls did.

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
use queries::query_of;
use replay_plan::{
    FeederShape, ParameterSource, ParameterValues, ReplayPlan, SampledRelation, column, sql_of,
};
use search::ChosenFeeders;

pub use search::{TrialTime, wanted};
pub use trial_statement::plan_for_all_values;

/// Rows that a feeder keeps at most.
const MAX_ROWS: u32 = 100_000;

/// Parameters that a statement has at most, by the protocol.
const MAX_PARAMETERS: u32 = 65_535;

/// A feeder, and the values that it selects where no relation's rows serve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FilledFeeder {
    pub feeder: Feeder,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
    /// Kept values with their weights; none where the query is over a relation.
    pub rows: Vec<(Option<f64>, Value)>,
    /// What makes the parameters' values of kept ones, over the columns of `q`; none where these are they.
    pub wrapped: Vec<String>,
}

impl FilledFeeder {
    /// The query of its feeder, from that of the kept values.
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
    /// What the replay leaves out or takes for granted.
    pub notes: Vec<String>,
}

/// The path that sessions of this role begin with: a run's clients have it.
fn here<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let path = guc::initial_search_path()?;
    rolled_back(|| guc::with_search_path(&path, body))
}

fn analyse_with_texts(text: &str) -> Result<(Analysed, Vec<usize>), Refusal> {
    let (mut analysed, texts) = here(|| parameters::analyse_with_texts(text))
        .map_err(|error| Refusal::from(error).after("it cannot be parsed again"))?;
    // It is tried by itself, and what it sets may be more than a transaction's own.
    analysed.writes |= analysed.sets;
    Ok((analysed, texts))
}

fn analyse(text: &str) -> Result<Analysed, Refusal> {
    analyse_with_texts(text).map(|(analysed, _)| analysed)
}

/// A statement with types for those of its parameters that need one, analysed with one element in each list.
fn typed(text: String) -> Result<(String, Analysed), Refusal> {
    let analyse = |text: &str| analyse_with_texts(&expanded(text, |_| 1));
    let as_texts = |text: String, texts: Vec<usize>| {
        let numbers: Vec<u32> = texts.into_iter().map(|place| place as u32 + 1).collect();
        with_texts(&text, &numbers)
    };
    let reason = match analyse(&text) {
        Ok((analysed, texts)) => return Ok((as_texts(text, texts), analysed)),
        Err(reason) => reason,
    };
    let found = with_types(&text).into_iter().find_map(|text| Some((analyse(&text).ok()?, text)));
    found.map(|((analysed, texts), text)| (as_texts(text, texts), analysed)).ok_or(reason)
}

/// The conditions of unique indexes on part of a table, those that are valid.
const CONDITIONS: &str = "\
    SELECT pg_catalog.pg_get_expr(i.indpred, i.indrelid) FROM pg_catalog.pg_index i \
    WHERE i.indrelid OPERATOR(pg_catalog.=) $1 AND i.indisunique AND i.indisvalid AND i.indpred IS NOT NULL \
    ORDER BY i.indexrelid";

/// A statement whose ON CONFLICT has a condition, with that of an index in its place: its own constants are lost, and from
/// parameters the server infers no index.
fn with_arbiter(
    text: String,
    analysed: Analysed,
    notes: &mut Vec<String>,
) -> Result<(String, Analysed), Refusal> {
    let Some(range) = arbiter(&text) else { return Ok((text, analysed)) };
    let targets = analysed.occurrences.iter().filter(|occurrence| occurrence.is_target);
    for target in targets {
        let conditions = fetch_all(CONDITIONS, &[target.relation.into()], |row| row.get::<String>(1))?;
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
    here(|| plan_for_all_values(text, &types))
        .map_err(|error| Refusal::from(error).after("it cannot be planned"))
}

/// How a statement can be replayed, or why it cannot; it is tried for so long.
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
    let (text, one_each) = typed(text)?;
    refuse(&one_each, options)?;
    check_privileges(&one_each.privileges)?;
    let (text, one_each) = with_arbiter(text, one_each, &mut notes)?;
    if options.mask && has_constants(&text) {
        return Err("it has a constant that cannot be a variable (option mask)".into());
    }
    let lists = squashed(&text);
    let rows_per_call = counts.rows as f64 / counts.calls.max(1) as f64;
    let aggregates = one_each.aggregates;
    let length = |_: u32| match options.list_length {
        Some(length) => length as usize,
        // As many as rows come back, where each element finds one.
        None if aggregates => 5,
        None => (rows_per_call.round() as usize).clamp(1, 10),
    };
    let text = expanded(&text, length);
    let analysed = if lists.is_empty() { one_each } else { analyse(&text)? };
    if !lists.is_empty() {
        notes.push(format!("lists were squashed: replayed with {} elements", length(0)));
    }
    let relations = analysed
        .occurrences
        .iter()
        .map(|occurrence| {
            replay_plan::relation(occurrence.relation)?.ok_or_else(|| "a relation has been dropped".into())
        })
        .collect::<Result<Vec<SampledRelation>, Refusal>>()?;
    let values = (0..analysed.parameters.len())
        .map(|index| value(&analysed, index, rows_per_call, &mut notes))
        .collect::<Result<Vec<ParameterSource>, Refusal>>()?;
    let replay = ReplayPlan { text: &text, analysed: &analysed, relations, values };
    if (0..analysed.occurrences.len()).any(|occurrence| replay.parameters(occurrence).len() > MAX_COLUMNS) {
        return Err(format!("more than {MAX_COLUMNS} parameters get values of one relation").into());
    }
    // Even a view of a table may call a function, when it is read or planned.
    let untriable = untriable(&analysed.objects)?;
    let ChosenFeeders { shape, kept } = match &untriable {
        None => search::shape(&replay, counts, limit, options.mask).map_err(|error| {
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
            fed.extend(feed(&replay, occurrence, &shape, options, untriable.is_none())?);
        }
        if untriable.is_none() {
            check(&replay, &shape, &fed)
                .map_err(|error| Refusal::of_values("it cannot be planned", error, options.mask))?;
        }
        fed
    } else {
        vec![feed_kept(&replay, &shape, &kept)]
    };
    if untriable.is_none() {
        plan(&text, &analysed)?;
        fed.iter()
            .filter(|fed| !fed.rows.is_empty())
            .try_for_each(read)
            .map_err(|error| Refusal::of_values("its values cannot be read again", error, options.mask))?;
    }
    for (index, source) in replay.values.iter().enumerate() {
        if matches!(source, ParameterSource::Compared(_)) {
            let sql = sql_of(&replay, &shape, index as u32 + 1, |_| String::new());
            notes.push(format!("${} meets no column: {sql}", index + 1));
        }
    }
    if analysed.writes && !analysed.takes_back && analysed.occurrences.iter().any(|o| o.is_target) {
        notes.push("writes: each call changes the data that later ones find".to_owned());
    }
    Ok(StatementReplay { script: script_of(&replay, &shape, !kept.is_empty()), fed, notes })
}

/// The one feeder of kept values of all parameters.
fn feed_kept(plan: &ReplayPlan, shape: &FeederShape, kept: &[(f64, ParameterValues)]) -> FilledFeeder {
    let is_fed = |source: &ParameterSource| match source {
        ParameterSource::Feeder => true,
        ParameterSource::Offset => shape.is_paged,
        _ => false,
    };
    let indexes: Vec<usize> = (0..plan.values.len()).filter(|&index| is_fed(&plan.values[index])).collect();
    let wrap = |index: usize| plan.analysed.parameters[index].meeting.as_ref().and_then(|m| m.wrap.as_ref());
    let columns = indexes
        .iter()
        .map(|&index| {
            let sql_type = match wrap(index) {
                Some(wrap) => &wrap.sql_type,
                None => &plan.analysed.parameters[index].sql_type,
            };
            (column(index), sql_type.clone())
        })
        .collect();
    let value = |index: usize| {
        let name = format!("q.{}", column(index));
        match wrap(index) {
            Some(wrap) => format!("{} AS {}", plan.wrapped(wrap, &name, shape), column(index)),
            None => name,
        }
    };
    let is_wrapped = indexes.iter().any(|&index| wrap(index).is_some());
    let wrapped = if is_wrapped { indexes.iter().map(|&index| value(index)).collect() } else { Vec::new() };
    let row = |values: &ParameterValues| {
        let field =
            |&index: &usize| (column(index), values[index].clone().map_or(Value::Null, Value::String));
        Value::Object(indexes.iter().map(field).collect())
    };
    let rows = kept.iter().map(|(weight, values)| (Some(*weight), row(values))).collect();
    FilledFeeder { feeder: feeder(0, String::new(), Pick::Weighted), columns, rows, wrapped }
}

/// Reads kept values as a run will read them.
fn read(fed: &FilledFeeder) -> Result<(), UserError> {
    let rows: Vec<String> = fed.rows.iter().map(|(_, row)| row.to_string()).collect();
    let kept = format!(
        "SELECT {}, 1 AS weight FROM (SELECT t::pg_catalog.jsonb AS row FROM pg_catalog.unnest($1) AS t) AS r",
        kept_values(&fed.columns).join(", ")
    );
    let sql = format!("SELECT pg_catalog.count(q.*) FROM ({}) AS q", fed.select(&kept));
    here(|| fetch::<i64>(&sql, &[rows.into()])).map(drop)
}

fn feeder(occurrence: usize, query: String, pick: Pick) -> Feeder {
    Feeder { prefix: prefix(occurrence), query, pick, once: false, max_rows: MAX_ROWS, rows: None }
}

/// Why a statement is not replayed at all.
fn refuse(analysed: &Analysed, options: &CaptureOptions) -> Result<(), Refusal> {
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
        if replay_plan::relation(oid)?.is_some_and(|relation| relation.is_temporary) {
            return Err("it uses a temporary table".into());
        }
    }
    if analysed.writes && !options.writes {
        return Err("it writes: use option writes".into());
    }
    Ok(())
}

/// What takes a parameter's place.
fn value(
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
            && let Some(sql) = queries::value(relation, column, &parameter.sql_type)?
        {
            return Ok(ParameterSource::Sql(sql));
        }
        return Ok(ParameterSource::Feeder);
    }
    let of_type =
        |text: &str| ParameterSource::Sql(format!("{}::{}", quote_literal(text), parameter.sql_type));
    Ok(match &parameter.place {
        ParameterPlace::Limit => ParameterSource::Limit,
        // A statement that writes changes as many rows as its part lets through.
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
                Some(text) => of_type(text),
                None => otherwise(parameter, index, notes)?,
            }
        }
        _ => otherwise(parameter, index, notes)?,
    })
}

/// A value of a type that meets nothing.
fn otherwise(
    parameter: &Parameter,
    index: usize,
    notes: &mut Vec<String>,
) -> Result<ParameterSource, Refusal> {
    let Some(text) = queries::of_type(parameter.type_oid)? else {
        let reason = format!("parameter ${} of type {} meets no column", index + 1, parameter.sql_type);
        return Err(reason.into());
    };
    let sql = format!("{}::{}", quote_literal(&text), parameter.sql_type);
    notes.push(format!("${} meets no column: {sql}", index + 1));
    Ok(ParameterSource::Sql(sql))
}

/// The prefix of an occurrence's feeder.
fn prefix(occurrence: usize) -> String {
    if occurrence == 0 { String::new() } else { format!("r{}_", occurrence + 1) }
}

/// The feeder of an occurrence's parameters, if it has any.
fn feed(
    plan: &ReplayPlan,
    occurrence: usize,
    shape: &FeederShape,
    options: &CaptureOptions,
    is_tried: bool,
) -> Result<Option<FilledFeeder>, Refusal> {
    let Some(query) = query_of(plan, occurrence, shape)? else { return Ok(None) };
    let columns = plan.columns(occurrence);
    let has_rows = || here(|| fetch::<i32>(&format!("SELECT 1 FROM ({query}) q LIMIT 1"), &[]));
    if !is_tried || has_rows()?.is_some() {
        let pick = if shape.strategies.len() > 1 { Pick::Weighted } else { Pick::Random };
        let feeder = feeder(occurrence, query, pick);
        return Ok(Some(FilledFeeder { feeder, columns, rows: Vec::new(), wrapped: Vec::new() }));
    }
    // Each value by itself: pg_stats knows nothing of what goes together.
    let mut rows: Vec<(Option<f64>, Value)> = Vec::new();
    for (place, ((name, _), index)) in columns.iter().zip(plan.parameters(occurrence)).enumerate() {
        let meeting = plan.analysed.parameters[index].meeting.as_ref();
        let number = meeting.and_then(|meeting| meeting.column);
        let oid = plan.analysed.occurrences[occurrence].relation;
        let found = match number {
            Some(number) => replay_plan::statistics(oid, number)?,
            None => Vec::new(),
        };
        if found.is_empty() {
            let name = &plan.relations[occurrence].name;
            let reason =
                format!("{name} has no rows, nor statistics, from which ${} could get a value", index + 1);
            return Err(reason.into());
        }
        if place == 0 {
            rows = found.iter().map(|(weight, _)| (Some(*weight), Value::Object(Map::new()))).collect();
        }
        for (at, (_, row)) in rows.iter_mut().enumerate() {
            let text = &found[at % found.len()].1;
            let text = if options.mask { masked(text) } else { text.clone() };
            if let Value::Object(fields) = row {
                fields.insert(name.clone(), Value::String(text));
            }
        }
    }
    let feeder = feeder(occurrence, String::new(), Pick::Weighted);
    Ok(Some(FilledFeeder { feeder, columns, rows, wrapped: Vec::new() }))
}

/// The script; `is_joint` where one feeder has the values of all parameters.
fn script_of(plan: &ReplayPlan, shape: &FeederShape, is_joint: bool) -> String {
    let type_of = |number: u32| plan.analysed.parameters.get(number as usize - 1).map(|p| p.sql_type.clone());
    let mention = |number: u32| {
        let mut fed = None;
        let sql = sql_of(plan, shape, number, |index| {
            let meeting = plan.analysed.parameters[index].meeting.as_ref();
            let occurrence = meeting.filter(|_| !is_joint).map_or(0, |meeting| meeting.occurrence);
            fed = Some(format!("{}{}", prefix(occurrence), column(index)));
            String::new()
        });
        fed.ok_or(sql)
    };
    script(plan.text, mention, type_of)
}

/// Values as the server writes them, of so many rows of a query.
fn rows(
    query: &str,
    columns: &[(String, String)],
    most: usize,
) -> Result<Vec<Vec<Option<String>>>, UserError> {
    let list: Vec<String> =
        columns.iter().map(|(name, _)| format!("q.{}::pg_catalog.text", quote_identifier(name))).collect();
    let sql = format!("SELECT ARRAY[{}]::pg_catalog.text[] FROM ({query}) q LIMIT {most}", list.join(", "));
    fetch_all(&sql, &[], |row| Ok(row.get::<Vec<Option<String>>>(1)?.unwrap_or_default()))
}

/// A value as a literal of its type.
fn literal(value: Option<&str>, sql_type: &str) -> String {
    match value {
        Some(text) => format!("{}::{sql_type}", quote_literal(text)),
        None => format!("NULL::{sql_type}"),
    }
}

/// Plans the statement with values of a row of each feeder: what is wrong with it is found before a run.
fn check(plan: &ReplayPlan, shape: &FeederShape, fed: &[FilledFeeder]) -> Result<(), UserError> {
    let mut found: Vec<Option<String>> = vec![None; plan.values.len()];
    for occurrence in 0..plan.analysed.occurrences.len() {
        let indexes = plan.parameters(occurrence);
        let Some(fed) = fed.iter().find(|fed| fed.feeder.prefix == prefix(occurrence)) else { continue };
        if !fed.rows.is_empty() || indexes.is_empty() {
            continue;
        }
        let rows = here(|| rows(&fed.feeder.query, &fed.columns, 1))?;
        for (&index, value) in indexes.iter().zip(rows.into_iter().next().unwrap_or_default()) {
            found[index] = value;
        }
    }
    let text = with_values(plan.text, |number| {
        sql_of(plan, shape, number, |index| {
            literal(found[index].as_deref(), &plan.analysed.parameters[index].sql_type)
        })
    });
    here(|| call::<String>(&format!("EXPLAIN {text}"), &[])).map(drop)
}
