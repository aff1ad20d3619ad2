//! Hosts: lists, order and errors.

use std::collections::BTreeSet;

use bench_base::error::UserError;

use super::super::*;
use super::target;

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
