//! Each sslmode and certificate on a server of PostgreSQL, with psql as the judge. By hand, because a server with TLS is
//! needed: PGHOST (the folder of its socket), PGPORT and a superuser PGUSER reach it, TLS_ORACLE is a copy of the folder of
//! certificates whose keys the server may read, and pg_hba.conf has `local all all trust` and
//! `hostssl all all all scram-sha-256`.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use crate::authentication::{Startup, encryption_accepted, encryption_request};
use crate::session::{SessionEvent, WireSession};
use crate::tls::tests::*;

const PASSWORD: &str = "secret";

/// Runs a statement as superuser.
fn sql(statement: &str) {
    let done = Command::new("psql").args(["-XqAtc", statement, "-d", "postgres"]).output().expect("psql");
    assert!(done.status.success(), "{statement}");
}

/// Whether psql connects.
fn psql(folder: &str, mode: &str, root: Option<&str>, host: &str, binding: &str) -> Result<(), String> {
    let root = root.map_or(String::new(), |root| format!("sslrootcert={folder}/{root}.pem"));
    let conninfo = format!(
        "host='{host}' hostaddr=127.0.0.1 user=tls dbname=postgres sslmode={mode} channel_binding={binding} {root}"
    );
    let psql = Command::new("psql")
        .args(["-XqAtc", "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", "-d", &conninfo])
        .env("PGPASSWORD", PASSWORD)
        .env("HOME", "/nonexistent")
        .output()
        .expect("psql");
    if psql.stdout == b"t\n" { Ok(()) } else { Err(String::from_utf8_lossy(&psql.stderr).into_owned()) }
}

/// Whether this driver connects, and the certificate that it has seen.
fn own(mode: &str, root: Option<&str>, host: &str, binding: &str) -> Result<Vec<u8>, UserError> {
    let mut tls = client(mode, root)?.session(host)?;
    let port: u16 = env::var("PGPORT").expect("PGPORT").parse().expect("a port");
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    socket.write_all(&encryption_request()).expect("a request");
    let mut answer = [0];
    socket.read_exact(&mut answer).expect("an answer");
    assert!(encryption_accepted(answer[0]).expect("TLS"));
    let (mut session, mut is_started, mut buffer) = (WireSession::new(), false, [0; 1000]);
    loop {
        if tls.is_established() && !is_started {
            is_started = true;
            session.start(&Startup {
                user: "tls".to_owned(),
                database: "postgres".to_owned(),
                password: Some(PASSWORD.to_owned().into()),
                tls_server_end_point: tls.tls_server_end_point(),
                requires_channel_binding: binding == "require",
                ..Startup::default()
            })?;
        }
        let taken = tls.send(session.output());
        session.sent(taken);
        socket.write_all(tls.output()).expect("a socket");
        tls.sent(usize::MAX);
        let bytes = socket.read(&mut buffer).expect("a socket");
        if bytes == 0 {
            return Err(tls.end_of_input().unwrap_or_else(|| session.end_of_input()));
        }
        let mut event = SessionEvent::Pending;
        tls.receive(&buffer[..bytes], |plaintext| {
            event = session.receive(plaintext)?;
            Ok(())
        })?;
        if is_started && event == SessionEvent::Ready {
            assert!(session.used_password());
            return Ok(tls.peer());
        }
    }
}

/// Certificates, and the roots with which they are tried.
const CASES: [(&str, &[&str]); 28] = [
    ("good", &["root", "other_root", "impostor", "good"]),
    ("cn_only", &["root"]),
    ("v1", &["root"]),
    ("v1_of_v1", &["root_v1", "root"]),
    ("self_signed", &["self_signed", "root"]),
    ("self_signed_v1", &["self_signed_v1", "root", "self_signed"]),
    ("unknown", &["root", "other_root"]),
    ("wildcard", &["root"]),
    ("address", &["root"]),
    ("address_as_name", &["root"]),
    ("expired", &["root"]),
    ("future", &["root"]),
    ("client_only", &["root"]),
    ("no_signature", &["root"]),
    ("critical", &["root"]),
    ("constrained", &["constrained_root"]),
    ("beyond_constraint", &["constrained_root"]),
    ("of_no_signing", &["no_signing_root"]),
    ("of_intermediate", &["root", "intermediate"]),
    ("of_no_ca", &["root"]),
    ("of_beyond", &["short_root"]),
    ("sha384", &["root"]),
    ("sha512", &["sha512"]),
    ("rsa", &["rsa"]),
    ("pss_sha256", &["pss_sha256"]),
    ("pss_sha512", &["pss_sha512"]),
    ("ecdsa_sha512", &[]),
    ("pss_sha1", &[]),
];

#[test]
#[ignore = "needs a server with TLS"]
fn psql_connects_where_this_driver_does() {
    let folder = env::var("TLS_ORACLE").expect("TLS_ORACLE");
    sql("DROP ROLE IF EXISTS tls");
    sql(&format!("CREATE ROLE tls LOGIN PASSWORD '{PASSWORD}'"));
    let hosts =
        ["db.example", "other.example", "a.db.example", "192.0.2.1", "192.0.2.2", "ignored.example", ""];
    let (mut tried, mut different) = (0, Vec::new());
    for (certificate, roots) in CASES {
        let server = TlsServer::of(certificate);
        sql(&format!("ALTER SYSTEM SET ssl_cert_file = '{folder}/{certificate}.pem'"));
        sql(&format!("ALTER SYSTEM SET ssl_key_file = '{folder}/{}.pem'", server.key));
        sql("ALTER SYSTEM SET ssl = on");
        sql("SELECT pg_reload_conf()");
        let presented = crate::tls::tests::certificate(certificate).to_der().expect("a certificate");
        // The postmaster takes the file in its own time.
        while own("require", None, "db.example", "require").is_ok_and(|peer| peer != presented) {
            std::thread::yield_now();
        }
        let mut compare = |mode: &str, root: Option<&str>, host: &str, binding: &str| {
            let (theirs, ours) =
                (psql(&folder, mode, root, host, binding), own(mode, root, host, binding).map(drop));
            tried += 1;
            if theirs.is_ok() != ours.is_ok() {
                different
                    .push(format!("{certificate} {mode} {root:?} {host} {binding}: {theirs:?} but {ours:?}"));
            }
        };
        for binding in ["disable", "prefer", "require"] {
            compare("require", None, "db.example", binding);
        }
        compare("verify-ca", None, "db.example", "prefer");
        for root in roots.iter().copied() {
            for mode in ["prefer", "require", "verify-ca"] {
                compare(mode, Some(root), "other.example", "prefer");
            }
            for host in hosts {
                compare("verify-full", Some(root), host, "prefer");
            }
        }
    }
    assert!(different.is_empty(), "of {tried}: {}", different.join("\n"));
    println!("{tried} connections");
}
