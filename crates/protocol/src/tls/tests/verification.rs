//! Which certificates are good enough for which sslmode.

use super::*;

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
