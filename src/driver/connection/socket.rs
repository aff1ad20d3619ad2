//! Sockets of both kinds.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use bench_model::spec::Address;
use bench_protocol::foreign_server::TcpOptions;
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

use crate::server::process::peer_pid;

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
    pub fn connect(to: &Address, tcp: &TcpOptions) -> io::Result<Option<Self>> {
        let result = match to {
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
            Address::Tcp(address) => TcpStream::connect(*address).and_then(|socket| {
                set_options(&socket, tcp)?;
                Ok(Self::Tcp(socket))
            }),
        };
        match result {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            result => result.map(Some),
        }
    }

    /// The process that listens at the other end of a Unix-domain socket; `None` of another socket.
    pub fn peer_pid(&self) -> Option<i32> {
        match self {
            Self::Unix(socket) => peer_pid(socket),
            Self::Tcp(_) => None,
        }
    }
}

/// Sets what libpq sets: no delay, and the options that are given.
fn set_options(socket: &TcpStream, options: &TcpOptions) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let socket = SockRef::from(socket);
    if options.keepalives {
        let secs = |secs: u32| Duration::from_secs(secs.into());
        let mut keepalive = TcpKeepalive::new();
        if let Some(idle) = options.keepalives_idle {
            keepalive = keepalive.with_time(secs(idle));
        }
        if let Some(interval) = options.keepalives_interval {
            keepalive = keepalive.with_interval(secs(interval));
        }
        if let Some(count) = options.keepalives_count {
            keepalive = keepalive.with_retries(count);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    #[cfg(target_os = "linux")]
    if let Some(timeout) = options.tcp_user_timeout {
        socket.set_tcp_user_timeout(Some(Duration::from_millis(timeout.into())))?;
    }
    Ok(())
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
