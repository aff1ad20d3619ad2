//! Handshakes with a server in the same process.

mod algorithms;
mod oracle;
mod session;
mod verification;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, ServerConnection, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, SupportedProtocolVersion};

use super::super::tls::*;
use crate::target::Target;

/// Versions of a server.
static OLD: [&SupportedProtocolVersion; 1] = [&TLS12];
static NEW: [&SupportedProtocolVersion; 1] = [&TLS13];
static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// A file of the folder of certificates.
fn pem(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("wire/tls/tests/certificates");
    fs::read(folder.join(format!("{name}.pem"))).expect(name)
}

/// What a server of these tests is like.
struct TlsServer {
    certificate: &'static str,
    key: &'static str,
    versions: &'static [&'static SupportedProtocolVersion],
    asks_for_client: bool,
    alpn: &'static [&'static [u8]],
}

impl Default for TlsServer {
    fn default() -> Self {
        Self { certificate: "good", key: "server.key", versions: &BOTH, asks_for_client: false, alpn: &[] }
    }
}

impl TlsServer {
    fn of(certificate: &'static str) -> Self {
        let key = match certificate {
            "rsa" | "sha512" | "pss_sha1" | "pss_sha256" | "pss_sha512" => "rsa.key",
            "sha384" => "p384.key",
            "ed25519" => "ed25519.key",
            _ => "server.key",
        };
        Self { certificate, key, ..Self::default() }
    }

    fn start(&self) -> ServerConnection {
        let provider = Arc::new(ring::default_provider());
        let chain = CertificateDer::pem_slice_iter(&pem(self.certificate)).collect::<Result<_, _>>();
        let key = PrivateKeyDer::from_pem_slice(&pem(self.key)).expect("a key");
        let key = provider.key_provider.load_private_key(key).expect("a key");
        let own = SingleCertAndKey::from(CertifiedKey::new(chain.expect("certificates"), key));
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(self.versions)
            .expect("versions");
        let builder = if self.asks_for_client {
            let mut roots = RootCertStore::empty();
            let root = CertificateDer::from_pem_slice(&pem("root")).expect("a root");
            roots.add(root).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_cert_resolver(Arc::new(own));
        config.alpn_protocols = self.alpn.iter().map(|name| name.to_vec()).collect();
        let mut server = ServerConnection::new(Arc::new(config)).expect("a server");
        // What it says is taken at once, however small its records are.
        server.set_buffer_limit(None);
        server
    }
}

/// The options of a foreign server.
fn options(pairs: &[(&str, &str)]) -> TlsOptions {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    Target::new(&pairs, &[], "caller").expect("a target").0.tls
}

/// A client with this sslmode that trusts `root`, if any.
fn client(sslmode: &str, root: Option<&str>) -> Result<TlsClient, UserError> {
    let mut pairs = vec![("sslmode", sslmode)];
    if root.is_some() {
        pairs.push(("sslrootcert", "/root.crt"));
    }
    let root = root.map(pem);
    TlsClient::new(&options(&pairs), TlsFiles { root: root.as_deref(), ..TlsFiles::default() })
}

/// Carries what the client has to say to the server.
fn to_server(session: &mut TlsSession, server: &mut ServerConnection) -> Result<(), rustls::Error> {
    while !session.output().is_empty() {
        let bytes = server.read_tls(&mut session.output()).expect("a slice");
        session.sent(bytes);
        server.process_new_packets()?;
    }
    Ok(())
}

/// What the server has to say.
fn of_server(server: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut bytes).expect("memory");
    }
    bytes
}

/// Gives the session all that the server has to say, so many bytes at once, and returns the plaintext.
fn from_server(
    session: &mut TlsSession,
    server: &mut ServerConnection,
    cut: usize,
) -> Result<Vec<u8>, UserError> {
    let mut plaintext = Vec::new();
    for piece in of_server(server).chunks(cut) {
        session.receive(piece, |bytes| {
            plaintext.extend_from_slice(bytes);
            Ok(())
        })?;
    }
    Ok(plaintext)
}

/// Shakes hands until both sides have nothing more to say.
fn connect(
    client: &TlsClient,
    host: &str,
    server: &TlsServer,
) -> Result<(TlsSession, ServerConnection), UserError> {
    let mut session = client.session(host)?;
    let mut server = server.start();
    loop {
        assert!(session.is_established() || session.send(b"early") == 0);
        // The server's own verdict comes to the client as an alert.
        let _ = to_server(&mut session, &mut server);
        if !server.wants_write() {
            return Ok((session, server));
        }
        from_server(&mut session, &mut server, usize::MAX)?;
    }
}

/// Whether a client comes to terms with a server, and that nothing can be sent where not.
fn verdict(client: &TlsClient, host: &str, server: &TlsServer) -> Result<(), UserError> {
    let (session, _) = connect(client, host, server)?;
    assert!(session.is_established());
    Ok(())
}

/// Sends plaintext to the server, which reads it.
fn say(session: &mut TlsSession, server: &mut ServerConnection, plaintext: &[u8]) -> Vec<u8> {
    let (mut left, mut heard) = (plaintext, Vec::new());
    while !left.is_empty() {
        let taken = session.send(left);
        assert!(taken > 0);
        left = &left[taken..];
        while !session.output().is_empty() {
            let bytes = server.read_tls(&mut session.output()).expect("room");
            session.sent(bytes);
            server.process_new_packets().expect("records");
            let mut buffer = [0; 65_536];
            while let Ok(bytes @ 1..) = server.reader().read(&mut buffer) {
                heard.extend_from_slice(&buffer[..bytes]);
            }
        }
    }
    heard
}

/// The server says something, in records of up to `record` bytes.
fn answer(server: &mut ServerConnection, plaintext: &[u8], record: usize) {
    for piece in plaintext.chunks(record) {
        server.writer().write_all(piece).expect("room");
    }
}
