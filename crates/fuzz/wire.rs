//! Any bytes as a server's answers: how they are cut does not matter, and they do no harm. The first byte chooses where
//! the session is, the second one how long the pieces are.

#![no_main]

use bench_protocol::{SessionEvent, Startup, WireSession};
use libfuzzer_sys::fuzz_target;

/// AuthenticationOk and ReadyForQuery.
const GREETING: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

fn session(stage: u8) -> WireSession {
    let mut session = WireSession::new();
    let password = Some("secret".to_owned().into());
    session.start(&Startup { user: "bob".into(), password, ..Startup::default() }).expect("no zero byte");
    if stage % 5 == 0 {
        return session;
    }
    assert_eq!(session.receive(GREETING), Ok(SessionEvent::Ready));
    session.capture(stage % 5 == 2);
    match stage % 5 {
        1 | 2 => session.query(&"SELECT 1; ".repeat(20)).expect("no zero byte"),
        3 => {
            session.start_pipeline();
            for _ in 0..3 {
                session.execute_prepared::<&str>("P_0", []).expect("no zero byte");
                session.sync_pipeline();
            }
            session.end_pipeline();
        }
        _ => {}
    }
    session
}

/// What comes of the input in pieces of this length.
fn seen(stage: u8, input: &[u8], length: usize) -> String {
    let mut session = session(stage);
    let mut event = Ok(SessionEvent::Pending);
    for piece in input.chunks(length) {
        event = session.receive(piece);
        if event.is_err() {
            break;
        }
    }
    // A nonce is different each time.
    let output = session.output().len();
    let told = (session.status(), session.backend(), session.parameter("server_version").map(str::to_owned));
    format!("{event:?} {output} {told:?} {:?}", session.outcome())
}

fuzz_target!(|bytes: &[u8]| {
    let [stage, length, input @ ..] = bytes else { return };
    let whole = seen(*stage, input, usize::MAX);
    assert_eq!(whole, seen(*stage, input, 1 + usize::from(*length)));
});
