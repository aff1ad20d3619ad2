//! Where servers listen.

use std::net::ToSocketAddrs;
use std::path::PathBuf;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Address, Encryption, HostAddress};
use bench_protocol::foreign_server::{DEFAULT_PORT, Host, SslMode};

use crate::server::guc;

/// Where sockets are if a target names no host, as libpq has it in Debian's packages.
pub(super) const SOCKETS: &str = "/var/run/postgresql";

/// This server's first Unix-domain socket.
///
/// # Errors
/// 55000 where it has none.
pub fn this_server() -> Result<HostAddress, UserError> {
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
