//! Connections to servers: addresses, options and errors.

mod link;
mod sessions;

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Address, Encryption, HostAddress, OnDisconnect, RunSpec, TargetSpec};
use bench_protocol::foreign_server::{
    ChannelBinding, DEFAULT_PORT, Host, SYSTEM_ROOTS, Secrets, SessionAttributes, SslMode, Suitability,
    Target, TcpOptions, TlsOptions, not_asked,
};
use bench_protocol::tls::{TlsClient, TlsFiles, TlsSession};
use bench_protocol::{Startup, WireSession};

use crate::error::internal;
use crate::guard::session_role::became_special;
use crate::server::files::{open_regular, read_small};
use crate::server::guc;

pub use link::{Done, Link};
pub use sessions::{BlockingSession, CancelRequest, PolledSession};

/// The address and options of a server's connections.
pub struct Route {
    /// The server's address.
    pub to: HostAddress,
    pub startup: Startup,
    /// Options of its sockets.
    pub tcp: TcpOptions,
    /// Present if connections use or may use TLS.
    pub tls: Option<TlsClient>,
    /// SCRAM uses channel binding if the connection is encrypted.
    pub(super) binds: bool,
    /// The target_session_attrs that sessions must have.
    attributes: SessionAttributes,
    /// Fail unless the server asks for a password.
    needs_password: bool,
    /// The sessions' role may be a superuser.
    may_be_superuser: bool,
    /// The limit of the time to connect; `None`: unlimited.
    pub timeout: Option<Duration>,
    /// The server is not this one, so its backends are no processes known here.
    pub is_remote: bool,
    /// The server is the one that the run observes.
    pub is_watched: bool,
}

impl Route {
    /// Returns the route to a target's host.
    ///
    /// # Errors
    /// 08001 for missing or invalid files of certificates and keys.
    pub fn to_target(options: &Target, secrets: &Secrets, to: HostAddress) -> Result<Self, UserError> {
        let startup = Startup {
            user: options.user.clone(),
            database: options.dbname.clone(),
            parameters: Vec::new(),
            password: secrets.password.clone().map(Into::into),
            tls_server_end_point: None,
            requires_channel_binding: options.channel_binding == ChannelBinding::Require,
        };
        let timeout = options.connect_timeout.map(|secs| Duration::from_secs(secs.into()));
        let tls = match to.encryption {
            Encryption::None => None,
            Encryption::Preferred | Encryption::Required => Some(tls_client(&options.tls)?),
        };
        let mut route = Self {
            to,
            startup,
            tcp: options.tcp.clone(),
            tls,
            binds: options.channel_binding != ChannelBinding::Disable,
            attributes: options.target_session_attrs,
            needs_password: false,
            // The user mapping determines the role.
            may_be_superuser: true,
            timeout,
            is_remote: true,
            is_watched: true,
        };
        route.set_parameter("client_encoding", "UTF8");
        route.set_parameter("application_name", options.application_name.as_deref().unwrap_or("pgbench_ext"));
        if let Some(command_line) = &options.options {
            route.set_parameter("options", command_line);
        }
        Ok(route)
    }

    /// Returns the routes of a run's clients: the suitable host and, if clients reconnect, all others after it; in a duel of two
    /// targets one route for each, in the order of the arms. `search_path` replaces the role's own on this server. The run's
    /// settings become connection options.
    ///
    /// # Errors
    /// 55000 if this server has no socket; 08001.
    pub fn of_run(
        spec: &RunSpec,
        search_path: Option<&str>,
        secrets: &[Secrets; 2],
    ) -> Result<Vec<Self>, UserError> {
        let mut routes = match &spec.target {
            Some(target) => {
                let secrets = &secrets[0];
                let needed = match spec.options.on_disconnect {
                    OnDisconnect::End => 1,
                    OnDisconnect::Reconnect => target.candidates.len(),
                };
                let candidates = target.candidates.iter().take(needed).cloned();
                candidates
                    .map(|candidate| Self::to_found(target, secrets, candidate))
                    .collect::<Result<Vec<_>, _>>()?
            }
            None => vec![Self::to_this_server(spec, &secrets[0])?],
        };
        let target_path = spec.target.as_ref().and_then(|target| target.search_path.as_deref());
        routes.iter_mut().for_each(|route| route.set_run_parameters(spec, target_path.or(search_path)));
        if let Some(target) = &spec.other_target {
            let mut route = Self { is_watched: false, ..Self::of_steps(target, &secrets[1])? };
            route.set_run_parameters(spec, target.search_path.as_deref());
            routes.push(route);
        }
        Ok(routes)
    }

    /// Returns the route to a target's suitable host, for statements outside the run by the role of the user mapping.
    ///
    /// # Errors
    /// 08001.
    pub fn of_steps(target: &TargetSpec, secrets: &Secrets) -> Result<Self, UserError> {
        let to = target.candidates.first().cloned();
        let to = to.ok_or_else(|| internal("a target without hosts"))?;
        Self::to_found(target, secrets, to)
    }

    /// Returns the route to a candidate host of a target, determined before the run.
    fn to_found(target: &TargetSpec, secrets: &Secrets, to: HostAddress) -> Result<Self, UserError> {
        let route = Self::to_target(&target.options, secrets, to)?;
        Ok(Self { needs_password: target.needs_password, ..route })
    }

    /// Returns the routes of the connection that observes a run's target, in the order of attempts.
    ///
    /// # Errors
    /// 08001.
    pub fn of_watch(target: &TargetSpec, secrets: &Secrets) -> Result<Vec<Self>, UserError> {
        let route = |candidate: &HostAddress| {
            let mut route = Self::to_found(target, secrets, candidate.clone())?;
            if !target.is_pooled {
                // The role's own search_path could hide catalog objects.
                route.set_parameter("search_path", "pg_catalog");
            }
            Ok(route)
        };
        target.candidates.iter().map(route).collect()
    }

    /// Returns the sessions' application_name.
    pub fn application_name(&self) -> &str {
        let is_name = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("application_name");
        self.startup.parameters.iter().find(is_name).map_or("", |(_, value)| value)
    }

    /// Sets the search_path and the run's settings.
    fn set_run_parameters(&mut self, spec: &RunSpec, search_path: Option<&str>) {
        if let Some(path) = search_path {
            self.set_parameter("search_path", path);
        }
        for (name, value) in &spec.options.settings {
            self.set_parameter(name, value);
        }
    }

    /// Returns the route to this server's own socket.
    fn to_this_server(spec: &RunSpec, secrets: &Secrets) -> Result<Self, UserError> {
        let startup = Startup {
            user: spec.role.clone(),
            database: spec.database.clone(),
            password: secrets.password.clone().map(Into::into),
            ..Startup::default()
        };
        let tcp = TcpOptions {
            keepalives: true,
            keepalives_idle: None,
            keepalives_interval: None,
            keepalives_count: None,
            tcp_user_timeout: None,
        };
        let to = this_server()?;
        let mut route = Self {
            to,
            startup,
            tcp,
            tls: None,
            binds: false,
            attributes: SessionAttributes::Any,
            needs_password: false,
            may_be_superuser: spec.may_be_special,
            timeout: None,
            is_remote: false,
            is_watched: true,
        };
        route.set_parameter("client_encoding", "UTF8");
        route.set_parameter("application_name", "pgbench_ext");
        Ok(route)
    }

    /// Returns the limit of the time to connect in nanoseconds.
    pub fn timeout_ns(&self) -> Option<i64> {
        self.timeout.map(|timeout| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Checks a session's attributes, as far as its server reports them (poolers and servers before PostgreSQL 14 do not), its
    /// authentication and its role.
    ///
    /// # Errors
    /// 08006, 2F003; 42501 for a superuser's session if the run's role is none.
    pub fn check(&self, session: &WireSession) -> Result<(), UserError> {
        let report = |name| session.parameter(name);
        if let Suitability::Unsuitable(reason) =
            self.attributes.by_report(report("in_hot_standby"), report("default_transaction_read_only"))
        {
            return Err(failed(&self.to, reason));
        }
        if self.needs_password && !session.used_password() {
            return Err(failed_by(&self.to, not_asked()));
        }
        // The server reports no other special privileges; all were checked when the run started.
        if !self.may_be_superuser && report("is_superuser") == Some("on") {
            return Err(became_special(&self.startup.user));
        }
        Ok(())
    }

    /// Adds the address of a remote server, in psql's form, to an error raised before it accepts commands.
    pub fn named(&self, session: &WireSession, error: UserError) -> UserError {
        if !self.is_remote || error.sqlstate == sqlstate::PROTOCOL_VIOLATION || session.backend().is_some() {
            return error;
        }
        failed_by(&self.to, error)
    }

    /// Creates the TLS session of a connection.
    ///
    /// # Errors
    /// 08001.
    pub fn tls_session(&self, tls: &TlsClient) -> Result<TlsSession, UserError> {
        let host = &self.to.host;
        let name = if host.name.is_empty() { host.address.as_deref().unwrap_or("") } else { &host.name };
        tls.session(name).map_err(|error| failed_by(&self.to, error))
    }

    /// Sets a parameter of the startup message; replaces an earlier value.
    fn set_parameter(&mut self, name: &str, value: &str) {
        let parameters = &mut self.startup.parameters;
        parameters.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        parameters.push((name.to_owned(), value.to_owned()));
    }
}

/// Builds the TLS client from a target's options.
fn tls_client(options: &TlsOptions) -> Result<TlsClient, UserError> {
    let root = options.sslrootcert.as_deref().filter(|path| *path != SYSTEM_ROOTS);
    let root = root.map(|path| read("root certificate", path)).transpose()?;
    let certificate = options.sslcert.as_deref().map(|path| read("certificate", path)).transpose()?;
    let key = options.sslkey.as_deref().map(read_key).transpose()?;
    let files = TlsFiles { root: root.as_deref(), certificate: certificate.as_deref(), key: key.as_deref() };
    TlsClient::new(options, files)
}

/// The largest file of certificates or a key, in bytes.
const MAX_FILE: usize = 1 << 20;

fn read(what: &str, path: &str) -> Result<Vec<u8>, UserError> {
    let (file, _) = open(what, path)?;
    read_all(what, path, file)
}

/// Reads a private key; like libpq, refuses one that others can read (initialize_SSL in fe-secure-openssl.c).
fn read_key(path: &str) -> Result<Vec<u8>, UserError> {
    const WHAT: &str = "private key";
    let (file, metadata) = open(WHAT, path)?;
    let forbidden_bits = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden_bits != 0 {
        let message = format!("private key file \"{path}\" has group or world access");
        return Err(UserError::new(sqlstate::UNABLE_TO_CONNECT, message).hint(
            "File must have permissions u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or less if owned by root.",
        ));
    }
    read_all(WHAT, path, file)
}

fn open(what: &str, path: &str) -> Result<(File, Metadata), UserError> {
    open_regular(Path::new(path)).map_err(|error| unreadable(what, path, &error))
}

fn read_all(what: &str, path: &str, file: File) -> Result<Vec<u8>, UserError> {
    read_small(file, MAX_FILE).map_err(|error| unreadable(what, path, &error))
}

fn unreadable(what: &str, path: &str, error: &io::Error) -> UserError {
    let message = format!("could not read {what} file \"{path}\"");
    match error.kind() {
        ErrorKind::InvalidInput => {
            UserError::new(sqlstate::WRONG_OBJECT_TYPE, message).detail(format!("{error}."))
        }
        ErrorKind::FileTooLarge => {
            UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message).detail(format!("{error}."))
        }
        _ => {
            let message = format!("{message}: {}", without_number(error));
            UserError::new(sqlstate::UNABLE_TO_CONNECT, message)
                .hint("The operating-system user of this server must be able to read it.")
        }
    }
}

/// The directory of sockets for targets without a host; the default of libpq in Debian's packages.
const SOCKET_DIRECTORY: &str = "/var/run/postgresql";

/// Returns the address of this server's first Unix-domain socket.
///
/// # Errors
/// 55000 if it has none.
fn this_server() -> Result<HostAddress, UserError> {
    let value = |name: &str| guc::current(name).unwrap_or_default();
    let directories = value("unix_socket_directories");
    let elements = guc::list_elements("unix_socket_directories", &directories)?;
    let directory = elements.unwrap_or_else(|| vec![directories]).into_iter().find(|name| !name.is_empty());
    let Some(directory) = directory else {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            "the server listens on no Unix-domain socket",
        )
        .detail("driver => 'wire' connects to this server over its own socket.")
        .hint("Set unix_socket_directories, and restart the server."));
    };
    let host = Host { name: directory, address: None, port: value("port").parse().unwrap_or(DEFAULT_PORT) };
    let address = Address::Unix(PathBuf::from(host.socket(SOCKET_DIRECTORY).unwrap_or_default()));
    Ok(HostAddress { host, address, encryption: Encryption::None })
}

/// Returns a host's addresses, each with the encryptions to try in order.
///
/// # Errors
/// 08001 for a host that has no address.
pub fn candidates(host: &Host, mode: SslMode) -> Result<Vec<HostAddress>, UserError> {
    if let Some(path) = host.socket(SOCKET_DIRECTORY) {
        let address = Address::Unix(PathBuf::from(path));
        return Ok(vec![HostAddress { host: host.clone(), address, encryption: Encryption::None }]);
    }
    let name = host.address.as_deref().unwrap_or(&host.name);
    let addresses = (name, host.port).to_socket_addrs().map_err(|error| {
        let message = format!("could not translate host name \"{name}\" to address: {error}");
        UserError::new(sqlstate::UNABLE_TO_CONNECT, message)
    })?;
    let encryptions: &[Encryption] = match mode {
        SslMode::Disable => &[Encryption::None],
        SslMode::Allow => &[Encryption::None, Encryption::Required],
        SslMode::Prefer => &[Encryption::Preferred, Encryption::None],
        SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Encryption::Required],
    };
    let pairs = addresses
        .flat_map(|address| encryptions.iter().map(move |&encryption| (Address::Tcp(address), encryption)));
    Ok(pairs.map(|(address, encryption)| HostAddress { host: host.clone(), address, encryption }).collect())
}

/// Returns the error for a connection that failed or was lost, worded like libpq's.
pub fn failed(to: &HostAddress, reason: impl ToString) -> UserError {
    failed_by(to, UserError::new(sqlstate::CONNECTION_FAILURE, without_number(&reason)))
}

/// Removes the number that Rust appends to a system error's message.
fn without_number(reason: &impl ToString) -> String {
    reason.to_string().split(" (os error ").next().unwrap_or_default().to_owned()
}

/// Prefixes a connection error with the server's address.
pub fn failed_by(to: &HostAddress, error: UserError) -> UserError {
    let address = match &to.address {
        Address::Tcp(address) => Some(address.ip()),
        Address::Unix(_) => None,
    };
    to.host.failed(address, SOCKET_DIRECTORY, error)
}
