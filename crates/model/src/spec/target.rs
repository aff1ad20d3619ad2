//! The server that the connections of a run lead to, where that is not this one.

use std::net::SocketAddr;
use std::path::PathBuf;

use bench_protocol::foreign_server::{Host, Target};
use serde::{Deserialize, Serialize};

use crate::views::{ServerSetting, Views};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Address {
    /// A Unix-domain socket; an abstract one begins with "@".
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// Whether a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encryption {
    None,
    /// By TLS, where the server knows it.
    Preferred,
    /// By TLS, or there is no connection.
    Required,
}

/// One way to a server: an address of one of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAddress {
    pub host: Host,
    pub address: Address,
    pub encryption: Encryption,
}

/// A target, as it was found before the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// The name of the foreign server.
    pub name: String,
    pub options: Target,
    /// All ways to it in the order in which they are tried: first the one that was found suitable.
    pub candidates: Vec<HostAddress>,
    /// What its version() says.
    pub version: String,
    /// Its configuration parameters that are not at their defaults.
    pub settings: Vec<ServerSetting>,
    pub is_standby: bool,
    /// A password has to be asked for: the run's role is no superuser.
    pub needs_password: bool,
    /// It is behind a pooler: the backend is not the one that the protocol tells of.
    pub is_pooled: bool,
    /// What of its statistics the role can read.
    #[serde(default)]
    pub views: Views,
    /// The view pg_stat_statements there, quoted; `None` where nobody counts.
    #[serde(default)]
    pub statements: Option<String>,
    /// The clients' search_path there; `None`: the role's own.
    pub search_path: Option<String>,
}
