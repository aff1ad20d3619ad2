//! Authentication against the server's side of it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use postgres_protocol::password::scram_sha_256;
use sha2::Sha256;

use crate::tests::*;

/// AuthenticationOk and the like.
fn request(code: i32, data: &[u8]) -> Vec<u8> {
    message(b'R', &[&code.to_be_bytes(), data].concat())
}

fn with_password() -> Startup {
    let mut startup = Startup { user: "bob".into(), database: "db".into(), ..Startup::default() };
    startup.password = Some("secret".to_owned().into());
    startup
}

#[test]
fn a_password_in_clear() {
    let mut session = started(&with_password());
    assert!(!session.used_password());
    assert_eq!(session.receive(&request(3, b"")), Ok(SessionEvent::Pending));
    assert_eq!(output(&mut session), b"p\0\0\0\x0bsecret\0");
    assert!(session.used_password());
    assert_eq!(session.receive(&[request(0, b""), ready(b'I')].concat()), Ok(SessionEvent::Ready));
}

#[test]
fn a_password_by_md5() {
    let startup = Startup {
        user: "md5_user".into(),
        password: Some("password".to_owned().into()),
        ..Startup::default()
    };
    let mut session = started(&startup);
    session.receive(&request(5, &[0x2a, 0x3d, 0x8f, 0xe0])).unwrap();
    // From the tests of postgres-protocol.
    assert_eq!(output(&mut session), b"p\0\0\0\x28md562af4dd09bbb41884907a838a3233294\0");
}

#[test]
fn no_password_is_given() {
    for password in [None, Some(String::new().into())] {
        for asked in [request(3, b""), request(5, b"salt"), request(10, b"SCRAM-SHA-256\0\0")] {
            let mut session = started(&Startup { password: password.clone(), ..with_password() });
            let error = session.receive(&asked).unwrap_err();
            let expected = "server asks for a password of user \"bob\", but none is given (28P01)";
            assert_eq!(error.to_string(), expected);
            assert!(error.hint.unwrap().contains("user mapping"));
        }
    }
    let refused = error(&["VFATAL", "C28P01", "Mpassword authentication failed for user \"bob\""]);
    let mut session = started(&with_password());
    session.receive(&request(3, b"")).unwrap();
    assert_eq!(said(session.receive(&refused)), "password authentication failed for user \"bob\" (28P01)");
}

#[test]
fn methods_that_are_not_supported() {
    for (code, name) in
        [(2, "Kerberos V5"), (6, "SCM credentials"), (7, "GSSAPI"), (9, "SSPI"), (77, "number 77")]
    {
        let expected = format!("authentication method {name} is not supported (28000)");
        assert_eq!(said(started(&with_password()).receive(&request(code, b""))), expected);
    }
    let oauth = request(10, b"OAUTHBEARER\0SCRAM-SHA-512\0\0");
    let expected = "authentication method OAUTHBEARER, SCRAM-SHA-512 is not supported (28000)";
    assert_eq!(said(started(&with_password()).receive(&oauth)), expected);
}

/// The server's side of one exchange of SCRAM, after the client's first message.
struct ScramServer {
    key: Vec<u8>,
    client_first_bare: String,
    first: String,
}

impl ScramServer {
    /// Answers SASLInitialResponse.
    fn new(password: &str, initial_response: &[u8], mechanism: &str, header: &str) -> Self {
        // SCRAM-SHA-256$ITERATIONS:SALT$STORED_KEY:SERVER_KEY
        let verifier = scram_sha_256(password.as_bytes());
        let (_, rest) = verifier.split_once('$').unwrap();
        let (iterations_and_salt, keys) = rest.split_once('$').unwrap();
        let (iterations, salt) = iterations_and_salt.split_once(':').unwrap();
        let key = STANDARD.decode(keys.split_once(':').unwrap().1).unwrap();
        let body =
            initial_response.strip_prefix(b"p").unwrap()[4..].strip_prefix(mechanism.as_bytes()).unwrap();
        let client_first = std::str::from_utf8(&body[4..]).unwrap();
        let client_first_bare = client_first.strip_prefix(header).unwrap().to_owned();
        let nonce = client_first_bare.strip_prefix("n=,r=").unwrap();
        let first = format!("r={nonce}server,s={salt},i={iterations}");
        Self { key, client_first_bare, first }
    }

    /// The proof that follows on SASLResponse, and what that said of the channel.
    fn last(&self, response: &[u8]) -> (String, String) {
        let client_last = std::str::from_utf8(&response[5..]).unwrap();
        let (without_proof, _) = client_last.rsplit_once(",p=").unwrap();
        let binding = without_proof.strip_prefix("c=").unwrap().split(',').next().unwrap().to_owned();
        let auth_message = format!("{},{},{without_proof}", self.client_first_bare, self.first);
        let mut signature = Hmac::<Sha256>::new_from_slice(&self.key).unwrap();
        signature.update(auth_message.as_bytes());
        (format!("v={}", STANDARD.encode(signature.finalize().into_bytes())), binding)
    }
}

/// Runs the exchange; what the client said of the channel, and what came of it.
fn exchange(startup: &Startup, offered: &[u8], mechanism: &str, header: &str) -> (String, WireSession) {
    let mut session = started(startup);
    assert_eq!(session.receive(&request(10, offered)), Ok(SessionEvent::Pending));
    let server = ScramServer::new("secret", &output(&mut session), mechanism, header);
    assert_eq!(session.receive(&request(11, server.first.as_bytes())), Ok(SessionEvent::Pending));
    let (last, binding) = server.last(&output(&mut session));
    assert_eq!(session.receive(&request(12, last.as_bytes())), Ok(SessionEvent::Pending));
    assert_eq!(session.receive(&[request(0, b""), ready(b'I')].concat()), Ok(SessionEvent::Ready));
    (String::from_utf8(STANDARD.decode(binding).unwrap()).unwrap(), session)
}

const BOTH: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
const PLAIN: &[u8] = b"SCRAM-SHA-256\0\0";

#[test]
fn scram_without_tls() {
    for offered in [PLAIN, BOTH] {
        let (binding, session) = exchange(&with_password(), offered, "SCRAM-SHA-256\0", "n,,");
        assert_eq!(binding, "n,,");
        assert!(session.used_password() && session.output().is_empty());
    }
}

#[test]
fn scram_bound_to_the_channel() {
    for requires_channel_binding in [false, true] {
        let startup = Startup {
            tls_server_end_point: Some(b"hash".to_vec()),
            requires_channel_binding,
            ..with_password()
        };
        let header = "p=tls-server-end-point,,";
        let (binding, _) = exchange(&startup, BOTH, "SCRAM-SHA-256-PLUS\0", header);
        assert_eq!(binding, "p=tls-server-end-point,,hash");
    }
}

#[test]
fn a_server_that_could_not_bind_learns_that_it_might_have() {
    let startup = Startup { tls_server_end_point: Some(b"hash".to_vec()), ..with_password() };
    let (binding, _) = exchange(&startup, PLAIN, "SCRAM-SHA-256\0", "y,,");
    assert_eq!(binding, "y,,");
}

#[test]
fn nothing_but_a_bound_channel_is_good_enough() {
    let startup = Startup {
        tls_server_end_point: Some(b"hash".to_vec()),
        requires_channel_binding: true,
        ..with_password()
    };
    for answer in [request(0, b""), request(3, b""), request(5, b"salt"), request(10, PLAIN)] {
        let mut session = started(&startup);
        let expected = "channel binding is required, but the server does not authenticate with it (28000)";
        assert_eq!(said(session.receive(&answer)), expected);
        assert!(session.output().is_empty());
    }
}

#[test]
fn a_server_has_to_prove_that_it_knows_the_password() {
    let begin = |password| {
        let mut session = started(&with_password());
        session.receive(&request(10, PLAIN)).unwrap();
        let server = ScramServer::new(password, &output(&mut session), "SCRAM-SHA-256\0", "n,,");
        (session, server)
    };
    let (mut session, _) = begin("secret");
    let expected = "received AuthenticationOk out of order during authentication (08P01)";
    assert_eq!(said(session.receive(&request(0, b""))), expected);

    let (mut session, server) = begin("secret");
    session.receive(&request(11, server.first.as_bytes())).unwrap();
    assert_eq!(said(session.receive(&request(0, b""))), expected);

    let (mut session, server) = begin("another");
    session.receive(&request(11, server.first.as_bytes())).unwrap();
    let (last, _) = server.last(&output(&mut session));
    let error = session.receive(&request(12, last.as_bytes())).unwrap_err();
    assert_eq!(error.to_string(), "server could not prove that it knows the password (28000)");

    let (mut session, _) = begin("secret");
    assert_eq!(
        said(session.receive(&request(11, b"r=another,s=AAAA,i=4096"))),
        "invalid authentication message of the server (08P01)"
    );
    // Which would keep a worker busy for hours.
    let (mut session, server) = begin("secret");
    let first = server.first.rsplit_once("i=").unwrap().0.to_owned() + "i=2000000000";
    let error = session.receive(&request(11, first.as_bytes())).unwrap_err();
    assert_eq!(error.detail.as_deref(), Some("SCRAM iteration count exceeds the maximum allowed."));
}

#[test]
fn requests_out_of_order() {
    for (codes, message) in [
        (&[10, 10][..], "AuthenticationSASL"),
        (&[11], "AuthenticationSASLContinue"),
        (&[12], "AuthenticationSASLFinal"),
        (&[10, 12], "AuthenticationSASLFinal"),
        (&[10, 3], "a request for a password"),
        (&[3, 3], "a request for a password"),
        (&[3, 10], "AuthenticationSASL"),
    ] {
        let mut session = started(&with_password());
        let (last, before) = codes.split_last().unwrap();
        for code in before {
            session.receive(&request(*code, if *code == 3 { b"" } else { PLAIN })).unwrap();
        }
        let expected = format!("received {message} out of order during authentication (08P01)");
        let data = if *last == 3 { b"" } else { PLAIN };
        assert_eq!(said(session.receive(&request(*last, data))), expected);
    }
}
