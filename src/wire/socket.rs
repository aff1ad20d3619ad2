//! Sockets of both kinds.

use std::io::{self, ErrorKind, Read, Write};

use bench_core::spec::Address;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

/// A socket that does not block.
pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Begins to connect. `None`: the queue of a Unix-domain socket is full, and it is to be tried again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn connect(to: &Address) -> io::Result<Option<Self>> {
        let result = match to {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Address::Tcp(address) => TcpStream::connect(*address).map(Self::Tcp),
        };
        match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            result => result.map(Some),
        }
    }
}

/// Does the same with a socket of either kind.
macro_rules! either {
    ($socket:expr, $inner:ident => $result:expr) => {
        match $socket {
            Socket::Unix($inner) => $result,
            Socket::Tcp($inner) => $result,
        }
    };
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        either!(self, socket => socket.read(buffer))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        either!(self, socket => socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for Socket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        either!(self, socket => socket.register(registry, token, interests))
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        either!(self, socket => socket.reregister(registry, token, interests))
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        either!(self, socket => socket.deregister(registry))
    }
}
