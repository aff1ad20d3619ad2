//! How the input is cut does not matter, and no input does harm.

use bench_base::error::SqlError;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

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
