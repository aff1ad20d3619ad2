//! The options of a foreign server and a user mapping: the keywords of libpq, where each belongs, and what it takes.

use std::net::IpAddr;

use bench_base::error::{UserError, sqlstate};
use bench_base::words;
use bench_base::words::Word;
use serde::{Deserialize, Serialize};

use crate::foreign_server::words::{
    CatalogOptions, ChannelBinding, LoadBalance, SessionAttributes, SslMode, SslNegotiation, Switch,
    TlsVersion, boolean, integer, max_version, min_version, parse_word,
};

/// What an option is given to, by the catalogs that a validator is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionOf {
    /// CREATE FOREIGN DATA WRAPPER: takes no options.
    Wrapper,
    /// CREATE SERVER.
    Server,
    /// CREATE USER MAPPING.
    UserMapping,
    /// CREATE FOREIGN TABLE, and its columns: takes no options.
    ForeignTable,
}

/// Where a keyword of libpq belongs.
#[derive(Clone, Copy, PartialEq)]
pub enum Place {
    Server,
    UserMapping,
    /// Nowhere, with the reason as a sentence.
    Refused(&'static str),
}

/// Checks a value, of the option of this name.
pub type Check = fn(&str, &str) -> Result<(), UserError>;

const SYSTEM_USER: &str = "Nothing of the server's operating-system user is used.";
const GSSAPI: &str = "GSSAPI is not supported.";
const REVOCATION: &str = "Certificate revocation lists are not supported.";
const PROTOCOL: &str = "Connections use protocol version 3.0.";
const OAUTH: &str = "OAuth is not supported.";
const SCRAM_KEYS: &str = "SCRAM keys are derived from the password.";
const OBSOLETE: &str = "libpq itself ignores it.";

/// The keywords of libpq (PQconninfoOptions in fe-connect.c, up to PostgreSQL 18), and `password_required`.
pub const KEYWORDS: [(&str, Place, Check); 56] = [
    ("host", Place::Server, anything),
    ("hostaddr", Place::Server, check_addresses),
    ("port", Place::Server, |name, value| ports(name, value).map(drop)),
    ("dbname", Place::Server, anything),
    ("connect_timeout", Place::Server, |name, value| integer(name, value).map(drop)),
    ("sslmode", Place::Server, word::<SslMode>),
    ("sslrootcert", Place::Server, anything),
    ("sslnegotiation", Place::Server, word::<SslNegotiation>),
    ("sslsni", Place::Server, word::<Switch>),
    ("ssl_min_protocol_version", Place::Server, |name, value| min_version(name, value).map(drop)),
    ("ssl_max_protocol_version", Place::Server, |name, value| max_version(name, value).map(drop)),
    ("channel_binding", Place::Server, word::<ChannelBinding>),
    ("target_session_attrs", Place::Server, word::<SessionAttributes>),
    ("load_balance_hosts", Place::Server, word::<LoadBalance>),
    ("keepalives", Place::Server, |name, value| integer(name, value).map(drop)),
    ("keepalives_idle", Place::Server, |name, value| integer(name, value).map(drop)),
    ("keepalives_interval", Place::Server, |name, value| integer(name, value).map(drop)),
    ("keepalives_count", Place::Server, |name, value| integer(name, value).map(drop)),
    ("tcp_user_timeout", Place::Server, |name, value| integer(name, value).map(drop)),
    ("application_name", Place::Server, anything),
    ("fallback_application_name", Place::Server, anything),
    ("options", Place::Server, anything),
    ("gssencmode", Place::Server, without_gss_encryption),
    ("user", Place::UserMapping, anything),
    ("password", Place::UserMapping, anything),
    ("password_required", Place::UserMapping, |name, value| boolean(name, value).map(drop)),
    ("sslcert", Place::UserMapping, anything),
    ("sslkey", Place::UserMapping, anything),
    ("service", Place::Refused(SYSTEM_USER), anything),
    ("servicefile", Place::Refused(SYSTEM_USER), anything),
    ("passfile", Place::Refused(SYSTEM_USER), anything),
    ("gssdelegation", Place::Refused(GSSAPI), anything),
    ("gsslib", Place::Refused(GSSAPI), anything),
    ("krbsrvname", Place::Refused(GSSAPI), anything),
    ("sslcrl", Place::Refused(REVOCATION), anything),
    ("sslcrldir", Place::Refused(REVOCATION), anything),
    ("sslpassword", Place::Refused("Encrypted client keys are not supported."), anything),
    ("sslcertmode", Place::Refused("A certificate in sslcert is sent if the server asks for one."), anything),
    ("sslcompression", Place::Refused("TLS connections are never compressed."), anything),
    ("sslkeylogfile", Place::Refused("Keys of TLS connections are never written to a file."), anything),
    ("requirepeer", Place::Refused("The owner of a server's socket is not checked."), anything),
    ("require_auth", Place::Refused("Any method that the server asks for is used."), anything),
    ("client_encoding", Place::Refused("Scripts are sent in the encoding of this database."), anything),
    ("replication", Place::Refused("Connections execute SQL statements."), anything),
    ("min_protocol_version", Place::Refused(PROTOCOL), anything),
    ("max_protocol_version", Place::Refused(PROTOCOL), anything),
    ("scram_client_key", Place::Refused(SCRAM_KEYS), anything),
    ("scram_server_key", Place::Refused(SCRAM_KEYS), anything),
    ("oauth_issuer", Place::Refused(OAUTH), anything),
    ("oauth_client_id", Place::Refused(OAUTH), anything),
    ("oauth_client_secret", Place::Refused(OAUTH), anything),
    ("oauth_scope", Place::Refused(OAUTH), anything),
    ("oauth_ca_file", Place::Refused(OAUTH), anything),
    ("authtype", Place::Refused(OBSOLETE), anything),
    ("tty", Place::Refused(OBSOLETE), anything),
    ("requiressl", Place::Refused("Option \"sslmode\" has replaced it."), anything),
];

/// Checks one option, as postgres_fdw's validator does and libpq when it connects. A message never has the value of an
/// option that may be a secret.
///
/// # Errors
/// HV00D for an option that does not exist or is not supported or belongs elsewhere, 22023 for a value that is not good,
/// 42501 for what only a superuser may set.
pub fn check_option(of: OptionOf, name: &str, value: &str, is_superuser: bool) -> Result<(), UserError> {
    let own = match of {
        OptionOf::Server => Place::Server,
        OptionOf::UserMapping => Place::UserMapping,
        OptionOf::Wrapper | OptionOf::ForeignTable => {
            return Err(no_such(name).hint("There are no valid options in this context."));
        }
    };
    let Some((_, place, check)) = KEYWORDS.iter().find(|(keyword, ..)| *keyword == name) else {
        let valid = || KEYWORDS.iter().filter(|(_, place, _)| *place == own).map(|(keyword, ..)| *keyword);
        let list = format!("Valid options in this context are: {}.", valid().collect::<Vec<_>>().join(", "));
        return Err(no_such(name).hint(words::hint(name, valid(), list)));
    };
    match place {
        Place::Refused(reason) => {
            let message = format!("option \"{name}\" is not supported");
            return Err(UserError::new(sqlstate::FDW_INVALID_OPTION_NAME, message).detail(*reason));
        }
        Place::Server if own != *place => {
            return Err(no_such(name).hint(format!("Option \"{name}\" belongs to the server.")));
        }
        Place::UserMapping if own != *place => {
            return Err(no_such(name).hint(format!("Option \"{name}\" belongs to a user mapping.")));
        }
        Place::Server | Place::UserMapping => check(name, value)?,
    }
    if is_superuser { Ok(()) } else { check_privilege(name, value) }
}

/// Checks all options of a server or a mapping, each as [`check_option`] does, and that they fit together.
///
/// # Errors
/// As [`check_option`]; 22023 for options that contradict each other.
pub fn check_options(
    of: OptionOf,
    options: &[(String, String)],
    is_superuser: bool,
) -> Result<(), UserError> {
    for (name, value) in options {
        check_option(of, name, value, is_superuser)?;
    }
    match of {
        OptionOf::Server => check_server(CatalogOptions(options)),
        OptionOf::UserMapping => check_mapping(CatalogOptions(options)),
        OptionOf::Wrapper | OptionOf::ForeignTable => Ok(()),
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

/// What a role that is not a superuser may not set: a mapping without a password, and files that the server's
/// operating-system user reads. Its mappings can not be altered by others either, as all options are checked then.
fn check_privilege(name: &str, value: &str) -> Result<(), UserError> {
    let (message, hint) = match name {
        "password_required" if !boolean(name, value)? => (
            "password_required=false is superuser-only",
            "User mappings with the password_required option set to false may only be created or modified by the superuser.",
        ),
        "sslrootcert" if !value.is_empty() && value != SYSTEM_ROOTS => (
            "sslrootcert with a file is superuser-only",
            "Set it to \"system\", or have a superuser create the server.",
        ),
        "sslcert" | "sslkey" => (
            "sslcert and sslkey are superuser-only",
            "User mappings with the sslcert or sslkey options set may only be created or modified by the superuser.",
        ),
        _ => return Ok(()),
    };
    Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message).hint(hint))
}

fn no_such(name: &str) -> UserError {
    UserError::new(sqlstate::FDW_INVALID_OPTION_NAME, format!("invalid option \"{name}\""))
}

fn anything(_: &str, _: &str) -> Result<(), UserError> {
    Ok(())
}

fn word<T: Word>(name: &str, value: &str) -> Result<(), UserError> {
    parse_word::<T>(name, value).map(drop)
}

fn without_gss_encryption(name: &str, value: &str) -> Result<(), UserError> {
    if value == "disable" {
        return Ok(());
    }
    let message = format!("option \"{name}\" is not supported with the value \"{value}\"");
    Err(UserError::new(sqlstate::FDW_INVALID_OPTION_NAME, message)
        .detail(GSSAPI)
        .hint("Leave the option out, or set it to \"disable\"."))
}

/// The port of a server that says nothing else: DEF_PGPORT.
pub const DEFAULT_PORT: u16 = 5432;

/// One place where a server may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// A name or an address; the folder of a Unix socket if it begins with "/" (or "@": in the abstract namespace of
    /// Linux); empty: the server's own folder of sockets. It is also what a certificate is held against.
    pub name: String,
    /// The address (`hostaddr`), so that the name is not looked up.
    pub address: Option<String>,
    /// The port, 1 to 65535.
    pub port: u16,
}

impl Host {
    /// The path of its Unix socket (UNIXSOCK_PATH), or `None` for a host that is reached by TCP; `default` is the folder of
    /// sockets where no host is named. A path that begins with "@" is a name in the abstract namespace: its first byte is
    /// then a zero byte.
    pub fn socket(&self, default: &str) -> Option<String> {
        if self.address.is_some() || !(self.name.is_empty() || self.name.starts_with(['/', '@'])) {
            return None;
        }
        let folder = if self.name.is_empty() { default } else { &self.name };
        Some(format!("{folder}/.s.PGSQL.{}", self.port))
    }

    /// An error of a connection to this host, named as libpq does; `address` is the one that was found for the name, where
    /// one was, and `default` the folder of sockets where no host is named. Detail, hint and SQLSTATE stay.
    pub fn failed(&self, address: Option<IpAddr>, default: &str, error: UserError) -> UserError {
        let place = match (self.socket(default), &self.address, address) {
            (Some(path), _, _) => format!("on socket \"{path}\""),
            (None, Some(given), _) => format!("at \"{given}\", port {}", self.port),
            (None, None, Some(found)) if found.to_string() != self.name => {
                format!("at \"{}\" ({found}), port {}", self.name, self.port)
            }
            (None, None, _) => format!("at \"{}\", port {}", self.name, self.port),
        };
        let message = format!("connection to server {place} failed: {}", error.message);
        UserError { message, ..error }
    }

    /// The hosts of a server's options host, hostaddr and port.
    ///
    /// # Errors
    /// 22023 for lists whose lengths do not fit together, and for values that are not good.
    pub(crate) fn list(server: CatalogOptions<'_>) -> Result<Vec<Self>, UserError> {
        let elements = |option| server.text(option).map(|list| list.split(',').collect::<Vec<_>>());
        let (names, addresses) = (elements("host"), elements("hostaddr"));
        let count = addresses.as_ref().or(names.as_ref()).map_or(1, Vec::len);
        if let (Some(names), Some(addresses)) = (&names, &addresses)
            && names.len() != addresses.len()
        {
            let message =
                format!("could not match {} host names to {} hostaddr values", names.len(), addresses.len());
            return Err(UserError::invalid(message).hint("Give as many values for hostaddr as for host."));
        }
        let ports = ports("port", server.text("port").unwrap_or(""))?;
        if ports.len() != 1 && ports.len() != count {
            let message = format!("could not match {} port numbers to {count} hosts", ports.len());
            return Err(UserError::invalid(message).hint("Give one port for all hosts, or one for each."));
        }
        let element =
            |list: &Option<Vec<&str>>, place: usize| list.as_ref().map_or("", |list| list[place]).to_owned();
        let host = |place| {
            let address = element(&addresses, place);
            Self {
                name: element(&names, place),
                address: (!address.is_empty()).then_some(address),
                port: if ports.len() == 1 { ports[0] } else { ports[place] },
            }
        };
        Ok((0..count).map(host).collect())
    }
}

/// A list of ports; an empty element is [`DEFAULT_PORT`].
///
/// # Errors
/// 22023.
pub fn ports(option: &str, list: &str) -> Result<Vec<u16>, UserError> {
    let port = |element: &str| match element.trim() {
        "" => Ok(DEFAULT_PORT),
        digits => digits.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
            UserError::invalid(format!("invalid {option} number: \"{element}\""))
                .hint("A port is a number from 1 to 65535, or a list of them separated by commas.")
        }),
    };
    list.split(',').map(port).collect()
}

/// Checks a list of addresses, of which each may be empty; an address of IPv6 may name its interface after a "%".
///
/// # Errors
/// 22023.
pub fn check_addresses(option: &str, list: &str) -> Result<(), UserError> {
    let is_good = |element: &str| match element.split_once('%') {
        _ if element.is_empty() => true,
        Some((address, interface)) => !interface.is_empty() && address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => element.parse::<IpAddr>().is_ok(),
    };
    match list.split(',').find(|element| !is_good(element)) {
        None => Ok(()),
        Some(element) => Err(UserError::invalid(format!("could not parse network address \"{element}\""))
            .detail(format!("It is a value of option \"{option}\"."))
            .hint("Names belong to option \"host\".")),
    }
}

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
    pub(crate) fn new(server: CatalogOptions<'_>, mapping: CatalogOptions<'_>) -> Result<Self, UserError> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let version = |name| server.text(name).unwrap_or("");
        let options = Self {
            sslmode: match server.text("sslmode") {
                Some(mode) => parse_word("sslmode", mode)?,
                None if server.text("sslrootcert") == Some(SYSTEM_ROOTS) => SslMode::VerifyFull,
                None => SslMode::default(),
            },
            sslnegotiation: server.word("sslnegotiation")?,
            sslrootcert: owned(server.text("sslrootcert")),
            sslcert: owned(mapping.text("sslcert")),
            sslkey: owned(mapping.text("sslkey")),
            sslsni: server.text("sslsni").map_or(Ok(Switch(true)), |value| parse_word("sslsni", value))?.0,
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
            let word = self.sslmode.as_str();
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
