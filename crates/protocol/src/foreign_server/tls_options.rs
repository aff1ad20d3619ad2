//! The options of TLS.

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

use super::values::{CatalogOptions, max_version, min_version};
use super::words::{SslMode, SslNegotiation, Switch, TlsVersion, Word};

/// The word for the operating system's root certificates, in place of a file.
pub const SYSTEM_ROOTS: &str = "system";

/// How a connection is encrypted and the server recognized. Files are named here, and read by whoever connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// How much of TLS there is.
    pub sslmode: SslMode,
    /// How TLS begins.
    pub sslnegotiation: SslNegotiation,
    /// The file of root certificates; "system": those of the operating system.
    pub sslrootcert: Option<String>,
    /// The file of the client's certificate.
    pub sslcert: Option<String>,
    /// The file of the client's key.
    pub sslkey: Option<String>,
    /// The host's name is told to the server.
    pub sslsni: bool,
    /// The oldest version of TLS; `None`: 1.2, the oldest there is.
    pub ssl_min_protocol_version: Option<TlsVersion>,
    /// The newest version of TLS; `None`: the newest there is.
    pub ssl_max_protocol_version: Option<TlsVersion>,
}

impl TlsOptions {
    /// Whether a file is named, which the server's operating-system user is to read.
    pub fn names_files(&self) -> bool {
        let root = self.sslrootcert.as_deref().filter(|path| *path != SYSTEM_ROOTS);
        root.is_some() || self.sslcert.is_some() || self.sslkey.is_some()
    }

    /// Returns the options of a server and a mapping.
    ///
    /// # Errors
    /// 22023 for values that are not good, and for options that do not fit together.
    pub(super) fn new(server: CatalogOptions<'_>, mapping: CatalogOptions<'_>) -> Result<Self, UserError> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let version = |name| server.text(name).unwrap_or("");
        let options = Self {
            sslmode: match server.text("sslmode") {
                Some(mode) => SslMode::parse("sslmode", mode)?,
                None if server.text("sslrootcert") == Some(SYSTEM_ROOTS) => SslMode::VerifyFull,
                None => SslMode::default(),
            },
            sslnegotiation: server.word("sslnegotiation")?,
            sslrootcert: owned(server.text("sslrootcert")),
            sslcert: owned(mapping.text("sslcert")),
            sslkey: owned(mapping.text("sslkey")),
            sslsni: server.text("sslsni").map_or(Ok(Switch(true)), |value| Switch::parse("sslsni", value))?.0,
            ssl_min_protocol_version: min_version(
                "ssl_min_protocol_version",
                version("ssl_min_protocol_version"),
            )?,
            ssl_max_protocol_version: max_version(
                "ssl_max_protocol_version",
                version("ssl_max_protocol_version"),
            )?,
        };
        options.check()?;
        Ok(options)
    }

    /// Whether the options fit together, as libpq's pqConnectOptions2 has it.
    fn check(&self) -> Result<(), UserError> {
        let (min, max) = (self.ssl_min_protocol_version, self.ssl_max_protocol_version);
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            return Err(UserError::invalid("invalid SSL protocol version range")
                .hint("Set ssl_min_protocol_version no higher than ssl_max_protocol_version."));
        }
        let weak = |with: &str, use_: &str| {
            let word =
                SslMode::WORDS.iter().find(|(_, mode)| *mode == self.sslmode).map_or("", |found| found.0);
            UserError::invalid(format!("weak sslmode \"{word}\" may not be used with {with} (use {use_})"))
        };
        if self.sslrootcert.as_deref() == Some(SYSTEM_ROOTS) && self.sslmode != SslMode::VerifyFull {
            return Err(weak("sslrootcert=system", "\"verify-full\""));
        }
        if self.sslnegotiation == SslNegotiation::Direct && self.sslmode < SslMode::Require {
            return Err(weak("sslnegotiation=direct", "\"require\", \"verify-ca\", or \"verify-full\""));
        }
        Ok(())
    }
}
