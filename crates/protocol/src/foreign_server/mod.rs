//! What a foreign server and a user mapping say of a connection, as libpq reads connection strings and postgres_fdw its
//! options: nothing else is used, and above all nothing of the server's operating-system user.
//!
//! [`check_options`] is the validator of both. [`Target::new`] makes of them a [`Target`], which may be shown and stored, and
//! [`Secrets`], which may not. [`Target::attempts`] is the order in which hosts are tried, [`SessionAttributes`] decides
//! which session is good enough, and [`check_password_given`] and [`check_password_used`] keep roles that are no superusers
//! from what the server's operating-system user may do.

mod attributes;
mod conninfo;
mod hosts;
mod options;
mod password;
mod words;

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

pub use attributes::{SessionAttributes, Suitability};
pub use conninfo::parse_conninfo;
pub use hosts::{DEFAULT_PORT, Host};
pub use options::{OptionOf, check_option, check_options};
pub use password::{Secrets, check_password_given, check_password_used, not_asked};
pub use words::{ChannelBinding, LoadBalance, SslMode, SslNegotiation, TlsVersion, Word};

use options::{CatalogOptions, boolean, integer, max_version, min_version};
use words::Switch;

/// The word for the operating system's root certificates, in place of a file.
pub const SYSTEM_ROOTS: &str = "system";

/// Where connections go and how they are made, without any secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// At least one.
    pub hosts: Vec<Host>,
    /// The database; the user's name where the server names none.
    pub dbname: String,
    /// The role there; the calling role's name where the mapping names none.
    pub user: String,
    /// Seconds for each attempt to connect, at least 2 as for libpq; `None`: no limit.
    pub connect_timeout: Option<u32>,
    /// The options of TLS.
    pub tls: TlsOptions,
    /// Whether SCRAM binds itself to the TLS connection.
    pub channel_binding: ChannelBinding,
    /// Which sessions are good enough.
    pub target_session_attrs: SessionAttributes,
    /// Which host is tried first.
    pub load_balance_hosts: LoadBalance,
    /// The options of TCP connections.
    pub tcp: TcpOptions,
    /// For the server's pg_stat_activity.
    pub application_name: Option<String>,
    /// Command-line options of the session.
    pub options: Option<String>,
    /// `false`: no password is needed, whoever asks.
    pub password_required: bool,
}

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

/// Options of TCP sockets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpOptions {
    /// Whether an idle connection is probed.
    pub keepalives: bool,
    /// Seconds until the first probe; `None`: the system's default.
    pub keepalives_idle: Option<u32>,
    /// Seconds between probes; `None`: the system's default.
    pub keepalives_interval: Option<u32>,
    /// Probes that may be lost; `None`: the system's default.
    pub keepalives_count: Option<u32>,
    /// Milliseconds for which sent data may stay unacknowledged; `None`: the system's default.
    pub tcp_user_timeout: Option<u32>,
}

impl Target {
    /// A target and its secrets, from the options of a server and of the mapping of `role`.
    ///
    /// # Errors
    /// As [`check_options`], of which a superuser's privileges are taken for granted: they were checked when the options
    /// were set.
    pub fn new(
        server: &[(String, String)],
        mapping: &[(String, String)],
        role: &str,
    ) -> Result<(Self, Secrets), UserError> {
        check_options(OptionOf::Server, server, true)?;
        check_options(OptionOf::UserMapping, mapping, true)?;
        let (server, mapping) = (CatalogOptions(server), CatalogOptions(mapping));
        let user = mapping.text("user").unwrap_or(role);
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let password_required = mapping.text("password_required");
        let target = Self {
            hosts: Host::list(server)?,
            dbname: server.text("dbname").unwrap_or(user).to_owned(),
            user: user.to_owned(),
            connect_timeout: server.positive("connect_timeout")?.map(|seconds| seconds.max(2)),
            tls: TlsOptions::new(server, mapping)?,
            channel_binding: server.word("channel_binding")?,
            target_session_attrs: server.word("target_session_attrs")?,
            load_balance_hosts: server.word("load_balance_hosts")?,
            tcp: TcpOptions::new(server)?,
            application_name: owned(
                server.text("application_name").or(server.text("fallback_application_name")),
            ),
            options: owned(server.text("options")),
            password_required: password_required
                .map_or(Ok(true), |value| boolean("password_required", value))?,
        };
        Ok((target, Secrets { password: owned(mapping.text("password")) }))
    }
}

impl TlsOptions {
    /// Whether a file is named, which the server's operating-system user is to read.
    pub fn names_files(&self) -> bool {
        let root = self.sslrootcert.as_deref().filter(|path| *path != SYSTEM_ROOTS);
        root.is_some() || self.sslcert.is_some() || self.sslkey.is_some()
    }

    fn new(server: CatalogOptions<'_>, mapping: CatalogOptions<'_>) -> Result<Self, UserError> {
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

impl TcpOptions {
    fn new(server: CatalogOptions<'_>) -> Result<Self, UserError> {
        let keepalives = server.text("keepalives").map(|value| integer("keepalives", value)).transpose()?;
        Ok(Self {
            keepalives: keepalives != Some(0),
            keepalives_idle: server.positive("keepalives_idle")?,
            keepalives_interval: server.positive("keepalives_interval")?,
            keepalives_count: server.positive("keepalives_count")?,
            tcp_user_timeout: server.positive("tcp_user_timeout")?,
        })
    }
}

/// Whether the options of a server fit together.
fn check_server(server: CatalogOptions<'_>) -> Result<(), UserError> {
    Host::list(server)?;
    TlsOptions::new(server, CatalogOptions(&[])).map(drop)
}

/// Whether the options of a mapping fit together.
fn check_mapping(mapping: CatalogOptions<'_>) -> Result<(), UserError> {
    match (mapping.text("sslcert"), mapping.text("sslkey")) {
        (Some(_), None) => Err(UserError::invalid("sslcert requires sslkey")
            .hint("Set option sslkey to the file of the certificate's private key.")),
        (None, Some(_)) => Err(UserError::invalid("sslkey requires sslcert")
            .hint("Set option sslcert to the file of the key's certificate.")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
