//! Connections to servers: where they listen, and bytes to and from them.

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

/// What each of its connections needs.
pub struct Route {
    /// Where the server is.
    pub to: HostAddress,
    pub startup: Startup,
    /// Options of its sockets.
    pub tcp: TcpOptions,
    /// For a way that is encrypted, or may be.
    pub tls: Option<TlsClient>,
    /// SCRAM binds itself to TLS, where it can.
    pub(super) binds: bool,
    /// Sessions that are good enough.
    attributes: SessionAttributes,
    /// The server has to ask for a password.
    needs_password: bool,
    /// Its sessions may be a superuser's.
    may_be_superuser: bool,
    /// How long a connection may take to be made; `None`: as long as it takes.
    pub timeout: Option<Duration>,
    /// It leads to another server than this one, as whose process its backends are not known here.
    pub is_remote: bool,
    /// Its backends are of the server that is observed.
    pub is_watched: bool,
}

impl Route {
    /// The way to a target's host.
    ///
    /// # Errors
    /// 08001 for files of certificates and keys that are missing or not what they should be.
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
            // Whose its sessions are, the user mapping says.
            may_be_superuser: true,
            timeout,
            is_remote: true,
            is_watched: true,
        };
        route.tell("client_encoding", "UTF8");
        route.tell("application_name", options.application_name.as_deref().unwrap_or("pgbench_ext"));
        if let Some(more) = &options.options {
            route.tell("options", more);
        }
        Ok(route)
    }

    /// The ways of a run's clients, first the one that was found suitable, and the others where clients may need them; in a
    /// duel of two targets one to each, in the order of the arms.
    /// `search_path` is theirs on this server, where it is not the role's own. The settings of the run are those of the session
    /// from its beginning, as a client's connection options are.
    ///
    /// # Errors
    /// 55000 where this server cannot be reached; 08001.
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
        routes.iter_mut().for_each(|route| route.tell_all(spec, target_path.or(search_path)));
        if let Some(target) = &spec.other_target {
            let mut route = Self { is_watched: false, ..Self::of_steps(target, &secrets[1])? };
            route.tell_all(spec, target.search_path.as_deref());
            routes.push(route);
        }
        Ok(routes)
    }

    /// The way to where clients were found to be served, for statements by the role of the mapping that are not the run's.
    ///
    /// # Errors
    /// 08001.
    pub fn of_steps(target: &TargetSpec, secrets: &Secrets) -> Result<Self, UserError> {
        let to = target.candidates.first().cloned();
        let to = to.ok_or_else(|| internal("a target without hosts"))?;
        Self::to_found(target, secrets, to)
    }

    /// The way to a candidate of a target that was found before the run.
    fn to_found(target: &TargetSpec, secrets: &Secrets, to: HostAddress) -> Result<Self, UserError> {
        let route = Self::to_target(&target.options, secrets, to)?;
        Ok(Self { needs_password: target.needs_password, ..route })
    }

    /// The ways of the connection that watches a run's target, in the order in which they are tried.
    ///
    /// # Errors
    /// 08001.
    pub fn of_watch(target: &TargetSpec, secrets: &Secrets) -> Result<Vec<Self>, UserError> {
        let to = |candidate: &HostAddress| {
            let mut route = Self::to_found(target, secrets, candidate.clone())?;
            if !target.is_pooled {
                // What it asks for is there, whatever the role's own path has before it.
                route.tell("search_path", "pg_catalog");
            }
            Ok(route)
        };
        target.candidates.iter().map(to).collect()
    }

    /// What the sessions call themselves.
    pub fn application_name(&self) -> &str {
        let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("application_name");
        self.startup.parameters.iter().find(named).map_or("", |(_, value)| value)
    }

    fn tell_all(&mut self, spec: &RunSpec, search_path: Option<&str>) {
        if let Some(path) = search_path {
            self.tell("search_path", path);
        }
        for (name, value) in &spec.options.settings {
            self.tell(name, value);
        }
    }

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
        route.tell("client_encoding", "UTF8");
        route.tell("application_name", "pgbench_ext");
        Ok(route)
    }

    /// How long a connection may take to be made, in nanoseconds.
    pub fn timeout_ns(&self) -> Option<i64> {
        self.timeout.map(|timeout| i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Whether a session is good enough, as far as its server reports it, which those before PostgreSQL 14 and poolers do
    /// not; and whether it was let in by what it may be let in by.
    ///
    /// # Errors
    /// 08006, 2F003; 42501 for a superuser's session, where the run's role was none.
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
        // The server reports no other special right. All of them were checked when the run started.
        if !self.may_be_superuser && report("is_superuser") == Some("on") {
            return Err(became_special(&self.startup.user));
        }
        Ok(())
    }

    /// An error of the server's before it takes commands; of another server, with its place, as psql puts it.
    pub fn named(&self, session: &WireSession, error: UserError) -> UserError {
        if !self.is_remote || error.sqlstate == sqlstate::PROTOCOL_VIOLATION || session.backend().is_some() {
            return error;
        }
        failed_by(&self.to, error)
    }

    /// TLS for one of its connections.
    ///
    /// # Errors
    /// 08001.
    pub fn tls_session(&self, tls: &TlsClient) -> Result<TlsSession, UserError> {
        let host = &self.to.host;
        let name = if host.name.is_empty() { host.address.as_deref().unwrap_or("") } else { &host.name };
        tls.session(name).map_err(|error| failed_by(&self.to, error))
    }

    /// Sets a parameter of the sessions, over what was said before.
    fn tell(&mut self, name: &str, value: &str) {
        let parameters = &mut self.startup.parameters;
        parameters.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        parameters.push((name.to_owned(), value.to_owned()));
    }
}

/// TLS as the options have it.
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

/// As libpq does, refuses a key that others can read (initialize_SSL in fe-secure-openssl.c).
fn read_key(path: &str) -> Result<Vec<u8>, UserError> {
    const WHAT: &str = "private key";
    let (file, metadata) = open(WHAT, path)?;
    let others = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & others != 0 {
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

/// Where sockets are if a target names no host, as libpq has it in Debian's packages.
const SOCKETS: &str = "/var/run/postgresql";

/// This server's first Unix-domain socket.
///
/// # Errors
/// 55000 where it has none.
fn this_server() -> Result<HostAddress, UserError> {
    let value = |name: &str| guc::current(name).unwrap_or_default();
    let directories = value("unix_socket_directories");
    let listed = guc::list_elements("unix_socket_directories", &directories)?;
    let directory = listed.unwrap_or_else(|| vec![directories]).into_iter().find(|name| !name.is_empty());
    let Some(directory) = directory else {
        return Err(UserError::new(
            sqlstate::NOT_IN_PREREQUISITE_STATE,
            "the server listens on no Unix-domain socket",
        )
        .detail("driver => 'wire' connects to this server over its own socket.")
        .hint("Set unix_socket_directories, and restart the server."));
    };
    let host = Host { name: directory, address: None, port: value("port").parse().unwrap_or(DEFAULT_PORT) };
    let address = Address::Unix(PathBuf::from(host.socket(SOCKETS).unwrap_or_default()));
    Ok(HostAddress { host, address, encryption: Encryption::None })
}

/// The ways to a host, one for each address of its name.
///
/// # Errors
/// 08001 for a host that has no address.
pub fn candidates(host: &Host, mode: SslMode) -> Result<Vec<HostAddress>, UserError> {
    if let Some(path) = host.socket(SOCKETS) {
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
    let ways = addresses
        .flat_map(|address| encryptions.iter().map(move |&encryption| (Address::Tcp(address), encryption)));
    Ok(ways.map(|(address, encryption)| HostAddress { host: host.clone(), address, encryption }).collect())
}

/// The error for a connection that cannot be made, or is lost, in libpq's words.
pub fn failed(to: &HostAddress, reason: impl ToString) -> UserError {
    failed_by(to, UserError::new(sqlstate::CONNECTION_FAILURE, without_number(&reason)))
}

/// A reason as the system says it, without the number that Rust adds.
fn without_number(reason: &impl ToString) -> String {
    reason.to_string().split(" (os error ").next().unwrap_or_default().to_owned()
}

/// An error of a connection that cannot be made, with the server's place before it.
pub fn failed_by(to: &HostAddress, error: UserError) -> UserError {
    let address = match &to.address {
        Address::Tcp(address) => Some(address.ip()),
        Address::Unix(_) => None,
    };
    to.host.failed(address, SOCKETS, error)
}
