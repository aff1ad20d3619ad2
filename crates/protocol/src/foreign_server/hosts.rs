//! The hosts of a target: where they are, and how errors name them.

use std::net::IpAddr;

use bench_base::error::UserError;
use serde::{Deserialize, Serialize};

use super::values::CatalogOptions;

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
    pub(super) fn list(server: CatalogOptions<'_>) -> Result<Vec<Self>, UserError> {
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
