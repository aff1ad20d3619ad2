//! The server's own counters around a run, of the server, of relations and of statements, for the audit.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Counts;
use bench_capture::log::is_utility;
use bench_model::spec::{Observation, RunSpec, TargetSpec};
use bench_protocol::foreign_server::Secrets;
use pgrx::{JsonB, pg_sys};
use serde_json::Value;

use crate::cluster::citus;
use crate::driver::connection::{PolledSession, Route};
use crate::guard::switch_role::as_run_role;
use crate::server::database;
use crate::server::guc::{current, set_local};
use crate::server::process::{current_timestamp, forget_statistics, nap, now_ns};
use crate::server::set_function::{ResultValue, SetFunction, bigint_of_row};
use crate::server::spi::fetch;
use crate::server::transaction::transaction;
use crate::shm::{CommandCounters, Segment};

/// One reading.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// When the reading began, a TimestampTz.
    pub at: i64,
    /// Rows of the tables inserted, updated and deleted.
    pub tuples: Tuples,
    pub index_scans: i64,
    /// The indexes whose scans are counted.
    pub indexes: Vec<pg_sys::Oid>,
    /// Whether an index is scanned, or its ends are looked up, for what no statement says: its own condition, or an
    /// exclusion constraint.
    pub hidden_scans: bool,
    /// Whether triggers or rules do what the statements do not show.
    pub side_effects: bool,
    /// Whether tables that are not the run's inherit from its tables: their rows are counted there.
    pub children: bool,
    /// Whether Citus has tables whose shards the run does not count.
    pub is_distributed: bool,
    /// Whether other sessions may have worked in this database and not yet handed in their statistics.
    pub unsent: bool,
    /// Tables that exist.
    pub tables: i64,
    pub commits: i64,
    pub rollbacks: i64,
    /// When statistics of this database were last reset, in seconds since 1970; `None`: never.
    pub reset: Option<f64>,
    /// What was counted of the run's statements, by their identifiers; `None` without pg_stat_statements.
    pub statements: Option<HashMap<i64, Counts>>,
}

/// Rows inserted, updated and deleted.
pub type Tuples = [i64; 3];

impl Counters {
    /// Calls of the run's statements; `None` without pg_stat_statements.
    pub fn calls(&self) -> Option<i64> {
        self.statements.as_ref().map(|all| all.values().map(|counts| counts.calls).sum())
    }
}

/// Reads the counters of the run's tables and statements, afresh.
pub fn read(spec: &RunSpec, query_ids: &[i64]) -> Result<Counters, UserError> {
    transaction(|| {
        let at = current_timestamp();
        forget_statistics();
        let tables: Vec<pg_sys::Oid> = spec.tables().map(pg_sys::Oid::from).collect();
        let sum = |function: &str| -> Result<i64, UserError> {
            let sql = format!(
                "SELECT sum({function}(t))::int8 FROM unnest($1) AS t"
            );
            Ok(fetch::<i64>(&sql, &[tables.clone().into()])?.unwrap_or_default())
        };
        let indexes = fetch::<Vec<pg_sys::Oid>>(
            "SELECT array_agg(indexrelid ORDER BY indexrelid) FROM pg_index \
             WHERE indrelid = ANY ($1)",
            &[tables.clone().into()],
        )?
        .unwrap_or_default();
        let index_scans = fetch::<i64>(
            "SELECT sum(pg_stat_get_numscans(i))::int8 FROM unnest($1) AS i",
            &[indexes.clone().into()],
        )?;
        let existing = fetch::<i64>(
            "SELECT count(*) FROM pg_class WHERE oid = ANY ($1)",
            &[tables.clone().into()],
        )?;
        let hidden_scans = fetch::<bool>(
            "SELECT EXISTS (SELECT FROM pg_index WHERE indrelid = ANY ($1) AND (indisexclusion OR indpred IS NOT NULL))",
            &[tables.clone().into()],
        )?;
        let children = fetch::<bool>(
            "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhparent = ANY ($1) AND inhrelid <> ALL ($1))",
            &[tables.clone().into()],
        )?;
        let side_effects = fetch::<bool>(
            // Citus has a trigger of its own on each of its tables, for TRUNCATE.
            "SELECT EXISTS (SELECT FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = ANY ($1) \
                                AND NOT (p.proname = 'citus_truncate_trigger' AND p.pronamespace = 'pg_catalog'::regnamespace)) \
                 OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = ANY ($1))",
            &[tables.clone().into()],
        )?;
        let watched = spec.cluster.as_ref().map_or(0, |cluster| cluster.tables.len());
        let is_distributed = citus::distributed(&tables)?.len() > watched;
        let database = pg_sys::Oid::from(spec.database_oid);
        let reset = fetch::<f64>(
            "SELECT date_part('epoch', pg_stat_get_db_stat_reset_time($1))",
            &[database.into()],
        )?;
        let of_database = |function: &str| -> Result<i64, UserError> {
            Ok(fetch::<i64>(&format!("SELECT {function}($1)"), &[database.into()])?
                .unwrap_or_default())
        };
        Ok(Counters {
            at,
            tuples: [
                sum("pg_stat_get_tuples_inserted")?,
                sum("pg_stat_get_tuples_updated")?,
                sum("pg_stat_get_tuples_deleted")?,
            ],
            index_scans: index_scans.unwrap_or_default(),
            indexes,
            hidden_scans: hidden_scans.unwrap_or_default(),
            side_effects: side_effects.unwrap_or_default(),
            children: children.unwrap_or_default(),
            is_distributed,
            unsent: spec.starter.has_unsent || has_unsent(database, spec.starter.pid)?,
            reset,
            tables: existing.unwrap_or_default(),
            commits: of_database("pg_stat_get_db_xact_commit")?,
            rollbacks: of_database("pg_stat_get_db_xact_rollback")?,
            statements: None,
        })
    })
    .map(|counters| Counters {
        // Its library may be missing, or its SQL of another version: then there is nothing to compare.
        statements: transaction(|| of_run(spec, query_ids)).ok().flatten(),
        ..counters
    })
}

/// Whether sessions of this database may have done what the server's counters do not show yet. A session hands in its
/// counts between two transactions, at most once a second, and after ten seconds of idleness at the latest
/// (PGSTAT_IDLE_INTERVAL, utils/activity/pgstat.c): one that is at work, or was a moment ago, may hold some back. The
/// `starter` of the run is left out: it has looked itself.
fn has_unsent(database: pg_sys::Oid, starter: i32) -> Result<bool, UserError> {
    let found = fetch::<bool>(
        "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datid = $1 AND pid <> $2 \
             AND backend_type NOT LIKE 'pgbench\\_ext %' AND backend_type NOT IN ('autovacuum worker', 'parallel worker', 'walsender') \
             AND (state <> 'idle' OR state_change > clock_timestamp() - '15 s'::interval))",
        &[database.into(), starter.into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// Whether this session has read or changed these tables and not yet handed in its counts: those that it hands in while a
/// run measures would seem to be the run's.
pub fn has_unsent_itself(tables: &[pg_sys::Oid]) -> Result<bool, UserError> {
    // Runs with the caller's search_path.
    let found = fetch::<bool>(
        "SELECT EXISTS (SELECT FROM unnest($1) AS t WHERE 0 < greatest( \
                 pg_stat_get_xact_tuples_inserted(t), pg_stat_get_xact_tuples_updated(t), \
                 pg_stat_get_xact_tuples_deleted(t))) \
             OR EXISTS (SELECT FROM pg_index WHERE indrelid = ANY ($1) \
                 AND 0 < pg_stat_get_xact_numscans(indexrelid))",
        &[tables.to_vec().into()],
    )?;
    Ok(found.unwrap_or_default())
}

/// The query identifiers of the run's statements: where each client has a table of its own, each client has others.
pub fn query_ids(segment: &Segment) -> Vec<i64> {
    let mut ids: Vec<i64> = (0..segment.shape().slots)
        .flat_map(|client| segment.commands(client))
        .flat_map(CommandCounters::query_ids)
        .collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

// What pg_stat_statements has counted: of a run's statements, whose identifiers the roles of its sessions see, and of all statements of
// this database, for captures.

/// The extension and its function.
const PG_STAT_STATEMENTS: &str = "pg_stat_statements";

/// Columns that are read, by their names: their places differ by version. Before 1.9 there is no toplevel.
const COLUMNS: [&CStr; 11] = [
    c"userid",
    c"dbid",
    c"toplevel",
    c"queryid",
    c"query",
    c"calls",
    c"rows",
    c"shared_blks_hit",
    c"shared_blks_read",
    c"total_exec_time",
    c"wal_bytes",
];

/// How a statement begins that is this project's own and not a client's, in the session of a client.
pub const OWN: &str = "SELECT /* pgbench_ext */ ";

/// A line of the view: what one role has had executed of a statement.
#[derive(Clone)]
pub struct StatementCalls {
    pub user: u32,
    /// `None` where this role may not see it.
    pub query_id: Option<i64>,
    /// `None` where it was not asked for, or has been lost.
    pub query: Option<String>,
    pub counts: Counts,
}

impl StatementCalls {
    /// Whether it is a utility command, as far as its text is known.
    pub fn is_utility(&self) -> bool {
        self.query.as_deref().is_some_and(is_utility)
    }
}

/// The function, where statements are counted.
fn function() -> Result<Option<SetFunction>, UserError> {
    // The parameter is there where the library is loaded.
    if current("pg_stat_statements.max").is_none() {
        return Ok(None);
    }
    SetFunction::find(PG_STAT_STATEMENTS)
}

/// The lines of a database's top-level statements, with their texts where asked for and then without [`OWN`] ones, as this role sees them; `None` where the
/// view has not the columns.
fn lines(
    function: &SetFunction,
    database: u32,
    texts: bool,
) -> Result<Option<Vec<StatementCalls>>, UserError> {
    let mut found = Vec::new();
    let is_read = function.for_each_row(COLUMNS, texts, |row| {
        let [user, of, toplevel, id, query, calls, rows, hit, read, exec_ms, wal_bytes] = row;
        if of.integer() != i64::from(database) || toplevel.integer() == 0 {
            return;
        }
        let query = if let ResultValue::Text(text) = query { Some(text) } else { None };
        if query.as_ref().is_some_and(|text| text.starts_with(OWN)) {
            return;
        }
        found.push(StatementCalls {
            user: user.integer() as u32,
            query_id: (id != ResultValue::Null).then(|| id.integer()),
            query,
            counts: Counts {
                calls: calls.integer(),
                rows: rows.integer(),
                hit: hit.integer(),
                read: read.integer(),
                exec_ms: exec_ms.float(),
                wal_bytes: wal_bytes.float(),
            },
        });
    })?;
    Ok(is_read.then_some(found))
}

/// The lines of the roles of a run's sessions, with their identifiers; `None` where nobody counts.
fn lines_of_roles(spec: &RunSpec, texts: bool) -> Result<Option<Vec<(i64, StatementCalls)>>, UserError> {
    let Some(function) = function()? else { return Ok(None) };
    let mut all = Vec::new();
    for role in spec.roles() {
        let found = as_run_role(pg_sys::Oid::from(role.oid), || lines(&function, spec.database_oid, texts))?;
        let Some(found) = found else { return Ok(None) };
        let of_role = found.into_iter().filter(|line| line.user == role.oid);
        // Another role's identifier is NULL.
        all.extend(of_role.filter_map(|line| Some((line.query_id?, line))));
    }
    Ok(Some(all))
}

/// What was counted of the run's statements by its role, in all of its sessions and before the run as well, by their
/// identifiers; `None` where nobody counts.
///
/// # Errors
/// What pg_stat_statements says, as when its library is not loaded.
pub fn of_run(spec: &RunSpec, query_ids: &[i64]) -> Result<Option<HashMap<i64, Counts>>, UserError> {
    if query_ids.is_empty() {
        return Ok(None);
    }
    let Some(lines) = lines_of_roles(spec, false)? else { return Ok(None) };
    let mut counts: HashMap<i64, Counts> = HashMap::new();
    for (id, line) in lines.iter().filter(|(id, _)| query_ids.binary_search(id).is_ok()) {
        counts.entry(*id).or_default().add(&line.counts);
    }
    Ok(Some(counts))
}

/// Calls, also before the run, of statements that have role and text of one of the `known` ones, and another identifier: one
/// changes with the types and the OIDs of what its statement names. Reads the texts of all statements.
///
/// # Errors
/// As [`of_run`].
pub fn of_other_identifiers(spec: &RunSpec, known: &HashMap<i64, Counts>) -> Result<i64, UserError> {
    let lines = lines_of_roles(spec, true)?.unwrap_or_default();
    let (known, others): (Vec<_>, Vec<_>) = lines.iter().partition(|(id, _)| known.contains_key(id));
    let role_and_text = |line: &StatementCalls| Some((line.user, line.query.clone()?));
    let texts: HashSet<_> = known.into_iter().filter_map(|(_, line)| role_and_text(line)).collect();
    let has_text = |line: &StatementCalls| role_and_text(line).is_some_and(|text| texts.contains(&text));
    Ok(others.into_iter().filter(|(_, line)| has_text(line)).map(|(_, line)| line.counts.calls).sum())
}

/// All lines of this database's top-level statements, as this role sees them.
///
/// # Errors
/// 55000 where nobody counts, or an older version of the extension does.
pub fn snapshot(texts: bool) -> Result<Vec<StatementCalls>, UserError> {
    let missing =
        |message: &str, hint: &str| UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message).hint(hint);
    if current("pg_stat_statements.max").is_none() {
        return Err(missing(
            "pg_stat_statements is not loaded",
            "Add it to shared_preload_libraries, restart the server, and CREATE EXTENSION pg_stat_statements.",
        ));
    }
    let Some(function) = function()? else {
        let message = "extension \"pg_stat_statements\" is not installed in this database";
        return Err(missing(message, "CREATE EXTENSION pg_stat_statements."));
    };
    lines(&function, database::oid().to_u32(), texts)?.ok_or_else(|| {
        missing("pg_stat_statements is older than version 1.9", "ALTER EXTENSION pg_stat_statements UPDATE.")
    })
}

/// How often pg_stat_statements has dropped its least-executed entries.
pub fn deallocations() -> Result<Option<i64>, UserError> {
    bigint_of_row(PG_STAT_STATEMENTS, "pg_stat_statements_info", c"dealloc")
}

// What pg_stat_statements of a run's targets counts of its statements: read once before and once after, over connections of
// their own.

/// How long a reading may take.
const LONGEST_NS: i64 = 2_000_000_000;

/// The longest answer that is taken, in bytes: a line for each statement of a run.
const LONGEST_ANSWER: usize = 1 << 22;

/// What was counted of statements, by their identifiers.
pub type CountsById = HashMap<i64, Counts>;

/// The targets whose counts are read, in the order of a duel's arms.
#[derive(Default)]
pub struct TargetStatements {
    targets: [Option<(Route, String)>; 2],
}

impl TargetStatements {
    /// Those of a run's targets that count its statements.
    pub fn new(spec: &RunSpec, secrets: &[Secrets; 2]) -> Self {
        let arm = |place: usize| {
            let target = [&spec.target, &spec.other_target][place].as_ref();
            let target = target.filter(|_| spec.observation != Observation::Off)?;
            let question = question(spec, target, spec.other_target.is_some().then_some(place))?;
            Some((Route::of_watch(target, &secrets[place]).ok()?.into_iter().next()?, question))
        };
        Self { targets: [arm(0), arm(1)] }
    }

    /// What has been counted by now; `None` for a target that does not count, or does not say so in time.
    pub fn read(&self, is_stopped: impl Fn() -> bool) -> [Option<CountsById>; 2] {
        [0, 1].map(|place| {
            let (route, question) = self.targets[place].as_ref()?;
            ask(route, question, &is_stopped).ok().flatten()
        })
    }
}

/// What is asked of a target: the counts of the run's statements, or of those of an arm.
fn question(spec: &RunSpec, target: &TargetSpec, arm: Option<usize>) -> Option<String> {
    let view = target.statements.as_ref()?;
    let scripts = spec.scripts.iter().filter(|script| arm.is_none() || script.arm == arm);
    let ids: Vec<String> = scripts.flat_map(|script| script.query_ids.values()).map(i64::to_string).collect();
    let sql = format!(
        "SELECT json_agg(json_build_array(s.queryid, s.calls, s.rows, s.shared_blks_hit, s.shared_blks_read, \
             s.total_exec_time)) \
         FROM {view} s JOIN pg_roles r ON r.oid = s.userid AND r.rolname = current_user \
         JOIN pg_database d ON d.oid = s.dbid \
             AND d.datname = current_database() \
         WHERE s.toplevel AND s.queryid = ANY ('{{{}}}'::int8[])",
        ids.join(",")
    );
    (!ids.is_empty()).then_some(sql)
}

/// Asks over a connection that is made for it.
fn ask(
    route: &Route,
    question: &str,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<CountsById>, UserError> {
    let deadline_ns = now_ns() + LONGEST_NS;
    let may_wait = || now_ns() < deadline_ns && !is_stopped();
    let mut session = loop {
        match PolledSession::connect(route)? {
            Some(session) => break session,
            None if may_wait() => nap(2),
            None => return Ok(None),
        }
    };
    let mut is_asked = false;
    loop {
        if !session.turn(route)? {
            if !may_wait() || session.received() > LONGEST_ANSWER {
                return Ok(None);
            }
            nap(2);
        } else if is_asked {
            break;
        } else {
            route.check(session.session())?;
            session.ask(question)?;
            is_asked = true;
        }
    }
    let answer = session.value()?;
    session.terminate(route);
    type Line = (i64, i64, i64, i64, i64, f64);
    let lines: Option<Vec<Line>> = answer.and_then(|json| serde_json::from_str(&json).ok());
    let counts = |(id, calls, rows, hit, read, exec_ms)| {
        (id, Counts { calls, rows, hit, read, exec_ms, ..Counts::default() })
    };
    // Without a line there is nothing that was counted yet.
    Ok(Some(lines.unwrap_or_default().into_iter().map(counts).collect()))
}

/// A reading of nothing.
pub fn no_relations() -> Value {
    Value::Array(Vec::new())
}

/// The names of those of the tables that are unlogged.
pub fn unlogged(tables: &[pg_sys::Oid]) -> Result<Vec<String>, UserError> {
    let found = transaction(|| {
        fetch::<Vec<String>>(
            "SELECT array_agg(c.oid::regclass::text ORDER BY c.oid) \
             FROM pg_class c WHERE c.oid = ANY ($1) AND c.relpersistence = 'u'",
            &[tables.to_vec().into()],
        )
    })?;
    Ok(found.unwrap_or_default())
}

/// One reading, an array of objects; the recorder stores the difference of two.
pub fn read_relations(tables: &[pg_sys::Oid]) -> Result<Value, UserError> {
    if tables.is_empty() {
        return Ok(no_relations());
    }
    // A size needs a lock, which somebody's LOCK TABLE may keep for long; the counts are there without one.
    read_with(tables, true).or_else(|_| read_with(tables, false))
}

fn read_with(tables: &[pg_sys::Oid], sizes: bool) -> Result<Value, UserError> {
    let found = transaction(|| {
        set_local(c"lock_timeout", c"50ms");
        forget_statistics();
        fetch::<JsonB>(READ, &[tables.to_vec().into(), sizes.into()])
    })?;
    Ok(found.map_or_else(no_relations, |json| json.0))
}

const READ: &str = "\
SELECT jsonb_agg(to_jsonb(r)) FROM ( \
    SELECT c.oid::int8 AS oid, c.oid::regclass::text AS relation, 'table' AS kind, \
           CASE WHEN $2 THEN pg_table_size(c.oid) END AS bytes, \
           pg_stat_get_live_tuples(c.oid) AS live, pg_stat_get_dead_tuples(c.oid) AS dead, \
           pg_stat_get_tuples_inserted(c.oid) AS inserted, pg_stat_get_tuples_updated(c.oid) AS updated, \
           pg_stat_get_tuples_hot_updated(c.oid) AS hot_updated, pg_stat_get_tuples_deleted(c.oid) AS deleted, \
           pg_stat_get_mod_since_analyze(c.oid) AS mod_since_analyze, \
           pg_stat_get_numscans(c.oid) AS seq_scan, pg_stat_get_tuples_returned(c.oid) AS seq_tup_read, \
           (SELECT sum(pg_stat_get_numscans(i.indexrelid))::int8 \
            FROM pg_index i WHERE i.indrelid = c.oid) AS idx_scan, \
           pg_stat_get_vacuum_count(c.oid) AS vacuums, pg_stat_get_autovacuum_count(c.oid) AS autovacuums, \
           pg_stat_get_analyze_count(c.oid) AS analyzes, pg_stat_get_autoanalyze_count(c.oid) AS autoanalyzes, \
           pg_stat_get_last_vacuum_time(c.oid) AS last_vacuum, \
           pg_stat_get_last_autovacuum_time(c.oid) AS last_autovacuum, \
           pg_stat_get_last_analyze_time(c.oid) AS last_analyze, \
           pg_stat_get_last_autoanalyze_time(c.oid) AS last_autoanalyze \
    FROM pg_class c WHERE c.oid = ANY ($1) \
    UNION ALL \
    SELECT i.indexrelid::int8, i.indexrelid::regclass::text, 'index', \
           CASE WHEN $2 THEN pg_relation_size(i.indexrelid) END, \
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, pg_stat_get_numscans(i.indexrelid), \
           NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL \
    FROM pg_index i WHERE i.indrelid = ANY ($1)) AS r";
