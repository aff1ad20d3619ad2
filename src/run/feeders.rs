//! Feeders: their queries are looked at when they are defined, and read before a run.

use std::collections::HashSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::{Collector, Feeder, MAX_BYTES, ValueKind};
use bench_model::part::KeptRows;
use bench_model::spec::{Role, RunSpec, ScriptSpec};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::prepare::sessions::role_of;
use crate::error::{internal, warn};
use crate::guard::session_role::{own_settings_of, refuse_policies};
use crate::guard::switch_role::as_run_role;
use crate::launch::role_session::{answer, ask, kind, read_only};
use crate::load::fixture;
use crate::server::background_worker::WorkerKind;
use crate::server::guc;
use crate::server::query::{self, Described, ResultColumn, is_one_select};
use crate::server::roles::{self, current_role_oid};
use crate::server::spi::quote_identifier;
use crate::server::transaction::rolled_back;
use crate::store::{self, Workload};

// What can be found wrong with a feeder when it is defined.

/// Everything that can be found wrong with a feeder before there is a run, by a session of the role whose sessions would read it.
/// `others` are the workload's feeders of other prefixes.
///
/// # Errors
/// 42601 for what is not one SELECT; 0A000 for one that writes; 22023 for columns that cannot be variables; the server's.
pub fn check_new(workload: &Workload, feeder: &Feeder, others: &[Feeder]) -> Result<(), UserError> {
    check_select(&feeder.query)?;
    let described = role_of(&roles::current(), workload).and_then(|role| {
        let schemas = schema_of(workload, &role)?.into_iter().collect();
        let feeders = std::iter::once(feeder).chain(others).cloned().collect();
        ask(CHECK_KIND, &role, None, &CheckRequest { feeders, schemas }).map(|(variables, _)| variables)
    });
    let all: Vec<Result<Variables, UserError>> = match described {
        Ok(all) => all,
        Err(error) if is_unavailable(&error) => return cannot_check(&error),
        Err(error) => return Err(error),
    };
    let mut all = all.into_iter();
    let variables = match all.next().ok_or_else(|| internal("a feeder that nobody has described"))? {
        Ok(variables) => variables,
        // What it names may be on another server, or not be loaded yet.
        Err(error) if is_missing(&error) => return cannot_check(&error),
        Err(error) => return Err(error),
    };
    // One that has become wrong since says so when a run starts.
    for theirs in all.flatten() {
        let theirs: HashSet<&String> = theirs.iter().flatten().collect();
        if let Some(both) = variables.iter().flatten().find(|name| theirs.contains(name)) {
            return Err(twice(both));
        }
    }
    Ok(())
}

fn cannot_check(error: &UserError) -> Result<(), UserError> {
    let hint = match error.sqlstate.as_str() {
        sqlstate::UNDEFINED_TABLE => {
            "It will be checked when a run starts. A table of this transaction is not seen before it is committed."
        }
        _ => "It will be checked when a run starts.",
    };
    warn(format!("the feeder's query cannot be checked here: {}", error.message), hint);
    Ok(())
}

/// The schema that sessions of this role find a workload's fixture in.
///
/// # Errors
/// Those of looking for it.
pub fn schema_of(workload: &Workload, role: &Role) -> Result<Option<String>, UserError> {
    let Some(name) = &workload.fixture else { return Ok(None) };
    let found = as_run_role(role.oid.into(), || fixture::usable(name))?;
    Ok(found.and_then(|fixture| fixture.schema))
}

/// The kind of worker that describes feeders.
const CHECK_KIND: WorkerKind = kind(c"pgbench_ext_feeder_check_main", c"pgbench_ext feeders");

/// The variables that a feeder sets, by its columns.
type Variables = Vec<Option<String>>;

#[derive(Serialize, Deserialize)]
struct CheckRequest {
    feeders: Vec<Feeder>,
    schemas: Vec<String>,
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_feeder_check_main(segment: pg_sys::Datum) {
    answer(segment, |CheckRequest { feeders, schemas }: CheckRequest| {
        read_only()?;
        let schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
        let path = guc::search_path_with(&schemas, &guc::initial_search_path()?);
        let describe =
            |query: &str| rolled_back(|| guc::with_search_path(&path, || query::describe(query, &[])));
        let described = feeders.iter().map(|feeder| {
            pgrx::check_for_interrupts!();
            describe(&feeder.query).and_then(|described| variables(feeder, &described))
        });
        Ok((described.collect::<Vec<_>>(), Vec::new()))
    });
}

/// That a query is one SELECT.
///
/// # Errors
/// 42601.
pub fn check_select(query: &str) -> Result<(), UserError> {
    if is_one_select(query)? {
        return Ok(());
    }
    Err(UserError::new(sqlstate::SYNTAX_ERROR, "the query of a feeder must be one SELECT")
        .hint("For example: SELECT id AS customer, region FROM customers."))
}

pub fn writes() -> UserError {
    let message = "the query of a feeder must not change or lock rows";
    UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
}

fn variables(feeder: &Feeder, described: &Described) -> Result<Variables, UserError> {
    if described.writes {
        return Err(writes());
    }
    let columns: Vec<&str> = described.columns.iter().map(|column| column.name.as_str()).collect();
    feeder.variables(&columns)
}

pub fn twice(variable: &str) -> UserError {
    let message = format!("two feeders of the workload have a column for variable \"{variable}\"");
    UserError::invalid(message).hint("Give one of them another prefix, or its column another name.")
}

/// Whether something that a query names is not there, or not for this role.
fn is_missing(error: &UserError) -> bool {
    const MISSING: [&str; 5] = [
        sqlstate::UNDEFINED_TABLE,
        sqlstate::UNDEFINED_FUNCTION,
        sqlstate::UNDEFINED_OBJECT,
        sqlstate::INSUFFICIENT_PRIVILEGE,
        // invalid_schema_name
        "3F000",
    ];
    MISSING.contains(&error.sqlstate.as_str())
}

/// Whether there is no session to ask now: it is not permitted, or would wait for this one, or there is no room for it.
fn is_unavailable(error: &UserError) -> bool {
    const UNAVAILABLE: [&str; 5] = [
        sqlstate::INSUFFICIENT_PRIVILEGE,
        sqlstate::UNDEFINED_OBJECT,
        sqlstate::INVALID_AUTHORIZATION,
        sqlstate::DEADLOCK_DETECTED,
        sqlstate::CONFIGURATION_LIMIT_EXCEEDED,
    ];
    UNAVAILABLE.contains(&error.sqlstate.as_str())
}

// The rows of a run's feeders, read in this session.

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
/// Those of [`check_new`](check_new); 55000 for no rows; 54000 for too many; the server's, with the feeder in the detail.
fn read_here(
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

// The rows of a run's feeders, read in sessions of the roles whose sessions use them, and never in the caller's own: what a query
// touches may belong to anybody.

/// The kind of worker that reads feeders.
const READER_KIND: WorkerKind = kind(c"pgbench_ext_feeders_main", c"pgbench_ext feeders");

#[derive(Serialize, Deserialize)]
struct FeederRequest {
    scripts: Vec<ScriptSpec>,
    seed: i64,
    rows: RowLimit,
    schemas: Vec<String>,
    settings: Vec<(String, String)>,
    /// Another node's values, for feeders that select them.
    kept: Vec<KeptRows>,
}

#[derive(Serialize, Deserialize)]
struct FeederAnswer {
    /// Rows of each feeder of each script.
    counts: Vec<Vec<Option<u32>>>,
    feeders: u32,
    variables: Vec<String>,
}

/// Reads the rows of a run's feeders. Each feeder then knows how many it has.
///
/// # Errors
/// As [`read_as`].
pub fn read(spec: &mut RunSpec, rows: RowLimit) -> Result<RunFeeders, UserError> {
    read_lent(spec, rows, Vec::new())
}

/// As [`read`], with another node's captured values.
///
/// # Errors
/// As [`read_as`].
pub fn read_lent(spec: &mut RunSpec, rows: RowLimit, kept: Vec<KeptRows>) -> Result<RunFeeders, UserError> {
    let schemas: Vec<&str> = spec.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
    let mut whole = RunFeeders::default();
    for role in spec.roles() {
        // Scripts keep their places, by which their rows are found.
        let is_of =
            |script: &ScriptSpec| script.role.as_ref().map_or(spec.role_oid, |own| own.oid) == role.oid;
        let mut scripts = spec.scripts.clone();
        scripts.iter_mut().filter(|script| !is_of(script)).for_each(|script| script.feeders.clear());
        let settings = own_settings_of(role.oid.into(), &spec.options.settings)?;
        let request = FeederRequest {
            scripts,
            seed: spec.seed,
            rows,
            schemas: schemas.iter().map(|&schema| schema.to_owned()).collect(),
            settings,
            kept: kept.clone(),
        };
        let (fed, scripts) = asked(&role, spec.options.run_as.as_deref(), request)?;
        whole.add_all(fed)?;
        for (script, read) in
            spec.scripts.iter_mut().zip(scripts).filter(|(_, read)| !read.feeders.is_empty())
        {
            script.feeders = read.feeders;
        }
    }
    Ok(whole)
}

/// Reads the rows of a script's feeders in a session of a role.
///
/// # Errors
/// Those of [`read_here`], and of a question to another session.
pub fn read_as(
    role: &Role,
    script: ScriptSpec,
    seed: i64,
    schemas: Vec<String>,
) -> Result<RunFeeders, UserError> {
    let (rows, settings, kept) = (RowLimit::All, Vec::new(), Vec::new());
    let request = FeederRequest { scripts: vec![script], seed, rows, schemas, settings, kept };
    asked(role, None, request).map(|(fed, _)| fed)
}

/// The rows, and the scripts whose feeders know how many they have.
fn asked(
    role: &Role,
    run_as: Option<&str>,
    request: FeederRequest,
) -> Result<(RunFeeders, Vec<ScriptSpec>), UserError> {
    if request.scripts.iter().all(|script| script.feeders.is_empty()) {
        return Ok((RunFeeders::default(), request.scripts));
    }
    let (told, bytes): (FeederAnswer, _) = ask(READER_KIND, role, run_as, &request)?;
    let mut scripts = request.scripts;
    for (script, counts) in scripts.iter_mut().zip(told.counts) {
        script.feeders.iter_mut().zip(counts).for_each(|(feeder, count)| feeder.rows = count);
    }
    Ok((RunFeeders { bytes, feeders: told.feeders, variables: told.variables }, scripts))
}

fn found(question: FeederRequest) -> Result<(FeederAnswer, Vec<u8>), UserError> {
    let FeederRequest { mut scripts, seed, rows, schemas, settings, kept } = question;
    let schemas: Vec<&str> = schemas.iter().map(String::as_str).collect();
    let fed = rolled_back(|| {
        if !kept.is_empty() {
            store::lend_captured_rows(current_role_oid(), kept)?;
        }
        read_only()?;
        read_here(&mut scripts, seed, rows, &schemas, &settings)
    })?;
    let counts = scripts.iter().map(|script| script.feeders.iter().map(|feeder| feeder.rows).collect());
    let told = FeederAnswer { counts: counts.collect(), feeders: fed.feeders, variables: fed.variables };
    Ok((told, fed.bytes))
}

/// The server's entry.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_feeders_main(segment: pg_sys::Datum) {
    answer(segment, found);
}
