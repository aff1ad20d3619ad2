//! What a foreign server and a user mapping say of a connection, as libpq reads connection strings and postgres_fdw its
//! options: nothing else is used, and above all nothing of the server's operating-system user.
//!
//! [`check_options`] is the validator of both. [`Target::new`] makes of them a [`Target`], which may be shown and stored, and
//! [`Secrets`], which may not. [`Target::attempts`] is the order in which hosts are tried, [`SessionAttributes`] decides
//! which session is good enough, and [`check_password_given`] and [`check_password_used`] keep roles that are no superusers
//! from what the server's operating-system user may do.

pub(crate) mod options;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::fmt;

use bench_base::error::{UserError, sqlstate};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

use crate::foreign_server::words::{CatalogOptions, boolean, integer};

pub use crate::foreign_server::options::{
    DEFAULT_PORT, Host, OptionOf, SYSTEM_ROOTS, TlsOptions, check_option, check_options,
};
pub use crate::foreign_server::words::{
    ChannelBinding, LoadBalance, SessionAttributes, SslMode, SslNegotiation, Suitability, TlsVersion,
    parse_conninfo,
};

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

/// What of a mapping nobody may see. It is not shown by `Debug`; serialized it is whole, for the jobs of a run.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    /// The password; never empty.
    pub password: Option<String>,
}

/// The memory is overwritten.
impl Drop for Secrets {
    fn drop(&mut self) {
        self.password.zeroize();
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
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

    /// The hosts in the order in which they are tried, each with the sessions that are good enough there; drawn by the seed
    /// where the load is balanced. With several addresses for a name, each is tried.
    pub fn attempts(&self, seed: u64) -> Vec<(&Host, SessionAttributes)> {
        let mut hosts: Vec<&Host> = self.hosts.iter().collect();
        if self.load_balance_hosts == LoadBalance::Random {
            hosts.shuffle(&mut Pcg64::seed_from_u64(seed));
        }
        let pass = |attributes: &SessionAttributes| {
            let attributes = *attributes;
            hosts.iter().map(move |host| (*host, attributes)).collect::<Vec<_>>()
        };
        self.target_session_attrs.passes().iter().flat_map(pass).collect()
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

/// Checks before a connection that a role has a password in its mapping, unless it `needs_none`, as a superuser on a
/// superuser's foreign server; as postgres_fdw's check_conn_params. Without one the connection would stand on what the
/// server's operating-system user may do.
///
/// # Errors
/// 2F003.
pub fn check_password_given(needs_none: bool, target: &Target, secrets: &Secrets) -> Result<(), UserError> {
    let is_given = secrets.password.as_ref().is_some_and(|password| !password.is_empty());
    if needs_none || !target.password_required || is_given {
        return Ok(());
    }
    Err(required()
        .detail("Non-superusers must provide a password in the user mapping.")
        .hint("Set option password of the user mapping."))
}

/// Checks after authentication that the server has asked for the password (`used`: see
/// `wire::Session::used_password`), as postgres_fdw's pgfdw_security_check: a server that
/// trusts this machine or its user would else let in anyone.
///
/// # Errors
/// 2F003.
pub fn check_password_used(needs_none: bool, target: &Target, used: bool) -> Result<(), UserError> {
    if needs_none || !target.password_required || used {
        return Ok(());
    }
    Err(not_asked())
}

/// The error for a server that has let somebody in without asking for the password that is needed.
pub fn not_asked() -> UserError {
    required()
        .detail("Non-superuser cannot connect if the server does not request a password.")
        .hint("Target server's authentication method must be changed or password_required=false set in the user mapping attributes.")
}

fn required() -> UserError {
    UserError::new(sqlstate::PASSWORD_REQUIRED, "password is required")
}
