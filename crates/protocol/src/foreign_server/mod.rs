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
mod target;
mod tls_options;
mod values;
mod words;

pub use attributes::{SessionAttributes, Suitability};
pub use conninfo::parse_conninfo;
pub use hosts::{DEFAULT_PORT, Host};
pub use options::{OptionOf, check_option, check_options};
pub use password::{check_password_given, check_password_used, not_asked};
pub use target::{Secrets, Target, TcpOptions};
pub use tls_options::{SYSTEM_ROOTS, TlsOptions};
pub use words::{ChannelBinding, LoadBalance, SslMode, SslNegotiation, TlsVersion, Word};

#[cfg(test)]
mod tests;
