//! The options of a foreign server and a user mapping: the keywords of libpq, where each belongs, and what it takes.

use bench_base::error::{UserError, sqlstate};
use bench_base::similar;

use super::attributes::SessionAttributes;
use super::hosts::{self, Host};
use super::tls_options::{SYSTEM_ROOTS, TlsOptions};
use super::values::{CatalogOptions, boolean, integer, max_version, min_version};
use super::words::{ChannelBinding, LoadBalance, SslMode, SslNegotiation, Switch, Word};

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
    T::parse(name, value).map(drop)
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
