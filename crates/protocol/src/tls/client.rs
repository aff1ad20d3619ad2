//! What all connections to a target have in common: libpq's settings, the certificates that are trusted and the client's own.

use bench_base::error::UserError;
use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::ssl::{
    Ssl, SslContext, SslContextBuilder, SslMethod, SslOptions, SslSessionCacheMode, SslVerifyMode, SslVersion,
};
use openssl::x509::X509;

use crate::foreign_server::options::{SYSTEM_ROOTS, TlsOptions};
use crate::foreign_server::words::{SslMode, SslNegotiation, TlsVersion};
use crate::tls::certificate::{failed, reason};
use crate::tls::session::{PROTOCOL, TlsSession};

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
    context: SslContext,
    is_chain_verified: bool,
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
        let mut context = settings(options)
            .map_err(|error| failed(format!("could not create SSL context: {}", reason(&error))))?;
        let is_chain_verified = trust(&mut context, options, files)?;
        identify(&mut context, files)?;
        Ok(Self {
            context: context.build(),
            is_chain_verified,
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
        let begin = || {
            let mut ssl = Ssl::new(&self.context)?;
            if self.is_named && is_told(host) {
                ssl.set_hostname(host)?;
            }
            Ok(ssl)
        };
        let ssl = begin().map_err(|error: ErrorStack| {
            failed(format!("could not establish SSL connection: {}", reason(&error)))
        })?;
        let host = self.is_name_checked.then(|| host.to_owned());
        TlsSession::new(ssl, self.is_chain_verified, host, self.is_direct)
    }
}

/// Whether a server is told this name of its own: addresses are not, as libpq looks at them (initialize_SSL in
/// fe-secure-openssl.c).
fn is_told(host: &str) -> bool {
    let is_address = host.contains(':') || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !host.is_empty() && !is_address
}

/// A context with libpq's settings.
fn settings(options: &TlsOptions) -> Result<SslContextBuilder, ErrorStack> {
    let version = |version: TlsVersion| match version {
        TlsVersion::V1_2 => SslVersion::TLS1_2,
        TlsVersion::V1_3 => SslVersion::TLS1_3,
    };
    let mut context = SslContextBuilder::new(SslMethod::tls_client())?;
    let min = options.ssl_min_protocol_version.unwrap_or(TlsVersion::V1_2);
    context.set_min_proto_version(Some(version(min)))?;
    context.set_max_proto_version(options.ssl_max_protocol_version.map(version))?;
    context.set_alpn_protos(PROTOCOL)?;
    // Each connection is a handshake of its own, as libpq's are, and there is one.
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    context.set_options(SslOptions::NO_RENEGOTIATION | SslOptions::NO_COMPRESSION);
    Ok(context)
}

/// Names the certificates that are trusted; false where nothing is verified.
fn trust(
    context: &mut SslContextBuilder,
    options: &TlsOptions,
    files: TlsFiles<'_>,
) -> Result<bool, UserError> {
    let Some(named) = &options.sslrootcert else {
        if options.sslmode < SslMode::VerifyCa {
            context.set_verify(SslVerifyMode::NONE);
            return Ok(false);
        }
        return Err(failed("root certificate file is not given")
            .detail("sslmode \"verify-ca\" and \"verify-full\" verify the server's certificate.")
            .hint("Set option sslrootcert of the server to a file, or to \"system\" for the operating system's roots with sslmode \"verify-full\"."));
    };
    if named == SYSTEM_ROOTS {
        context.set_default_verify_paths().map_err(|error| {
            failed(format!("could not load system root certificate paths: {}", reason(&error))).hint(
                "Install the package ca-certificates, or set option sslrootcert of the server to a file.",
            )
        })?;
        return Ok(true);
    }
    let unreadable = |reason| {
        failed(format!("could not read root certificate file \"{named}\""))
            .detail(reason)
            .hint("Set option sslrootcert of the server to a file with certificates in PEM.")
    };
    for root in certificates(files.root.unwrap_or_default()).map_err(unreadable)? {
        let added = context.cert_store_mut().add_cert(root);
        added.map_err(|error| unreadable(format!("{}.", reason(&error))))?;
    }
    Ok(true)
}

/// The certificates of a file in PEM, at least one; the error is a sentence.
fn certificates(pem: &[u8]) -> Result<Vec<X509>, String> {
    match X509::stack_from_pem(pem) {
        Ok(found) if found.is_empty() => Err("There is no certificate in it.".to_owned()),
        Ok(found) => Ok(found),
        Err(error) => Err(format!("{}.", reason(&error))),
    }
}

/// Gives the client its certificate, those that stand behind it, and its key.
fn identify(context: &mut SslContextBuilder, files: TlsFiles<'_>) -> Result<(), UserError> {
    let (Some(chain), Some(key)) = (files.certificate, files.key) else { return Ok(()) };
    let bad_certificate = |reason| {
        failed("could not read certificate file")
            .detail(reason)
            .hint("Set option sslcert of the user mapping to a file with the certificate in PEM.")
    };
    let mut chain = certificates(chain).map_err(bad_certificate)?.into_iter();
    let mut given = chain.next().map_or(Ok(()), |own| context.set_certificate(&own));
    for other in chain {
        given = given.and_then(|()| context.add_extra_chain_cert(other));
    }
    given.map_err(|error| bad_certificate(format!("{}.", reason(&error))))?;
    // Nobody is asked for the password of one that is encrypted; and the errors are not shown: they may quote the key.
    let key = PKey::private_key_from_pem_passphrase(key, b"").map_err(|_| {
        failed("could not load private key file")
            .hint("Set option sslkey of the user mapping to a file with the unencrypted private key in PEM.")
    })?;
    context.set_private_key(&key).and_then(|()| context.check_private_key()).map_err(|_| {
        failed("certificate does not match private key file")
            .hint("Set options sslcert and sslkey of the user mapping to files of one pair.")
    })
}
