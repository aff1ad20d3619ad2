//! Whether a certificate is that of a host, as libpq decides it since PostgreSQL 15
//! (pgtls_verify_peer_name_matches_certificate_guts).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use der::oid::ObjectIdentifier;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::certificate::Certificate;
use super::failed;
use crate::error::UserError;
use crate::untrusted;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Checks that a certificate is that of a host: by its subjectAltNames, and by its common name where none of them is of the
/// host's kind, a name or an address.
///
/// # Errors
/// 08001.
pub fn check(certificate: &Certificate, host: &str) -> Result<(), UserError> {
    if host.is_empty() {
        return Err(failed("host name must be specified for a verified SSL connection")
            .hint("Set option host of the server to a name that the certificate has."));
    }
    let unreadable = |error: der::Error| {
        failed("could not read the names of the server certificate").detail(format!("{error}."))
    };
    let address: Option<IpAddr> = host.parse().ok();
    let mut names = Vec::new();
    let mut is_common_name_used = true;
    let alternatives = certificate.extension::<SubjectAltName>().map_err(unreadable)?;
    for name in alternatives.iter().flat_map(|alternatives| &alternatives.0) {
        let is_match = match name {
            GeneralName::DnsName(name) => {
                is_common_name_used &= address.is_some();
                names.push(name.as_str().to_owned());
                is_name_of(name.as_str(), host)?
            }
            GeneralName::IpAddress(bytes) => {
                is_common_name_used &= address.is_none();
                let own = to_address(bytes.as_bytes())?;
                names.push(own.to_string());
                address == Some(own)
            }
            _ => false,
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

/// The first common name of the subject.
fn common_name(certificate: &Certificate) -> Result<Option<String>, UserError> {
    let mut attributes = certificate.fields().subject().iter();
    let Some(attribute) = attributes.find(|attribute| attribute.oid == COMMON_NAME) else { return Ok(None) };
    let name = String::from_utf8(attribute.value.value().to_owned());
    name.map(Some).map_err(|_| failed("could not read the common name of the server certificate"))
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
