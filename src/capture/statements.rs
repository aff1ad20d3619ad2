//! Which statements are kept, as which workloads, and why the others are not.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use bench_core::captured::{CaptureOptions, Counts, Importance, Roles, weights};
use bench_core::error::{UserError, sqlstate};

use super::feeders::{self, Replay};
use super::launch::CaptureSpec;
use crate::catalog::{self, CapturedStatement, Workload};
use crate::observe::statement_calls::Entry;
use crate::server::roles;
use crate::server::spi::fetch;

/// A statement, of all roles that have executed it.
struct Candidate {
    query_id: Option<i64>,
    query: Option<String>,
    users: Vec<u32>,
    counts: Counts,
}

/// What became of all statements.
pub struct Taken {
    /// In the order of their importance, kept or not.
    pub statements: Vec<CapturedStatement>,
    pub calls: i64,
    pub exec_ms: f64,
    pub notes: Vec<String>,
}

/// As pg_stat_statements shows another role's text to those without pg_read_all_stats.
const HIDDEN: &str = "<insufficient privilege>";

/// Makes workloads of the most important statements.
pub fn take(spec: &CaptureSpec, options: &CaptureOptions, entries: Vec<Entry>) -> Result<Taken, UserError> {
    let names = role_names(&entries)?;
    let own = roles::current_role();
    let is_wanted = |user: u32| match &options.roles {
        Roles::Own => names.get(&user).is_some_and(|name| *name == own),
        Roles::Named(wanted) => names.get(&user).is_some_and(|name| wanted.contains(name)),
        Roles::Default | Roles::All => true,
    };
    let mut candidates = group(entries.into_iter().filter(|entry| is_wanted(entry.user)));
    let weight = |counts: &Counts| match options.by {
        Importance::Time => counts.exec_ms,
        Importance::Calls => counts.calls as f64,
    };
    candidates
        .sort_by(|a, b| weight(&b.counts).total_cmp(&weight(&a.counts)).then(a.query_id.cmp(&b.query_id)));
    let mut total = Counts::default();
    candidates.iter().for_each(|candidate| total.add(&candidate.counts));
    let mut statements: Vec<CapturedStatement> = Vec::new();
    let (mut kept, mut others) = (0, Counts::default());
    let mut other_roles = false;
    for candidate in &candidates {
        pgrx::check_for_interrupts!();
        if kept == spec.statements {
            others.add(&candidate.counts);
            continue;
        }
        let number = statements.len() as i32 + 1;
        let users: Vec<String> = candidate.users.iter().filter_map(|user| names.get(user).cloned()).collect();
        let mut line = line(candidate, number, users, &total);
        match replay(candidate, line.share, options, &line.roles) {
            Ok(replay) => {
                kept += 1;
                other_roles |= line.roles.iter().any(|role| *role != own);
                line.reason = (!replay.notes.is_empty()).then(|| replay.notes.join("; "));
                let name = format!("{}/{kept}", spec.name);
                store(&name, spec, &replay)?;
                line.workload = Some(name);
            }
            Err(reason) => line.reason = Some(reason),
        }
        statements.push(line);
    }
    if others.calls > 0 {
        let rest = Candidate { query_id: None, query: None, users: Vec::new(), counts: others };
        let number = statements.len() as i32 + 1;
        let reason = format!("less important than the {} statements kept", spec.statements);
        statements
            .push(CapturedStatement { reason: Some(reason), ..line(&rest, number, Vec::new(), &total) });
    }
    let calls: Vec<i64> = statements.iter().filter(|s| s.workload.is_some()).map(|s| s.calls).collect();
    let mut weights = weights(&calls).into_iter();
    for statement in statements.iter_mut().filter(|statement| statement.workload.is_some()) {
        statement.weight = weights.next();
    }
    let mut notes = Vec::new();
    if other_roles {
        notes.push(
            "statements of other roles run as the role that runs the workload: their search_path, settings and row level security are unknown"
                .to_owned(),
        );
    }
    Ok(Taken { statements, calls: total.calls, exec_ms: total.exec_ms, notes })
}

fn line(candidate: &Candidate, number: i32, roles: Vec<String>, total: &Counts) -> CapturedStatement {
    let counts = &candidate.counts;
    let share = if total.exec_ms > 0.0 { counts.exec_ms / total.exec_ms } else { 0.0 };
    CapturedStatement {
        number,
        workload: None,
        weight: None,
        queryid: candidate.query_id,
        query: candidate.query.clone().filter(|query| query != HIDDEN),
        roles,
        calls: counts.calls,
        rows: Some(counts.rows),
        shared_blks_hit: Some(counts.hit),
        shared_blks_read: Some(counts.read),
        exec_ms: Some(counts.exec_ms),
        share,
        reason: None,
    }
}

fn group(entries: impl Iterator<Item = Entry>) -> Vec<Candidate> {
    let mut places: HashMap<Option<i64>, usize> = HashMap::new();
    let mut found: Vec<Candidate> = Vec::new();
    for Entry { user, query_id, query, counts } in entries {
        let place = *places.entry(query_id).or_insert_with(|| {
            found.push(Candidate { query_id, query: None, users: Vec::new(), counts: Counts::default() });
            found.len() - 1
        });
        let candidate = &mut found[place];
        candidate.counts.add(&counts);
        candidate.query = candidate.query.take().or(query);
        if !candidate.users.contains(&user) {
            candidate.users.push(user);
        }
    }
    found
}

fn role_names(entries: &[Entry]) -> Result<HashMap<u32, String>, UserError> {
    let mut names = HashMap::new();
    for entry in entries {
        if let Place::Vacant(place) = names.entry(entry.user) {
            let oid = pgrx::pg_sys::Oid::from(entry.user);
            let name =
                fetch::<String>("SELECT pg_catalog.pg_get_userbyid($1)::pg_catalog.text", &[oid.into()])?;
            place.insert(name.unwrap_or_default());
        }
    }
    Ok(names)
}

/// How a statement can be replayed, or why it cannot.
fn replay(
    candidate: &Candidate,
    share: f64,
    options: &CaptureOptions,
    roles: &[String],
) -> Result<Replay, String> {
    let text = match candidate.query.as_deref() {
        Some(HIDDEN) => {
            return Err("its text is not visible without the privileges of pg_read_all_stats".to_owned());
        }
        None | Some("") => return Err("pg_stat_statements has lost its text".to_owned()),
        Some(text) => text,
    };
    // As a superuser may not run another role's workload. The statement is not even analysed: that evaluates functions.
    if roles::superuser() && matches!(options.roles, Roles::Default) {
        let is_trusted = |role: &String| roles::is_superuser(role).unwrap_or(false);
        if !roles.iter().any(is_trusted) {
            return Err(format!(
                "role \"{}\" executed it, and it would run with superuser privileges: SET ROLE before the capture, or use option roles",
                roles.join("\", \"")
            ));
        }
    }
    feeders::replay(text, &candidate.counts, share, options)
}

/// Keeps a statement as a workload.
fn store(name: &str, spec: &CaptureSpec, replay: &Replay) -> Result<(), UserError> {
    if catalog::workload(name)?.is_some() {
        let message = format!("workload \"{name}\" already exists");
        return Err(UserError::new(sqlstate::DUPLICATE_OBJECT, message)
            .hint("The workloads of a capture are named like it, with a number. Drop this one, or choose another name."));
    }
    let description = format!("Captured as a part of {}", spec.name);
    catalog::put_workload(name, roles::current_role_oid(), None, &replay.script, Some(&description))?;
    let workload = Workload {
        name: name.to_owned(),
        owner: spec.role.clone(),
        owner_oid: roles::current_role_oid(),
        fixture: None,
        script: replay.script.clone(),
        mix: None,
        builtin: false,
        captured: true,
        private: false,
        terminal: None,
    };
    for fed in &replay.fed {
        let mut feeder = fed.feeder.clone();
        if !fed.rows.is_empty() {
            feeder.query =
                fed.select(&catalog::select_captured_rows(name, &feeder.prefix, &fed.columns, true));
            catalog::put_captured_rows(name, &feeder.prefix, fed.rows.clone())?;
        }
        catalog::put_feeder(&workload, &feeder)?;
    }
    Ok(())
}
