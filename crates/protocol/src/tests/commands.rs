//! What commands send, byte for byte as "Message Formats" in PostgreSQL's manual has it.

use super::*;

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
