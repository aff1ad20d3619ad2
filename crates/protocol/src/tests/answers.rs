//! What a session makes of answers.

use bench_base::error::unpack;
use bench_script::{CapturedRows, MAX_CAPTURED, ResultCapture, Symbols, Variables};

use crate::tests::*;

/// The variables that `\gset` or `\aset` makes of what was captured, for columns a to e; the error otherwise.
fn kept(captured: &CapturedRows, every_query: bool) -> Result<String, String> {
    let (mut symbols, mut variables) = (Symbols::new(), Variables::new(0));
    let capture = ResultCapture { prefix: String::new(), every_query };
    let decode = |bytes: &[u8]| Ok(String::from_utf8(bytes.to_vec()).unwrap());
    captured.keep(&capture, decode, &mut symbols, &mut variables).map_err(|error| error.message)?;
    let value = |name| Some(format!("{name}={} ", variables.get(symbols.lookup(name)?)?.to_text()));
    Ok(["a", "b", "c", "d", "e"].into_iter().filter_map(value).collect())
}

#[test]
fn the_beginning_of_a_session() {
    let mut session = greeting();
    let parameters = b"S\0\0\0\x18server_version\x0018.1\0S\0\0\0\x14TimeZone\0Mars/X\0";
    let key = b"K\0\0\0\x0c\0\0\x01\0\xff\xff\xff\xff";
    assert_eq!(session.receive(b"R\0\0\0\x08\0\0\0\0"), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(parameters), Ok(SessionEvent::Pending));
    assert_eq!(session.backend(), None);
    assert_eq!(session.receive(key), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(b"Z\0\0\0\x05I"), Ok(SessionEvent::Ready));
    assert_eq!(session.backend(), Some((256, -1)));
    assert_eq!(session.parameter("server_version"), Some("18.1"));
    assert_eq!(session.parameter("client_encoding"), None);
    assert_eq!(session.parameter("TimeZone"), None);
    assert_eq!(session.status(), TransactionStatus::Idle);
    assert!(!session.used_password());
}

#[test]
fn rows_are_counted_by_tags() {
    let mut session = asked_for("…; …; …; …; …; …");
    let result = [
        description("x"),
        row("1"),
        row("2"),
        complete("SELECT 2"),
        complete("CREATE TABLE"),
        complete("INSERT 0 5"),
        message(b'I', b""),
        complete("UPDATE 30"),
        complete("SELECT 99999999999999999999999"),
    ];
    assert_eq!(session.receive(&result.concat()), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(&ready(b'T')), Ok(SessionEvent::Ready));
    assert_eq!(session.status(), TransactionStatus::InBlock);
    let outcome = session.outcome();
    assert_eq!((outcome.rows, outcome.completed), (37, 6));
    assert!(outcome.error.is_none());
}

#[test]
fn the_first_error_with_all_of_its_fields() {
    let mut session = asked_for("BEGIN; SELECT …; COMMIT");
    let first = error(&[
        "SFEHLER",
        "VERROR",
        "C23505",
        "Mdouble",
        "DKey (a).",
        "HNo.",
        "P12",
        "Wfunction f",
        "sbench",
        "tt",
        "Fx.c",
        "L1",
        "Rf",
    ]);
    let second = error(&["VERROR", "C25P02", "Maborted"]);
    session.receive(&[complete("BEGIN"), first, second, complete("COMMIT")].concat()).unwrap();
    assert_eq!(session.receive(&ready(b'E')), Ok(SessionEvent::Ready));
    assert_eq!(session.status(), TransactionStatus::InFailedBlock);
    let outcome = session.outcome();
    assert_eq!(outcome.completed, 1);
    let error = outcome.error.unwrap();
    assert_eq!((unpack(error.sqlstate).as_str(), error.message.as_str()), ("23505", "double"));
    assert_eq!((error.detail.as_deref(), error.hint.as_deref()), (Some("Key (a)."), Some("No.")));
    assert_eq!((error.position, error.context.as_deref()), (12, Some("function f")));
    // The next command has an outcome of its own.
    session.query("SELECT 2").unwrap();
    session.receive(&[complete("SELECT 1"), ready(b'I')].concat()).unwrap();
    let outcome = session.outcome();
    assert_eq!((outcome.rows, outcome.completed, outcome.error.is_none()), (1, 1, true));
}

#[test]
fn what_comes_at_any_time() {
    let mut session = running();
    let asynchronous = [
        message(b'N', b"SNOTICE\0Mhello\0\0"),
        message(b'A', b"\0\0\0\x01channel\0payload\0"),
        message(b'S', b"in_hot_standby\0off\0"),
    ];
    for bytes in &asynchronous {
        assert_eq!(session.receive(bytes), Ok(SessionEvent::Ready));
    }
    assert_eq!(session.parameter("in_hot_standby"), Some("off"));
    session.query("SELECT 1").unwrap();
    let change = message(b'S', b"in_hot_standby\0on\0");
    let between = asynchronous.concat();
    let answer = [&between, &description("x"), &between, &row("1"), &between, &complete("SELECT 1"), &change];
    for bytes in answer {
        assert_eq!(session.receive(bytes), Ok(SessionEvent::Pending));
    }
    assert_eq!(session.receive(&ready(b'I')), Ok(SessionEvent::Ready));
    assert_eq!(session.parameter("in_hot_standby"), Some("on"));
    assert_eq!(session.outcome().rows, 1);
}

#[test]
fn the_extended_protocol() {
    let mut session = running();
    session.execute_params("SELECT $1", [Some("1")]).unwrap();
    let head = [message(b'1', b""), message(b'2', b""), description("x")].concat();
    assert_eq!(session.receive(&head), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(&[row("1"), complete("SELECT 1")].concat()), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(&ready(b'I')), Ok(SessionEvent::Ready));
    assert_eq!(session.outcome().rows, 1);
    session.execute_prepared::<&str>("P_0", []).unwrap();
    let utility = [message(b'2', b""), message(b'n', b""), complete("BEGIN"), ready(b'T')].concat();
    assert_eq!(session.receive(&utility), Ok(SessionEvent::Ready));
    assert_eq!((session.status(), session.outcome().completed), (TransactionStatus::InBlock, 1));
}

#[test]
fn a_pipeline_is_answered_when_all_of_it_is() {
    let mut session = running();
    session.start_pipeline();
    assert_eq!(session.receive(&message(b'N', b"\0")), Ok(SessionEvent::Pending));
    session.execute_prepared::<&str>("a", []).unwrap();
    session.sync_pipeline();
    session.execute_prepared::<&str>("b", []).unwrap();
    let one = [message(b'2', b""), message(b'n', b""), complete("UPDATE 1")].concat();
    // The server may answer before the pipeline ends.
    assert_eq!(session.receive(&[&one[..], &ready(b'I')].concat()), Ok(SessionEvent::Pending));
    session.end_pipeline();
    assert_eq!(session.receive(&one), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(&ready(b'I')), Ok(SessionEvent::Ready));
    let outcome = session.outcome();
    assert_eq!((outcome.rows, outcome.completed), (2, 2));
}

#[test]
fn an_error_in_a_pipeline_is_the_outcome_of_all_of_it() {
    let mut session = running();
    session.start_pipeline();
    for _ in 0..3 {
        session.execute_prepared::<&str>("a", []).unwrap();
    }
    session.sync_pipeline();
    session.execute_prepared::<&str>("a", []).unwrap();
    session.end_pipeline();
    output(&mut session);
    let one = [message(b'2', b""), message(b'n', b""), complete("UPDATE 1")].concat();
    let failure = error(&["VERROR", "C40001", "Mno"]);
    // Of the first part only the first statement is completed; the second part is executed all the same.
    assert_eq!(session.receive(&[&one[..], &failure, &ready(b'E')].concat()), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(&[&one[..], &ready(b'I')].concat()), Ok(SessionEvent::Ready));
    let outcome = session.outcome();
    assert_eq!((outcome.rows, outcome.completed), (2, 1));
    assert_eq!(outcome.error.map(|error| unpack(error.sqlstate)).as_deref(), Some("40001"));
    session.discard_until_sync();
    assert_eq!(output(&mut session), b"S\0\0\0\x04");
    assert_eq!(session.receive(&ready(b'I')), Ok(SessionEvent::Ready));
}

#[test]
fn what_is_kept_of_results() {
    let mut session = running();
    session.capture(true);
    session.query("SELECT 1 AS a \\; SELECT 2 AS b WHERE false \\; CREATE … \\; ; \\; SELECT …").unwrap();
    let result = [
        description("a"),
        row("1"),
        row("one"),
        complete("SELECT 2"),
        description("b"),
        complete("SELECT 0"),
        complete("CREATE TABLE"),
        message(b'I', b""),
        description("c"),
        row("3"),
        complete("SELECT 1"),
        ready(b'I'),
    ];
    assert_eq!(session.receive(&result.concat()), Ok(SessionEvent::Ready));
    let outcome = session.outcome();
    assert_eq!(kept(outcome.captured, true).as_deref(), Ok("a=one c=3 "));
    assert_eq!(kept(outcome.captured, false).as_deref(), Ok("c=3 "));
    // A query without result columns is one, without a row.
    for last in [complete("CREATE TABLE"), message(b'I', b"")] {
        session.query("SELECT 1 AS a \\; …").unwrap();
        let result = [description("a"), row("1"), complete("SELECT 1"), last, ready(b'I')];
        session.receive(&result.concat()).unwrap();
        let outcome = session.outcome();
        assert_eq!(kept(outcome.captured, true).as_deref(), Ok("a=1 "));
        assert_eq!(kept(outcome.captured, false), Err("expected one row, got 0".to_owned()));
    }
    // By the extended protocol the description comes before the execution.
    session.execute_prepared::<&str>("P_0", []).unwrap();
    let result = [message(b'2', b""), description("d"), row("4"), complete("SELECT 1"), ready(b'I')];
    session.receive(&result.concat()).unwrap();
    assert_eq!(kept(session.outcome().captured, false).as_deref(), Ok("d=4 "));
    session.capture(false);
    session.query("SELECT 5 AS e").unwrap();
    session.receive(&[description("e"), row("5"), complete("SELECT 1"), ready(b'I')].concat()).unwrap();
    assert_eq!(kept(session.outcome().captured, true).as_deref(), Ok(""));
}

/// What is too large for `\gset`: the error.
fn too_much(session: &mut WireSession) -> String {
    session.receive(&[complete("SELECT 1"), ready(b'I')].concat()).unwrap();
    kept(session.outcome().captured, false).unwrap_err()
}

#[test]
fn results_too_large_for_a_variable_are_not_kept() {
    let mut session = running();
    session.capture(true);
    session.query("SELECT …").unwrap();
    let length = MAX_CAPTURED + 1;
    let mut huge = vec![b'D'];
    huge.extend(u32::try_from(length).unwrap().to_be_bytes());
    session.receive(&[description("a"), huge].concat()).unwrap();
    let part = vec![0; length - 4];
    session.receive(&part).unwrap();
    assert!(session.room() < 10_000, "{}", session.room());
    assert_eq!(too_much(&mut session), "the result that is to be kept is too large");
    // The next one is kept again.
    session.query("SELECT …").unwrap();
    session.receive(&[description("a"), row("1"), complete("SELECT 1"), ready(b'I')].concat()).unwrap();
    assert_eq!(kept(session.outcome().captured, false).as_deref(), Ok("a=1 "));
}

#[test]
fn all_rows_together_have_a_limit() {
    for (row, rows) in [(row(&"x".repeat(10_000)), 2000), (message(b'D', &[0, 0]), 200_000)] {
        let mut session = running();
        session.capture_up_to(MAX_CAPTURED, true);
        session.query("SELECT …").unwrap();
        session.receive(&description("a")).unwrap();
        for _ in 0..rows {
            session.receive(&row).unwrap();
        }
        assert_eq!(too_much(&mut session), "the result that is to be kept is too large");
        session.query("SELECT …").unwrap();
        session
            .receive(&[description("a"), row.clone(), row, complete("SELECT 2"), ready(b'I')].concat())
            .unwrap();
        let outcome = session.outcome();
        let table = outcome.captured.table().unwrap();
        assert_eq!((table.columns.len(), table.rows().count()), (1, 2));
    }
}

#[test]
fn columns_have_a_limit() {
    let mut session = running();
    session.capture(true);
    session.query("SELECT …").unwrap();
    let column = &description("a")[7..];
    let body = [&[0xff, 0xff], column.repeat(65_535).as_slice()].concat();
    session.receive(&message(b'T', &body)).unwrap();
    assert_eq!(too_much(&mut session), "the result that is to be kept has too many columns");
}

#[test]
fn no_more_results_come_than_there_were_statements() {
    for captures in [false, true] {
        for (statements, results) in [("SELECT 1", 1), ("SELECT 1; SELECT 2; ", 3)] {
            let mut session = running();
            session.capture(captures);
            session.query(statements).unwrap();
            for _ in 0..results {
                assert_eq!(session.receive(&complete("SELECT 1")), Ok(SessionEvent::Pending));
            }
            let expected = "received more results than statements were sent (08P01)";
            assert_eq!(said(session.receive(&complete("SELECT 1"))), expected);
        }
        let mut session = running();
        session.capture(captures);
        session.execute_prepared::<&str>("P_0", []).unwrap();
        session.receive(&message(b'I', b"")).unwrap();
        assert!(session.receive(&message(b'I', b"")).is_err());
    }
    let mut session = running();
    session.capture(true);
    session.query("SELECT 1").unwrap();
    let expected = "received a second description of the result of one statement (08P01)";
    assert_eq!(said(session.receive(&description("a").repeat(2))), expected);
}

#[test]
fn of_a_long_error_only_the_beginning_is_taken_up() {
    let length = 100 << 20;
    let header = [b"E".as_slice(), &u32::to_be_bytes(length)].concat();
    let beginning = b"SERROR\0VERROR\0C22000\0Dfor\0M";
    for whole in [true, false] {
        let mut session = asked();
        session.receive(&[header.as_slice(), beginning].concat()).unwrap();
        let mut left = length as usize - 4 - beginning.len();
        let part = "ä".repeat(1 << 16).into_bytes();
        while left > 0 {
            let bytes = left.min(part.len());
            assert_eq!(session.receive(&part[..bytes]), Ok(SessionEvent::Pending));
            assert!(session.room() < 80_000, "{}", session.room());
            left -= bytes;
        }
        if !whole {
            continue;
        }
        assert_eq!(session.receive(&ready(b'I')), Ok(SessionEvent::Ready));
        let error = session.outcome().error.unwrap();
        assert_eq!(error.detail.as_deref(), Some("for"));
        assert!(error.message.starts_with("äää") && error.message.len() < 4200, "{}", error.message.len());
        assert!(error.message.ends_with("… (104853473 bytes cut)"), "{}", &error.message[4090..]);
    }
    // Of several, each text is cut on its own.
    let long = "x".repeat(5000);
    let fields =
        error(&["VERROR", "C22000", &format!("M{long}"), &format!("D{long}"), &format!("H{long}"), "Wend"]);
    let mut session = asked();
    session.receive(&fields).unwrap();
    let error = session.outcome().error.unwrap();
    for text in [Some(error.message), error.detail, error.hint] {
        assert!(text.is_some_and(|text| text.len() < 4200 && text.ends_with("… (904 bytes cut)")));
    }
    assert_eq!(error.context.as_deref(), Some("end"));
    // One that is not as long as it says has no end.
    assert!(asked().receive(&message(b'E', b"VERROR\0Mno")).is_err());
}

#[test]
fn a_fatal_error_ends_the_session() {
    for severity in ["FATAL", "PANIC"] {
        let mut session = asked();
        let fatal = error(&[&format!("V{severity}"), "C57P01", "Mterminating connection", "HTry again."]);
        let error = session.receive(&fatal).unwrap_err();
        assert_eq!(error.to_string(), "terminating connection (57P01)");
        assert_eq!(error.hint.as_deref(), Some("Try again."));
        let expected = "received a message in a session that has not begun or is over (08P01)";
        assert_eq!(said(session.receive(&ready(b'I'))), expected);
    }
    // Poolers send one form of the severity only, and errors while nothing is executed.
    let pooler = error(&["SFATAL", "C08P01", "Mserver conn crashed?"]);
    assert_eq!(said(asked().receive(&pooler)), "server conn crashed? (08P01)");
    let idle = error(&["SERROR", "C57P05", "Mtimeout"]);
    assert_eq!(said(running().receive(&idle)), "timeout (57P05)");
    // An error without a code of five letters and digits is one all the same.
    assert_eq!(said(running().receive(&error(&["Mwhat", "C1234é"]))), "what (XX000)");
}

#[test]
fn refused_before_the_session_begins() {
    let full = error(&["SFATAL", "VFATAL", "C53300", "Msorry, too many clients already"]);
    assert_eq!(said(greeting().receive(&full)), "sorry, too many clients already (53300)");
    let mut session = greeting();
    session.receive(&message(b'R', &[0; 4])).unwrap();
    let missing = error(&["SFATAL", "VFATAL", "C3D000", "Mdatabase \"db\" does not exist"]);
    assert_eq!(said(session.receive(&missing)), "database \"db\" does not exist (3D000)");
    // As a server says that cannot fork.
    let mut session = greeting();
    assert_eq!(session.receive(b"Ecould not fork new process"), Ok(SessionEvent::Pending));
    let expected = "could not fork new process for connection: Cannot allocate memory (08004)";
    assert_eq!(said(session.receive(b" for connection: Cannot allocate memory\n\0rest")), expected);
    let mut session = greeting();
    assert_eq!(
        said(session.receive(&[b'E'; 100_000])),
        "received an error of the server that does not end (08P01)"
    );
}

#[test]
fn copy_ends_the_client() {
    for tag in *b"GHW" {
        let answer = message(tag, &[0, 0, 0]);
        assert_eq!(
            said(asked().receive(&answer)),
            "COPY from or to the client is not possible: clients of a run neither send nor keep rows (0A000)"
        );
    }
}

#[test]
fn servers_that_do_not_keep_to_the_protocol() {
    let http = said(greeting().receive(b"HTTP/1.1 400 Bad Request\r\n"));
    assert_eq!(http, "expected an authentication request of the server, but received \"H\" (08P01)");
    let ssh = said(greeting().receive(b"\x01\0\0\0\x04"));
    assert_eq!(ssh, "expected an authentication request of the server, but received 0x01 (08P01)");
    let version = message(b'v', &[0, 3, 0, 2, 0, 0, 0, 0]);
    assert_eq!(
        said(greeting().receive(&version)),
        "server offers protocol 3.2 to a client that asks for 3.0 (08P01)"
    );
    for (answer, expected) in [
        (b"Z\0\0\0\x05X".to_vec(), "received ReadyForQuery with an unknown status of the transaction"),
        (b"Z\0\0\0\x03".to_vec(), "lost synchronization with the server: got message \"Z\", length 3"),
        (
            b"D\x40\0\0\x01".to_vec(),
            "lost synchronization with the server: got message \"D\", length 1073741825",
        ),
        (b"D\xff\xff\xff\xff".to_vec(), "lost synchronization with the server: got message \"D\", length -1"),
        (b"C\0\0\x75\x31".to_vec(), "lost synchronization with the server: got message \"C\", length 30001"),
        (message(b'C', b"SELECT 1"), "received CommandComplete without an end"),
        (message(b'E', b"Mabc"), "invalid ErrorResponse message of the server"),
        (message(b'K', b"123"), "received invalid message \"K\" of the server"),
        (message(b'S', b"name"), "received invalid message \"S\" of the server"),
        (message(b'x', b""), "received unexpected message \"x\" of the server"),
        (message(b'R', &[0; 4]), "received unexpected message \"R\" of the server"),
    ] {
        assert_eq!(said(asked().receive(&answer)), format!("{expected} (08P01)"));
    }
    let unasked = said(running().receive(&complete("SELECT 1")));
    assert_eq!(unasked, "received message \"C\" while no command was executed (08P01)");
    let mut session = running();
    session.start_pipeline();
    let early = said(session.receive(&ready(b'I')));
    assert_eq!(early, "received ReadyForQuery before the pipeline was synchronized (08P01)");
}

#[test]
fn no_memory_is_reserved_for_what_is_announced() {
    let mut session = asked();
    session.capture(true);
    session.receive(b"D\x03\0\0\0").unwrap();
    assert!(session.room() < 10_000, "{}", session.room());
    let mut session = asked();
    session.receive(b"E\x3f\xff\xff\xff").unwrap();
    assert!(session.room() < 10_000, "{}", session.room());
}

#[test]
fn a_connection_that_ends() {
    let detail = |session: &WireSession| session.end_of_input().detail.unwrap();
    assert_eq!(detail(&greeting()), "The session was not authenticated yet.");
    let mut starting = greeting();
    starting.receive(&message(b'R', &[0; 4])).unwrap();
    assert_eq!(detail(&starting), "The session was being started.");
    assert_eq!(detail(&asked()), "A command was being executed.");
    assert_eq!(detail(&running()), "No command was being executed.");
    let expected = "server closed the connection unexpectedly (08006)";
    assert_eq!(running().end_of_input().to_string(), expected);
}
