//! The wire driver: the clients of a run are connections, which jobs share. A job is a worker without a connection to a
//! database of its own; it waits for all of its connections at once, as a thread of pgbench does.

mod connection;
pub mod job;
pub mod script_check;

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_model::client::ClientWorkload;
use bench_model::spec::{Duel, OnDisconnect, QueryMode, RunSpec};
use bench_protocol::WireSession;
use bench_protocol::foreign_server::Secrets;
use bench_script::{Action, CapturedRows, Sql, Value, Variables};
use mio::Registry;

use super::client::statements::point_at;
use crate::driver::connection::{Done, Link, Route};
use crate::error::internal;
use crate::shm::{ClientCounters, CommandCounters, Header, Segment, Tally, unclear};

/// As much as is read at once, in bytes.
const READ_BYTES: usize = 65_536;

/// What all connections of a job have in common.
pub struct JobState<'a> {
    pub header: &'a Header,
    pub workload: ClientWorkload<'a>,
    pub recorder: ClientCounters<'a>,
    pub counters: &'a [CommandCounters],
    /// How long connections took.
    pub connects: &'a Tally,
    /// Connections whose sessions the server is to end.
    pub closing: ClosingLinks,
    /// Of each script.
    modes: Vec<QueryMode>,
    /// What is sent where a stretch of a duel's arm begins.
    pub arms: [Vec<ArmMessage>; 2],
    /// Whether each transaction has a connection of its own.
    pub reconnects: bool,
    /// Whether clients connect again when their connection is lost.
    pub survives: bool,
    /// Ways to where the connections lead, of which there is at least one.
    pub routes: Vec<Route>,
    /// What is read from a socket, before the session takes it.
    pub buffer: Box<[u8]>,
    /// One for each command of the run; `None` for meta commands.
    statements: Vec<Option<WireStatement>>,
    /// A statement's text in simple mode.
    text: String,
}

/// What is sent for a command in the extended protocol.
struct WireStatement {
    /// As pgbench calls it since PostgreSQL 16.
    name: String,
    /// Its text; `None` where that depends on the client's variables.
    text: Option<String>,
}

impl<'a> JobState<'a> {
    /// For the job of this slot. What can be told of the statements is left in the counters of slot 0.
    pub fn new(
        segment: &'a Segment,
        slot: u32,
        workload: ClientWorkload<'a>,
        recorder: ClientCounters<'a>,
        closing: ClosingLinks,
        spec: &RunSpec,
        routes: Vec<Route>,
    ) -> Self {
        let options = &spec.options;
        let (header, counters, connects) = (segment.header(), segment.commands(slot), segment.connects(slot));
        let examined = segment.commands(0);
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        let commands = workload.programs.iter().flat_map(|program| &program.script.commands);
        let mut names = (0..).map(|number| format!("P_{number}"));
        let none = Variables::new(0);
        let statement = |sql: &Sql, name: Option<String>| WireStatement {
            name: name.unwrap_or_default(),
            text: if sql.needs_constants() {
                None
            } else {
                sql.parameterized(&none).ok().map(|statement| statement.text + sql.ending())
            },
        };
        let statements = commands
            .map(|command| match &command.action {
                Action::Sql(sql) => Some(statement(sql, names.next())),
                _ => None,
            })
            .collect();
        let has_pipelines = workload
            .programs
            .iter()
            .any(|program| program.script.commands.iter().any(|c| matches!(c.action, Action::Pipeline(_))));
        for (counter, examined) in counters.iter().zip(examined) {
            counter.copy_traits(examined);
            // What the plans stand for is known to the server alone.
            counter.index_scans_unknown.store(1, Relaxed);
            if has_pipelines {
                // The rows of a pipeline are counted together.
                counter.add_unclear(unclear::OUTSIDE);
            }
        }
        Self {
            header,
            workload,
            recorder,
            counters,
            connects,
            closing,
            modes: spec.scripts.iter().map(|script| options.query_mode_of(script)).collect(),
            arms: [0, 1].map(|arm| options.duel.as_ref().map_or_else(Vec::new, |duel| messages(duel, arm))),
            reconnects: options.reconnect,
            survives: options.on_disconnect == OnDisconnect::Reconnect,
            routes,
            statements,
            text: String::new(),
            buffer,
        }
    }

    /// How the statements of a script reach the server.
    pub fn mode(&self, program: usize) -> QueryMode {
        self.modes[program]
    }

    /// An error of the server's with the line of the statement that it points at, as it was sent.
    #[cold]
    pub fn point_at(
        &self,
        error: SqlError,
        variables: &Variables,
        (program, command): (usize, usize),
    ) -> SqlError {
        let Action::Sql(sql) = &self.workload.programs[program].script.commands[command].action else {
            return error;
        };
        if self.mode(program) == QueryMode::Simple {
            let mut text = String::new();
            return match sql.substitute(variables, &mut text) {
                Ok(()) => point_at(&text, error),
                Err(_) => error,
            };
        }
        match sql.parameterized(variables) {
            Ok(statement) => point_at(&statement.text, error),
            Err(_) => error,
        }
    }

    /// Queues the statement of this command, or asks for it to be prepared; which of the two it was.
    pub fn send(
        &mut self,
        session: &mut WireSession,
        variables: &Variables,
        (program, command): (usize, usize),
        is_prepared: bool,
    ) -> Result<Sent, UserError> {
        let of = &self.workload.programs[program];
        let (Action::Sql(sql), Some(statement)) =
            (&of.script.commands[command].action, &self.statements[of.first_command + command])
        else {
            return Ok(Sent::Statement);
        };
        session.capture(sql.capture.is_some());
        let mode = self.modes[program];
        let values = sql.parameters().map(|id| variables.get(id).and_then(value));
        if mode == QueryMode::Simple {
            self.text.clear();
            sql.substitute(variables, &mut self.text)?;
            self.text.push_str(sql.ending());
            session.query(&self.text)?;
            return Ok(Sent::Statement);
        }
        if mode == QueryMode::Prepared && is_prepared {
            session.execute_prepared(&statement.name, values)?;
            return Ok(Sent::Statement);
        }
        let text = match &statement.text {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(sql.parameterized(variables)?.text + sql.ending()),
        };
        if mode == QueryMode::Prepared {
            session.prepare(&statement.name, &text)?;
            return Ok(Sent::Preparation);
        }
        session.execute_params(&text, values)?;
        Ok(Sent::Statement)
    }
}

/// What was sent.
pub enum Sent {
    Statement,
    Preparation,
}

/// A value as it is sent; `None` for NULL.
pub fn value(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        value => Some(value.to_text()),
    }
}

/// Keeps what `\gset` and `\aset` ask for.
pub fn keep(
    captured: &CapturedRows,
    (program, command): (usize, usize),
    workload: &mut ClientWorkload,
    variables: &mut Variables,
) -> Result<(), SqlError> {
    let ClientWorkload { programs, symbols, .. } = workload;
    let Action::Sql(Sql { capture: Some(capture), .. }) = &programs[program].script.commands[command].action
    else {
        return Ok(());
    };
    // The connection's encoding is UTF8, whatever the database's is, unless the script has set another.
    // No text of a server's has a zero byte.
    let decode = |text: &[u8]| match std::str::from_utf8(text) {
        Ok(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(not_in_utf8()),
    };
    captured.keep(capture, decode, symbols, variables)
}

#[cold]
fn not_in_utf8() -> SqlError {
    let message = "a result for \\gset or \\aset is not encoded in UTF8";
    UserError::new(sqlstate::CHARACTER_NOT_IN_REPERTOIRE, message)
        .hint("Do not set client_encoding in the script.")
        .into()
}

/// Something to be sent where a stretch of an arm begins.
pub enum ArmMessage {
    /// Takes back what only the other arm sets.
    Reset(String),
    /// Sets its own parameters, with these values.
    Set(String, Vec<String>),
}

/// All that is to be sent for an arm. Names of parameters are plain ones (`Duel::check`): they need no quotes.
pub fn messages(duel: &Duel, arm: usize) -> Vec<ArmMessage> {
    let own = &duel.arms[arm].settings;
    let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let others = duel.arms[1 - arm].settings.iter().filter(|(name, _)| !is_own(name));
    let resets: Vec<String> = others.map(|(name, _)| format!("RESET {name}")).collect();
    let calls = (1..=own.len())
        .map(|number| format!("pg_catalog.set_config(${}, ${}, false)", 2 * number - 1, 2 * number));
    let calls: Vec<String> = calls.collect();
    let values = own.iter().flat_map(|(name, value)| [name.clone(), value.clone()]);
    let mut messages = Vec::new();
    if !resets.is_empty() {
        messages.push(ArmMessage::Reset(resets.join("; ")));
    }
    if !calls.is_empty() {
        messages.push(ArmMessage::Set(format!("SELECT {}", calls.join(", ")), values.collect()));
    }
    messages
}

/// Sessions of a job that may be ending at a time.
const ENDING_AT_ONCE: usize = 16;

/// As much as a server may have to say after the end of a session, in bytes. One that talks on does not end it.
const MOST_WORDS: usize = 1 << 20;

/// How often it is read at a time.
const READS: usize = 64;

/// Connections whose clients are over, by their places in the job.
#[derive(Default)]
pub struct Disconnects {
    /// Whose sessions are still to be ended, the first to come first.
    waiting: VecDeque<usize>,
    /// Whose sessions are being ended by the server.
    ending: HashSet<usize>,
}

impl Disconnects {
    /// The client of this connection is over.
    pub fn add(&mut self, index: usize) {
        self.waiting.push_back(index);
    }

    /// The session of this connection has ended.
    pub fn ended(&mut self, index: usize) {
        if !self.ending.remove(&index) {
            // The server has ended it by itself.
            self.waiting.retain(|&waiting| waiting != index);
        }
    }

    /// The next connection that is to take leave now, if there is one.
    pub fn next(&mut self) -> Option<usize> {
        if self.ending.len() >= ENDING_AT_ONCE {
            return None;
        }
        let index = self.waiting.pop_front()?;
        self.ending.insert(index);
        Some(index)
    }
}

/// Connections whose clients have taken leave, the oldest first, with the bytes that have come since. The server closes each
/// when it has ended the session: its statistics are there then, and it no longer counts against max_connections.
pub struct ClosingLinks {
    registry: Registry,
    links: VecDeque<(Link, usize)>,
}

impl ClosingLinks {
    /// For connections of this poll.
    pub fn new(registry: Registry) -> Self {
        Self { registry, links: VecDeque::new() }
    }

    /// Takes a connection whose last message has been sent.
    pub fn push(&mut self, mut link: Link) {
        // One that cannot be deregistered would only wake its client without a reason.
        let _ = link.deregister(&self.registry);
        self.links.push_back((link, 0));
        self.reap();
    }

    /// Lets go of those that the server has closed, up to the first that it has not; how many are left.
    pub fn reap(&mut self) -> usize {
        let mut buffer = [0; 8192];
        for _ in 0..READS {
            let Some((link, heard)) = self.links.front_mut() else { break };
            match link.drain(&mut buffer) {
                // What the server still has to say nobody wants.
                Ok(Done::Some(bytes)) if *heard + bytes <= MOST_WORDS => *heard += bytes,
                Ok(Done::Blocked) => break,
                Ok(Done::Some(_) | Done::Closed) | Err(_) => drop(self.links.pop_front()),
            }
        }
        self.links.len()
    }
}

/// What the run's connections let themselves in with, as long as it is there; those of arm b in a duel of two targets with
/// the second.
///
/// # Errors
/// None that is expected.
pub fn secrets(header: &Header) -> Result<[Secrets; 2], UserError> {
    let secrets = header.secret.get().map_or(Ok(Default::default()), |json| serde_json::from_str(&json));
    secrets.map_err(|error| internal(error.to_string()))
}
