//! What rustls asks during a handshake: is this certificate good, and does the server have its key.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, PeerMisbehaved, SignatureScheme};

use super::certificate::Certificate;
use super::chain::{ChainSearch, Failure};
use super::failed;
use crate::error::UserError;
use crate::untrusted;

/// Verifies chains as OpenSSL does for libpq. Names are checked when the handshake is done, as libpq does.
#[derive(Debug)]
pub struct Verifier {
    roots: Option<Vec<Certificate>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    /// Without roots, every chain is good.
    pub fn new(roots: Option<Vec<Certificate>>, algorithms: WebPkiSupportedAlgorithms) -> Self {
        Self { roots, algorithms }
    }

    fn verify(
        &self,
        roots: &[Certificate],
        server: &CertificateDer<'_>,
        presented: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), UserError> {
        let server = Certificate::parse(server)
            .map_err(|error| unverified(format!("The server certificate cannot be read: {error}.")))?;
        // Those that cannot be read lead nowhere.
        let presented: Vec<_> = presented.iter().filter_map(|der| Certificate::parse(der).ok()).collect();
        ChainSearch::new(roots, &presented, self.algorithms, now).verify(&server).map_err(
            |Failure { subject, reason }| {
                let subject = untrusted::text(subject.to_string().as_bytes(), 0);
                unverified(format!("Certificate \"{subject}\": {reason}."))
            },
        )
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        presented: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            self.verify(roots, server, presented, now).map_err(carried)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    /// As rustls's own, for certificates of all versions.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let certificate = Certificate::parse(server).map_err(|_| CertificateError::BadEncoding)?;
        let mut schemes = self.algorithms.mapping.iter();
        let Some((_, algorithms)) = schemes.find(|(scheme, _)| *scheme == signed.scheme) else {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        };
        let mut algorithms = algorithms.iter();
        let is_of_key = |algorithm: &&&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            algorithm.public_key_alg_id().as_ref() == certificate.key_algorithm
        };
        let algorithm = algorithms.find(is_of_key).ok_or(CertificateError::BadSignature)?;
        algorithm
            .verify_signature(&certificate.key, message, signed.signature())
            .map_err(|_| CertificateError::BadSignature)?;
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        server: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = Certificate::parse(server).and_then(|certificate| certificate.public_key());
        let key = key.map_err(|_| CertificateError::BadEncoding)?;
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

fn unverified(detail: String) -> UserError {
    failed("SSL error: certificate verify failed").detail(detail).hint(
        "Set option sslrootcert of the server to a file with the certificate of the authority that signed the server's.",
    )
}

/// An error of this project's on its way through rustls.
fn carried(error: UserError) -> Error {
    CertificateError::Other(OtherError(Arc::new(error))).into()
}

/// An error of rustls's, or the one that it carries.
pub fn of_rustls(error: &Error) -> UserError {
    if let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = error
        && let Some(own) = other.downcast_ref::<UserError>()
    {
        return own.clone();
    }
    let failed = failed(format!("SSL error: {error}"));
    match error {
        Error::InvalidMessage(_) | Error::InappropriateMessage { .. } => {
            failed.hint("Check host and port: this may be no PostgreSQL server.")
        }
        Error::AlertReceived(_) => failed.hint(
            "The server's log has the reason. Where it asks for a client certificate, set options sslcert and sslkey of the user mapping.",
        ),
        _ => failed,
    }
}
