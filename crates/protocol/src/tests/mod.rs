//! A session without a server: what it sends and what it makes of answers, as bytes.

mod answers;
mod authentication;

use bench_base::error::{SqlError, UserError};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::*;

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

// What commands send, byte for byte as "Message Formats" in PostgreSQL's manual has it.

const NONE: [Option<&str>; 0] = [];

#[test]
fn the_startup_message() {
    let mut session = WireSession::new();
    assert!(session.output().is_empty());
    let parameters = vec![("application_name".to_owned(), "x".to_owned())];
    let startup = Startup { user: "bob".into(), database: "db".into(), parameters, ..Startup::default() };
    session.start(&startup).unwrap();
    let expected = b"\0\0\0\x31\0\x03\0\0user\0bob\0database\0db\0application_name\0x\0\0";
    assert_eq!(output(&mut session), expected);
    assert!(session.output().is_empty());
}

#[test]
fn a_password_is_never_shown() {
    let startup = Startup { password: Some("secret".to_owned().into()), ..Startup::default() };
    assert!(!format!("{startup:?}").contains("secret"), "{startup:?}");
}

#[test]
fn requests_of_connections_of_their_own() {
    assert_eq!(cancel_request((1, -2)), b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x01\xff\xff\xff\xfe");
    assert_eq!(encryption_request(), b"\0\0\0\x08\x04\xd2\x16\x2f");
    assert_eq!(encryption_accepted(b'S'), Ok(true));
    assert_eq!(encryption_accepted(b'N'), Ok(false));
    assert_eq!(
        encryption_accepted(b'H').unwrap_err().to_string(),
        "received invalid answer to the request for TLS: \"H\" (08P01)"
    );
    assert_eq!(encryption_accepted(b'E').unwrap_err().sqlstate, "08P01");
}

#[test]
fn a_query_of_the_simple_protocol() {
    let mut session = running();
    session.query("SELECT 1").unwrap();
    assert!(session.must_send());
    assert_eq!(output(&mut session), b"Q\0\0\0\x0dSELECT 1\0");
    assert!(!session.must_send());
}

#[test]
fn a_prepared_statement() {
    let mut session = running();
    session.prepare("P_0", "SELECT $1").unwrap();
    assert_eq!(output(&mut session), b"P\0\0\0\x14P_0\0SELECT $1\0\0\0S\0\0\0\x04");
    session.receive(&[message(b'1', b""), ready(b'I')].concat()).unwrap();
    session.execute_prepared("P_0", [Some("7"), None]).unwrap();
    let bind = b"B\0\0\0\x1a\0P_0\0\0\0\0\x02\0\0\0\x017\xff\xff\xff\xff\0\x01\0\0";
    let rest = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    assert_eq!(output(&mut session), [&bind[..], rest].concat());
}

#[test]
fn a_statement_with_values() {
    let mut session = running();
    let values: [Option<String>; 1] = [Some("ü".to_owned())];
    session.execute_params("SELECT $1", values).unwrap();
    let parse = b"P\0\0\0\x11\0SELECT $1\0\0\0";
    let bind = b"B\0\0\0\x14\0\0\0\0\0\x01\0\0\0\x02\xc3\xbc\0\x01\0\0";
    let rest = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    assert_eq!(output(&mut session), [&parse[..], bind, rest].concat());
}

#[test]
fn a_pipeline() {
    let mut session = running();
    session.start_pipeline();
    assert!(session.is_pipelining());
    session.execute_prepared("a", NONE).unwrap();
    session.prepare("b", "x").unwrap();
    session.sync_pipeline();
    session.execute_prepared("b", NONE).unwrap();
    assert!(!session.must_send());
    session.end_pipeline();
    assert!(session.must_send() && !session.is_pipelining());
    let execute = |name: &str| {
        format!("B\0\0\0\x0f\0{name}\0\0\0\0\0\0\x01\0\0D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0").into_bytes()
    };
    let sync = b"S\0\0\0\x04".to_vec();
    let parse = b"P\0\0\0\x0ab\0x\0\0\0".to_vec();
    let expected = [execute("a"), parse, sync.clone(), execute("b"), sync].concat();
    assert_eq!(output(&mut session), expected);
}

#[test]
fn a_long_pipeline_is_sent_in_parts() {
    let mut session = running();
    session.start_pipeline();
    let text = "x".repeat(FLUSH_THRESHOLD / 2);
    session.execute_params(&text, NONE).unwrap();
    assert!(!session.must_send());
    session.execute_params(&text, NONE).unwrap();
    assert!(session.must_send());
}

#[test]
fn a_session_may_end_in_a_pipeline() {
    let mut session = running();
    session.start_pipeline();
    session.execute_prepared("a", NONE).unwrap();
    assert!(!session.must_send());
    session.terminate();
    assert!(session.must_send());
    assert!(output(&mut session).ends_with(b"X\0\0\0\x04"));
    // The server answers what it has got before it closes the connection.
    assert_eq!(session.receive(&message(b'2', b"")), Ok(SessionEvent::Pending));
}

#[test]
fn output_leaves_in_parts() {
    let mut session = running();
    session.query("a").unwrap();
    session.sent(5);
    assert_eq!(session.output(), b"a\0");
    session.terminate();
    assert_eq!(session.output(), b"a\0X\0\0\0\x04");
    session.sent(usize::MAX);
    assert_eq!(session.output(), b"");
}

#[test]
fn what_no_message_can_hold_is_not_sent() {
    let mut session = running();
    session.query("fine").unwrap();
    let before = session.output().to_vec();
    for result in [
        session.query("a\0b"),
        session.prepare("a\0b", ""),
        session.prepare("", "\0"),
        session.execute_prepared("\0", NONE),
        session.execute_params("\0", NONE),
    ] {
        assert_eq!(result.unwrap_err().sqlstate, "22023");
        assert_eq!(session.output(), before);
    }
    session.start_pipeline();
    let error = session.query("SELECT 1").unwrap_err();
    assert_eq!(error.to_string(), "the simple query protocol cannot be used in a pipeline (55000)");
    let mut session = WireSession::new();
    let startup = Startup { user: "a\0b".into(), ..Startup::default() };
    assert_eq!(session.start(&startup).unwrap_err().sqlstate, "22023");
}

#[test]
fn ten_thousand_sessions_are_small() {
    assert!(size_of::<WireSession>() <= 320, "{}", size_of::<WireSession>());
    let mut session = running();
    session.query(&"x".repeat(1 << 20)).unwrap();
    output(&mut session);
    let room = session.room();
    assert!(room <= 2 * 4096, "{room}");
}

#[test]
fn words_of_the_startup_message_are_no_settings() {
    for word in ["user", "database", "options", "replication", "Replication", "_pq_.x", "_PQ_.command"] {
        assert!(is_startup_word(word), "{word}");
    }
    for name in ["search_path", "users", "_pq_", "", "ä", "my.options"] {
        assert!(!is_startup_word(name), "{name}");
    }
}

/// All that can be seen of a session.
#[derive(Debug, PartialEq)]
struct Seen {
    event: Result<SessionEvent, UserError>,
    status: TransactionStatus,
    backend: Option<(i32, i32)>,
    version: Option<String>,
    output: Vec<u8>,
    rows: u64,
    completed: u64,
    error: Option<String>,
    captured: String,
}

fn seen(session: &mut WireSession, event: Result<SessionEvent, UserError>) -> Seen {
    let output = session.output().to_vec();
    let (status, backend) = (session.status(), session.backend());
    let version = session.parameter("server_version").map(str::to_owned);
    let outcome = session.outcome();
    Seen {
        event,
        status,
        backend,
        version,
        output,
        rows: outcome.rows,
        completed: outcome.completed,
        error: outcome.error.map(|error: SqlError| format!("{error:?}")),
        captured: format!("{:?}", outcome.captured),
    }
}

/// What comes of the input in these pieces; nothing follows on an error.
fn in_pieces<'a>(mut session: WireSession, pieces: impl Iterator<Item = &'a [u8]>) -> Seen {
    let mut event = session.receive(b"");
    for piece in pieces {
        if event.is_err() {
            break;
        }
        event = session.receive(piece);
    }
    seen(&mut session, event)
}

/// Where a session is when the input comes.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Greeting,
    Simple,
    Captured,
    Pipeline,
}

fn at(stage: Stage) -> WireSession {
    let mut session = match stage {
        Stage::Greeting => return greeting(),
        _ => running(),
    };
    match stage {
        Stage::Captured => session.capture(true),
        Stage::Pipeline => {
            session.start_pipeline();
            session.execute_prepared::<&str>("a", []).unwrap();
            session.sync_pipeline();
            session.execute_prepared::<&str>("b", []).unwrap();
            session.end_pipeline();
            return session;
        }
        _ => {}
    }
    // As many statements as there may be results.
    session.query(&"SELECT 1; ".repeat(20)).unwrap();
    session
}

fn stages() -> impl Strategy<Value = Stage> {
    prop_oneof![Just(Stage::Greeting), Just(Stage::Simple), Just(Stage::Captured), Just(Stage::Pipeline)]
}

/// A message that a server may send, mostly.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[ -~]{0,40}".prop_map(|text| row(&text)),
        2 => "[a-z]{0,5}".prop_map(|name| description(&name)),
        3 => "(SELECT|UPDATE|INSERT 0|BEGIN) [0-9]{0,4}".prop_map(|tag| complete(&tag)),
        1 => Just(ready(b'T')),
        1 => "[ -~]{0,40}".prop_map(|text| error(&["VERROR", "C40001", &format!("M{text}")])),
        1 => Just(message(b'I', b"")),
        2 => Just(message(b'N', b"SNOTICE\0Mhello\0\0")),
        1 => Just(message(b'S', b"server_version\x0015.1\0")),
        1 => Just(message(b'2', b"")),
        1 => Just(message(b'R', &[0, 0, 0, 0])),
        1 => Just(message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2])),
        1 => (any::<u8>(), vec(any::<u8>(), 0..12)).prop_map(|(tag, body)| message(tag, &body)),
    ]
}

proptest! {
    #[test]
    fn cuts_do_not_matter(stage in stages(), input in vec(messages(), 0..20), cuts in vec(1_usize..60, 1..40)) {
        let input = input.concat();
        let whole = in_pieces(at(stage), std::iter::once(&input[..]));
        let bytewise = in_pieces(at(stage), input.chunks(1));
        prop_assert_eq!(&whole, &bytewise);
        let mut rest = &input[..];
        let pieces = cuts.iter().cycle().map_while(|&cut| {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        });
        let pieces: Vec<&[u8]> = pieces.collect();
        prop_assert_eq!(&whole, &in_pieces(at(stage), pieces.into_iter()));
    }

    #[test]
    fn no_input_does_harm(
        stage in stages(),
        input in vec(prop_oneof![9 => any::<u8>(), 3 => Just(0), 1 => Just(b'E'), 1 => Just(b'D')], 0..300),
        begin in messages(),
    ) {
        for input in [input.clone(), [begin, input].concat()] {
            let mut session = at(stage);
            let before = session.room();
            let _ = session.receive(&input);
            // Buffers double as they grow.
            prop_assert!(session.room() <= before + 2 * input.len() + 1024, "{}", session.room());
        }
    }
}
