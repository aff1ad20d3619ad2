//! TLS as libpq has it, without the connection: encrypted bytes in, plaintext out, and the other way round. The protocol is
//! the crate rustls's; what a certificate has to be is libpq's word and OpenSSL's, not rustls's.
//!
//! [`TlsClient`] is made once from a target's options and the files that they name, a [`TlsSession`] for each connection. A
//! session has no socket: it stands between one and a [`Session`](super::Session), and is used as that is. Bytes from the
//! socket go to [`TlsSession::receive`], which hands on the plaintext; what is to be sent goes through
//! [`TlsSession::send`]; [`TlsSession::output`] is for the socket, also before anything was received and after an error.
//! libpq has no TLS over Unix sockets, whatever sslmode says: that is the caller's to know.
//!
//! Verified is where there are root certificates, or sslmode demands it:
//!
//! | sslmode | without sslrootcert | with sslrootcert |
//! |---|---|---|
//! | allow, prefer, require | nothing is | the chain |
//! | verify-ca | refused | the chain |
//! | verify-full | refused | the chain and the name |
//!
//! That is more than libpq's documentation says of `allow` and `prefer`, and what libpq does: where it fails, a connection
//! without TLS may be tried. In any case the server has to have the key of its certificate.

mod certificate;
mod chain;
mod names;
mod session;
mod verifier;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, SupportedProtocolVersion};

pub use session::TlsSession;

use crate::error::{UserError, sqlstate};
use crate::target::{SYSTEM_ROOTS, SslMode, SslNegotiation, TlsOptions, TlsVersion};
use certificate::Certificate;
use verifier::Verifier;

/// The name of PostgreSQL's protocol in ALPN.
const PROTOCOL: &[u8] = b"postgresql";

/// The contents of the files that [`TlsOptions`] name, in PEM.
#[derive(Clone, Copy, Default)]
pub struct TlsFiles<'a> {
    /// That of sslrootcert; not needed for "system".
    pub root: Option<&'a [u8]>,
    /// That of sslcert.
    pub certificate: Option<&'a [u8]>,
    /// That of sslkey.
    pub key: Option<&'a [u8]>,
}

/// What all connections to a target have in common.
pub struct TlsClient {
    config: Arc<ClientConfig>,
    is_name_checked: bool,
    is_named: bool,
    is_direct: bool,
}

impl TlsClient {
    /// Reads certificates and keys; those of the operating system for `sslrootcert=system`.
    ///
    /// # Errors
    /// 08001 for files that are missing or not what they should be.
    pub fn new(options: &TlsOptions, files: TlsFiles<'_>) -> Result<Self, UserError> {
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new(roots(options, files)?, provider.signature_verification_algorithms);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(options))
            .map_err(|error| failed(format!("could not set the versions of TLS: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match identity(files, &provider)? {
            Some(identity) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity))),
            None => builder.with_no_client_auth(),
        };
        // Each connection is a handshake of its own, as libpq's are.
        config.resumption = Resumption::disabled();
        config.enable_sni = options.sslsni;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            is_name_checked: options.sslmode == SslMode::VerifyFull,
            is_named: options.sslsni,
            is_direct: options.sslnegotiation == SslNegotiation::Direct,
        })
    }

    /// Whether the handshake comes first, without a request for TLS.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Begins a session with a host, by the name that its certificate is to have and that is told to the server. The first
    /// bytes are in its output.
    ///
    /// # Errors
    /// 08001.
    pub fn session(&self, host: &str) -> Result<TlsSession, UserError> {
        // Addresses are not told, and neither is this one, which stands for a host that is no name of DNS.
        let nobody = || ServerName::from(IpAddr::from(Ipv4Addr::UNSPECIFIED));
        let name = match ServerName::try_from(host) {
            Ok(name) if self.is_named => name.to_owned(),
            _ => nobody(),
        };
        let connection = ClientConnection::new(Arc::clone(&self.config), name)
            .map_err(|error| failed(format!("could not establish SSL connection: {error}")))?;
        Ok(TlsSession::new(connection, self.is_name_checked.then(|| host.to_owned()), self.is_direct))
    }
}

/// The versions from the oldest to the newest that the options allow.
fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let min = options.ssl_min_protocol_version.unwrap_or(TlsVersion::V1_2);
    let max = options.ssl_max_protocol_version.unwrap_or(TlsVersion::V1_3);
    let all = [(TlsVersion::V1_2, &TLS12), (TlsVersion::V1_3, &TLS13)];
    all.into_iter().filter(|(version, _)| (min..=max).contains(version)).map(|(_, version)| version).collect()
}

/// The certificates that are trusted; `None`: nothing is verified.
fn roots(options: &TlsOptions, files: TlsFiles<'_>) -> Result<Option<Vec<Certificate>>, UserError> {
    let Some(named) = &options.sslrootcert else {
        if options.sslmode < SslMode::VerifyCa {
            return Ok(None);
        }
        return Err(failed("root certificate file is not given")
            .detail("sslmode \"verify-ca\" and \"verify-full\" verify the server's certificate.")
            .hint("Set option sslrootcert of the server to a file, or to \"system\" for the operating system's roots with sslmode \"verify-full\"."));
    };
    if named == SYSTEM_ROOTS {
        let found = rustls_native_certs::load_native_certs();
        // What this crate cannot read, it does not trust either.
        let roots: Vec<_> = found.certs.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
        if roots.is_empty() {
            return Err(failed("could not load system root certificate paths").hint(
                "Install the package ca-certificates, or set option sslrootcert of the server to a file.",
            ));
        }
        return Ok(Some(roots));
    }
    let unreadable = || {
        failed(format!("could not read root certificate file \"{named}\""))
            .hint("Set option sslrootcert of the server to a file with certificates in PEM.")
    };
    let roots = certificates(files.root.unwrap_or_default()).map_err(|reason| unreadable().detail(reason))?;
    let parse = |der: &CertificateDer<'_>| {
        Certificate::parse(der).map_err(|error| unreadable().detail(format!("{error}.")))
    };
    roots.iter().map(parse).collect::<Result<_, _>>().map(Some)
}

/// The certificates of a file in PEM, at least one; the error is a sentence.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("There is no certificate in it.".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("{error}.")),
    }
}

/// The client's certificate, those that stand behind it, and its key.
fn identity(files: TlsFiles<'_>, provider: &CryptoProvider) -> Result<Option<CertifiedKey>, UserError> {
    let (Some(chain), Some(key)) = (files.certificate, files.key) else { return Ok(None) };
    let chain = certificates(chain).map_err(|reason| {
        failed("could not read certificate file")
            .detail(reason)
            .hint("Set option sslcert of the user mapping to a file with the certificate in PEM.")
    })?;
    let unreadable = || {
        failed("could not load private key file")
            .hint("Set option sslkey of the user mapping to a file with the unencrypted private key in PEM.")
    };
    // The errors of the parsers are not shown: they may quote the key.
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| unreadable())?;
    let key = provider.key_provider.load_private_key(key).map_err(|_| unreadable())?;
    let own = Certificate::parse(&chain[0]).and_then(|certificate| certificate.public_key());
    let own = own.map_err(|error| failed("could not read certificate file").detail(format!("{error}.")))?;
    if key.public_key().is_some_and(|public| public.as_ref() != own.as_ref()) {
        return Err(failed("certificate does not match private key file")
            .hint("Set options sslcert and sslkey of the user mapping to files of one pair."));
    }
    Ok(Some(CertifiedKey::new(chain, key)))
}

/// The error for a connection that does not come about.
fn failed(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::UNABLE_TO_CONNECT, message)
}

#[cfg(test)]
mod tests;
