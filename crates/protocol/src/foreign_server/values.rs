//! What the values of options mean.

use bench_base::error::UserError;

use super::words::{TlsVersion, Word};

/// Options as a catalog has them.
#[derive(Clone, Copy)]
pub struct CatalogOptions<'a>(pub &'a [(String, String)]);

impl<'a> CatalogOptions<'a> {
    /// The value of an option. An empty one is none, as for libpq.
    pub fn text(self, name: &str) -> Option<&'a str> {
        let (_, value) = self.0.iter().find(|(option, _)| option == name)?;
        (!value.is_empty()).then_some(value)
    }

    /// The value of an option of a few words, and the default where it is not given.
    pub fn word<T: Word + Default>(self, name: &str) -> Result<T, UserError> {
        self.text(name).map_or_else(|| Ok(T::default()), |value| T::parse(name, value))
    }

    /// The value of an option whose values are numbers above zero; zero and negative ones are none, as for libpq.
    pub fn positive(self, name: &str) -> Result<Option<u32>, UserError> {
        let value = self.text(name).map(|value| integer(name, value)).transpose()?;
        Ok(value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0))
    }
}

/// A number as libpq's pqParseIntParam takes it.
pub fn integer(name: &str, value: &str) -> Result<i32, UserError> {
    value.trim().parse().map_err(|_| {
        UserError::invalid(format!("invalid integer value \"{value}\" for connection option \"{name}\""))
    })
}

/// A truth value as defGetBoolean takes it.
pub fn boolean(name: &str, value: &str) -> Result<bool, UserError> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(UserError::invalid(format!("{name} requires a Boolean value"))),
    }
}

/// The oldest version of TLS that is good enough; there is none below 1.2 here.
pub fn min_version(name: &str, value: &str) -> Result<Option<TlsVersion>, UserError> {
    match known_version(name, value)? {
        Some(("TLSv1" | "TLSv1.1", _)) => Ok(Some(TlsVersion::V1_2)),
        version => Ok(version.and_then(|(_, version)| version)),
    }
}

/// The newest version of TLS that is good enough.
pub fn max_version(name: &str, value: &str) -> Result<Option<TlsVersion>, UserError> {
    match known_version(name, value)? {
        None => Ok(None),
        Some((_, Some(version))) => Ok(Some(version)),
        Some((word, None)) => Err(UserError::invalid(format!("{name} value \"{word}\" is not supported"))
            .detail("TLS before version 1.2 is not supported.")
            .hint("Use \"TLSv1.2\" or \"TLSv1.3\".")),
    }
}

/// A version by libpq's words, in any case; an empty one is none.
fn known_version(name: &str, value: &str) -> Result<Option<(&'static str, Option<TlsVersion>)>, UserError> {
    const KNOWN: [(&str, Option<TlsVersion>); 4] = [
        ("TLSv1", None),
        ("TLSv1.1", None),
        ("TLSv1.2", Some(TlsVersion::V1_2)),
        ("TLSv1.3", Some(TlsVersion::V1_3)),
    ];
    if value.is_empty() {
        return Ok(None);
    }
    match KNOWN.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(value)) {
        Some(known) => Ok(Some(known)),
        None => Err(UserError::invalid(format!("invalid {name} value: \"{value}\""))
            .hint("Valid values are: \"TLSv1\", \"TLSv1.1\", \"TLSv1.2\", \"TLSv1.3\".")),
    }
}
