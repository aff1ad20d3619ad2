//! Plaintext and records, and what goes wrong with them.

use openssl::stack::Stack;
use openssl::x509::X509StoreContext;
use openssl::x509::store::X509StoreBuilder;
use proptest::prelude::*;

use crate::tls::tests::*;

fn established(versions: Versions) -> (TlsSession, ServerSession) {
    let client = client("verify-full", Some("root")).expect("a client");
    connect(&client, "db.example", &TlsServer { versions, ..TlsServer::default() }).expect("a session")
}

/// Bytes of which no two parts are alike.
fn text(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place * 31 + place / 251) as u8).collect()
}

#[test]
fn plaintext_goes_both_ways() {
    for versions in [OLD, NEW] {
        let (mut session, mut server) = established(versions);
        for length in [1, 16_384, 16_385, 200_000] {
            assert!(say(&mut session, &mut server, &text(length)) == text(length), "{length}");
            answer(&mut server, &text(40_000), 40_000);
            assert!(from_server(&mut session, &mut server, usize::MAX).expect("plaintext") == text(40_000));
        }
    }
}

#[test]
fn records_cut_at_every_byte_give_the_same_plaintext() {
    for versions in [OLD, NEW] {
        let (mut session, mut server) = established(versions);
        answer(&mut server, &text(60), 20);
        let records = server.output();
        let mut heard = Vec::new();
        for (place, byte) in records.iter().enumerate() {
            session
                .receive(&[*byte], |bytes| {
                    heard.extend_from_slice(bytes);
                    Ok(())
                })
                .unwrap_or_else(|error| panic!("at {place}: {error}"));
        }
        assert_eq!(heard, text(60));
    }
}

#[test]
fn a_handshake_cut_at_every_byte_is_done() {
    for versions in [OLD, NEW] {
        let client = client("verify-full", Some("root")).expect("a client");
        let mut session = client.session("db.example").expect("a session");
        let mut server = TlsServer { versions, ..TlsServer::default() }.serve();
        while !session.is_established() || server.is_handshaking {
            to_server(&mut session, &mut server).expect("a handshake");
            from_server(&mut session, &mut server, 1).expect("a handshake");
        }
        assert_eq!(say(&mut session, &mut server, b"hello"), b"hello");
    }
}

#[test]
fn a_full_output_takes_no_more() {
    let (mut session, _) = established(NEW);
    let taken = session.send(&text(1_000_000));
    assert!((65_536..100_000).contains(&taken), "{taken}");
    assert_eq!(session.send(b"more"), 0);
    session.sent(1);
    assert!(session.output().len() >= 65_536);
    // What was sent partly is sent whole in the end.
    session.sent(usize::MAX);
    assert_eq!(session.output(), b"");
    assert_eq!(session.send(b"more"), 4);
}

#[test]
fn what_a_taker_refuses_is_its_own_error() {
    let (mut session, mut server) = established(NEW);
    answer(&mut server, b"hello", 5);
    let records = server.output();
    let refusal = || UserError::new("08P01", "not understood");
    assert_eq!(session.receive(&records, |_| Err(refusal())), Err(refusal()));
    assert_eq!(session.send(b"x"), 0);
    assert_eq!(session.receive(&records, |_| panic!("after an error")), Ok(()));
}

#[test]
fn plaintext_before_a_broken_record_is_handed_on() {
    let (mut session, mut server) = established(NEW);
    answer(&mut server, b"last words", 10);
    let mut records = server.output();
    answer(&mut server, b"broken", 6);
    let mut broken = server.output();
    *broken.last_mut().expect("a record") ^= 1;
    records.append(&mut broken);
    let mut heard = Vec::new();
    let result = session.receive(&records, |bytes| {
        heard.extend_from_slice(bytes);
        Ok(())
    });
    let error = result.expect_err("a broken record");
    assert_eq!(heard, b"last words");
    assert_eq!(
        (error.sqlstate.as_str(), error.message.as_str()),
        ("08006", "SSL error: decryption failed or bad record mac")
    );
    // The server learns of it.
    assert!(!session.output().is_empty());
    to_server(&mut session, &mut server).expect_err("an alert");
}

#[test]
fn the_end_is_announced_and_the_others_is_no_error() {
    let (mut session, mut server) = established(NEW);
    assert_eq!(session.send(b"X"), 1);
    session.close();
    to_server(&mut session, &mut server).expect("records");
    assert!(server.is_at_end());
    assert_eq!(server.heard, b"X");

    let (mut session, mut server) = established(NEW);
    assert_eq!(session.end_of_input(), None);
    answer(&mut server, b"bye", 3);
    server.close();
    assert_eq!(from_server(&mut session, &mut server, usize::MAX).expect("plaintext"), b"bye");
    assert_eq!(session.end_of_input(), None);
}

#[test]
fn an_end_within_the_handshake_is_an_error() {
    let session = client("require", None).expect("a client").session("db.example").expect("a session");
    let error = session.end_of_input().expect("an error");
    assert_eq!(
        (error.sqlstate.as_str(), error.message.as_str()),
        ("08001", "SSL connection has been closed unexpectedly")
    );
}

#[test]
fn something_else_than_tls_is_an_error() {
    for bytes in [&b"E\0\0\0\x08oops"[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", &[0; 64], &[0xFF; 64]] {
        let mut session =
            client("require", None).expect("a client").session("db.example").expect("a session");
        let error = session.receive(bytes, |_| panic!("plaintext")).expect_err("no TLS");
        assert_eq!(error.sqlstate, "08001");
        assert!(error.message.starts_with("SSL error: "), "{}", error.message);
        assert!(error.hint.expect("a hint").contains("host and port"));
        assert!(!session.is_established());
    }
}

#[test]
fn a_client_certificate_is_sent_where_it_is_asked_for() {
    for versions in [OLD, NEW] {
        let (certificate, key) = (pem("client"), pem("client.key"));
        let files = TlsFiles { certificate: Some(&certificate), key: Some(&key), ..TlsFiles::default() };
        let client = TlsClient::new(&options(&[]), files).expect("a client");
        let asking = TlsServer { asks_for_client: true, versions, ..TlsServer::default() };
        let (_, server) = connect(&client, "x", &asking).expect("a session");
        assert!(server.peer() == Some(crate::tls::tests::certificate("client")));
        let (_, server) =
            connect(&client, "x", &TlsServer { versions, ..TlsServer::default() }).expect("a session");
        assert!(server.peer().is_none());
        let without = TlsClient::new(&options(&[]), TlsFiles::default()).expect("a client");
        let error = connect(&without, "x", &asking).map(|_| ()).expect_err("no certificate");
        assert!(error.hint.expect("a hint").contains("sslcert"), "{}", error.message);
    }
}

#[test]
fn a_client_certificate_has_to_fit_its_key() {
    let new = |certificate: &[u8], key: &[u8]| {
        let files = TlsFiles { certificate: Some(certificate), key: Some(key), ..TlsFiles::default() };
        TlsClient::new(&options(&[]), files).map(|_| ())
    };
    assert_eq!(new(&pem("client_v1"), &pem("client.key")), Ok(()));
    for (certificate, key, message) in [
        (pem("client"), pem("server.key"), "certificate does not match private key file"),
        (pem("client.key"), pem("client.key"), "could not read certificate file"),
        (pem("client"), pem("client"), "could not load private key file"),
        (pem("client"), Vec::new(), "could not load private key file"),
    ] {
        let error = new(&certificate, &key).expect_err(message);
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("08001", message));
        assert!(error.hint.expect("a hint").contains("user mapping"));
    }
}

#[test]
fn direct_negotiation_needs_the_protocol_by_name() {
    let new = |negotiation: &str| {
        let options = options(&[("sslmode", "require"), ("sslnegotiation", negotiation)]);
        TlsClient::new(&options, TlsFiles::default()).expect("a client")
    };
    let named = TlsServer { knows_protocol: true, ..TlsServer::default() };
    for negotiation in ["postgres", "direct"] {
        assert_eq!(verdict(&new(negotiation), "x", &named), Ok(()), "{negotiation}");
    }
    assert_eq!(verdict(&new("postgres"), "x", &TlsServer::default()), Ok(()));
    let error = verdict(&new("direct"), "x", &TlsServer::default()).expect_err("no protocol");
    assert!(error.message.contains("without ALPN"), "{}", error.message);
    assert!(error.hint.expect("a hint").contains("sslnegotiation"));
}

#[test]
fn the_host_is_told_unless_it_is_an_address() {
    let told = |sslsni: &str, host: &str| {
        let client = TlsClient::new(&options(&[("sslsni", sslsni)]), TlsFiles::default()).expect("a client");
        connect(&client, host, &TlsServer::default()).expect("a session").1.name()
    };
    assert_eq!(told("1", "db.example"), Some("db.example".to_owned()));
    for (sslsni, host) in [("0", "db.example"), ("1", "192.0.2.1"), ("1", "::1"), ("1", "")] {
        assert_eq!(told(sslsni, host), None, "{host}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cuts_change_nothing(pieces in prop::collection::vec(1..3000_usize, 1..6), record in 1..2000_usize, cut in 1..4000_usize) {
        let (mut session, mut server) = established(BOTH);
        for length in pieces {
            prop_assert!(say(&mut session, &mut server, &text(length)) == text(length));
            answer(&mut server, &text(length), record);
            prop_assert!(from_server(&mut session, &mut server, cut).expect("plaintext") == text(length));
        }
    }

    #[test]
    fn garbage_is_no_panic(
        garbage in prop::collection::vec(any::<u8>(), 0..400),
        after in 0..3000_usize,
        is_handshake: bool,
    ) {
        let client = client("verify-full", Some("root")).expect("a client");
        let mut session = client.session("db.example").expect("a session");
        let mut server = TlsServer::default().serve();
        to_server(&mut session, &mut server).expect("a handshake");
        let mut bytes = server.output();
        bytes.truncate(after);
        if is_handshake {
            bytes.extend_from_slice(&[22, 3, 3, (garbage.len() >> 8) as u8, garbage.len() as u8]);
        }
        bytes.extend_from_slice(&garbage);
        if let Err(error) = session.receive(&bytes, |_| Ok(())) {
            prop_assert!(["08001", "08006"].contains(&error.sqlstate.as_str()));
            prop_assert_eq!(session.send(b"x"), 0);
        }
    }

    /// Nor is any good: not even with a bit more or less in what frames the signature.
    #[test]
    fn a_broken_certificate_is_no_panic(place in 0..600_usize, bit in 0..8_u8) {
        let mut der = crate::tls::tests::certificate("good").to_der().expect("a certificate");
        let place = place % der.len();
        der[place] ^= 1 << bit;
        if let Ok(broken) = X509::from_der(&der) {
            let mut store = X509StoreBuilder::new().expect("a store");
            store.add_cert(crate::tls::tests::certificate("root")).expect("a root");
            let (store, others) = (store.build(), Stack::new().expect("a stack"));
            let mut chain = X509StoreContext::new().expect("a context");
            let is_good = chain.init(&store, &broken, &others, |chain| chain.verify_cert());
            prop_assert!(!is_good.unwrap_or_default());
            let of = crate::tls::certificate::end_point(&broken);
            drop((of, crate::tls::certificate::check_name(&broken, "db.example")));
        }
    }
}

// Which certificates are good enough for which sslmode.

const FAILED: &str = "SSL error: certificate verify failed";

/// The reason for which a chain is refused, in every mode that verifies, and that the others take it.
#[track_caller]
fn refused(certificate: &'static str, root: &str, reason: &str) {
    let server = TlsServer::of(certificate);
    for mode in ["allow", "prefer", "require"] {
        let client = client(mode, None).expect("a client");
        assert_eq!(verdict(&client, "db.example", &server), Ok(()), "{mode}");
    }
    for mode in ["allow", "prefer", "require", "verify-ca", "verify-full"] {
        let client = client(mode, Some(root)).expect("a client");
        let error = verdict(&client, "db.example", &server).expect_err(certificate);
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("08001", FAILED), "{mode}");
        let detail = error.detail.expect("a detail");
        assert!(detail.ends_with(&format!(": {reason}.")), "{certificate}: {detail}");
        assert!(error.hint.expect("a hint").contains("sslrootcert"));
    }
}

/// A chain is good, and the name as well.
#[track_caller]
fn accepted(certificate: &'static str, root: &str) {
    for mode in ["require", "verify-ca", "verify-full"] {
        let client = client(mode, Some(root)).expect("a client");
        assert_eq!(
            verdict(&client, "db.example", &TlsServer::of(certificate)),
            Ok(()),
            "{certificate} {mode}"
        );
    }
}

#[test]
fn good_chains_are_accepted() {
    accepted("good", "root");
    accepted("cn_only", "root");
    accepted("v1", "root");
    accepted("v1_of_v1", "root_v1");
    accepted("self_signed", "self_signed");
    accepted("self_signed_v1", "self_signed_v1");
    accepted("of_intermediate", "root");
    accepted("rsa", "rsa");
    accepted("ed25519", "ed25519");
    accepted("pss_sha512", "pss_sha512");
    accepted("sha384", "root");
    accepted("sha512", "sha512");
}

#[test]
fn unknown_authorities_are_refused() {
    refused("unknown", "root", "unable to get local issuer certificate");
    refused("good", "other_root", "unable to get local issuer certificate");
    refused("self_signed", "root", "self-signed certificate");
    refused("self_signed_v1", "root", "self-signed certificate");
    // Name and key are those of the root; the certificate is not.
    refused("self_signed_v1", "self_signed", "self-signed certificate");
    // A certificate that is no root is trusted by nobody's word.
    refused("good", "good", "unable to get local issuer certificate");
    refused("of_intermediate", "intermediate", "unable to get issuer certificate");
}

#[test]
fn certificates_out_of_time_are_refused() {
    refused("expired", "root", "certificate has expired");
    refused("future", "root", "certificate is not yet valid");
}

#[test]
fn certificates_that_are_not_for_servers_are_refused() {
    refused("client_only", "root", "unsuitable certificate purpose");
    refused("no_signature", "root", "unsuitable certificate purpose");
    refused("critical", "root", "unhandled critical extension");
}

#[test]
fn authorities_have_to_be_allowed_to_sign() {
    refused("of_no_signing", "no_signing_root", "invalid CA certificate");
    refused("of_no_ca", "root", "invalid CA certificate");
    refused("of_beyond", "short_root", "path length constraint exceeded");
    accepted("constrained", "constrained_root");
    refused("beyond_constraint", "constrained_root", "permitted subtree violation");
}

#[test]
fn signatures_have_to_be_strong() {
    refused("sha1", "root", "CA signature digest algorithm too weak");
    accepted("ecdsa_sha512", "root");
}

#[test]
fn an_authority_of_the_same_name_has_to_have_signed() {
    accepted("good", "root");
    refused("good", "impostor", "unable to get local issuer certificate");
    // One of version 1 does not say which key has signed it.
    refused("v1", "impostor", "certificate signature failure");
}

/// Certificates, hosts, and the names with which the host is told apart from the certificate, if it is.
const NAMES: [(&str, &str, Option<&str>); 17] = [
    ("good", "DB.Example", None),
    ("good", "other.example", Some("\"db.example\"")),
    ("cn_only", "other.example", Some("\"db.example\"")),
    ("wildcard", "a.db.example", None),
    ("wildcard", "A.DB.EXAMPLE", None),
    ("wildcard", "other.example", None),
    ("wildcard", "db.example", Some("\"*.db.example\" (and 1 other name)")),
    ("wildcard", "a.b.db.example", Some("\"*.db.example\" (and 1 other name)")),
    ("wildcard", "adb.example", Some("\"*.db.example\" (and 1 other name)")),
    // There are names, so that the common name does not count.
    ("wildcard", "ignored.example", Some("\"*.db.example\" (and 1 other name)")),
    ("address", "192.0.2.1", None),
    ("address", "2001:DB8:0::1", None),
    ("address", "192.0.2.3", Some("\"192.0.2.1\" (and 1 other name)")),
    // There are addresses only, so that the common name counts for names.
    ("address", "db.example", None),
    // A name may be an address, and the common name counts for addresses where there is none.
    ("address_as_name", "192.0.2.1", None),
    ("address_as_name", "192.0.2.2", None),
    ("address_as_name", "192.0.2.3", Some("\"192.0.2.1\" (and 1 other name)")),
];

#[test]
fn names_are_checked_by_verify_full_alone() {
    let client = |mode| client(mode, Some("root")).expect("a client");
    for (certificate, host, others) in NAMES {
        let server = TlsServer::of(certificate);
        let refused = verdict(&client("verify-full"), host, &server).err();
        let message =
            others.map(|names| format!("server certificate for {names} does not match host name \"{host}\""));
        assert_eq!(
            refused.as_ref().map(|error| &error.message),
            message.as_ref(),
            "{certificate} for {host}"
        );
        if let Some(error) = refused {
            assert_eq!(error.sqlstate, "08001");
            assert!(error.hint.expect("a hint").contains("option host"));
        }
        assert_eq!(verdict(&client("verify-ca"), host, &server), Ok(()), "{certificate} for {host}");
    }
    let error = verdict(&client("verify-full"), "", &TlsServer::default()).expect_err("no name");
    assert_eq!(error.message, "host name must be specified for a verified SSL connection");
    assert_eq!(verdict(&client("verify-ca"), "", &TlsServer::default()), Ok(()));
}

#[test]
fn roots_are_needed_where_they_are_used() {
    for mode in ["verify-ca", "verify-full"] {
        let error = client(mode, None).map(|_| ()).expect_err(mode);
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("08001", "root certificate file is not given")
        );
        assert!(error.hint.expect("a hint").contains("sslrootcert"));
    }
    for contents in [
        None,
        Some(&b""[..]),
        Some(b"no certificate"),
        Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
    ] {
        let files = TlsFiles { root: contents, ..TlsFiles::default() };
        let options = options(&[("sslmode", "require"), ("sslrootcert", "/root.crt")]);
        let error = TlsClient::new(&options, files).map(|_| ()).expect_err("no roots");
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            ("08001", "could not read root certificate file \"/root.crt\"")
        );
        assert!(error.detail.is_some());
    }
}

#[test]
fn the_systems_roots_know_nothing_of_this_one() {
    match TlsClient::new(&options(&[("sslrootcert", "system")]), TlsFiles::default()) {
        Ok(client) => {
            let error =
                verdict(&client, "db.example", &TlsServer::default()).expect_err("an unknown authority");
            assert_eq!(error.message, FAILED);
        }
        // A system without any.
        Err(error) => assert_eq!(error.message, "could not load system root certificate paths"),
    }
}
