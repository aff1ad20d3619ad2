//! Whose sessions analyse, try and replay what was captured: those of the role that executed it, or of the one that option
//! `run_as` names.

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

/// A role that wrote what was captured, and whose sessions replay it.
#[derive(Clone, Debug)]
pub struct Replayer {
    pub writer: Role,
    /// The role of the sessions.
    pub session: Role,
    /// The role that the workloads belong to, and whose sessions later runs get.
    pub owner: Role,
    /// Whether the caller has named the role of the sessions.
    is_named: bool,
    /// What the writer did.
    did: &'static str,
}

const EXECUTED: &str = "executed it";
const GAVE: &str = "gave it";

impl Replayer {
    /// Whether the sessions are of another role because the writer has special rights.
    pub fn is_replaced(&self) -> bool {
        !self.is_named && self.session.oid != self.writer.oid
    }

    /// Says why something is not kept, as the capture shows it.
    fn reason(&self, refusal: Refusal) -> String {
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

/// The sessions of a capture.
pub struct Sessions {
    /// The role that captures.
    caller: Role,
    /// The role that the caller has named, and whether it has special rights.
    named: Option<(Role, bool)>,
}

impl Sessions {
    /// For the current role, and the role that it has named.
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

    /// The name that the caller has given.
    pub fn run_as(&self) -> Option<&str> {
        self.named.as_ref().map(|(role, _)| role.name.as_str())
    }

    /// Whose sessions replay what the caller has given.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_caller(&self) -> Result<Replayer, String> {
        self.of_writer(&self.caller, GAVE)
    }

    /// Whose sessions replay what a role has executed.
    ///
    /// # Errors
    /// The reason why none do.
    pub fn of(&self, executor: Result<Role, UserError>) -> Result<Replayer, String> {
        self.of_writer(&executor.map_err(|error| error.message)?, EXECUTED)
    }

    fn of_writer(&self, writer: &Role, did: &'static str) -> Result<Replayer, String> {
        let reason = |why: String| format!("role \"{}\" {did}{why}", writer.name);
        let told = |error: UserError| reason(format!(": {}", error.message));
        let can_become = |who: &Role, role: &Role| may_become(who.oid, role).map_err(told);
        if let Some((session, is_special)) = &self.named {
            // Who could have these rights through a text is who wrote it.
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
        let session = session_of_writer(&self.caller, writer, None).map_err(told)?;
        check_session_of(&session).map_err(told)?;
        Ok(Replayer { writer: writer.clone(), owner: session.clone(), session, is_named: false, did })
    }
}

/// What a capture says of the sessions of its runs.
#[derive(Default)]
pub struct SessionNotes {
    /// The roles of the sessions, each with the writer in whose place it is.
    sessions: BTreeSet<(String, Option<String>)>,
}

impl SessionNotes {
    /// Takes up the sessions of something that is kept.
    pub fn add(&mut self, replayer: &Replayer) {
        let writer = replayer.is_replaced().then(|| replayer.writer.name.clone());
        self.sessions.insert((replayer.session.name.clone(), writer));
    }

    /// The notes, for the role that captures.
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

/// What became of each of several statements, of which at most so many are to be kept: the first ones are asked about first, all
/// of one role at once, and others only as long as there is room. `None` for those that nobody was asked about; the reason for
/// those that are not kept.
///
/// # Errors
/// 57014, 53400.
pub fn kept<A>(
    replayers: &[Result<Replayer, String>],
    most: usize,
    mut ask: impl FnMut(&Replayer, &[usize], Watch) -> Result<Vec<Result<A, Refusal>>, UserError>,
) -> Result<Vec<Option<Result<A, String>>>, UserError> {
    let mut found: Vec<Option<Result<A, String>>> =
        replayers.iter().map(|one| one.as_ref().err().map(|reason| Err(reason.clone()))).collect();
    activity::enter(CapturePhase::Analysis, most.min(replayers.len()) as u64);
    let releasable = can_release().ok();
    loop {
        let before = found.iter().flatten().count() as u64;
        let room = most.saturating_sub(found.iter().filter(|one| matches!(one, Some(Ok(_)))).count());
        let next: Vec<usize> = (0..found.len()).filter(|&at| found[at].is_none()).take(room).collect();
        let Some(Ok(first)) = next.first().map(|&at| &replayers[at]) else { return Ok(found) };
        let is_of = |at: &usize| replayers[*at].as_ref().is_ok_and(|one| one.writer.oid == first.writer.oid);
        let of_role: Vec<usize> = next.into_iter().filter(is_of).collect();
        let mut watch = |answered: u32| {
            activity::set_done(before + u64::from(answered));
            releasable.map_or_else(forget_catalog_snapshot, Releasable::release);
        };
        let mut ask = || ask(first, &of_role, &mut watch);
        let told = if activity::is_in_worker() { without_snapshot(ask) } else { ask() };
        releasable.into_iter().for_each(Releasable::resume);
        let told = told.or_else(|error| match error.sqlstate.as_str() {
            sqlstate::QUERY_CANCELED | sqlstate::CONFIGURATION_LIMIT_EXCEEDED => Err(error),
            _ => Ok(of_role.iter().map(|_| Err(Refusal::from(error.clone()))).collect()),
        })?;
        let mut told = told.into_iter();
        for at in of_role {
            let nothing = || Err(Refusal::from("nothing came back of it"));
            let told = told.next().unwrap_or_else(nothing);
            found[at] = Some(told.map_err(|refusal| first.reason(refusal)));
        }
    }
}

/// Why a statement or a transaction is not kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub reason: String,
    /// The role of the session lacks a privilege.
    pub is_denied: bool,
    /// What gives it to that role, where that is known.
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
    /// Of a statement that was given values, with words before its reason; what the server says of a value may show it.
    pub fn of_values(words: &str, error: UserError, mask: bool) -> Self {
        let message = if mask { format!("SQLSTATE {}", error.sqlstate) } else { error.message.clone() };
        Self::from(UserError { message, ..error }).after(words)
    }

    /// The same with words before its reason.
    pub fn after(self, words: &str) -> Self {
        Self { reason: format!("{words}: {}", self.reason), ..self }
    }
}

/// The GRANTs that the current role lacks: privileges on tables, or on one column at least.
const LACKING: &str = "\
    SELECT string_agg(format('GRANT %s ON %s TO %I', l.names, l.relation::regclass, current_user), '; ' ORDER BY l.relation) \
    FROM (SELECT n.relation, string_agg(DISTINCT p.name, ', ' ORDER BY p.name) AS names \
          FROM ROWS FROM (unnest($1), unnest($2)) AS n (relation, mode) \
          JOIN (VALUES (1, 'INSERT'), (2, 'SELECT'), (4, 'UPDATE'), (8, 'DELETE')) AS p (bit, name) ON n.mode & p.bit <> 0 \
          WHERE NOT CASE p.name WHEN 'DELETE' THEN has_table_privilege(n.relation, p.name) \
                                ELSE has_any_column_privilege(n.relation, p.name) END \
          GROUP BY n.relation) l";

/// # Errors
/// The GRANTs, where the current role lacks what a statement takes.
pub fn check_privileges(needed: &[NeededPrivileges]) -> Result<(), Refusal> {
    let (relations, modes): (Vec<pg_sys::Oid>, Vec<i64>) =
        needed.iter().map(|needed| (needed.relation, needed.mode as i64)).unzip();
    match fetch::<String>(LACKING, &[relations.into(), modes.into()])? {
        None => Ok(()),
        grants => Err(Refusal { reason: "permission denied".to_owned(), is_denied: true, grants }),
    }
}

/// All that the seeds in `$1` and `$2` lead to: what views and rules, defaults, constraints, policies, indexes, triggers, foreign
/// keys, children, types, domains, operators, aggregates and functions with a body that the server has parsed use, at any depth.
/// Of other functions the owner answers for what they do. What came with the server depends on nothing.
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

/// Returns what forbids to try a statement that uses these objects: a function whose author is no superuser may do what no
/// rollback takes back, and a foreign table connects to its server. `None`: nothing.
pub fn untriable(objects: &[Object]) -> Result<Option<String>, UserError> {
    let (classes, ids): (Vec<pg_sys::Oid>, Vec<pg_sys::Oid>) =
        objects.iter().map(|object| (object.class, object.id)).unzip();
    fetch::<String>(FIRST_UNTRIABLE, &[classes.into(), ids.into()])
}
