//! Options of servers and mappings, and what becomes of them.

use std::collections::BTreeSet;

use bench_base::error::UserError;
use bench_base::words::Word;
use proptest::prelude::*;

use crate::foreign_server::options::{KEYWORDS, Place};
use crate::foreign_server::words::SessionAttributes::{
    Any, PreferStandby, Primary, ReadOnly, ReadWrite, Standby,
};
use crate::foreign_server::words::Suitability;
use crate::foreign_server::words::Suitability::{Ask, Suitable, Unsuitable};
use crate::foreign_server::{Secrets, Target, *};

/// Options as a catalog has them.
pub(crate) fn options(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| (String::from(*name), String::from(*value))).collect()
}

/// A target that has to be good.
pub(crate) fn target(server: &[(&str, &str)], mapping: &[(&str, &str)]) -> (Target, Secrets) {
    Target::new(&options(server), &options(mapping), "caller").expect("a target")
}

const READ_ONLY: Suitability = Unsuitable("session is read-only");
const NOT_READ_ONLY: Suitability = Unsuitable("session is not read-only");
const IN_STANDBY: Suitability = Unsuitable("server is in hot standby mode");
const NOT_IN_STANDBY: Suitability = Unsuitable("server is not in hot standby mode");

/// A server that reports (in_hot_standby, default_transaction_read_only), and what becomes of it.
#[test]
fn servers_that_report_are_not_asked() {
    for (standby, read_only, [read_write, only, primary, in_standby]) in [
        ("off", "off", [Suitable, NOT_READ_ONLY, Suitable, NOT_IN_STANDBY]),
        ("off", "on", [READ_ONLY, Suitable, Suitable, NOT_IN_STANDBY]),
        ("on", "off", [READ_ONLY, Suitable, IN_STANDBY, Suitable]),
        ("on", "on", [READ_ONLY, Suitable, IN_STANDBY, Suitable]),
    ] {
        let decided = |attributes: crate::foreign_server::words::SessionAttributes| {
            attributes.by_report(Some(standby), Some(read_only))
        };
        assert_eq!(decided(Any), Suitable);
        assert_eq!(decided(ReadWrite), read_write, "{standby} {read_only}");
        assert_eq!(decided(ReadOnly), only, "{standby} {read_only}");
        assert_eq!(decided(Primary), primary, "{standby} {read_only}");
        assert_eq!(decided(Standby), in_standby, "{standby} {read_only}");
    }
}

#[test]
fn other_servers_are_asked() {
    let read_only = Ask("SHOW transaction_read_only");
    let recovery = Ask("SELECT pg_catalog.pg_is_in_recovery()");
    assert_eq!(Any.by_report(None, None), Suitable);
    for (standby, default) in [(None, None), (Some("on"), None), (None, Some("on"))] {
        assert_eq!(ReadWrite.by_report(standby, default), read_only);
        assert_eq!(ReadOnly.by_report(standby, default), read_only);
    }
    assert_eq!(Primary.by_report(None, Some("off")), recovery);
    assert_eq!(Standby.by_report(None, None), recovery);
    assert_eq!(Standby.by_report(Some("on"), None), Suitable);
    for (attributes, answer, decision) in [
        (ReadWrite, "on", READ_ONLY),
        (ReadWrite, "off", Suitable),
        (ReadOnly, "on", Suitable),
        (ReadOnly, "off", NOT_READ_ONLY),
        (Primary, "t", IN_STANDBY),
        (Primary, "f", Suitable),
        (Standby, "t", Suitable),
        (Standby, "f", NOT_IN_STANDBY),
    ] {
        assert_eq!(attributes.by_answer(answer), decision, "{attributes:?} {answer}");
    }
}

#[test]
fn a_standby_is_looked_for_before_all_others() {
    assert_eq!(PreferStandby.passes(), [Standby, Any]);
    for attributes in [Any, ReadWrite, ReadOnly, Primary, Standby] {
        assert_eq!(attributes.passes(), [attributes]);
    }
}

fn hosts(pairs: &[(&str, &str)]) -> Vec<Host> {
    target(pairs, &[]).0.hosts
}

fn host(name: &str, address: Option<&str>, port: u16) -> Host {
    Host { name: name.to_owned(), address: address.map(str::to_owned), port }
}

#[test]
fn lists_fit_together() {
    assert_eq!(
        hosts(&[("host", "a,,/tmp"), ("port", "6432")]),
        [host("a", None, 6432), host("", None, 6432), host("/tmp", None, 6432)]
    );
    assert_eq!(
        hosts(&[("host", "a,b"), ("hostaddr", "127.0.0.1,"), ("port", ",5433")]),
        [host("a", Some("127.0.0.1"), 5432), host("b", None, 5433)]
    );
    assert_eq!(
        hosts(&[("hostaddr", "::1,fe80::1%eth0")]),
        [host("", Some("::1"), 5432), host("", Some("fe80::1%eth0"), 5432)]
    );
}

#[test]
fn hosts_that_are_folders_have_sockets() {
    let default = "/var/run/postgresql";
    for (host, socket) in [
        (host("", None, 5432), Some("/var/run/postgresql/.s.PGSQL.5432")),
        (host("/tmp", None, 5433), Some("/tmp/.s.PGSQL.5433")),
        (host("@bench", None, 1), Some("@bench/.s.PGSQL.1")),
        (host("db1", None, 5432), None),
        (host("/tmp", Some("127.0.0.1"), 5432), None),
        (host("", Some("127.0.0.1"), 5432), None),
    ] {
        assert_eq!(host.socket(default).as_deref(), socket);
    }
}

#[test]
fn errors_name_the_host_as_libpq_does() {
    let address = |text: &str| Some(text.parse().expect("an address"));
    let error = || UserError::new("08001", "Connection refused").hint("Is the server running?");
    for (host, address, place) in [
        (host("", None, 5432), None, "on socket \"/run/.s.PGSQL.5432\""),
        (host("/tmp", None, 5433), None, "on socket \"/tmp/.s.PGSQL.5433\""),
        (host("db1", None, 5432), None, "at \"db1\", port 5432"),
        (host("db1", None, 5432), address("10.0.0.1"), "at \"db1\" (10.0.0.1), port 5432"),
        (host("10.0.0.1", None, 5432), address("10.0.0.1"), "at \"10.0.0.1\", port 5432"),
        (host("db1", Some("10.0.0.2"), 5432), address("10.0.0.2"), "at \"10.0.0.2\", port 5432"),
        (host("", Some("::1"), 5432), address("::1"), "at \"::1\", port 5432"),
    ] {
        let named = host.failed(address, "/run", error());
        assert_eq!(named.message, format!("connection to server {place} failed: Connection refused"));
        assert_eq!((named.sqlstate, named.hint), (error().sqlstate, error().hint));
    }
}

#[test]
fn hosts_are_tried_in_order_and_standbys_first() {
    let names = |attempts: Vec<(&Host, SessionAttributes)>| {
        attempts.iter().map(|(host, attributes)| (host.name.clone(), *attributes)).collect::<Vec<_>>()
    };
    let (any, _) = target(&[("host", "a,b")], &[]);
    let expected = [("a".to_owned(), SessionAttributes::Any), ("b".to_owned(), SessionAttributes::Any)];
    assert_eq!(names(any.attempts(1)), expected);
    let (standby, _) = target(&[("host", "a,b"), ("target_session_attrs", "prefer-standby")], &[]);
    let expected = [
        ("a".to_owned(), SessionAttributes::Standby),
        ("b".to_owned(), SessionAttributes::Standby),
        ("a".to_owned(), SessionAttributes::Any),
        ("b".to_owned(), SessionAttributes::Any),
    ];
    assert_eq!(names(standby.attempts(1)), expected);
}

#[test]
fn a_balanced_load_tries_hosts_in_all_orders() {
    let (target, _) = target(&[("host", "a,b,c"), ("load_balance_hosts", "random")], &[]);
    let orders: BTreeSet<String> = (0..200)
        .map(|seed| target.attempts(seed).iter().map(|(host, _)| host.name.as_str()).collect())
        .collect();
    assert_eq!(orders.len(), 6, "{orders:?}");
}

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

fn a_word<T: Word + std::fmt::Debug>() -> impl Strategy<Value = String> {
    prop::sample::select(T::WORDS).prop_map(|(word, _)| word.to_owned())
}

/// Options of a server, without contradictions.
fn a_server() -> impl Strategy<Value = Vec<(String, String)>> {
    let word = (
        a_word::<SslMode>(),
        a_word::<ChannelBinding>(),
        a_word::<LoadBalance>(),
        a_word::<SessionAttributes>(),
        a_word::<TlsVersion>(),
    );
    let host = ("[a-z/@.0-9 ]{0,8}", 1..=u16::MAX);
    let text = ("[a-zA-Z0-9 ]{0,10}", "\\PC{0,10}", any::<i32>(), any::<bool>());
    (prop::collection::vec(host, 1..6), word, text).prop_map(|(hosts, word, text)| {
        let list = |elements: Vec<String>| elements.join(",");
        options(&[
            ("host", &list(hosts.iter().map(|(name, _)| name.clone()).collect())),
            ("port", &list(hosts.iter().map(|(_, port)| port.to_string()).collect())),
            ("sslmode", &word.0),
            ("channel_binding", &word.1),
            ("load_balance_hosts", &word.2),
            ("target_session_attrs", &word.3),
            ("ssl_min_protocol_version", &word.4),
            ("dbname", &text.0),
            ("application_name", &text.1),
            ("connect_timeout", &text.2.to_string()),
            ("sslsni", if text.3 { "1" } else { "0" }),
        ])
    })
}

proptest! {
    #[test]
    fn a_target_is_read_as_it_is_written(server in a_server(), role in "[a-z]{1,8}") {
        check_options(OptionOf::Server, &server, false).expect("good options");
        let (target, _) = Target::new(&server, &[], &role).expect("a target");
        let text = serde_json::to_string(&target).expect("JSON");
        prop_assert_eq!(&target, &serde_json::from_str::<Target>(&text).expect("a target"));
        let value = |name: &str| &server.iter().find(|(option, _)| option == name).expect("given").1;
        let names: Vec<&str> = target.hosts.iter().map(|host| host.name.as_str()).collect();
        let ports: Vec<String> = target.hosts.iter().map(|host| host.port.to_string()).collect();
        prop_assert_eq!(names.join(","), value("host").as_str());
        prop_assert_eq!(ports.join(","), value("port").as_str());
        let mode = serde_json::to_value(target.tls.sslmode).expect("JSON");
        prop_assert_eq!(mode.as_str(), Some(value("sslmode").as_str()));
    }

    #[test]
    fn a_password_is_nowhere_but_among_the_secrets(server in a_server(), password in "[A-Z]{12}[!-~]{0,8}") {
        let mapping = options(&[("user", "alice"), ("password", &password)]);
        let (target, secrets) = Target::new(&server, &mapping, "caller").expect("a target");
        let shown = format!("{target:?} {secrets:?} {}", serde_json::to_string(&target).expect("JSON"));
        prop_assert!(!shown.contains(&password));
        let text = serde_json::to_string(&secrets).expect("JSON");
        prop_assert_eq!(&secrets, &serde_json::from_str::<Secrets>(&text).expect("secrets"));
        prop_assert_eq!(secrets.password.as_deref(), Some(password.as_str()));
    }

    /// A validator is given whatever a user writes.
    #[test]
    fn any_option_is_checked_without_a_panic(name in "[a-z_]{0,20}", value in "\\PC{0,20}", is_superuser: bool) {
        for of in [OptionOf::Wrapper, OptionOf::Server, OptionOf::UserMapping, OptionOf::ForeignTable] {
            if let Err(error) = check_option(of, &name, &value, is_superuser) {
                prop_assert!(["HV00D", "22023", "42501"].contains(&error.sqlstate.as_str()), "{error:?}");
                prop_assert!(error.hint.is_some() || error.detail.is_some() || error.sqlstate == "22023");
            }
        }
    }
}
