//! The options of a foreign server and a user mapping: the keywords of libpq, where each belongs, and what it takes.

use bench_base::error::{UserError, sqlstate};
use bench_base::similar;

use super::words::{Switch, Word};
use super::{
    ChannelBinding, LoadBalance, SYSTEM_ROOTS, SessionAttributes, SslMode, SslNegotiation, TlsVersion, hosts,
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
pub(super) enum Place {
    Server,
    UserMapping,
    /// Nowhere, with the reason as a sentence.
    Refused(&'static str),
}

/// Checks a value, of the option of this name.
pub(super) type Check = fn(&str, &str) -> Result<(), UserError>;

const SYSTEM_USER: &str = "Nothing of the server's operating-system user is used.";
const GSSAPI: &str = "GSSAPI is not supported.";
const REVOCATION: &str = "Certificate revocation lists are not supported.";
const PROTOCOL: &str = "Connections use protocol version 3.0.";
const OAUTH: &str = "OAuth is not supported.";
const SCRAM_KEYS: &str = "SCRAM keys are derived from the password.";
const OBSOLETE: &str = "libpq itself ignores it.";

/// The keywords of libpq (PQconninfoOptions in fe-connect.c, up to PostgreSQL 18), and `password_required`.
pub(super) const KEYWORDS: [(&str, Place, Check); 56] = [
    ("host", Place::Server, anything),
    ("hostaddr", Place::Server, hosts::check_addresses),
    ("port", Place::Server, |name, value| hosts::ports(name, value).map(drop)),
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
        return Err(no_such(name).hint(similar::hint(name, valid(), list)));
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
        OptionOf::Server => super::check_server(CatalogOptions(options)),
        OptionOf::UserMapping => super::check_mapping(CatalogOptions(options)),
        OptionOf::Wrapper | OptionOf::ForeignTable => Ok(()),
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

/// Options as a catalog has them.
#[derive(Clone, Copy)]
pub(super) struct CatalogOptions<'a>(pub &'a [(String, String)]);

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

fn anything(_: &str, _: &str) -> Result<(), UserError> {
    Ok(())
}

fn word<T: Word>(name: &str, value: &str) -> Result<(), UserError> {
    T::parse(name, value).map(drop)
}

/// A number as libpq's pqParseIntParam takes it.
pub(super) fn integer(name: &str, value: &str) -> Result<i32, UserError> {
    value.trim().parse().map_err(|_| {
        UserError::invalid(format!("invalid integer value \"{value}\" for connection option \"{name}\""))
    })
}

/// A truth value as defGetBoolean takes it.
pub(super) fn boolean(name: &str, value: &str) -> Result<bool, UserError> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(UserError::invalid(format!("{name} requires a Boolean value"))),
    }
}

/// The oldest version of TLS that is good enough; there is none below 1.2 here.
pub(super) fn min_version(name: &str, value: &str) -> Result<Option<TlsVersion>, UserError> {
    match known_version(name, value)? {
        Some(("TLSv1" | "TLSv1.1", _)) => Ok(Some(TlsVersion::V1_2)),
        version => Ok(version.and_then(|(_, version)| version)),
    }
}

/// The newest version of TLS that is good enough.
pub(super) fn max_version(name: &str, value: &str) -> Result<Option<TlsVersion>, UserError> {
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

fn without_gss_encryption(name: &str, value: &str) -> Result<(), UserError> {
    if value == "disable" {
        return Ok(());
    }
    let message = format!("option \"{name}\" is not supported with the value \"{value}\"");
    Err(UserError::new(sqlstate::FDW_INVALID_OPTION_NAME, message)
        .detail(GSSAPI)
        .hint("Leave the option out, or set it to \"disable\"."))
}
