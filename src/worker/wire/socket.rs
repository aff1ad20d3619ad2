//! The way to the server.

use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;

use bench_core::error::{UserError, sqlstate};
use mio::net::UnixStream;

use crate::server::guc;

/// Where this server listens.
pub struct Address(PathBuf);

impl Address {
    /// This server's first Unix socket.
    ///
    /// # Errors
    /// 55000 where it has none.
    pub fn of_this_server() -> Result<Self, UserError> {
        let value = |name: &str| guc::current(name).unwrap_or_default();
        let directories = value("unix_socket_directories");
        let listed = guc::list_elements("unix_socket_directories", &directories)?;
        let directory = listed.unwrap_or_else(|| vec![directories]).into_iter().find(|name| !name.is_empty());
        let port = value("port");
        let Some(directory) = directory else {
            return Err(UserError::new(
                sqlstate::NOT_IN_PREREQUISITE_STATE,
                "the server listens on no Unix-domain socket",
            )
            .detail("driver => 'wire' connects to this server over its own socket.")
            .hint("Set unix_socket_directories, and restart the server."));
        };
        // An abstract socket begins with "@" instead of a zero byte.
        Ok(Self(PathBuf::from(format!("{directory}/.s.PGSQL.{port}"))))
    }

    /// Begins to connect. `None`: the server's queue is full, and it is to be tried again.
    ///
    /// # Errors
    /// 08006 with the socket's path.
    pub fn connect(&self) -> Result<Option<UnixStream>, UserError> {
        match UnixStream::connect(&self.0) {
            Ok(socket) => Ok(Some(socket)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => {
                let message =
                    format!("connection to server on socket \"{}\" failed: {error}", self.0.display());
                Err(UserError::new(sqlstate::CONNECTION_FAILURE, message))
            }
        }
    }
}

/// How far reading or writing has come.
pub enum Done {
    /// So many bytes.
    Some(usize),
    /// Nothing more for now.
    Blocked,
    /// The other side has closed the connection.
    Closed,
}

fn done(result: io::Result<usize>) -> Result<Done, UserError> {
    match result {
        Ok(0) => Ok(Done::Closed),
        Ok(bytes) => Ok(Done::Some(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::NotConnected => Ok(Done::Blocked),
            ErrorKind::Interrupted => Ok(Done::Some(0)),
            // What the server had to say before may still be there to be read.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Done::Closed),
            _ => Err(UserError::new(
                sqlstate::CONNECTION_FAILURE,
                format!("connection to the server failed: {error}"),
            )),
        },
    }
}

/// Reads what has come in.
///
/// # Errors
/// 08006.
pub fn read(socket: &mut UnixStream, buffer: &mut [u8]) -> Result<Done, UserError> {
    done(socket.read(buffer))
}

/// Writes as much as there is room for.
///
/// # Errors
/// 08006.
pub fn write(socket: &mut UnixStream, bytes: &[u8]) -> Result<Done, UserError> {
    done(socket.write(bytes))
}
