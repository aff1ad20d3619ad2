//! A target that has been reached: its fixtures, the feeders whose rows it has, and what is wrong with a run's scripts there.

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_model::client::ClientWorkload;
use bench_model::spec::{FixtureSpec, HostAddress, Observation, QueryMode, RunSpec, TargetSpec};
use bench_protocol::foreign_server::{
    Secrets, SessionAttributes, Suitability, Target, check_password_given, check_password_used,
};
use bench_script::Action;
use pgrx::pg_sys;
use serde::Deserialize;
use serde_json::Value;

use super::{Description, check_files, foreign_server, mapping, may_not_use, of_another_owner, unexpected};
use crate::driver::connection::{self, BlockingSession, Route};
use crate::error::{internal, warn};
use crate::launch::checks::lock_of;
use crate::launch::role_session::check_may_start;
use crate::load::fixture;
use crate::run::client;
use crate::run::client::statements::point_at;
use crate::run::feeders::{Take, check_select, not_text};
use crate::run::prepare::settings;
use crate::server::guc;
use crate::server::process::random_seed;
use crate::server::query::ResultColumn;
use crate::server::roles::{self, superuser};
use crate::server::spi::{quote_identifier, quote_literal};

/// The fixture that pgbench's own tables can stand in for.
const TPCB: &str = "tpcb";

/// A fixture of the target's, by bench.fixtures.
#[derive(Deserialize)]
struct TargetFixture {
    schema: String,
    rows: i64,
    options: serde_json::Value,
}

/// A target on which nothing was found wrong.
pub struct Examined {
    pub target: TargetSpec,
    pub secrets: Secrets,
    pub plans: Vec<PlanOfCommand>,
}

/// A target that has been reached.
pub struct Reached {
    pub spec: TargetSpec,
    pub secrets: Secrets,
    pub session: BlockingSession,
    pub description: Description,
}

impl Reached {
    /// Reads server and mapping and connects.
    ///
    /// # Errors
    /// What is wrong with them; what keeps the server from being reached.
    pub fn new(name: &str) -> Result<Self, UserError> {
        check_may_start()?;
        let Some(server) = foreign_server(name)? else {
            let message = format!("server \"{name}\" does not exist");
            return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message).hint(
                "Create a target with CREATE SERVER … FOREIGN DATA WRAPPER bench_wire OPTIONS (host …).",
            ));
        };
        if !server.may_use {
            return Err(may_not_use(name));
        }
        let role = roles::current_role();
        let Some(mapping) = mapping(&server)? else {
            let message = format!("user mapping not found for \"{role}\" on server \"{name}\"");
            return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message).hint(format!(
                "CREATE USER MAPPING FOR CURRENT_USER SERVER {} OPTIONS (user …, password …).",
                quote_identifier(name)
            )));
        };
        let (options, secrets) = Target::new(&server.options, &mapping, &role)?;
        let needs_no_password = superuser() && server.is_superusers;
        let for_owner = |error| if superuser() { of_another_owner(error, name, &server) } else { error };
        check_password_given(needs_no_password, &options, &secrets).map_err(for_owner)?;
        check_files(name, &server, &options)?;
        let SuitableSession { mut session, candidates } = connect(&options, &secrets, needs_no_password)?;
        let mut description = Description::ask(&mut session)?;
        let settings = description.settings.take().unwrap_or_default();
        let spec = TargetSpec {
            name: name.to_owned(),
            needs_password: !needs_no_password && options.password_required,
            options,
            candidates,
            version: description.version.clone(),
            settings: settings.into_iter().filter(|s| !guc::is_for_superusers(&s.name)).collect(),
            is_standby: description.is_standby,
            is_pooled: session.session().backend().is_none_or(|(pid, _)| pid != description.pid),
            views: description.views(),
            statements: description.statements.take(),
            search_path: None,
        };
        Ok(Self { spec, secrets, session, description })
    }

    /// The fixture of this name there.
    ///
    /// # Errors
    /// 55000 where it is not loaded.
    pub fn fixture(&mut self, name: &str) -> Result<FixtureSpec, UserError> {
        if self.description.has_fixtures {
            let asked = self.session.own_value(&format!(
                "SELECT json_build_object('schema', f.schema, 'rows', f.rows, 'options', f.options) \
                 FROM bench.fixtures f WHERE f.name::text = {} \
                 ORDER BY to_jsonb(f) ->> 'owner_oid' = \
                     (SELECT r.oid::text FROM pg_roles r WHERE r.rolname = current_user) \
                     DESC NULLS LAST, f.loaded_at DESC LIMIT 1",
                quote_literal(name)
            ))?;
            if let Some(json) = asked {
                let loaded: TargetFixture =
                    serde_json::from_str(&json).map_err(|error| unexpected(&error))?;
                return Ok(fixture::remote(name, Some(loaded.schema), loaded.rows, loaded.options));
            }
        }
        if name == TPCB && self.session.value(HAS_BRANCHES)?.as_deref() == Some("t") {
            let branches = self.session.value("SELECT pg_catalog.count(*) FROM pgbench_branches")?;
            let scale: i64 = branches.and_then(|count| count.parse().ok()).unwrap_or_default();
            return Ok(fixture::remote(
                name,
                None,
                scale.saturating_mul(fixture::ACCOUNTS),
                serde_json::Value::Null,
            ));
        }
        Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            format!("fixture \"{name}\" is not loaded on target \"{}\"", self.spec.name),
        )
        .detail("It is looked for in bench.fixtures there.")
        .hint(format!("Load it there: SELECT bench.load('{name}'), with pgbench_ext in that database.")))
    }

    /// Finds what is wrong with the scripts there, says what will fail, and ends the session. The run is complete but for
    /// its target.
    ///
    /// # Errors
    /// The server's, with the place in the script.
    pub fn examine(mut self, run: &RunSpec, arm: Option<usize>) -> Result<Examined, UserError> {
        // Behind a pooler all of it has to be one transaction, which leaves nothing behind.
        self.session.value("BEGIN")?;
        let schemas: Vec<&str> = run.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
        let is_given = run.options.settings.iter().any(|(name, _)| name.eq_ignore_ascii_case("search_path"));
        if !schemas.is_empty() && !is_given && self.spec.is_pooled {
            self.check_path(&schemas)?;
        } else if !schemas.is_empty() && !is_given {
            let path = guc::search_path_with(&schemas, &self.description.search_path);
            self.set("search_path", &path)?;
            self.spec.search_path = Some(path);
        }
        for (name, value) in &run.options.settings {
            self.set(name, value)?;
        }
        let writes = lock_of(&run.scripts) != pg_sys::AccessShareLock.cast_signed();
        if settings::observation() != Observation::Off {
            self.description.tell_what_is_missing(&self.spec);
        }
        if self.description.is_read_only && writes {
            warn(
                format!("target \"{}\" is read-only", self.spec.name),
                "Transactions that change something will fail there with SQLSTATE 25006.",
            );
        }
        let mut plans = Vec::new();
        if run.scripts.iter().any(|script| run.options.query_mode_of(script) != QueryMode::Simple) {
            let mut workload = client::workload(run, None)?;
            let result = plan(&mut self.session, run, arm, &mut workload);
            plans = result.map_err(|error| {
                let error = UserError::from(error);
                let detail =
                    format!("Target \"{}\" gave this error while preparing the workload.", self.spec.name);
                let detail = match &error.detail {
                    Some(further) => format!("{detail}\n{further}"),
                    None => detail,
                };
                error.detail(detail)
            })?;
        }
        self.session.value("ROLLBACK")?;
        self.session.close();
        Ok(Examined { target: self.spec, secrets: self.secrets, plans })
    }

    /// Sets a parameter up to the end of the transaction.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), UserError> {
        let (name, value) = (quote_literal(name), quote_literal(value));
        self.session.value(&format!("SELECT pg_catalog.set_config({name}, {value}, true)")).map(drop)
    }

    /// # Errors
    /// 0A000 where the fixtures' schemas are not on the role's own search_path: poolers do not pass on one that is given.
    fn check_path(&mut self, schemas: &[&str]) -> Result<(), UserError> {
        let path = self.session.value("SELECT pg_catalog.to_json(pg_catalog.current_schemas(false))")?;
        let path: Vec<String> = path.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let missing = schemas.iter().find(|schema| !path.iter().any(|on_path| on_path == *schema));
        let Some(schema) = missing else { return Ok(()) };
        let message = format!("target \"{}\" is a pooler, which does not set search_path", self.spec.name);
        Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .detail(format!("The workload's tables are in schema \"{schema}\"."))
            .hint(format!(
                "On its server: ALTER ROLE {} SET search_path = {}, \"$user\", public.",
                quote_identifier(&self.spec.options.user),
                quote_identifier(schema)
            )))
    }
}

const HAS_BRANCHES: &str = "SELECT pg_catalog.to_regclass('pgbench_branches') IS NOT NULL";

/// A session that is good enough, and all ways that there are, its own first.
struct SuitableSession {
    session: BlockingSession,
    candidates: Vec<HostAddress>,
}

/// Connects to the first of the hosts that can be had and has a suitable session.
fn connect(
    options: &Target,
    secrets: &Secrets,
    needs_no_password: bool,
) -> Result<SuitableSession, UserError> {
    let mut tried: Vec<HostAddress> = Vec::new();
    let mut failures = Vec::new();
    let mut found = None;
    for (host, attributes) in options.attempts(random_seed().cast_unsigned()) {
        let candidates = match connection::candidates(host, options.tls.sslmode) {
            Ok(candidates) => candidates,
            Err(error) => {
                failures.push(error);
                continue;
            }
        };
        let last = candidates.len().saturating_sub(1);
        for (place, candidate) in candidates.into_iter().enumerate() {
            if found.is_none() {
                match attempt(options, secrets, &candidate, attributes, needs_no_password) {
                    Ok(session) => {
                        found = Some(session);
                        tried.retain(|known| *known != candidate);
                        tried.insert(0, candidate);
                        continue;
                    }
                    Err(error) => {
                        let is_refused = error.sqlstate.starts_with("28");
                        failures.push(error);
                        // As libpq does: where a host does not let somebody in, the others are not asked.
                        if is_refused && place == last {
                            return Err(all_failed(failures));
                        }
                    }
                }
            }
            if !tried.contains(&candidate) {
                tried.push(candidate);
            }
        }
    }
    match found {
        Some(session) => Ok(SuitableSession { session, candidates: tried }),
        None => Err(all_failed(failures)),
    }
}

/// A session with one address, if it is good enough.
fn attempt(
    options: &Target,
    secrets: &Secrets,
    to: &HostAddress,
    attributes: SessionAttributes,
    needs_no_password: bool,
) -> Result<BlockingSession, UserError> {
    let mut session = BlockingSession::connect(Route::to_target(options, secrets, to.clone())?)?;
    // Before the first statement.
    check_password_used(needs_no_password, options, session.session().used_password())?;
    let known = session.session();
    let report = |name| known.parameter(name);
    let suitability =
        match attributes.by_report(report("in_hot_standby"), report("default_transaction_read_only")) {
            Suitability::Ask(query) => attributes.by_answer(&session.value(query)?.unwrap_or_default()),
            told => told,
        };
    match suitability {
        Suitability::Unsuitable(reason) => Err(connection::failed(to, reason)),
        _ => Ok(session),
    }
}

/// The last of the errors; those before it, of other hosts or addresses, are its detail.
fn all_failed(mut failures: Vec<UserError>) -> UserError {
    let Some(last) = failures.pop() else { return internal("a target without hosts") };
    let mut lines: Vec<String> = failures.into_iter().map(|error| error.message).collect();
    lines.dedup();
    lines.retain(|line| *line != last.message);
    let detail: Vec<String> = lines.into_iter().chain(last.detail.clone()).collect();
    UserError { detail: (!detail.is_empty()).then(|| detail.join("\n")), ..last }
}

/// How many rows are fetched at a time: few at first, and then as many as together have about so many bytes, so that they
/// stay far below what is kept of one answer.
const FIRST_ROWS: usize = 100;
const MOST_ROWS: usize = 1000;
const BYTES_AT_ONCE: usize = 1 << 20;

impl Reached {
    /// Reads the rows of a feeder there, in a read-only transaction that is rolled back.
    ///
    /// # Errors
    /// The server's, and those of `take`.
    pub fn read(
        &mut self,
        fixtures: &[FixtureSpec],
        settings: &[(String, String)],
        query: &str,
        take: &mut dyn Take,
    ) -> Result<(), UserError> {
        check_select(query)?;
        self.session.value("BEGIN READ ONLY")?;
        let schemas: Vec<&str> = fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
        if !schemas.is_empty() {
            let path = guc::search_path_with(&schemas, &self.description.search_path);
            self.set("search_path", &path)?;
        }
        for (name, value) in settings {
            self.set(name, value)?;
        }
        // A query may end with a comment.
        self.session.value(&format!("DECLARE bench_feeder NO SCROLL CURSOR FOR {query}\n"))?;
        let mut is_first = true;
        let mut at_once = FIRST_ROWS;
        loop {
            pgrx::check_for_interrupts!();
            let (mut count, mut bytes) = (0, 0);
            self.session.rows(&format!("FETCH {at_once} FROM bench_feeder"), |table| {
                if std::mem::take(&mut is_first) {
                    let column = |&(name, oid): &(&[u8], u32)| {
                        Ok(ResultColumn { name: text(name)?.to_owned(), type_oid: oid.into() })
                    };
                    let columns = table.columns.iter().map(column).collect::<Result<Vec<_>, UserError>>()?;
                    take.columns(&columns)?;
                }
                for row in table.rows() {
                    (count, bytes) =
                        (count + 1, bytes + row.iter().flatten().map(|value| value.len()).sum::<usize>());
                    take.row(&|at| row.get(at).copied().flatten().map(text).transpose())?;
                }
                Ok(())
            })?;
            if count == 0 || take.has_enough() {
                break;
            }
            at_once = (BYTES_AT_ONCE / (bytes / count).max(1)).clamp(1, MOST_ROWS);
        }
        self.session.value("ROLLBACK").map(drop)
    }
}

fn text(bytes: &[u8]) -> Result<&str, UserError> {
    // No text of a server's has a zero byte.
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or_else(not_text)
}

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
