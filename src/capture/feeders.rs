//! From a captured statement to the script that replays it and the feeders that give its parameters their values.

use bench_core::captured::{
    CaptureOptions, Counts, expanded, grouped, masked, parsable, script, squashed, with_values,
};
use bench_core::error::UserError;
use bench_core::feeder::{Feeder, Pick};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::columns::{self, Relation};
use super::queries::query_of;
use super::ways::Shape;
use super::{fresh, trial};
use crate::engine::parameters::{self, Analysed, How, Parameter, Place, Wrap};
use crate::server::guc;
use crate::server::spi::{call, fetch, quote_literal};
use crate::server::transaction::rolled_back;
use crate::server::trust::objects::untriable;
use crate::server::trust::statement;

/// Rows that a feeder keeps at most.
const MAX_ROWS: u32 = 100_000;

/// A feeder, and the values that it selects where no relation's rows serve.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fed {
    pub feeder: Feeder,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
    /// Kept values with their weights; none where the query is over a relation.
    pub rows: Vec<(Option<f64>, Value)>,
    /// What makes the parameters' values of kept ones, over the columns of `q`; none where these are they.
    pub wrapped: Vec<String>,
}

impl Fed {
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
pub struct Replay {
    pub script: String,
    pub fed: Vec<Fed>,
    /// What the replay leaves out or takes for granted.
    pub notes: Vec<String>,
}

/// What takes a parameter's place in the script.
#[derive(Clone, Debug)]
pub enum Source {
    /// A column of a feeder.
    Fed,
    /// SQL.
    Sql(String),
    /// As many as the feeders' shape says.
    Limit,
    /// As [`Self::Limit`], of a part of the statement.
    InnerLimit,
    /// 0, unless the feeders' shape has pages.
    Offset,
    /// A number that is compared with what is no column's: as the feeders' shape says, of this type.
    Compared(String),
}

/// Where a parameter's value comes from.
pub struct Plan<'a> {
    pub text: &'a str,
    pub analysed: &'a Analysed,
    pub relations: Vec<Relation>,
    pub values: Vec<Source>,
}

fn told(error: UserError) -> String {
    error.message
}

/// The path that sessions of this role begin with: a run's clients have it.
fn here<T>(body: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    let path = guc::initial_search_path()?;
    rolled_back(|| guc::with_search_path(&path, body))
}

fn analyse(text: &str) -> Result<Analysed, String> {
    let judged = |text| statement::check_text(text).and_then(|()| parameters::analyse(text));
    here(|| judged(text)).map_err(|error| format!("it cannot be parsed again: {}", error.message))
}

/// How a statement with such a share of the captured time can be replayed, or why it cannot.
pub fn replay(text: &str, counts: &Counts, share: f64, options: &CaptureOptions) -> Result<Replay, String> {
    let text = parsable(&grouped(text));
    let lists = squashed(&text);
    let one_each = analyse(&expanded(&text, |_| 1))?;
    refuse(&one_each, options)?;
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
    let mut notes = Vec::new();
    if !lists.is_empty() {
        notes.push(format!("lists were squashed: replayed with {} elements", length(0)));
    }
    let relations = analysed
        .occurrences
        .iter()
        .map(|occurrence| {
            let found = columns::relation(occurrence.relation).map_err(told)?;
            found.ok_or_else(|| "a relation has been dropped".to_owned())
        })
        .collect::<Result<Vec<Relation>, String>>()?;
    let values = (0..analysed.parameters.len())
        .map(|index| value(&analysed, index, rows_per_call, &mut notes))
        .collect::<Result<Vec<Source>, String>>()?;
    let plan = Plan { text: &text, analysed: &analysed, relations, values };
    // Even a view of a table may call a function, when it is read or planned.
    let untriable = untriable(&analysed.objects).map_err(told)?;
    let trial::Chosen { shape, kept } = match &untriable {
        None => trial::shape(&plan, counts, share, options.mask).map_err(told)?,
        Some(object) => {
            notes.push(format!("not tried: it uses {object}"));
            trial::Chosen::default()
        }
    };
    let fed = if kept.is_empty() {
        let mut fed = Vec::new();
        for occurrence in 0..analysed.occurrences.len() {
            fed.extend(feed(&plan, occurrence, &shape, options, untriable.is_none())?);
        }
        if untriable.is_none() {
            check(&plan, &shape, &fed)?;
        }
        fed
    } else {
        vec![feed_kept(&plan, &shape, &kept)]
    };
    for (index, source) in plan.values.iter().enumerate() {
        if matches!(source, Source::Compared(_)) {
            let sql = sql_of(&plan, &shape, index as u32 + 1, |_| String::new());
            notes.push(format!("${} meets no column: {sql}", index + 1));
        }
    }
    if analysed.writes && !analysed.takes_back && analysed.occurrences.iter().any(|o| o.is_target) {
        notes.push("writes: each call changes the data that later ones find".to_owned());
    }
    Ok(Replay { script: script_of(&plan, &shape, !kept.is_empty()), fed, notes })
}

/// The one feeder of kept values of all parameters.
fn feed_kept(plan: &Plan, shape: &Shape, kept: &[(f64, trial::Values)]) -> Fed {
    let is_fed = |source: &Source| match source {
        Source::Fed => true,
        Source::Offset => shape.is_paged,
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
    let row = |values: &trial::Values| {
        let field =
            |&index: &usize| (column(index), values[index].clone().map_or(Value::Null, Value::String));
        Value::Object(indexes.iter().map(field).collect())
    };
    let rows = kept.iter().map(|(weight, values)| (Some(*weight), row(values))).collect();
    Fed { feeder: feeder(0, String::new(), Pick::Weighted), columns, rows, wrapped }
}

fn feeder(occurrence: usize, query: String, pick: Pick) -> Feeder {
    Feeder { prefix: prefix(occurrence), query, pick, once: false, max_rows: MAX_ROWS, rows: None }
}

/// Why a statement is not replayed at all.
fn refuse(analysed: &Analysed, options: &CaptureOptions) -> Result<(), String> {
    if analysed.is_utility {
        return Err("utility command".to_owned());
    }
    if analysed.calls_us {
        return Err("it uses objects of pgbench_ext or pg_stat_statements".to_owned());
    }
    if analysed.administers {
        return Err("it administers the server".to_owned());
    }
    for &oid in &analysed.relations {
        if columns::relation(oid).map_err(told)?.is_some_and(|relation| relation.is_temporary) {
            return Err("it uses a temporary table".to_owned());
        }
    }
    if analysed.writes && !options.writes {
        return Err("it writes: use option writes".to_owned());
    }
    Ok(())
}

/// What takes a parameter's place.
fn value(
    analysed: &Analysed,
    index: usize,
    rows_per_call: f64,
    notes: &mut Vec<String>,
) -> Result<Source, String> {
    let parameter = &analysed.parameters[index];
    if parameter.sql_type.is_empty() {
        return Ok(Source::Sql("NULL".to_owned()));
    }
    if let Some(meeting) = &parameter.meeting {
        let relation = analysed.occurrences[meeting.occurrence].relation;
        if meeting.how == How::Insert
            && !analysed.takes_back
            && let Some(column) = meeting.column
            && let Some(sql) = fresh::value(relation, column, &parameter.sql_type).map_err(told)?
        {
            return Ok(Source::Sql(sql));
        }
        return Ok(Source::Fed);
    }
    let of_type = |text: &str| Source::Sql(format!("{}::{}", quote_literal(text), parameter.sql_type));
    Ok(match &parameter.place {
        Place::Limit => Source::Limit,
        // A statement that writes changes as many rows as its part lets through.
        Place::InnerLimit if analysed.writes => {
            Source::Sql((rows_per_call.ceil().max(1.0) as i64).to_string())
        }
        Place::InnerLimit => Source::InnerLimit,
        Place::Offset => Source::Offset,
        Place::Compared if fresh::is_number(parameter.type_oid) => {
            Source::Compared(parameter.sql_type.clone())
        }
        Place::Argument(function, place) => match fresh::argument(function, *place, rows_per_call) {
            Some(text) => of_type(text),
            None => otherwise(parameter, index, notes)?,
        },
        _ => otherwise(parameter, index, notes)?,
    })
}

/// A value of a type that meets nothing.
fn otherwise(parameter: &Parameter, index: usize, notes: &mut Vec<String>) -> Result<Source, String> {
    let Some(text) = fresh::of_type(parameter.type_oid) else {
        return Err(format!("parameter ${} of type {} meets no column", index + 1, parameter.sql_type));
    };
    let sql = format!("{}::{}", quote_literal(text), parameter.sql_type);
    notes.push(format!("${} meets no column: {sql}", index + 1));
    Ok(Source::Sql(sql))
}

/// The name of a column of a feeder.
pub fn column(index: usize) -> String {
    bench_core::captured::variable(index as u32 + 1)
}

/// The prefix of an occurrence's feeder.
fn prefix(occurrence: usize) -> String {
    if occurrence == 0 { String::new() } else { format!("r{}_", occurrence + 1) }
}

/// The feeder of an occurrence's parameters, if it has any.
fn feed(
    plan: &Plan,
    occurrence: usize,
    shape: &Shape,
    options: &CaptureOptions,
    is_tried: bool,
) -> Result<Option<Fed>, String> {
    let Some(query) = query_of(plan, occurrence, shape).map_err(told)? else { return Ok(None) };
    let columns = plan.columns(occurrence);
    let has_rows = || here(|| fetch::<i32>(&format!("SELECT 1 FROM ({query}) q LIMIT 1"), &[])).map_err(told);
    if !is_tried || has_rows()?.is_some() {
        let pick = if shape.ways.len() > 1 { Pick::Weighted } else { Pick::Random };
        let feeder = feeder(occurrence, query, pick);
        return Ok(Some(Fed { feeder, columns, rows: Vec::new(), wrapped: Vec::new() }));
    }
    // Each value by itself: pg_stats knows nothing of what goes together.
    let mut rows: Vec<(Option<f64>, Value)> = Vec::new();
    for (place, (name, _)) in columns.iter().enumerate() {
        let index = plan.parameters(occurrence)[place];
        let meeting = plan.analysed.parameters[index].meeting.as_ref();
        let number = meeting.and_then(|meeting| meeting.column);
        let oid = plan.analysed.occurrences[occurrence].relation;
        let found = match number {
            Some(number) => columns::statistics(oid, number).map_err(told)?,
            None => Vec::new(),
        };
        if found.is_empty() {
            return Err(format!(
                "{} has no rows, nor statistics, from which ${} could get a value",
                plan.relations[occurrence].name,
                index + 1
            ));
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
    Ok(Some(Fed { feeder, columns, rows, wrapped: Vec::new() }))
}

impl Plan<'_> {
    /// A parameter's value in SQL, made of a value of a relation's row. Other parameters in it are constants.
    pub fn wrapped(&self, wrap: &Wrap, value: &str, shape: &Shape) -> String {
        with_values(&wrap.around(value), |number| sql_of(self, shape, number, |_| "NULL".to_owned()))
    }

    /// The parameters, from 0, that an occurrence's rows give values to.
    pub fn parameters(&self, occurrence: usize) -> Vec<usize> {
        (0..self.values.len())
            .filter(|&index| {
                let meeting = self.analysed.parameters[index].meeting.as_ref();
                matches!(self.values[index], Source::Fed)
                    && meeting.is_some_and(|m| m.occurrence == occurrence)
            })
            .collect()
    }

    /// Names and types of the columns of an occurrence's feeder.
    pub fn columns(&self, occurrence: usize) -> Vec<(String, String)> {
        let one = |index: usize| (column(index), self.analysed.parameters[index].sql_type.clone());
        self.parameters(occurrence).into_iter().map(one).collect()
    }
}

/// A parameter's place in SQL, by what is to stand there.
pub fn sql_of(plan: &Plan, shape: &Shape, number: u32, fed: impl FnOnce(usize) -> String) -> String {
    let index = number as usize - 1;
    match plan.values.get(index) {
        Some(Source::Limit) => shape.limit.to_string(),
        Some(Source::InnerLimit) => shape.inner_limit.to_string(),
        Some(Source::Compared(sql_type)) => format!("'{}'::{sql_type}", shape.compared),
        Some(Source::Offset) if !shape.is_paged => "0".to_owned(),
        Some(Source::Sql(sql)) => sql.clone(),
        _ => fed(index),
    }
}

/// The script; `is_joint` where one feeder has the values of all parameters.
fn script_of(plan: &Plan, shape: &Shape, is_joint: bool) -> String {
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

/// Plans the statement with values of a row of each feeder: what is wrong with it is found before a run.
fn check(plan: &Plan, shape: &Shape, fed: &[Fed]) -> Result<(), String> {
    let mut found: Vec<Option<String>> = vec![None; plan.values.len()];
    for occurrence in 0..plan.analysed.occurrences.len() {
        let indexes = plan.parameters(occurrence);
        let Some(fed) = fed.iter().find(|fed| fed.feeder.prefix == prefix(occurrence)) else { continue };
        if !fed.rows.is_empty() || indexes.is_empty() {
            continue;
        }
        let rows = here(|| trial::rows(&fed.feeder.query, &fed.columns, 1)).map_err(told)?;
        for (&index, value) in indexes.iter().zip(rows.into_iter().next().unwrap_or_default()) {
            found[index] = value;
        }
    }
    let text = with_values(plan.text, |number| {
        sql_of(plan, shape, number, |index| {
            trial::literal(found[index].as_deref(), &plan.analysed.parameters[index].sql_type)
        })
    });
    here(|| call::<String>(&format!("EXPLAIN {text}"), &[]))
        .map(drop)
        .map_err(|e| format!("it cannot be planned: {}", e.message))
}
