//! A way for bytes to a server and back: a socket, and what stands before the first message of the protocol.

use std::io::{self, ErrorKind, Read, Write};

use bench_core::error::UserError;
use bench_core::spec::Candidate;
use mio::{Interest, Registry, Token};

use super::failed;
use super::socket::Socket;

/// How far reading or writing has come.
pub enum Done {
    /// So many bytes.
    Some(usize),
    /// Nothing more for now.
    Blocked,
    /// The other side has closed the connection.
    Closed,
}

/// A connection that has been begun.
pub struct Link {
    socket: Socket,
}

impl Link {
    /// Begins to connect. `None`: the server's queue is full, and it is to be tried again.
    ///
    /// # Errors
    /// 08006.
    pub fn connect(to: &Candidate) -> Result<Option<Self>, UserError> {
        match Socket::connect(&to.address) {
            Ok(socket) => Ok(socket.map(|socket| Self { socket })),
            Err(error) => Err(failed(to, error)),
        }
    }

    /// Has what happens to the connection reported under this token, each thing once.
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Has nothing reported any more.
    ///
    /// # Errors
    /// Those of the system.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.socket)
    }

    /// Reads what has come in.
    ///
    /// # Errors
    /// Those of the system.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Done> {
        done(self.socket.read(buffer))
    }

    /// Writes as much as there is room for.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Done> {
        done(self.socket.write(bytes))
    }
}

fn done(result: io::Result<usize>) -> io::Result<Done> {
    match result {
        Ok(0) => Ok(Done::Closed),
        Ok(bytes) => Ok(Done::Some(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::NotConnected => Ok(Done::Blocked),
            ErrorKind::Interrupted => Ok(Done::Some(0)),
            // What the server had to say before may still be there to be read.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Done::Closed),
            _ => Err(error),
        },
    }
}
