//! Lasting sessions with other nodes of a Citus cluster, as the current role: one connection per node, on which many nodes
//! are asked at once.
//!
//! Like Citus' own connections they use `citus.node_conninfo`, pg_dist_authinfo and pg_dist_poolinfo. If these need a
//! feature that the wire driver does not have, such as a password file or GSSAPI, each question goes through Citus instead.

use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use bench_base::error::{UserError, sqlstate};
use bench_model::cluster::NodeSpec;
use bench_protocol::foreign_server::{Secrets, SslMode, Target, parse_conninfo};
use mio::{Events, Poll, Registry};

use super::citus::failure;
use crate::driver::connection::{PolledSession, Route, candidates};
use crate::error::internal;
use crate::server::guc;
use crate::server::spi::fetch_all;

/// The longest wait between two checks for interrupts.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The pause before a connection that could not be begun is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The longest answer of a node that is kept, in bytes: four parts of a document.
const MAX_ANSWER: usize = 64 << 20;

/// Citus' connection parameters for a set of nodes.
pub struct Directions {
    /// citus.node_conninfo
    conninfo: String,
    /// For each node, pg_dist_poolinfo.poolinfo and pg_dist_authinfo.authinfo, which contains secrets.
    nodes: Vec<(String, String)>,
    role: String,
    database: String,
}

/// Reads the connection parameters for sessions of `role` in `database`. The current role must be a superuser: others may
/// not read all of Citus' catalogs.
///
/// # Errors
/// Those of the queries.
pub fn directions(nodes: &[NodeSpec], role: &str, database: &str) -> Result<Directions, UserError> {
    let ids: Vec<i32> = nodes.iter().map(|node| node.node).collect();
    let nodes = fetch_all(
        "SELECT (SELECT p.poolinfo FROM pg_dist_poolinfo p WHERE p.nodeid = t.node), \
                (SELECT a.authinfo FROM pg_dist_authinfo a \
                 WHERE a.rolename = $2::name AND (a.nodeid = t.node OR a.nodeid = 0) \
                 ORDER BY a.nodeid DESC LIMIT 1) \
         FROM unnest($1) WITH ORDINALITY AS t (node, place) ORDER BY t.place",
        &[ids.into(), role.into()],
        |row| Ok((row.get::<String>(1)?.unwrap_or_default(), row.get::<String>(2)?.unwrap_or_default())),
    )?;
    Ok(Directions {
        conninfo: guc::current("citus.node_conninfo").unwrap_or_default(),
        nodes,
        role: role.to_owned(),
        database: database.to_owned(),
    })
}

/// Sessions with several nodes, each connected at its first question.
pub struct Sessions {
    poll: Poll,
    events: Events,
    peers: Vec<Peer>,
}

impl Sessions {
    /// Prepares sessions with these nodes, none of which is this one. Connection errors are reported at the first question.
    ///
    /// # Errors
    /// Those of epoll.
    pub fn new(nodes: &[NodeSpec], directions: &Directions) -> Result<Self, UserError> {
        let poll = Poll::new().map_err(|error| internal(error.to_string()))?;
        let peers = nodes.iter().zip(&directions.nodes).map(|(node, (pool, secret))| Peer {
            node: node.clone(),
            // Without routes the questions go through Citus, which reports errors in its parameters.
            routes: routes(node, directions, pool, secret).unwrap_or_default(),
            place: 0,
            session: None,
            stage: SessionStage::Connecting,
            is_carried: false,
        });
        Ok(Self { poll, events: Events::with_capacity(64), peers: peers.collect() })
    }

    /// Runs a query that returns one text on each node that has a command, on all of them at once. Returns the answers in the
    /// order of the nodes, `None` for nodes without a command. `carry` asks nodes through Citus.
    ///
    /// # Errors
    /// Those of epoll and of `carry`. A node's own error, or no answer within the limit, is its answer: 08006.
    pub fn ask(
        &mut self,
        commands: &[Option<String>],
        limit: Duration,
        carry: impl Fn(&[(NodeSpec, String)]) -> Result<Vec<Result<String, UserError>>, UserError>,
    ) -> Result<Vec<Option<Result<String, UserError>>>, UserError> {
        let deadline = Instant::now() + limit;
        let mut answers: Vec<Option<Result<String, UserError>>> = vec![None; self.peers.len()];
        loop {
            let mut pause = CHECK_INTERVAL;
            let mut is_waiting = false;
            for ((peer, command), answer) in self.peers.iter_mut().zip(commands).zip(&mut answers) {
                let Some(command) = command.as_deref().filter(|_| answer.is_none() && !peer.is_carried())
                else {
                    continue;
                };
                match peer.turn(command, self.poll.registry()) {
                    Turn::Answered(result) => *answer = Some(result),
                    Turn::Blocked => is_waiting = true,
                    Turn::Again(after) => {
                        is_waiting = true;
                        pause = pause.min(after);
                    }
                }
            }
            if !is_waiting {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            pgrx::check_for_interrupts!();
            match self.poll.poll(&mut self.events, Some(pause.min(left))) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(internal(error.to_string()));
                }
                _ => {}
            }
        }
        for ((peer, command), answer) in self.peers.iter_mut().zip(commands).zip(&mut answers) {
            if command.is_some() && answer.is_none() && !peer.is_carried() {
                // A late answer on this connection would be taken for that to the next question.
                peer.disconnect();
                let message =
                    format!("node {}: no answer within {} s", peer.node.name(), limit.as_secs_f64());
                *answer = Some(Err(UserError::new(sqlstate::CONNECTION_FAILURE, message).hint(NO_ANSWER)));
            }
        }
        self.ask_through_citus(commands, &mut answers, carry)?;
        Ok(answers)
    }

    /// Asks the nodes that the wire driver cannot reach through Citus. If Citus fails as well, the wire driver's error stays:
    /// it has the reason.
    fn ask_through_citus(
        &mut self,
        commands: &[Option<String>],
        answers: &mut [Option<Result<String, UserError>>],
        carry: impl Fn(&[(NodeSpec, String)]) -> Result<Vec<Result<String, UserError>>, UserError>,
    ) -> Result<(), UserError> {
        let (mut places, mut questions) = (Vec::new(), Vec::new());
        for (place, (peer, command)) in self.peers.iter().zip(commands).enumerate() {
            let is_refused = matches!(&answers[place], Some(Err(_))) && peer.is_refused();
            if let Some(command) = command.as_ref().filter(|_| peer.is_carried() || is_refused) {
                places.push(place);
                questions.push((peer.node.clone(), command.clone()));
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        for (place, answer) in places.into_iter().zip(carry(&questions)?) {
            let peer = &mut self.peers[place];
            let has_reason = answers[place].is_some();
            if answer.is_ok() || !has_reason {
                peer.is_carried |= answer.is_ok();
                answers[place] = Some(answer);
            }
        }
        Ok(())
    }
}

const NO_ANSWER: &str =
    "Make sure that the node runs and can be reached from this one, by each address of its name.";

#[derive(Clone, Copy, PartialEq)]
enum SessionStage {
    Connecting,
    /// The node has refused the role, or the connection needs a feature that the wire driver does not have.
    Refused,
    Idle,
    /// A question has been sent.
    Asked,
}

/// The progress of a question.
enum Turn {
    Answered(Result<String, UserError>),
    /// Waits for the connection's socket.
    Blocked,
    /// Must be continued after this time at the latest.
    Again(Duration),
}

/// A node and the session with it.
struct Peer {
    node: NodeSpec,
    /// The routes to try; none if only Citus can reach the node.
    routes: Vec<Route>,
    /// The route in use, as an index into `routes`.
    place: usize,
    session: Option<PolledSession>,
    stage: SessionStage,
    /// Citus has answered a question after the node refused the wire driver.
    is_carried: bool,
}

impl Peer {
    fn is_carried(&self) -> bool {
        self.is_carried || self.routes.is_empty()
    }

    fn is_refused(&self) -> bool {
        self.stage == SessionStage::Refused
    }

    fn disconnect(&mut self) {
        self.session = None;
        self.stage = SessionStage::Connecting;
        self.place = 0;
    }

    /// Advances the session and its question as far as possible without waiting.
    fn turn(&mut self, command: &str, registry: &Registry) -> Turn {
        loop {
            let Some(route) = self.routes.get(self.place) else {
                self.disconnect();
                continue;
            };
            let Some(session) = &mut self.session else {
                let connected = PolledSession::connect(route).and_then(|session| {
                    session.map(|mut session| session.register(registry).map(|()| session)).transpose()
                });
                match connected {
                    Ok(Some(session)) => {
                        self.session = Some(session);
                        self.stage = SessionStage::Connecting;
                        continue;
                    }
                    Ok(None) => return Turn::Again(RETRY_PAUSE),
                    Err(error) => match self.try_next_route(error) {
                        Some(failed) => return failed,
                        None => continue,
                    },
                }
            };
            match self.stage {
                SessionStage::Connecting | SessionStage::Refused => match session.turn(route) {
                    Ok(true) => self.stage = SessionStage::Idle,
                    Ok(false) if session.has_more() => return Turn::Again(Duration::ZERO),
                    Ok(false) => return Turn::Blocked,
                    Err(error) => {
                        if let Some(failed) = self.try_next_route(error) {
                            return failed;
                        }
                    }
                },
                SessionStage::Idle => {
                    match session.turn(route).and_then(|_| session.ask_for(command, MAX_ANSWER, false)) {
                        Ok(()) => self.stage = SessionStage::Asked,
                        // The session has ended since the last answer.
                        Err(_) => self.disconnect(),
                    }
                }
                SessionStage::Asked => match session.turn(route) {
                    Ok(true) => {
                        self.stage = SessionStage::Idle;
                        let answer = session.value().map(Option::unwrap_or_default);
                        return Turn::Answered(answer.map_err(|error| failure(&self.node, error)));
                    }
                    Ok(false) if session.has_more() => return Turn::Again(Duration::ZERO),
                    Ok(false) => return Turn::Blocked,
                    Err(error) => {
                        self.disconnect();
                        return Turn::Answered(Err(failure(&self.node, error)));
                    }
                },
            }
        }
    }

    /// Moves on to the next route after one has failed; returns the failure if that was the last one.
    fn try_next_route(&mut self, error: UserError) -> Option<Turn> {
        self.session = None;
        self.place += 1;
        if self.place < self.routes.len() {
            return None;
        }
        self.disconnect();
        // If the node cannot be reached at all, Citus cannot reach it either.
        if error.sqlstate != sqlstate::CONNECTION_FAILURE {
            self.stage = SessionStage::Refused;
        }
        Some(Turn::Answered(Err(failure(&self.node, error))))
    }
}

/// Returns the routes to a node.
///
/// # Errors
/// For parameters that the wire driver does not support.
fn routes(
    node: &NodeSpec,
    directions: &Directions,
    pool: &str,
    secret: &str,
) -> Result<Vec<Route>, UserError> {
    let (mut server, mut mapping) = (Vec::new(), Vec::new());
    let mut named = None;
    for (keyword, value) in parse_conninfo(&directions.conninfo)?.into_iter().chain(parse_conninfo(secret)?) {
        match keyword.as_str() {
            "sslcert" | "sslkey" | "password" => {
                mapping.retain(|(known, _)| *known != keyword);
                mapping.push((keyword, value));
            }
            // The name that certificates are verified against; the node's own host then serves as the address.
            "host" => named = Some(value),
            _ => server.push((keyword, value)),
        }
    }
    let (mut host, mut port) = (node.host.clone(), node.port.to_string());
    let mut database = directions.database.clone();
    for (keyword, value) in parse_conninfo(pool)? {
        match keyword.as_str() {
            "host" => host = value,
            "port" => port = value,
            "dbname" => database = value,
            _ => return Err(internal(format!("unrecognized poolinfo keyword \"{keyword}\""))),
        }
    }
    match named {
        Some(name) => server.extend([("host".to_owned(), name), ("hostaddr".to_owned(), host)]),
        None => server.push(("host".to_owned(), host)),
    }
    server.push(("port".to_owned(), port));
    server.push(("dbname".to_owned(), database));
    server.push(("application_name".to_owned(), APPLICATION_NAME.to_owned()));
    let (target, secrets): (Target, Secrets) = Target::new(&server, &mapping, &directions.role)?;
    check_default_files(&target)?;
    let mut routes = Vec::new();
    for host in &target.hosts {
        for candidate in candidates(host, target.tls.sslmode)? {
            routes.push(Route::to_target(&target, &secrets, candidate)?);
        }
    }
    Ok(routes)
}

const APPLICATION_NAME: &str = "pgbench_ext link";

/// Checks that libpq would not verify the server by the operating-system user's root.crt, its default, which the wire driver
/// does not read.
///
/// # Errors
/// XX000 if that file exists and is used.
fn check_default_files(target: &Target) -> Result<(), UserError> {
    if target.tls.sslmode == SslMode::Disable || target.tls.sslrootcert.is_some() {
        return Ok(());
    }
    let home = std::env::var_os("HOME").unwrap_or_default();
    match Path::new(&home).join(".postgresql/root.crt").exists() {
        true => Err(internal("the server's operating-system user has a root.crt")),
        false => Ok(()),
    }
}
