//! A session without a server: what it sends and what it makes of answers, as bytes.

mod answers;
mod authentication;
mod commands;
mod properties;

use bench_base::error::UserError;

use super::*;

/// A message of the server's.
fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag], &length.to_be_bytes()[..], body].concat()
}

/// An ErrorResponse with these fields, each its type and its text.
fn error(fields: &[&str]) -> Vec<u8> {
    let fields: String = fields.iter().map(|field| format!("{field}\0")).collect();
    message(b'E', format!("{fields}\0").as_bytes())
}

/// ReadyForQuery.
fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

/// A DataRow of one column.
fn row(value: &str) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap();
    message(b'D', &[&[0, 1], &length.to_be_bytes()[..], value.as_bytes()].concat())
}

/// A RowDescription of one column of type text.
fn description(name: &str) -> Vec<u8> {
    let rest = [0, 0, 0, 0, 0, 0, 0, 0, 0, 25, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0];
    message(b'T', &[&[0, 1], name.as_bytes(), &[0], &rest].concat())
}

/// A session whose startup message has been sent.
fn greeting() -> WireSession {
    started(&Startup { user: "bob".into(), database: "db".into(), ..Startup::default() })
}

fn started(startup: &Startup) -> WireSession {
    let mut session = WireSession::new();
    session.start(startup).unwrap();
    output(&mut session);
    session
}

/// A session that takes commands.
fn running() -> WireSession {
    let mut session = greeting();
    let answer = [message(b'R', &[0, 0, 0, 0]), ready(b'I')].concat();
    assert_eq!(session.receive(&answer), Ok(SessionEvent::Ready));
    session
}

/// What there is to send; it is sent.
fn output(session: &mut WireSession) -> Vec<u8> {
    let bytes = session.output().to_vec();
    session.sent(bytes.len());
    bytes
}

/// One with a statement sent by the simple protocol.
fn asked() -> WireSession {
    asked_for("SELECT 1")
}

/// One with these statements sent.
fn asked_for(statements: &str) -> WireSession {
    let mut session = running();
    session.query(statements).unwrap();
    output(&mut session);
    session
}

fn said(result: Result<SessionEvent, UserError>) -> String {
    result.unwrap_err().to_string()
}
