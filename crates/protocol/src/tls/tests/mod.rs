//! Handshakes with a server in the same process.

mod oracle;
mod session;

use std::fs;
use std::path::Path;

use bench_base::error::UserError;
use openssl::ec::EcKey;
use openssl::error::ErrorStack;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{
    AlpnError, Error, ErrorCode, NameType, ShutdownState, Ssl, SslContextBuilder, SslMethod, SslStream,
    SslVerifyMode, SslVersion, select_next_proto,
};
use openssl::x509::X509;

use crate::foreign_server::Target;
use crate::foreign_server::options::TlsOptions;
use crate::tls::session::{PROTOCOL, Records};
use crate::tls::*;

/// The oldest and the newest version of a server.
type Versions = (SslVersion, SslVersion);
const OLD: Versions = (SslVersion::TLS1_2, SslVersion::TLS1_2);
const NEW: Versions = (SslVersion::TLS1_3, SslVersion::TLS1_3);
const BOTH: Versions = (SslVersion::TLS1_2, SslVersion::TLS1_3);

/// The folder of certificates.
fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join("tls/tests/certificates")
}

/// A file of it.
fn pem(name: &str) -> Vec<u8> {
    fs::read(folder().join(format!("{name}.pem"))).expect(name)
}

/// The first certificate of a file.
fn certificate(name: &str) -> X509 {
    X509::from_pem(&pem(name)).expect(name)
}

/// What a server of these tests is like.
struct TlsServer {
    certificate: &'static str,
    key: &'static str,
    versions: Versions,
    asks_for_client: bool,
    /// Whether it knows the protocol by name.
    knows_protocol: bool,
}

impl Default for TlsServer {
    fn default() -> Self {
        Self {
            certificate: "good",
            key: "server.key",
            versions: BOTH,
            asks_for_client: false,
            knows_protocol: false,
        }
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

    fn start(&self) -> Result<ServerSession, ErrorStack> {
        let mut context = SslContextBuilder::new(SslMethod::tls_server())?;
        // Whatever its certificate is like, it shows it.
        context.set_security_level(0);
        context.set_min_proto_version(Some(self.versions.0))?;
        context.set_max_proto_version(Some(self.versions.1))?;
        context.set_certificate_chain_file(folder().join(format!("{}.pem", self.certificate)))?;
        let key = self.private_key()?;
        context.set_private_key(&key)?;
        if self.asks_for_client {
            context.cert_store_mut().add_cert(certificate("root"))?;
            context.set_verify(SslVerifyMode::PEER | SslVerifyMode::FAIL_IF_NO_PEER_CERT);
        }
        if self.knows_protocol {
            context.set_alpn_select_callback(|_, names| {
                select_next_proto(PROTOCOL, names).ok_or(AlpnError::NOACK)
            });
        }
        let stream = SslStream::new(Ssl::new(&context.build())?, Records::default())?;
        Ok(ServerSession { stream, is_handshaking: true, heard: Vec::new() })
    }

    /// Its key; another's pretends to be that of the certificate, or OpenSSL would not take it.
    fn private_key(&self) -> Result<PKey<Private>, ErrorStack> {
        let key = PKey::private_key_from_pem(&pem(self.key))?;
        let public = certificate(self.certificate).public_key()?;
        if key.public_eq(&public) {
            return Ok(key);
        }
        let (own, public) = (key.ec_key()?, public.ec_key()?);
        PKey::from_ec_key(EcKey::from_private_components(
            public.group(),
            own.private_key(),
            public.public_key(),
        )?)
    }

    fn serve(&self) -> ServerSession {
        self.start().expect("a server")
    }
}

/// The server's end of a session.
struct ServerSession {
    stream: SslStream<Records>,
    is_handshaking: bool,
    /// Plaintext that nobody has looked at.
    heard: Vec<u8>,
}

impl ServerSession {
    fn receive(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stream.get_mut().receive(bytes);
        drop(ErrorStack::get());
        if self.is_handshaking {
            match self.stream.accept() {
                Ok(()) => self.is_handshaking = false,
                Err(error) if error.code() == ErrorCode::WANT_READ => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let mut buffer = [0; 65_536];
        loop {
            match self.stream.ssl_read(&mut buffer) {
                Ok(bytes) => self.heard.extend_from_slice(&buffer[..bytes]),
                Err(error) if [ErrorCode::WANT_READ, ErrorCode::ZERO_RETURN].contains(&error.code()) => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn has_output(&self) -> bool {
        !self.stream.get_ref().output().is_empty()
    }

    /// What it has to say.
    fn output(&mut self) -> Vec<u8> {
        let output = self.stream.get_ref().output().to_owned();
        self.stream.get_mut().sent(usize::MAX);
        output
    }

    fn version(&self) -> &'static str {
        self.stream.ssl().version_str()
    }

    fn peer(&self) -> Option<X509> {
        self.stream.ssl().peer_certificate()
    }

    /// The name by which it was called.
    fn name(&self) -> Option<String> {
        self.stream.ssl().servername(NameType::HOST_NAME).map(str::to_owned)
    }

    /// Whether the client has said that nothing more comes.
    fn is_at_end(&mut self) -> bool {
        self.stream.get_shutdown().contains(ShutdownState::RECEIVED)
    }

    fn close(&mut self) {
        self.stream.shutdown().expect("a session");
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
fn to_server(session: &mut TlsSession, server: &mut ServerSession) -> Result<(), Error> {
    let said = session.output().to_owned();
    session.sent(said.len());
    if said.is_empty() { Ok(()) } else { server.receive(&said) }
}

/// Gives the session all that the server has to say, so many bytes at once, and returns the plaintext.
fn from_server(
    session: &mut TlsSession,
    server: &mut ServerSession,
    cut: usize,
) -> Result<Vec<u8>, UserError> {
    let mut plaintext = Vec::new();
    for piece in server.output().chunks(cut) {
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
) -> Result<(TlsSession, ServerSession), UserError> {
    let mut session = client.session(host)?;
    let mut server = server.serve();
    loop {
        assert!(session.is_established() || session.send(b"early") == 0);
        // The server's own verdict comes to the client as an alert.
        let _ = to_server(&mut session, &mut server);
        if !server.has_output() {
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
fn say(session: &mut TlsSession, server: &mut ServerSession, plaintext: &[u8]) -> Vec<u8> {
    let mut left = plaintext;
    while !left.is_empty() {
        let taken = session.send(left);
        assert!(taken > 0);
        left = &left[taken..];
        to_server(session, server).expect("records");
    }
    std::mem::take(&mut server.heard)
}

/// The server says something, in records of up to `record` bytes.
fn answer(server: &mut ServerSession, plaintext: &[u8], record: usize) {
    for mut piece in plaintext.chunks(record) {
        while !piece.is_empty() {
            let taken = server.stream.ssl_write(piece).expect("memory");
            piece = &piece[taken..];
        }
    }
}

// Signature algorithms: hashes for channel binding, and both versions of TLS.

#[test]
fn the_end_point_is_that_of_openssl() {
    let end_point = |name| crate::tls::certificate::end_point(&certificate(name));
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
    let own = crate::tls::certificate::end_point(&certificate("v1"));
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
