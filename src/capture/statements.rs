//! Turns statements of pg_stat_statements into workloads.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_capture::fidelity::Counts;
use bench_capture::options::{CaptureOptions, Excluded, Importance, Roles};
use bench_capture::statements::weights;
use bench_capture::without_constants;
use bench_model::spec::Role;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sessions::{Refusal, Replayer, SessionNotes, Sessions, ask_by_role};
use super::spec::CaptureSpec;
use super::values::{self, StatementReplay, TrialTime};
use crate::launch::role_session::{Watch, answer, ask_and_watch, count_answered, kind, read_only};
use crate::observe::counters::StatementCalls;
use crate::server::background_worker::WorkerKind;
use crate::server::roles;
use crate::server::spi::fetch_all;
use crate::server::transaction::renew_snapshot;
use crate::store::{self, CapturedStatement, Workload};

/// A statement of one role: another role's text with the same identifier may name other objects.
struct RoleStatement {
    user: u32,
    query_id: Option<i64>,
    query: Option<String>,
    counts: Counts,
}

/// The outcome for all statements.
pub struct KeptStatements {
    /// By importance, replayed or not.
    pub statements: Vec<CapturedStatement>,
    /// Statements with a workload, by the role's OID and the query identifier.
    pub replayed: HashSet<(u32, i64)>,
    pub calls: i64,
    pub exec_ms: f64,
    pub notes: Vec<String>,
}

/// The text that pg_stat_statements shows without pg_read_all_stats for other roles' statements.
const HIDDEN: &str = "<insufficient privilege>";

/// Creates workloads of the most important statements.
pub fn take(
    spec: &CaptureSpec,
    options: &CaptureOptions,
    entries: Vec<StatementCalls>,
) -> Result<KeptStatements, UserError> {
    let users = read_users(&entries)?;
    let own = roles::current();
    let is_wanted = |user: u32| match &options.roles {
        Roles::Own => user == own.oid,
        Roles::Named(wanted) => users.get(&user).is_some_and(|role| wanted.contains(&role.name)),
        Roles::Any => true,
    };
    let mut candidates = group_by_role(entries.into_iter().filter(|entry| is_wanted(entry.user)));
    let weight = |counts: &Counts| match options.by {
        Importance::Time => counts.exec_ms,
        Importance::Calls => counts.calls as f64,
    };
    candidates.sort_by(|a, b| {
        let key = |candidate: &RoleStatement| (candidate.query_id, candidate.user);
        weight(&b.counts).total_cmp(&weight(&a.counts)).then(key(a).cmp(&key(b)))
    });
    let mut total = Counts::default();
    candidates.iter().for_each(|candidate| total.add(&candidate.counts));
    let excluded = excluded_indexes(&options.exclude, &candidates)?;
    let sessions = Sessions::new(options.run_as.as_deref())?;
    let replayers: HashMap<u32, Result<Replayer, String>> =
        users.iter().map(|(&user, role)| (user, sessions.replayer(Ok(role.clone())))).collect();
    let roles: Vec<Result<Replayer, String>> = candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| find_replayer(candidate, excluded.contains(&index), &replayers))
        .collect();
    let desired_time = |index: usize| {
        let counts = &candidates[index].counts;
        values::desired_trial_time(counts, share(counts, &total))
    };
    let first_count = candidates.len().min(spec.statements);
    let total_desired: Duration = (0..first_count).map(desired_time).sum();
    let mut replays = ask_by_role(&roles, spec.statements, |replayer, indexes, watch| {
        let desired: Duration = indexes.iter().map(|&index| desired_time(index)).sum();
        let part = (desired.as_secs_f64() / total_desired.as_secs_f64()).min(1.0);
        let trials = trial_time(spec.secs).mul_f64(part);
        let calls = indexes.iter().map(|&index| CapturedCall {
            text: candidates[index].query.clone().unwrap_or_default(),
            counts: candidates[index].counts,
            share: share(&candidates[index].counts, &total),
        });
        request_replays(&sessions, replayer, (calls.collect(), trials), &spec.options, watch)
    })?
    .into_iter();
    let mut statements: Vec<CapturedStatement> = Vec::new();
    let (mut count, mut others) = (0, Counts::default());
    let mut notes = SessionNotes::default();
    let mut replayed = HashSet::new();
    for (candidate, replayer) in candidates.iter().zip(roles) {
        pgrx::check_for_interrupts!();
        let replay = replays.next().flatten().filter(|_| count < spec.statements);
        let Some(replay) = replay else {
            others.add(&candidate.counts);
            continue;
        };
        let number = statements.len() as i32 + 1;
        let mut line = statement_line(candidate, number, users.get(&candidate.user), &total);
        // pg_stat_statements shows constants of utility commands, and others that the server does not count as constants.
        if options.mask {
            line.query = line.query.map(|query| without_constants(&query));
        }
        match replay.and_then(|replay| replayer.map(|replayer| (replay, replayer))) {
            Ok((replay, replayer)) => {
                count += 1;
                notes.add(&replayer);
                line.reason = (!replay.notes.is_empty()).then(|| replay.notes.join("; "));
                let name = format!("{}/{count}", spec.name);
                store(&name, spec, &replayer.owner, &replay)?;
                line.workload = Some(name);
                replayed.extend(candidate.query_id.map(|id| (candidate.user, id)));
            }
            Err(reason) => line.reason = Some(reason),
        }
        statements.push(line);
    }
    if others.calls > 0 {
        let rest = RoleStatement { user: 0, query_id: None, query: None, counts: others };
        let number = statements.len() as i32 + 1;
        let reason = format!("less important than the {} statements kept", spec.statements);
        statements
            .push(CapturedStatement { reason: Some(reason), ..statement_line(&rest, number, None, &total) });
    }
    let calls: Vec<i64> = statements.iter().filter(|s| s.workload.is_some()).map(|s| s.calls).collect();
    let mut weights = weights(&calls).into_iter();
    for statement in statements.iter_mut().filter(|statement| statement.workload.is_some()) {
        statement.weight = weights.next();
    }
    let notes = notes.notes(&own);
    Ok(KeptStatements { statements, replayed, calls: total.calls, exec_ms: total.exec_ms, notes })
}

/// Returns whose sessions replay a statement, or why it is not replayed.
fn find_replayer(
    candidate: &RoleStatement,
    is_excluded: bool,
    replayers: &HashMap<u32, Result<Replayer, String>>,
) -> Result<Replayer, String> {
    let unknown = || Err("the role that executed it has been dropped".to_owned());
    match candidate.query.as_deref() {
        _ if is_excluded => Err("excluded by option exclude".to_owned()),
        Some(HIDDEN) => Err("its text is not visible without the privileges of pg_read_all_stats".to_owned()),
        None | Some("") => Err("pg_stat_statements has lost its text".to_owned()),
        Some(_) => replayers.get(&candidate.user).cloned().unwrap_or_else(unknown),
    }
}

/// Returns the indexes of the statements that option exclude names.
fn excluded_indexes(unwanted: &Excluded, candidates: &[RoleStatement]) -> Result<HashSet<usize>, UserError> {
    let is_named =
        |candidate: &RoleStatement| candidate.query_id.is_some_and(|id| unwanted.query_ids.contains(&id));
    let mut places: HashSet<usize> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| is_named(candidate))
        .map(|(index, _)| index)
        .collect();
    if !unwanted.patterns.is_empty() {
        let texts: Vec<Option<String>> = candidates.iter().map(|candidate| candidate.query.clone()).collect();
        let sql = "SELECT q.place FROM ROWS FROM (unnest($1)) WITH ORDINALITY AS q (text, place) \
                   WHERE q.text ~~ ANY ($2)";
        let matching =
            fetch_all(sql, &[texts.into(), unwanted.patterns.clone().into()], |row| row.get::<i64>(1))?;
        places.extend(matching.into_iter().flatten().map(|place| place as usize - 1));
    }
    Ok(places)
}

fn share(counts: &Counts, total: &Counts) -> f64 {
    if total.exec_ms > 0.0 { counts.exec_ms / total.exec_ms } else { 0.0 }
}

/// Returns the row of a statement in the capture's table.
fn statement_line(
    candidate: &RoleStatement,
    number: i32,
    user: Option<&Role>,
    total: &Counts,
) -> CapturedStatement {
    let counts = &candidate.counts;
    CapturedStatement {
        number,
        queryid: candidate.query_id,
        query: candidate.query.clone().filter(|query| query != HIDDEN),
        role: user.map(|role| role.name.clone()),
        calls: counts.calls,
        rows: Some(counts.rows),
        shared_blks_hit: Some(counts.hit),
        shared_blks_read: Some(counts.read),
        exec_ms: Some(counts.exec_ms),
        share: share(counts, total),
        ..CapturedStatement::default()
    }
}

/// Sums up entries by role and query identifier.
fn group_by_role(entries: impl Iterator<Item = StatementCalls>) -> Vec<RoleStatement> {
    let mut places: HashMap<(u32, Option<i64>), usize> = HashMap::new();
    let mut statements: Vec<RoleStatement> = Vec::new();
    for StatementCalls { user, query_id, query, counts } in entries {
        let place = *places.entry((user, query_id)).or_insert_with(|| {
            statements.push(RoleStatement { user, query_id, query: None, counts: Counts::default() });
            statements.len() - 1
        });
        let candidate = &mut statements[place];
        candidate.counts.add(&counts);
        candidate.query = candidate.query.take().or(query);
    }
    statements
}

/// Reads the roles of the entries, except dropped ones.
fn read_users(entries: &[StatementCalls]) -> Result<HashMap<u32, Role>, UserError> {
    let oids: HashSet<u32> = entries.iter().map(|entry| entry.user).collect();
    let oids: Vec<pg_sys::Oid> = oids.into_iter().map(pg_sys::Oid::from).collect();
    let sql = "SELECT oid, rolname::text FROM pg_roles WHERE oid = ANY ($1)";
    let roles = fetch_all(sql, &[oids.into()], |row| {
        let oid = row.get::<pg_sys::Oid>(1)?.map_or(0, pg_sys::Oid::to_u32);
        Ok((oid, Role { name: row.get::<String>(2)?.unwrap_or_default(), oid }))
    })?;
    Ok(roles.into_iter().collect())
}

/// Stores a statement as a workload.
fn store(name: &str, spec: &CaptureSpec, role: &Role, replay: &StatementReplay) -> Result<(), UserError> {
    if store::workload(name)?.is_some() {
        let message = format!("workload \"{name}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message).hint(
            "The workloads of a capture have its name and a number. Drop this workload, or choose another \
             name.",
        ));
    }
    let description = format!("Captured as a part of {}", spec.name);
    store::put_workload(name, role.oid.into(), None, &replay.script, Some(&description))?;
    // Only the role that executed the statement may see its text and constants.
    store::hide_workload(name)?;
    let workload = Workload {
        name: name.to_owned(),
        owner: role.name.clone(),
        owner_oid: role.oid.into(),
        fixture: None,
        script: replay.script.clone(),
        mix: None,
        builtin: false,
        captured: true,
        private: true,
        terminal: None,
    };
    for fed in &replay.fed {
        let mut feeder = fed.feeder.clone();
        if !fed.rows.is_empty() {
            feeder.query = fed.select(&store::select_captured_rows(name, &feeder.prefix, &fed.columns, true));
            store::put_captured_rows(name, &feeder.prefix, fed.rows.clone())?;
        }
        store::put_feeder(&workload, &feeder)?;
    }
    Ok(())
}

/// Returns the processor time for all trials of a capture, from its seconds of observation.
fn trial_time(secs: f64) -> Duration {
    const LONGEST_SECS: f64 = 60.0;
    const SHORTEST_SECS: f64 = 8.0;
    const PART: f64 = 0.6;
    let secs = if secs > 0.0 { (PART * secs).clamp(SHORTEST_SECS, LONGEST_SECS) } else { LONGEST_SECS };
    Duration::from_secs_f64(secs)
}

/// The kind of worker that tries statements.
const KIND: WorkerKind = kind(c"pgbench_ext_replays_main", c"pgbench_ext capture");

/// A captured statement of the worker's role.
#[derive(Serialize, Deserialize)]
pub struct CapturedCall {
    pub text: String,
    pub counts: Counts,
    /// Share of the captured time.
    pub share: f64,
}

#[derive(Serialize, Deserialize)]
struct ReplayRequest {
    statements: Vec<CapturedCall>,
    /// For all statements together.
    trial_time: Duration,
    /// The capture's options, as given.
    options: Value,
}

/// Asks a session of the replayer how each statement can be replayed, or why it cannot.
///
/// # Errors
/// Those of the session.
fn request_replays(
    sessions: &Sessions,
    replayer: &Replayer,
    (statements, trial_time): (Vec<CapturedCall>, Duration),
    options: &Value,
    watch: Watch,
) -> Result<Vec<Result<StatementReplay, Refusal>>, UserError> {
    let request = ReplayRequest { statements, trial_time, options: options.clone() };
    ask_and_watch(KIND, &replayer.session, sessions.run_as(), &request, watch).map(|(replays, _)| replays)
}

/// The worker's entry point.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_replays_main(segment: pg_sys::Datum) {
    answer(segment, |request: ReplayRequest| {
        let options = CaptureOptions::new(&request.options)?;
        read_only()?;
        let desired =
            |statement: &CapturedCall| values::desired_trial_time(&statement.counts, statement.share);
        let mut time = TrialTime::begin(request.trial_time, request.statements.iter().map(desired).sum());
        let replay = |statement: &CapturedCall| {
            pgrx::check_for_interrupts!();
            renew_snapshot();
            let limit = time.allot(desired(statement));
            let replay = values::replay(&statement.text, &statement.counts, limit, &options);
            count_answered();
            replay
        };
        Ok((request.statements.iter().map(replay).collect::<Vec<_>>(), Vec::new()))
    });
}
