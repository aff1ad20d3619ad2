//! What is asked of a server's certificate beside its chain: whether it is that of a host, as libpq decides it since
//! PostgreSQL 15 (pgtls_verify_peer_name_matches_certificate_guts), and the hash that SCRAM binds itself to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bench_base::error::{UserError, sqlstate};
use bench_base::untrusted;
use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Decode, Sequence};
use openssl::asn1::Asn1Object;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::x509::{GeneralNameRef, X509Ref};

/// Checks that a certificate is that of a host: by its subjectAltNames, and by its common name where none of them is of the
/// host's kind, a name or an address.
///
/// # Errors
/// 08001.
pub fn check_name(certificate: &X509Ref, host: &str) -> Result<(), UserError> {
    if host.is_empty() {
        return Err(failed("host name must be specified for a verified SSL connection")
            .hint("Set option host of the server to a name that the certificate has."));
    }
    let address: Option<IpAddr> = host.parse().ok();
    let mut names = Vec::new();
    let mut is_common_name_used = true;
    let alternatives = certificate.subject_alt_names();
    for name in alternatives.iter().flatten() {
        let is_match = if let Some(bytes) = name.ipaddress() {
            is_common_name_used &= address.is_none();
            let own = to_address(bytes)?;
            names.push(own.to_string());
            address == Some(own)
        } else if let Some(name) = name.dnsname() {
            is_common_name_used &= address.is_some();
            names.push(name.to_owned());
            is_name_of(name, host)?
        } else {
            // A name of DNS that is no text is one for all that.
            is_common_name_used &= is_of_other_kind(name);
            false
        };
        if is_match {
            return Ok(());
        }
    }
    if is_common_name_used && let Some(name) = common_name(certificate)? {
        if is_name_of(&name, host)? {
            return Ok(());
        }
        names.push(name);
    }
    Err(mismatch(&names, host))
}

fn is_of_other_kind(name: &GeneralNameRef) -> bool {
    name.email().is_some() || name.uri().is_some() || name.directory_name().is_some()
}

/// The first common name of the subject.
fn common_name(certificate: &X509Ref) -> Result<Option<String>, UserError> {
    let Some(entry) = certificate.subject_name().entries_by_nid(Nid::COMMONNAME).next() else {
        return Ok(None);
    };
    let name = String::from_utf8(entry.data().as_slice().to_owned());
    name.map(Some).map_err(|_| failed("could not read the common name of the server certificate"))
}

/// The subject of a certificate, as `CN=db.example, O=Example`.
pub fn subject(certificate: &X509Ref) -> String {
    let entries = certificate.subject_name().entries().map(|entry| {
        let name = entry.object().nid().short_name().unwrap_or("?");
        format!("{name}={}", String::from_utf8_lossy(entry.data().as_slice()))
    });
    entries.collect::<Vec<_>>().join(", ")
}

/// The hash `tls-server-end-point` of RFC 5929, section 4.1: by the hash of the signature algorithm, and by SHA-256
/// instead of MD5 and SHA-1. `None` for algorithms that have none of their own, as Ed25519, and for unknown ones.
pub fn end_point(certificate: &X509Ref) -> Option<Vec<u8>> {
    let algorithm = certificate.signature_algorithm().object().nid();
    let hash = match algorithm {
        Nid::RSASSAPSS => pss_hash(&certificate.to_der().ok()?)?,
        algorithm => algorithm.signature_algorithms()?.digest,
    };
    let hash = if [Nid::MD5, Nid::SHA1].contains(&hash) { Nid::SHA256 } else { hash };
    Some(certificate.digest(MessageDigest::from_nid(hash)?).ok()?.to_vec())
}

/// A certificate, as far as its signature's algorithm.
#[derive(Sequence)]
struct Signed<'a> {
    contents: AnyRef<'a>,
    algorithm: Algorithm<'a>,
    signature: AnyRef<'a>,
}

/// An algorithm, with whatever it takes.
#[derive(Sequence)]
struct Algorithm<'a> {
    oid: ObjectIdentifier,
    #[asn1(optional = "true")]
    parameters: Option<AnyRef<'a>>,
}

/// RSASSA-PSS-params of RFC 4055.
#[derive(Sequence)]
struct PssParameters<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    hash: Option<Algorithm<'a>>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    mask: Option<AnyRef<'a>>,
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT", optional = "true")]
    salt: Option<AnyRef<'a>>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT", optional = "true")]
    trailer: Option<AnyRef<'a>>,
}

/// The hash of a certificate that is signed by RSASSA-PSS, of which SHA-1 is the default. The crate has nothing for it
/// (X509_get_signature_info).
fn pss_hash(der: &[u8]) -> Option<Nid> {
    let algorithm = Signed::from_der(der).ok()?.algorithm;
    match algorithm.parameters?.decode_as::<PssParameters<'_>>().ok()?.hash {
        None => Some(Nid::SHA1),
        Some(hash) => Some(Asn1Object::from_str(&hash.oid.to_string()).ok()?.nid()),
    }
}

/// Whether a name of a certificate, which may begin with a wildcard for one label, is that of a host.
fn is_name_of(name: &str, host: &str) -> Result<bool, UserError> {
    if name.contains('\0') {
        return Err(failed("SSL certificate's name contains embedded null"));
    }
    if name.eq_ignore_ascii_case(host) {
        return Ok(true);
    }
    // "*.db.example" is "a.db.example" and neither "db.example" nor "a.b.db.example".
    let Some(domain) = name.strip_prefix('*').filter(|domain| domain.len() >= 2 && domain.starts_with('.'))
    else {
        return Ok(false);
    };
    let Some(label) = host.len().checked_sub(domain.len()).filter(|_| host.len() > domain.len()) else {
        return Ok(false);
    };
    Ok(host.is_char_boundary(label)
        && host[label..].eq_ignore_ascii_case(domain)
        && !host[..label].contains('.'))
}

fn to_address(bytes: &[u8]) -> Result<IpAddr, UserError> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ok(Ipv4Addr::from(four).into());
    }
    let sixteen = <[u8; 16]>::try_from(bytes).map_err(|_| {
        failed(format!("certificate contains IP address with invalid length {}", bytes.len()))
    })?;
    Ok(Ipv6Addr::from(sixteen).into())
}

fn mismatch(names: &[String], host: &str) -> UserError {
    let hint =
        "Set option host of the server to a name that the certificate has, and hostaddr to the address.";
    let others = |count: usize| match count {
        0 => String::new(),
        1 => " (and 1 other name)".to_owned(),
        more => format!(" (and {more} other names)"),
    };
    match names {
        [] => failed("could not get server's host name from server certificate").hint(hint),
        [first, rest @ ..] => failed(format!(
            "server certificate for \"{}\"{} does not match host name \"{host}\"",
            untrusted::text(first.as_bytes(), 0),
            others(rest.len())
        ))
        .hint(hint),
    }
}

/// The reason that OpenSSL gives, as libpq shows it (SSLerrmessage in fe-secure-openssl.c).
pub fn reason(error: &ErrorStack) -> &str {
    error.errors().first().and_then(|error| error.reason()).unwrap_or("no SSL error reported")
}

/// The error for a connection that does not come about.
pub fn failed(message: impl Into<String>) -> UserError {
    UserError::new(sqlstate::UNABLE_TO_CONNECT, message)
}
