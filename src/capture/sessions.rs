//! The roles whose sessions analyse, try and replay captured statements: the role that executed them, or that of option `run_as`.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};

use super::activity;
use crate::driver::parameters::{NeededPrivileges, Object};
use crate::guard::session_role::{is_special, session_of_writer};
use crate::launch::checks::check_session_of;
use crate::launch::role_session::Watch;
use crate::server::horizon::{Releasable, can_release, forget_catalog_snapshot};
use crate::server::roles::{self, may_become};
use crate::server::spi::{fetch, quote_identifier};
use crate::server::transaction::without_snapshot;
use crate::shm::CapturePhase;

/// The roles of a captured statement's replay.
#[derive(Clone, Debug)]
pub struct Replayer {
    /// The role that executed the statement, or gave it to the capture.
    pub writer: Role,
    /// The role of the sessions.
    pub session: Role,
    /// The role that owns the workloads and whose sessions later runs get.
    pub owner: Role,
    /// Whether option `run_as` names the role of the sessions.
    is_named: bool,
    /// Says how the writer is involved: [`EXECUTED`] or [`GAVE`].
    did: &'static str,
}

const EXECUTED: &str = "executed it";
const GAVE: &str = "gave it";

impl Replayer {
    /// Returns whether another role's sessions are used because the writer has special rights.
    pub fn is_replaced(&self) -> bool {
        !self.is_named && self.session.oid != self.writer.oid
    }

    /// Describes a refusal for the capture's table.
    fn describe_refusal(&self, refusal: Refusal) -> String {
        let Refusal { reason, is_denied, grants } = refusal;
        if !is_denied || !self.is_replaced() {
            return grants.map_or_else(|| reason.clone(), |grants| format!("{reason}: {grants}"));
        }
        let grants = grants
            .unwrap_or_else(|| format!("GRANT the privilege to {}", quote_identifier(&self.session.name)));
        format!(
            "role \"{}\" {}, which has special rights; its statements are tried as \"{}\": {reason}: {grants}, or options => '{{\"run_as\": \"…\"}}'",
            self.writer.name, self.did, self.session.name
        )
    }
}

/// Chooses the roles of a capture's sessions.
pub struct Sessions {
    /// The role that captures.
    caller: Role,
    /// The role of option `run_as`, and whether it has special rights.
    named: Option<(Role, bool)>,
}

impl Sessions {
    /// Checks the role of option `run_as`; the current role is the caller.
    ///
    /// # Errors
    /// 42704 for a role that does not exist; 42501 for one that the current role cannot become; those of [`check_session_of`].
    pub fn new(run_as: Option<&str>) -> Result<Self, UserError> {
        let named = run_as.map(|name| -> Result<_, UserError> {
            let role = roles::named(name)?;
            roles::check_may_become(&role)?;
            check_session_of(&role)?;
            let is_special = is_special(role.oid.into())?;
            Ok((role, is_special))
        });
        Ok(Self { caller: roles::current(), named: named.transpose()? })
    }

    /// Returns the role's name in option `run_as`.
    pub fn run_as(&self) -> Option<&str> {
        self.named.as_ref().map(|(role, _)| role.name.as_str())
    }

    /// Returns the replayer of what the caller has given.
    ///
    /// # Errors
    /// As [`replayer`](Self::replayer).
    pub fn caller_replayer(&self) -> Result<Replayer, String> {
        self.writer_replayer(&self.caller, GAVE)
    }

    /// Returns the replayer of what a role has executed.
    ///
    /// # Errors
    /// Why there is none.
    pub fn replayer(&self, executor: Result<Role, UserError>) -> Result<Replayer, String> {
        self.writer_replayer(&executor.map_err(|error| error.message)?, EXECUTED)
    }

    fn writer_replayer(&self, writer: &Role, did: &'static str) -> Result<Replayer, String> {
        let reason = |why: String| format!("role \"{}\" {did}{why}", writer.name);
        let error_reason = |error: UserError| reason(format!(": {}", error.message));
        let can_become = |member: &Role, role: &Role| may_become(member.oid, role).map_err(error_reason);
        if let Some((session, is_special)) = &self.named {
            // Another writer's text would be executed with these rights.
            if *is_special && writer.oid != self.caller.oid {
                let why = format!(", and role \"{}\", which run_as names, has special rights", session.name);
                return Err(reason(why));
            }
            if !can_become(writer, session)? {
                return Err(reason(format!(", and cannot SET ROLE to \"{}\"", session.name)));
            }
            let owner = if *is_special { writer.clone() } else { session.clone() };
            return Ok(Replayer {
                writer: writer.clone(),
                session: session.clone(),
                owner,
                is_named: true,
                did,
            });
        }
        if !can_become(&self.caller, writer)? {
            return Err(reason(format!(", and role \"{}\" cannot SET ROLE to it", self.caller.name)));
        }
        let session = session_of_writer(&self.caller, writer, None).map_err(error_reason)?;
        check_session_of(&session).map_err(error_reason)?;
        Ok(Replayer { writer: writer.clone(), owner: session.clone(), session, is_named: false, did })
    }
}

/// Notes of a capture about the sessions of its runs.
#[derive(Default)]
pub struct SessionNotes {
    /// The roles of the sessions, each with the writer that it replaces.
    sessions: BTreeSet<(String, Option<String>)>,
}

impl SessionNotes {
    /// Adds the sessions of a stored workload.
    pub fn add(&mut self, replayer: &Replayer) {
        let writer = replayer.is_replaced().then(|| replayer.writer.name.clone());
        self.sessions.insert((replayer.session.name.clone(), writer));
    }

    /// Returns the notes for the caller.
    pub fn notes(&self, caller: &Role) -> Vec<String> {
        let note = |(session, writer): &(String, Option<String>)| match writer {
            Some(writer) => {
                Some(format!("statements of role \"{writer}\" run in sessions of role \"{session}\""))
            }
            None if *session == caller.name => None,
            None => Some(format!("runs have sessions of role \"{session}\"")),
        };
        self.sessions.iter().filter_map(note).collect()
    }
}

/// Asks for replays of statements, in their order, until `limit` succeed: each time for those of one role among the next ones
/// that there is room for. Returns `None` for those that were not asked for, and the reason for those that were refused.
///
/// # Errors
/// 57014, 53400.
pub fn ask_by_role<A>(
    replayers: &[Result<Replayer, String>],
    limit: usize,
    mut ask: impl FnMut(&Replayer, &[usize], Watch) -> Result<Vec<Result<A, Refusal>>, UserError>,
) -> Result<Vec<Option<Result<A, String>>>, UserError> {
    let mut answers: Vec<Option<Result<A, String>>> =
        replayers.iter().map(|replayer| replayer.as_ref().err().map(|reason| Err(reason.clone()))).collect();
    activity::enter(CapturePhase::Analysis, limit.min(replayers.len()) as u64);
    let releasable = can_release().ok();
    loop {
        let answered_before = answers.iter().flatten().count() as u64;
        let succeeded = answers.iter().filter(|answer| matches!(answer, Some(Ok(_)))).count();
        let unanswered = (0..answers.len()).filter(|&index| answers[index].is_none());
        let next: Vec<usize> = unanswered.take(limit.saturating_sub(succeeded)).collect();
        let Some(Ok(first)) = next.first().map(|&index| &replayers[index]) else { return Ok(answers) };
        let is_same_role = |index: &usize| {
            replayers[*index].as_ref().is_ok_and(|replayer| replayer.writer.oid == first.writer.oid)
        };
        let indexes: Vec<usize> = next.into_iter().filter(is_same_role).collect();
        let mut watch = |answered: u32| {
            activity::set_done(answered_before + u64::from(answered));
            releasable.map_or_else(forget_catalog_snapshot, Releasable::release);
        };
        let mut ask = || ask(first, &indexes, &mut watch);
        let result = if activity::is_in_worker() { without_snapshot(ask) } else { ask() };
        releasable.into_iter().for_each(Releasable::resume);
        let results = result.or_else(|error| match error.sqlstate.as_str() {
            sqlstate::QUERY_CANCELED | sqlstate::CONFIGURATION_LIMIT_EXCEEDED => Err(error),
            _ => Ok(indexes.iter().map(|_| Err(Refusal::from(error.clone()))).collect()),
        })?;
        let mut results = results.into_iter();
        for index in indexes {
            let missing = || Err(Refusal::from("nothing came back of it"));
            let answer = results.next().unwrap_or_else(missing);
            answers[index] = Some(answer.map_err(|refusal| first.describe_refusal(refusal)));
        }
    }
}

/// Why a statement or a transaction is not replayed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: String,
    /// Whether the role of the session lacks a privilege.
    pub is_denied: bool,
    /// The GRANTs that the role needs, if they are known.
    pub grants: Option<String>,
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self { reason, is_denied: false, grants: None }
    }
}

impl From<&str> for Refusal {
    fn from(reason: &str) -> Self {
        reason.to_owned().into()
    }
}

impl From<UserError> for Refusal {
    fn from(error: UserError) -> Self {
        let is_denied = error.sqlstate == sqlstate::INSUFFICIENT_PRIVILEGE;
        Self { reason: error.message, is_denied, grants: None }
    }
}

impl Refusal {
    /// Refuses a statement with values, with words before the server's error. The error may show a value: with `mask`, only its
    /// SQLSTATE is shown.
    pub fn of_values(words: &str, error: UserError, mask: bool) -> Self {
        let message = if mask { format!("SQLSTATE {}", error.sqlstate) } else { error.message.clone() };
        Self::from(UserError { message, ..error }).after(words)
    }

    /// Puts words before the reason.
    pub fn after(self, words: &str) -> Self {
        Self { reason: format!("{words}: {}", self.reason), ..self }
    }
}

/// Selects the GRANTs that the current role needs: privileges on tables, or on one column at least.
const MISSING_GRANTS: &str = "\
    SELECT string_agg(format('GRANT %s ON %s TO %I', l.names, l.relation::regclass, current_user), '; ' ORDER BY l.relation) \
    FROM (SELECT n.relation, string_agg(DISTINCT p.name, ', ' ORDER BY p.name) AS names \
          FROM ROWS FROM (unnest($1), unnest($2)) AS n (relation, mode) \
          JOIN (VALUES (1, 'INSERT'), (2, 'SELECT'), (4, 'UPDATE'), (8, 'DELETE')) AS p (bit, name) ON n.mode & p.bit <> 0 \
          WHERE NOT CASE p.name WHEN 'DELETE' THEN has_table_privilege(n.relation, p.name) \
                                ELSE has_any_column_privilege(n.relation, p.name) END \
          GROUP BY n.relation) l";

/// Checks the privileges that a statement needs.
///
/// # Errors
/// The GRANTs that the current role needs.
pub fn check_privileges(needed: &[NeededPrivileges]) -> Result<(), Refusal> {
    let (relations, modes): (Vec<pg_sys::Oid>, Vec<i64>) =
        needed.iter().map(|needed| (needed.relation, needed.mode as i64)).unzip();
    match fetch::<String>(MISSING_GRANTS, &[relations.into(), modes.into()])? {
        None => Ok(()),
        grants => Err(Refusal { reason: "permission denied".to_owned(), is_denied: true, grants }),
    }
}

/// Follows the dependencies of the objects in `$1` and `$2`, at any depth: those of views and rules, defaults, constraints,
/// policies, indexes, triggers, foreign keys, children, types, domains, operators, aggregates and functions with a parsed body.
/// Selects an object that [`untriable`] forbids; other functions are trusted if a superuser owns them. Built-in objects depend on
/// nothing.
const FIRST_UNTRIABLE: &str = "\
    WITH RECURSIVE touched (class, id) AS ( \
        SELECT s.class, s.id FROM ROWS FROM (unnest($1), unnest($2)) AS s (class, id) \
      UNION \
        SELECT n.class, n.id FROM touched t CROSS JOIN LATERAL ( \
            SELECT d.refclassid, d.refobjid FROM pg_depend d \
            WHERE d.classid = t.class AND d.objid = t.id \
              AND d.refclassid <> ALL (ARRAY['pg_extension'::regclass::oid, \
                  'pg_namespace'::regclass::oid]) \
          UNION ALL SELECT 'pg_proc'::regclass::oid, g.tgfoid FROM pg_trigger g \
            WHERE t.class = 'pg_class'::regclass AND g.tgrelid = t.id \
          UNION ALL SELECT t.class, g.tgconstrrelid FROM pg_trigger g \
            WHERE t.class = 'pg_class'::regclass AND g.tgrelid = t.id \
              AND g.tgisinternal AND g.tgconstrrelid <> 0 \
          UNION ALL SELECT 'pg_rewrite'::regclass::oid, w.oid FROM pg_rewrite w \
            WHERE t.class = 'pg_class'::regclass AND w.ev_class = t.id \
          UNION ALL SELECT 'pg_policy'::regclass::oid, p.oid FROM pg_policy p \
            WHERE t.class = 'pg_class'::regclass AND p.polrelid = t.id \
          UNION ALL SELECT 'pg_attrdef'::regclass::oid, a.oid FROM pg_attrdef a \
            WHERE t.class = 'pg_class'::regclass AND a.adrelid = t.id \
          UNION ALL SELECT 'pg_constraint'::regclass::oid, k.oid FROM pg_constraint k \
            WHERE t.class = 'pg_class'::regclass AND k.conrelid = t.id \
          UNION ALL SELECT 'pg_constraint'::regclass::oid, k.oid FROM pg_constraint k \
            WHERE t.class = 'pg_type'::regclass AND k.contypid = t.id \
          UNION ALL SELECT t.class, i.indexrelid FROM pg_index i \
            WHERE t.class = 'pg_class'::regclass AND i.indrelid = t.id \
          UNION ALL SELECT t.class, i.inhrelid FROM pg_inherits i \
            WHERE t.class = 'pg_class'::regclass AND i.inhparent = t.id \
        ) AS n (class, id) \
    ) \
    SELECT min(pg_describe_object(t.class, t.id, 0)) FROM touched t \
    WHERE (t.class = 'pg_foreign_server'::regclass \
        OR t.class = 'pg_proc'::regclass AND NOT EXISTS ( \
            SELECT FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner WHERE p.oid = t.id AND r.rolsuper))";

/// Returns an object for which a statement with these objects must not be tried: a function that a non-superuser owns may have
/// effects that no rollback undoes, and a foreign table connects to its server.
pub fn untriable(objects: &[Object]) -> Result<Option<String>, UserError> {
    let (classes, ids): (Vec<pg_sys::Oid>, Vec<pg_sys::Oid>) =
        objects.iter().map(|object| (object.class, object.id)).unzip();
    fetch::<String>(FIRST_UNTRIABLE, &[classes.into(), ids.into()])
}
