//! Whose sessions analyse, try and replay what was captured: those of the role that executed it, or of the one that option
//! `run_as` names.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::Role;

use super::progress;
use super::refusal::Refusal;
use crate::guard::rights::is_special;
use crate::guard::session_role::session_of_writer;
use crate::launch::checks::check_session_of;
use crate::launch::role_session::Watch;
use crate::server::roles::{self, may_become};
use crate::server::spi::quote_identifier;
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
    progress::enter(CapturePhase::Analysis, most.min(replayers.len()) as u64);
    loop {
        let before = found.iter().flatten().count() as u64;
        let room = most.saturating_sub(found.iter().filter(|one| matches!(one, Some(Ok(_)))).count());
        let next: Vec<usize> = (0..found.len()).filter(|&at| found[at].is_none()).take(room).collect();
        let Some(Ok(first)) = next.first().map(|&at| &replayers[at]) else { return Ok(found) };
        let is_of = |at: &usize| replayers[*at].as_ref().is_ok_and(|one| one.writer.oid == first.writer.oid);
        let of_role: Vec<usize> = next.into_iter().filter(is_of).collect();
        let mut watch = |answered: u32| progress::set_done(before + u64::from(answered));
        let told = ask(first, &of_role, &mut watch).or_else(|error| match error.sqlstate.as_str() {
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
