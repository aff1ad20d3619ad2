//! The validator, and the values that options come to.

use bench_base::error::UserError;

use super::super::options::{KEYWORDS, Place};
use super::super::*;
use super::{options, target};

fn check(of: OptionOf, name: &str, value: &str) -> Result<(), UserError> {
    check_option(of, name, value, true)
}

fn server(pairs: &[(&str, &str)]) -> UserError {
    check_options(OptionOf::Server, &options(pairs), true).expect_err("contradicting options")
}

#[test]
fn defaults_are_those_of_libpq() {
    let (target, secrets) = target(&[], &[]);
    let host = Host { name: String::new(), address: None, port: 5432 };
    assert_eq!(target.hosts, [host]);
    assert_eq!((target.dbname.as_str(), target.user.as_str()), ("caller", "caller"));
    assert_eq!(target.connect_timeout, None);
    assert_eq!(target.tls.sslmode, SslMode::Prefer);
    assert_eq!(target.tls.sslnegotiation, SslNegotiation::Postgres);
    assert!(target.tls.sslsni && target.tcp.keepalives && target.password_required);
    assert_eq!(target.channel_binding, ChannelBinding::Prefer);
    assert_eq!(target.target_session_attrs, SessionAttributes::Any);
    assert_eq!(target.load_balance_hosts, LoadBalance::Disable);
    assert_eq!((target.application_name, target.options), (None, None));
    assert_eq!(secrets.password, None);
}

#[test]
fn values_are_taken() {
    let server = [
        ("dbname", "bench"),
        ("connect_timeout", "1"),
        ("sslmode", "verify-ca"),
        ("sslrootcert", "/root.crt"),
        ("sslsni", "0"),
        ("ssl_min_protocol_version", "tlsv1.1"),
        ("ssl_max_protocol_version", "TLSv1.3"),
        ("channel_binding", "require"),
        ("keepalives", "0"),
        ("keepalives_idle", " 30 "),
        ("keepalives_count", "-1"),
        ("tcp_user_timeout", "1500"),
        ("fallback_application_name", "fallback"),
        ("options", "-c work_mem=64MB"),
        ("gssencmode", "disable"),
    ];
    let mapping = [
        ("user", "alice"),
        ("password", "secret"),
        ("password_required", "OFF"),
        ("sslcert", "/client.crt"),
        ("sslkey", "/client.key"),
    ];
    let (target, secrets) = target(&server, &mapping);
    assert_eq!((target.dbname.as_str(), target.user.as_str()), ("bench", "alice"));
    assert_eq!(target.connect_timeout, Some(2));
    let tls = TlsOptions {
        sslmode: SslMode::VerifyCa,
        sslnegotiation: SslNegotiation::Postgres,
        sslrootcert: Some("/root.crt".to_owned()),
        sslcert: Some("/client.crt".to_owned()),
        sslkey: Some("/client.key".to_owned()),
        sslsni: false,
        ssl_min_protocol_version: Some(TlsVersion::V1_2),
        ssl_max_protocol_version: Some(TlsVersion::V1_3),
    };
    assert_eq!(target.tls, tls);
    assert_eq!(target.channel_binding, ChannelBinding::Require);
    let tcp = TcpOptions {
        keepalives: false,
        keepalives_idle: Some(30),
        keepalives_interval: None,
        keepalives_count: None,
        tcp_user_timeout: Some(1500),
    };
    assert_eq!(target.tcp, tcp);
    assert_eq!(target.application_name.as_deref(), Some("fallback"));
    assert_eq!(target.options.as_deref(), Some("-c work_mem=64MB"));
    assert!(!target.password_required);
    assert_eq!(secrets.password.as_deref(), Some("secret"));
}

#[test]
fn an_empty_value_is_none() {
    let (target, secrets) = target(
        &[("host", ""), ("port", ""), ("dbname", ""), ("application_name", "")],
        &[("user", ""), ("password", "")],
    );
    assert_eq!((target.hosts.len(), target.hosts[0].port), (1, 5432));
    assert_eq!((target.dbname.as_str(), target.user.as_str()), ("caller", "caller"));
    assert_eq!((target.application_name, secrets.password.as_deref()), (None, None));
}

#[test]
fn options_of_other_places_are_refused() {
    for (of, name, hint) in [
        (OptionOf::Server, "user", "Option \"user\" belongs to a user mapping."),
        (OptionOf::Server, "password", "Option \"password\" belongs to a user mapping."),
        (OptionOf::Server, "sslkey", "Option \"sslkey\" belongs to a user mapping."),
        (OptionOf::UserMapping, "host", "Option \"host\" belongs to the server."),
        (OptionOf::UserMapping, "sslrootcert", "Option \"sslrootcert\" belongs to the server."),
        (OptionOf::Wrapper, "host", "There are no valid options in this context."),
        (OptionOf::ForeignTable, "dbname", "There are no valid options in this context."),
    ] {
        let error = check(of, name, "hunter2").expect_err(name);
        assert_eq!(error.sqlstate, "HV00D");
        assert_eq!(error.message, format!("invalid option \"{name}\""));
        assert_eq!(error.hint.as_deref(), Some(hint));
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

#[test]
fn unsupported_options_say_why() {
    for (name, value, detail) in [
        ("service", "x", "Nothing of the server's operating-system user is used."),
        ("passfile", "/x", "Nothing of the server's operating-system user is used."),
        ("gssencmode", "prefer", "GSSAPI is not supported."),
        ("krbsrvname", "x", "GSSAPI is not supported."),
        ("sslcrl", "x", "Certificate revocation lists are not supported."),
        ("sslpassword", "hunter2", "Encrypted client keys are not supported."),
        ("client_encoding", "x", "Scripts are sent in the encoding of this database."),
    ] {
        let error = check(OptionOf::Server, name, value).expect_err(name);
        assert_eq!(error.sqlstate, "HV00D");
        assert!(error.message.starts_with(&format!("option \"{name}\" is not supported")));
        assert_eq!(error.detail.as_deref(), Some(detail));
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

/// The manual has each of them once, in the table's order, with its place or the reason why it is refused.
#[test]
fn the_manual_lists_all_options() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/targets.md");
    let manual = std::fs::read_to_string(path).expect("the manual");
    let rows =
        manual.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | "));
    let mut listed = Vec::new();
    for (names, of) in rows {
        for name in names.split("`, `") {
            listed.push((name, of.replace('`', "\"")));
        }
    }
    assert_eq!(listed.len(), KEYWORDS.len());
    for ((name, of), (keyword, place, _)) in listed.iter().zip(KEYWORDS) {
        assert_eq!(*name, keyword);
        match place {
            Place::Server => assert!(of.starts_with("server |"), "{name} is {of}"),
            Place::UserMapping => assert!(of.starts_with("user mapping |"), "{name} is {of}"),
            Place::Refused(reason) => assert_eq!(*of, format!("refused | {reason}"), "{name}"),
        }
    }
}

#[test]
fn unknown_options_have_a_hint() {
    let error = check(OptionOf::Server, "hots", "x").expect_err("unknown");
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("HV00D", "invalid option \"hots\""));
    let hint = error.hint.expect("a hint");
    assert!(
        hint.starts_with("Perhaps you meant \"host\". Valid options in this context are: host, hostaddr")
    );
    assert!(!hint.contains("password"), "{hint}");
    let hint =
        check(OptionOf::UserMapping, "passwort", "hunter2").expect_err("unknown").hint.expect("a hint");
    assert_eq!(
        hint,
        "Perhaps you meant \"password\". Valid options in this context are: user, password, password_required, sslcert, sslkey."
    );
}

#[test]
fn values_are_checked() {
    for (name, value, message) in [
        ("port", "0", "invalid port number: \"0\""),
        ("port", "5432,65536", "invalid port number: \"65536\""),
        ("port", "x", "invalid port number: \"x\""),
        ("hostaddr", "localhost", "could not parse network address \"localhost\""),
        ("hostaddr", "127.0.0.1,::1%", "could not parse network address \"::1%\""),
        ("connect_timeout", "", "invalid integer value \"\" for connection option \"connect_timeout\""),
        ("connect_timeout", "3s", "invalid integer value \"3s\" for connection option \"connect_timeout\""),
        ("keepalives", "on", "invalid integer value \"on\" for connection option \"keepalives\""),
        (
            "tcp_user_timeout",
            "99999999999",
            "invalid integer value \"99999999999\" for connection option \"tcp_user_timeout\"",
        ),
        ("sslmode", "verify_full", "invalid sslmode value: \"verify_full\""),
        ("sslnegotiation", "x", "invalid sslnegotiation value: \"x\""),
        ("sslsni", "true", "invalid sslsni value: \"true\""),
        ("channel_binding", "x", "invalid channel_binding value: \"x\""),
        ("target_session_attrs", "master", "invalid target_session_attrs value: \"master\""),
        ("load_balance_hosts", "x", "invalid load_balance_hosts value: \"x\""),
        ("ssl_min_protocol_version", "1.2", "invalid ssl_min_protocol_version value: \"1.2\""),
        (
            "ssl_max_protocol_version",
            "TLSv1.1",
            "ssl_max_protocol_version value \"TLSv1.1\" is not supported",
        ),
    ] {
        let error = check(OptionOf::Server, name, value).expect_err(name);
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22023", message));
    }
    let error = check(OptionOf::UserMapping, "password_required", "maybe").expect_err("no Boolean");
    assert_eq!(error.message, "password_required requires a Boolean value");
    let error = check(OptionOf::Server, "sslmode", "x").expect_err("no mode");
    assert_eq!(
        error.hint.as_deref(),
        Some(
            "Valid values are: \"disable\", \"allow\", \"prefer\", \"require\", \"verify-ca\", \"verify-full\"."
        )
    );
}

#[test]
fn options_have_to_fit_together() {
    for (pairs, message) in [
        (&[("host", "a,b"), ("hostaddr", "::1")][..], "could not match 2 host names to 1 hostaddr values"),
        (&[("host", "a,b"), ("port", "1,2,3")], "could not match 3 port numbers to 2 hosts"),
        (&[("port", "1,2")], "could not match 2 port numbers to 1 hosts"),
        (
            &[("ssl_min_protocol_version", "TLSv1.3"), ("ssl_max_protocol_version", "TLSv1.2")],
            "invalid SSL protocol version range",
        ),
        (
            &[("sslrootcert", "system"), ("sslmode", "verify-ca")],
            "weak sslmode \"verify-ca\" may not be used with sslrootcert=system (use \"verify-full\")",
        ),
        (
            &[("sslnegotiation", "direct")],
            "weak sslmode \"prefer\" may not be used with sslnegotiation=direct (use \"require\", \"verify-ca\", or \"verify-full\")",
        ),
    ] {
        let error = server(pairs);
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22023", message));
        let error = Target::new(&options(pairs), &[], "caller").expect_err("contradicting options");
        assert_eq!(error.message, message);
    }
    assert_eq!(target(&[("sslrootcert", "system")], &[]).0.tls.sslmode, SslMode::VerifyFull);
    for (pair, message) in [
        (("sslcert", "/client.crt"), "sslcert requires sslkey"),
        (("sslkey", "/client.key"), "sslkey requires sslcert"),
    ] {
        let error = check_options(OptionOf::UserMapping, &options(&[pair]), true).expect_err("half of two");
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22023", message));
    }
}

#[test]
fn some_options_are_for_superusers() {
    for (name, value, message) in [
        ("password_required", "false", "password_required=false is superuser-only"),
        ("sslcert", "/x", "sslcert and sslkey are superuser-only"),
        ("sslkey", "/x", "sslcert and sslkey are superuser-only"),
    ] {
        let error = check_option(OptionOf::UserMapping, name, value, false).expect_err("no privilege");
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("42501", message));
        assert_eq!(check(OptionOf::UserMapping, name, value), Ok(()));
    }
    for (name, value) in [("password_required", "true"), ("user", "bob"), ("password", "x")] {
        assert_eq!(check_option(OptionOf::UserMapping, name, value, false), Ok(()));
    }
    for of_system in ["system", ""] {
        assert_eq!(check_option(OptionOf::Server, "sslrootcert", of_system, false), Ok(()));
    }
    let error = check_option(OptionOf::Server, "sslrootcert", "/x", false).expect_err("no privilege");
    assert_eq!(error.message, "sslrootcert with a file is superuser-only");
    assert_eq!(check_option(OptionOf::Server, "sslrootcert", "/x", true), Ok(()));
}

#[test]
fn a_role_that_is_no_superuser_needs_a_password_that_is_asked_for() {
    let (without, none) = target(&[], &[]);
    let (with, secret) = target(&[], &[("password", "secret")]);
    let (free, nothing) = target(&[], &[("password_required", "false")]);
    let error = check_password_given(false, &without, &none).expect_err("no password");
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("2F003", "password is required"));
    assert_eq!(error.detail.as_deref(), Some("Non-superusers must provide a password in the user mapping."));
    check_password_given(false, &with, &secret).expect("a password");
    check_password_given(false, &free, &nothing).expect("a mapping without");
    check_password_given(true, &without, &none).expect("a superuser");
    let empty = Secrets { password: Some(String::new()) };
    check_password_given(false, &without, &empty).expect_err("an empty password");

    let error = check_password_used(false, &with, false).expect_err("trust");
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("2F003", "password is required"));
    assert!(error.hint.is_some_and(|hint| hint.contains("password_required=false")));
    check_password_used(false, &with, true).expect("asked for");
    check_password_used(false, &free, false).expect("a mapping without");
    check_password_used(true, &with, false).expect("a superuser");
}
