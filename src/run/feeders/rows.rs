//! The rows of a run's feeders, read in this session.

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::{Collector, Feeder, MAX_BYTES, ValueKind};
use bench_model::spec::ScriptSpec;
use serde::{Deserialize, Serialize};

use super::check::{check_select, twice, writes};
use crate::error::internal;
use crate::guard::client_role::refuse_policies;
use crate::server::guc;
use crate::server::query::{self, ResultColumn};
use crate::server::roles;
use crate::server::spi::quote_identifier;
use crate::server::transaction::rolled_back;

/// The rows of a run's feeders.
#[derive(Default)]
pub struct RunFeeders {
    /// As `bench_model::feeder::unpack` reads them.
    pub bytes: Vec<u8>,
    /// How many feeders there are.
    pub feeders: u32,
    /// The variables that they set.
    pub variables: Vec<String>,
}

impl RunFeeders {
    /// Takes up a feeder's rows, where all have come.
    fn add(&mut self, script: usize, collector: &Collector) -> Result<u32, UserError> {
        let rows = collector.pack(script as u32, &mut self.bytes)?;
        self.variables.extend(collector.variables().into_iter().map(str::to_owned));
        self.feeders += 1;
        Ok(rows)
    }

    /// Takes up the rows that were read apart.
    ///
    /// # Errors
    /// 54000 where all together are too many.
    pub fn add_all(&mut self, more: Self) -> Result<(), UserError> {
        let length = self.bytes.len() + more.bytes.len();
        if length > MAX_BYTES {
            let message =
                format!("the rows of a run's feeders must not take more than {} MB", MAX_BYTES >> 20);
            return Err(UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message));
        }
        self.bytes.extend(more.bytes);
        self.feeders += more.feeders;
        self.variables.extend(more.variables);
        Ok(())
    }
}

/// How many rows of a feeder are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowLimit {
    All,
    /// The first ones: those that tell whether the query is right, for a run that is not to start now.
    First,
}

/// Reads the rows of these scripts' feeders in a session that is asked, with what a client's session would be set to; the scripts'
/// fixtures are in these schemas. Each feeder then knows how many rows it has.
///
/// # Errors
/// Those of [`check_new`](super::check_new); 55000 for no rows; 54000 for too many; the server's, with the feeder in the detail.
pub(super) fn read_here(
    scripts: &mut [ScriptSpec],
    seed: i64,
    rows: RowLimit,
    schemas: &[&str],
    settings: &[(String, String)],
) -> Result<RunFeeders, UserError> {
    // Captured values are behind a policy of the extension's.
    let is_captured = scripts.iter().any(|script| script.captured);
    collect(scripts, seed, rows, |feeder, collect| {
        let path = guc::search_path_with(schemas, &guc::initial_search_path()?);
        rolled_back(|| {
            if !is_captured {
                refuse_policies()?;
            }
            guc::set_as_session("search_path", &path)?;
            for (name, value) in settings {
                guc::set_as_session(name, value)?;
            }
            check_select(&feeder.query)?;
            if query::describe(&feeder.query, &[])?.writes {
                return Err(writes());
            }
            read_one(&feeder.query, collect)
        })
    })
}

/// Who takes a feeder's rows: first it is told the columns, then of each row whether it is to be kept, and then given it.
pub trait Take {
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), UserError>;
    fn row<'t>(
        &mut self,
        text: &dyn Fn(usize) -> Result<Option<&'t str>, UserError>,
    ) -> Result<(), UserError>;
    /// Whether there are enough.
    fn has_enough(&self) -> bool;
}

struct Taker<'a> {
    feeder: &'a Feeder,
    seed: u64,
    room: usize,
    rows: RowLimit,
    kinds: Vec<ValueKind>,
    collector: Option<Collector<'a>>,
}

impl Take for Taker<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), UserError> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        self.kinds = columns.iter().map(|column| ValueKind::of(column.type_oid.to_u32())).collect();
        self.collector = Some(Collector::new(self.feeder, &names, self.seed, self.room)?);
        Ok(())
    }

    fn row<'t>(
        &mut self,
        text: &dyn Fn(usize) -> Result<Option<&'t str>, UserError>,
    ) -> Result<(), UserError> {
        let Some(collector) = &mut self.collector else { return Ok(()) };
        let Some(place) = collector.place()? else { return Ok(()) };
        let cell = |(column, &kind): (usize, &ValueKind)| Ok((kind, text(column)?));
        collector.put(place, self.kinds.iter().enumerate().map(cell))
    }

    fn has_enough(&self) -> bool {
        self.rows == RowLimit::First
    }
}

/// Has each feeder's rows read by `read`.
pub fn collect(
    scripts: &mut [ScriptSpec],
    seed: i64,
    rows: RowLimit,
    mut read: impl FnMut(&Feeder, &mut dyn Take) -> Result<(), UserError>,
) -> Result<RunFeeders, UserError> {
    let mut fed = RunFeeders::default();
    let mut counts = Vec::new();
    let feeders = scripts.iter().enumerate();
    let feeders = feeders.flat_map(|(at, script)| script.feeders.iter().map(move |feeder| (at, feeder)));
    for (number, (script, feeder)) in feeders.enumerate() {
        let seed = seed.cast_unsigned().wrapping_add(number as u64);
        let room = MAX_BYTES.saturating_sub(fed.bytes.len());
        let mut taker = Taker { feeder, seed, room, rows, kinds: Vec::new(), collector: None };
        read(feeder, &mut taker).map_err(|error| named(error, feeder))?;
        let collector = taker.collector.ok_or_else(|| internal("a feeder without columns"))?;
        let of_script = |other: &Feeder| other.prefix != feeder.prefix;
        if scripts[script].feeders.iter().any(of_script) {
            check_twice(&fed, script, &collector)?;
        }
        counts.push(fed.add(script, &collector)?);
    }
    let feeders = scripts.iter_mut().flat_map(|script| &mut script.feeders);
    feeders.zip(counts).for_each(|(feeder, rows)| feeder.rows = Some(rows));
    Ok(fed)
}

/// # Errors
/// 22023 for a variable that another feeder of the script has as well.
fn check_twice(fed: &RunFeeders, script: usize, collector: &Collector) -> Result<(), UserError> {
    let others = bench_model::feeder::unpack(&fed.bytes).unwrap_or_default();
    let theirs = others.iter().filter(|rows| rows.script == script).flat_map(|rows| &rows.variables);
    let mine: HashSet<&str> = collector.variables().into_iter().collect();
    match theirs.copied().find(|name| mine.contains(name)) {
        Some(both) => Err(twice(both)),
        None => Ok(()),
    }
}

/// An error of the server's says which feeder it is of.
fn named(error: UserError, feeder: &Feeder) -> UserError {
    let named = feeder.named();
    let error = match error.sqlstate.as_str() {
        sqlstate::UNDEFINED_TABLE if error.hint.is_none() => error.hint(
            "Feeders are read in a session of their own, which sees neither temporary tables nor what has not been committed.",
        ),
        sqlstate::INSUFFICIENT_PRIVILEGE if error.hint.is_none() => {
            let role = quote_identifier(&roles::current_role());
            error.hint(format!("Feeders are read in a session of role {role}: GRANT it the privilege, or pass another role as run_as."))
        }
        _ => error,
    };
    match &error.detail {
        Some(detail) if *detail == named => error,
        Some(detail) => {
            let detail = format!("{detail}\n{named}");
            error.detail(detail)
        }
        None => error.detail(named),
    }
}

fn read_one(query: &str, collect: &mut dyn Take) -> Result<(), UserError> {
    let collect = std::cell::RefCell::new(collect);
    query::read(
        query,
        |columns| collect.borrow_mut().columns(&columns),
        |row| {
            let mut collect = collect.borrow_mut();
            let text =
                |column| row.text(column).map(|text| text.to_str().map_err(|_| not_text())).transpose();
            collect.row(&text)?;
            Ok(!collect.has_enough())
        },
    )
}

/// A database in SQL_ASCII may have any bytes.
pub fn not_text() -> UserError {
    UserError::new(sqlstate::CHARACTER_NOT_IN_REPERTOIRE, "a feeder's row has a text that is not UTF-8")
}
