//! The arms over connections to their targets: one session for each target, in a transaction that is rolled back.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Instant;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_model::client::Program;
use bench_model::spec::{Duel, QueryMode, RunSpec, ScriptSpec};
use bench_protocol::CommandOutcome;
use bench_protocol::foreign_server::Secrets;
use bench_questions::answers::{Answer, Kind, Limit, Outline, StatementKind};
use bench_script::{Action, Sql, Variables};
use pgrx::pg_sys;
use serde::Deserialize;

use super::comparer::{Call, Class, Clock, Driver, Outcome, Probe, RENDERING, compare_all};
use super::lane::Lane;
use super::request::{Request, SessionAnswer};
use crate::driver::connection::{BlockingSession, Route};
use crate::run::client::statements::internal;
use crate::run::connections::{ArmMessage, keep, messages, value};
use crate::run::target_server::unexpected;
use crate::server::process::random_seed;
use crate::server::spi::quote_literal;
use crate::shm::Segment;

/// Asks the arms' targets.
///
/// # Errors
/// Those of the connections; 0A000 for two targets in the same database; as [`compare_all`].
pub fn compare_targets(
    request: &Request,
    secrets: &[Secrets; 2],
    segment: &Segment,
) -> Result<SessionAnswer, UserError> {
    let spec = &request.spec;
    let duel = spec.options.duel.as_ref().ok_or_else(|| internal("a comparison without arms"))?;
    let mut routes = Route::of_run(spec, None, secrets)?;
    // Hosts that a client would try after the first one.
    routes.drain(1..routes.len() - usize::from(spec.other_target.is_some()));
    let sessions = routes.into_iter().map(|route| {
        let session = BlockingSession::connect(route)?;
        session.check()?;
        Ok(session)
    });
    let sessions = sessions.collect::<Result<Vec<_>, UserError>>()?;
    let driver = WireDriver {
        spec,
        duel,
        sessions,
        current: [None; 2],
        servers: Vec::new(),
        types: Default::default(),
    };
    Ok(compare_all(request, segment, driver)?)
}

/// What an arm's session says of itself.
#[derive(Deserialize)]
struct Server {
    version: String,
    /// The provider, name and version of the database's collation.
    collation: String,
    /// Parameters that may explain differences.
    parameters: BTreeMap<String, Option<String>>,
}

/// The columns of pg_database that the server's version lacks are missing in its JSON too.
const SERVER: &str = "SELECT json_build_object('version', current_setting('server_version'), 'collation', \
     (SELECT concat_ws(' ', CASE d ->> 'datlocprovider' WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' END, \
         coalesce(d ->> 'datlocale', d ->> 'daticulocale', d ->> 'datcollate'), d ->> 'datcollversion') \
      FROM (SELECT to_jsonb(p) AS d FROM pg_database p WHERE p.datname = current_database()) s), \
     'parameters', (SELECT json_object_agg(n, current_setting(n, true)) FROM unnest(string_to_array(";

struct WireDriver<'a> {
    spec: &'a RunSpec,
    duel: &'a Duel,
    /// One for each arm, or for both.
    sessions: Vec<BlockingSession>,
    /// The arm whose parameters each session has.
    current: [Option<usize>; 2],
    /// Of each arm.
    servers: Vec<Server>,
    /// Names of types by OID, of each session.
    types: [HashMap<u32, String>; 2],
}

const ROLL_BACK: &str = "ROLLBACK TO SAVEPOINT pgbench_ext; RELEASE SAVEPOINT pgbench_ext";

impl WireDriver<'_> {
    fn place(&self, arm: usize) -> usize {
        arm.min(self.sessions.len() - 1)
    }

    fn each(&mut self, sql: &str) -> Result<(), SqlError> {
        self.sessions.iter_mut().try_for_each(|session| session.value(sql).map(drop)).map_err(SqlError::from)
    }

    /// Gives an arm's session the arm's parameters.
    fn enter(&mut self, arm: usize) -> Result<&mut BlockingSession, SqlError> {
        let place = self.place(arm);
        let session = &mut self.sessions[place];
        if self.current[place] != Some(arm) {
            for message in messages(self.duel, arm) {
                if let ArmMessage::Reset(text) = message {
                    session.value(&text)?;
                }
            }
            for (name, value) in &self.duel.arms[arm].settings {
                set(session, name, value, false)?;
            }
            self.current[place] = Some(arm);
        }
        Ok(session)
    }

    /// Reads what may differ between the servers.
    fn read_server(&mut self, arm: usize) -> Result<Server, SqlError> {
        let own = self.duel.arms.iter().flat_map(|arm| &arm.settings).map(|(name, _)| name.as_str());
        let own = own.filter(|name| !RENDERING.iter().any(|known| known.eq_ignore_ascii_case(name)));
        let names = RENDERING.into_iter().chain(own).collect::<Vec<_>>().join(",");
        let session = self.enter(arm)?;
        // Setting search_path must not last.
        session.value("SAVEPOINT pgbench_ext")?;
        let answer = session.own_value(&format!("{SERVER}{}, ',')) AS n))", quote_literal(&names)))?;
        session.value(ROLL_BACK)?;
        serde_json::from_str(&answer.unwrap_or_default()).map_err(|error| unexpected(&error).into())
    }

    /// Returns the parameters that a probe changes.
    fn changes<'p>(&self, probe: &'p Probe) -> Vec<(&'p str, String)> {
        if let Probe::Parameter(name) = probe {
            let value = self.servers[0].parameters.get(name).cloned().flatten().unwrap_or_default();
            return vec![(name, value)];
        }
        let off = ["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"].map(|name| (name, "off"));
        let all = off.into_iter().chain([("enable_seqscan", "on")]);
        all.map(|(name, value)| (name, value.to_owned())).collect()
    }

    /// Executes a statement in a savepoint.
    fn observe(&mut self, lane: &Lane, call: Call, clock: &mut Clock) -> Outcome<Answer> {
        let Call { arm, at, probe, .. } = call;
        let Some(sql) = lane.sql(at) else { return Err(internal("no statement to execute")) };
        let variables = &lane.client.variables;
        let is_simple = self.spec.options.query_mode_of(&self.spec.scripts[at.0]) == QueryMode::Simple;
        let statement = sql.parameterized(variables)?;
        let outline = Outline::new(&statement.text);
        let limit = outline.limit;
        let answer = Rc::new(RefCell::new(Answer::of_text(outline)));
        let watched = Rc::clone(&answer);
        let changes = probe.map(|probe| self.changes(probe)).unwrap_or_default();
        let session = self.enter(arm)?;
        session.value("SAVEPOINT pgbench_ext")?;
        for (name, value) in changes {
            set(session, name, &value, true)?;
        }
        let began = Instant::now();
        let watcher = Box::new(move |kind, body: &[u8]| watched.borrow_mut().take(kind, body));
        let result = session.watched(clock.left(), watcher, |session| {
            session.capture(sql.capture.is_some());
            if is_simple {
                let mut text = String::new();
                sql.substitute(variables, &mut text)?;
                return session.query(&text);
            }
            let values = statement.parameters.iter().map(|id| variables.get(*id).and_then(value));
            session.execute_params(&statement.text, values)
        });
        clock.took = began.elapsed();
        if let Err(error) = result {
            clock.is_over = clock.is_past();
            let error = SqlError::from(error);
            return if clock.is_over { Ok(Err(error)) } else { Err(error) };
        }
        let CommandOutcome { rows, error, .. } = session.outcome();
        if let Some(error) = error {
            return Ok(Err(error));
        }
        let mut answer = answer.take();
        let number = |parameter: u32| {
            let id = statement.parameters.get(parameter.checked_sub(1)? as usize)?;
            variables.get(*id)?.to_text().parse().ok()
        };
        answer.limited_to(match limit {
            None => None,
            Some(Limit::Count(count)) => Some(count),
            // An unknown limit may have been reached.
            Some(Limit::Parameter(parameter)) => Some(number(parameter).unwrap_or_default()),
            Some(Limit::Expression) => Some(0),
        });
        answer.finish(rows);
        Ok(Ok(answer))
    }

    /// Names an answer's types, and ends the statement's savepoint.
    fn settle(
        &mut self,
        call: Call,
        answer: &mut Result<Answer, SqlError>,
        clock: &Clock,
    ) -> Result<(), SqlError> {
        if clock.is_over {
            return Ok(());
        }
        let keeps = call.keeps && answer.is_ok();
        let place = self.place(call.arm);
        let columns = answer.iter_mut().flat_map(|answer| &mut answer.columns);
        for column in columns.filter(|column| column.type_oid >= pg_sys::FirstNormalObjectId) {
            if let Some(name) = self.types[place].get(&column.type_oid) {
                column.type_name = Some(name.clone());
                continue;
            }
            let sql = format!(
                "SELECT pg_catalog.concat(n.nspname, '.', t.typname) FROM pg_catalog.pg_type t \
                 JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = {}",
                column.type_oid
            );
            let name = self.sessions[place].value(&sql)?.unwrap_or_default();
            self.types[place].insert(column.type_oid, name.clone());
            column.type_name = Some(name);
        }
        let end = if keeps { "RELEASE SAVEPOINT pgbench_ext" } else { ROLL_BACK };
        Ok(self.sessions[place].value(end).map(drop)?)
    }
}

impl Driver for WireDriver<'_> {
    fn has_own_sessions(&self) -> bool {
        self.sessions.len() > 1
    }

    fn compile(
        &mut self,
        program: &Program,
        _: &ScriptSpec,
        variables: &Variables,
        classes: &mut [Class],
    ) -> Result<(), SqlError> {
        for (class, command) in classes.iter_mut().zip(&program.script.commands) {
            if let Action::Sql(sql) = &command.action {
                *class = class_of(sql, variables)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), SqlError> {
        self.each("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        // Two sessions in one database would wait for each other's locks.
        let lock = format!("SELECT pg_catalog.pg_try_advisory_xact_lock({})", random_seed());
        for session in &mut self.sessions {
            if session.value(&lock)?.as_deref() == Some("f") {
                let error = UserError::new(
                    sqlstate::FEATURE_NOT_SUPPORTED,
                    "the targets of both arms are the same database",
                );
                return Err(error.hint("Name the same target in both arms.").into());
            }
        }
        self.servers = vec![self.read_server(0)?, self.read_server(1)?];
        Ok(())
    }

    fn begin_script(&mut self) -> Result<(), SqlError> {
        self.each("SAVEPOINT pgbench_ext_script")
    }

    fn end_script(&mut self) -> Result<(), SqlError> {
        self.current = [None; 2];
        self.each("ROLLBACK TO SAVEPOINT pgbench_ext_script; RELEASE SAVEPOINT pgbench_ext_script")
    }

    fn end(&mut self, clock: &Clock) -> Result<(), SqlError> {
        if !clock.is_over {
            self.each("ROLLBACK")?;
        }
        self.sessions.drain(..).for_each(BlockingSession::close);
        Ok(())
    }

    fn execute(&mut self, lane: &mut Lane, call: Call, clock: &mut Clock) -> Outcome<Answer> {
        let mut answer = self.observe(lane, call, clock)?;
        if answer.is_ok() && call.probe.is_none() {
            let place = self.place(call.arm);
            let Lane { workload, client, .. } = lane;
            keep(self.sessions[place].outcome().captured, call.at, workload, &mut client.variables)?;
        }
        self.settle(call, &mut answer, clock)?;
        Ok(answer)
    }

    fn probes(&self, _: [&Answer; 2]) -> Vec<Probe> {
        let [a, b] = &self.servers[..] else { return Vec::new() };
        let differing = a.parameters.iter().filter(|(name, value)| b.parameters.get(*name) != Some(*value));
        let parameters = differing.map(|(name, _)| Probe::Parameter(name.clone()));
        [Probe::IndexScans(0), Probe::IndexScans(1)].into_iter().chain(parameters).collect()
    }

    fn other_cause(&self, kind: Kind) -> Option<String> {
        let [a, b] = &self.servers[..] else { return None };
        let pair =
            |what: &str, a: &str, b: &str| (a != b).then(|| format!("{what} {a} in arm a, {b} in arm b"));
        let collations = pair("collation", &a.collation, &b.collation);
        // Another order is a matter of collations alone.
        let versions = pair("PostgreSQL", &a.version, &b.version)
            .filter(|_| kind != Kind::Order || collations.is_none());
        let causes: Vec<String> = collations.into_iter().chain(versions).collect();
        (!causes.is_empty()).then(|| causes.join("; "))
    }

    fn use_combination(&mut self, _: usize) {}
}

fn class_of(sql: &Sql, variables: &Variables) -> Result<Class, SqlError> {
    Ok(match Outline::new(&sql.parameterized(variables)?.text).kind {
        _ if sql.is_compound() => Class::Compound,
        StatementKind::Reads => Class::Query { reads_only: true },
        StatementKind::Writes => Class::Query { reads_only: false },
        StatementKind::Utility => Class::Utility,
        StatementKind::TransactionControl => Class::TransactionControl,
    })
}

/// Sets a parameter, up to the end of the savepoint if it `is_local`.
fn set(session: &mut BlockingSession, name: &str, value: &str, is_local: bool) -> Result<(), UserError> {
    let (name, value) = (quote_literal(name), quote_literal(value));
    session.value(&format!("SELECT pg_catalog.set_config({name}, {value}, {is_local})")).map(drop)
}
