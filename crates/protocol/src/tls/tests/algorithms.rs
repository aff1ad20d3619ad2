//! Signature algorithms: hashes for channel binding, and both versions of TLS.

use super::*;

#[test]
fn the_end_point_is_that_of_openssl() {
    let end_point = |name| super::super::certificate::end_point(&certificate(name));
    let expected = fs::read_to_string(folder().join("end_points")).expect("end points");
    let mut names = 0;
    for line in expected.lines() {
        let (name, hash) = line.split_once(' ').expect("a name and a hash");
        let own: String = end_point(name).expect("a hash").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(own, hash, "{name}");
        names += 1;
    }
    assert_eq!(names, 10);
    assert_eq!(end_point("ed25519"), None);
}

#[test]
fn the_end_point_of_a_session_is_that_of_its_certificate() {
    let (session, _) =
        connect(&client("require", None).expect("a client"), "x", &TlsServer::of("v1")).expect("a session");
    let own = super::super::certificate::end_point(&certificate("v1"));
    assert!(own.is_some());
    assert_eq!(session.tls_server_end_point(), own);
}

#[test]
fn each_key_serves_in_both_versions() {
    for certificate in ["good", "v1", "sha384", "sha512", "rsa", "ed25519"] {
        for versions in [OLD, NEW] {
            let server = TlsServer { versions, ..TlsServer::of(certificate) };
            let client = client("require", None).expect("a client");
            assert_eq!(verdict(&client, "db.example", &server), Ok(()), "{certificate} {versions:?}");
        }
    }
}

#[test]
fn a_server_without_the_key_of_its_certificate_is_refused() {
    for versions in [OLD, NEW] {
        // Both keys are of one kind.
        let server = TlsServer { key: "client.key", versions, ..TlsServer::default() };
        let error = verdict(&client("require", None).expect("a client"), "db.example", &server)
            .expect_err("another's key");
        assert_eq!(error.sqlstate, "08001");
        assert!(error.message.starts_with("SSL error: "), "{}", error.message);
    }
}

#[test]
fn versions_are_those_of_the_options() {
    let version = |min: &str, max: &str, versions: Versions| {
        let options = options(&[("ssl_min_protocol_version", min), ("ssl_max_protocol_version", max)]);
        let client = TlsClient::new(&options, TlsFiles::default()).expect("a client");
        let (_, server) = connect(&client, "x", &TlsServer { versions, ..TlsServer::default() })?;
        Ok::<_, UserError>(server.version())
    };

    assert_eq!(version("TLSv1", "TLSv1.2", BOTH), Ok("TLSv1.2"));
    assert_eq!(version("TLSv1.3", "", BOTH), Ok("TLSv1.3"));
    assert_eq!(version("", "", BOTH), Ok("TLSv1.3"));
    let error = version("TLSv1.3", "", OLD).expect_err("no common version");
    assert_eq!(error.sqlstate, "08001");
}
