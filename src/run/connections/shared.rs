//! What the connections of a job have in common: the scripts, and what is sent for each of their commands.

use std::borrow::Cow;
use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, UserError, sqlstate};
use bench_model::client::ClientWorkload;
use bench_model::spec::{OnDisconnect, QueryMode, RunSpec};
use bench_protocol::WireSession;
use bench_script::{Action, CapturedRows, Sql, Value, Variables};

use super::arms::{ArmMessage, messages};
use super::disconnects::ClosingLinks;
use crate::driver::connection::Route;
use crate::run::client::statements::point_at;
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
fn value(value: &Value) -> Option<Cow<'_, str>> {
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
