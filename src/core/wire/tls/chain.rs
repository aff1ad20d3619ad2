//! From a server's certificate to a trusted one, as OpenSSL goes with the settings of libpq: the last one is a root
//! certificate, every one is within its time, each but the first may sign, and the first may be a server's.

use std::time::Duration;

use der::oid::ObjectIdentifier;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::UnixTime;
use x509_cert::certificate::Version;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, KeyUsage};

use super::certificate::Certificate;

/// The longest chain, in certificates.
const LONGEST: usize = 10;

/// As many signatures are checked at most for one chain: a server could otherwise offer a great many ways to nowhere.
const MOST_SIGNATURES: usize = 100;

/// Extensions that are understood: subjectAltName, basicConstraints, keyUsage, extKeyUsage, and certificatePolicies, which
/// bind nobody who asks for none.
const KNOWN: [&str; 5] = ["2.5.29.17", "2.5.29.19", "2.5.29.15", "2.5.29.37", "2.5.29.32"];
const NAME_CONSTRAINTS: &str = "2.5.29.30";
/// id-kp-serverAuth, and the two for "server gated cryptography".
const SERVER: [&str; 3] = ["1.3.6.1.5.5.7.3.1", "1.3.6.1.4.1.311.10.3.3", "2.16.840.1.113730.4.1"];

/// Why a chain leads nowhere: which certificate, by its subject, and why, in OpenSSL's words.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    pub subject: String,
    pub reason: &'static str,
}

/// A search for a chain.
pub struct ChainSearch<'a> {
    pub roots: &'a [Certificate],
    /// What the server has sent beside its own.
    pub presented: &'a [Certificate],
    pub algorithms: WebPkiSupportedAlgorithms,
    pub now: UnixTime,
    signatures: usize,
}

impl<'a> ChainSearch<'a> {
    pub fn new(
        roots: &'a [Certificate],
        presented: &'a [Certificate],
        algorithms: WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Self {
        Self { roots, presented, algorithms, now, signatures: 0 }
    }

    /// Whether a chain leads from a server's certificate to a root.
    pub fn verify(&mut self, server: &'a Certificate) -> Result<(), Failure> {
        self.check(server, is_for_servers)?;
        self.climb(server, &mut Vec::new())
    }

    /// Climbs from a certificate that is good by itself; `below` are those before it, without the server's.
    fn climb(&mut self, from: &'a Certificate, below: &mut Vec<&'a Certificate>) -> Result<(), Failure> {
        let is_root = self.roots.iter().any(|root| root.der == from.der);
        if is_root && from.is_self_issued() {
            return Ok(());
        }
        // It may have the name of its issuer and be another's, as when an authority changes its key.
        if from.is_self_issued() && self.check_signature(from, from).is_ok() {
            return Err(failure(
                from,
                match below.len() {
                    0 => "self-signed certificate",
                    _ => "self-signed certificate in certificate chain",
                },
            ));
        }
        let mut failure = failure(from, "unable to get local issuer certificate");
        if below.len() + 2 > LONGEST {
            return Err(self::failure(from, "certificate chain too long"));
        }
        for issuer in self.roots.iter().chain(self.presented) {
            let is_other = issuer.der != from.der && below.iter().all(|other| other.der != issuer.der);
            if !is_other || issuer.fields().subject() != from.fields().issuer() {
                continue;
            }
            let inner = below.iter().filter(|certificate| !certificate.is_self_issued()).count();
            let found = self
                .check(issuer, |certificate| may_sign(certificate, inner))
                .and_then(|()| self.check_signature(from, issuer))
                .and_then(|()| {
                    below.push(issuer);
                    let found = self.climb(issuer, below);
                    below.pop();
                    found
                });
            match found {
                Ok(()) => return Ok(()),
                Err(reason) => failure = reason,
            }
        }
        Err(failure)
    }

    /// Whether a certificate is good by itself, and for `purpose`.
    fn check(
        &self,
        certificate: &Certificate,
        purpose: impl FnOnce(&Certificate) -> Result<(), &'static str>,
    ) -> Result<(), Failure> {
        let check = || {
            let validity = certificate.fields().validity();
            let now = Duration::from_secs(self.now.as_secs());
            if now < validity.not_before.to_unix_duration() {
                return Err("certificate is not yet valid");
            }
            if now > validity.not_after.to_unix_duration() {
                return Err("certificate has expired");
            }
            for extension in certificate.extensions() {
                let oid = extension.extn_id.to_string();
                if oid == NAME_CONSTRAINTS {
                    return Err("name constraints are not supported");
                }
                if extension.critical && !KNOWN.contains(&oid.as_str()) {
                    return Err("unhandled critical extension");
                }
            }
            purpose(certificate)
        };
        check().map_err(|reason| failure(certificate, reason))
    }

    fn check_signature(&mut self, certificate: &Certificate, issuer: &Certificate) -> Result<(), Failure> {
        self.signatures += 1;
        if self.signatures > MOST_SIGNATURES {
            return Err(failure(certificate, "certificate chain too long"));
        }
        let mut algorithms = self.algorithms.all.iter().filter(|algorithm| {
            algorithm.signature_alg_id().as_ref() == certificate.signature_algorithm
                && algorithm.public_key_alg_id().as_ref() == issuer.key_algorithm
        });
        let Some(algorithm) = algorithms.next() else {
            return Err(failure(certificate, "signature algorithm is not supported"));
        };
        algorithm
            .verify_signature(&issuer.key, &certificate.contents, &certificate.signature)
            .map_err(|_| failure(certificate, "certificate signature failure"))
    }
}

fn failure(certificate: &Certificate, reason: &'static str) -> Failure {
    Failure { subject: certificate.fields().subject().to_string(), reason }
}

const UNREADABLE: &str = "invalid or inconsistent certificate extension";
const PURPOSE: &str = "unsuitable certificate purpose";

/// Whether a certificate may be a server's (check_purpose_ssl_server of OpenSSL).
fn is_for_servers(certificate: &Certificate) -> Result<(), &'static str> {
    check_extended_use(certificate)?;
    match certificate.extension::<KeyUsage>().map_err(|_| UNREADABLE)? {
        Some(usage) if !(usage.digital_signature() || usage.key_encipherment() || usage.key_agreement()) => {
            Err(PURPOSE)
        }
        _ => Ok(()),
    }
}

/// Whether a certificate may sign others, with so many between it and the server's (check_ca and check_chain of OpenSSL):
/// one of version 1 only as a root, which nothing but its place among the roots makes one.
fn may_sign(certificate: &Certificate, inner: usize) -> Result<(), &'static str> {
    const NO_CA: &str = "invalid CA certificate";
    check_extended_use(certificate)?;
    let usage = certificate.extension::<KeyUsage>().map_err(|_| UNREADABLE)?;
    if usage.is_some_and(|usage| !usage.key_cert_sign()) {
        return Err(NO_CA);
    }
    match certificate.extension::<BasicConstraints>().map_err(|_| UNREADABLE)? {
        Some(constraints) if !constraints.ca => Err(NO_CA),
        Some(BasicConstraints { path_len_constraint: Some(longest), .. }) if inner > usize::from(longest) => {
            Err("path length constraint exceeded")
        }
        Some(_) => Ok(()),
        // It says that it signs certificates.
        None if usage.is_some() => Ok(()),
        None if certificate.fields().version() == Version::V1 && certificate.is_self_issued() => Ok(()),
        None => Err(NO_CA),
    }
}

fn check_extended_use(certificate: &Certificate) -> Result<(), &'static str> {
    let is_server = |oid: &ObjectIdentifier| SERVER.contains(&oid.to_string().as_str());
    match certificate.extension::<ExtendedKeyUsage>().map_err(|_| UNREADABLE)? {
        Some(usage) if !usage.0.iter().any(is_server) => Err(PURPOSE),
        _ => Ok(()),
    }
}
