//! Requests to cancel a statement, each over a connection of its own.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bench_model::spec::{Address, HostAddress};
use bench_protocol::cancel_request;
use mio::event::Source;
use mio::{Interest, Registry, Token};

use super::link::{Done, done};
use super::route::Route;
use super::socket::Socket;

/// How long the server has to answer at all.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Asks the server to cancel what one of its backends, known by its pid and its secret, is executing. Nothing tells whether
/// it does. As by libpq's PQcancel, the request is not encrypted.
pub fn cancel(to: &HostAddress, backend: (i32, i32)) {
    let request = cancel_request(backend);
    match &to.address {
        Address::Tcp(address) => {
            if let Ok(mut socket) = TcpStream::connect_timeout(address, TIMEOUT) {
                let _ = socket.write_all(&request);
            }
        }
        // One whose queue is full is not waited for.
        Address::Unix(path) => {
            if let Ok(mut socket) = mio::net::UnixStream::connect(path) {
                let _ = socket.write_all(&request);
            }
        }
    }
}

/// As much as a server may have to say to a request, in bytes: it has taken it when it closes the connection, and one that
/// talks on is not listened to.
const MOST_WORDS: usize = 8192;

/// A request that nobody waits for. Its connection is there until the server has taken it.
pub struct CancelRequest {
    socket: Socket,
    message: Vec<u8>,
    /// Bytes of the message that have been sent.
    sent: usize,
    /// Bytes that the server has answered.
    heard: usize,
}

impl CancelRequest {
    /// Begins a request, as [`cancel`] makes it; what happens to its socket is reported under this token. `None`: the
    /// server's queue is full, and it is to be tried again.
    ///
    /// # Errors
    /// Those of the system.
    pub fn begin(
        route: &Route,
        backend: (i32, i32),
        registry: &Registry,
        token: Token,
    ) -> io::Result<Option<Self>> {
        let Some(mut socket) = Socket::connect(&route.to.address, &route.tcp)? else { return Ok(None) };
        socket.register(registry, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Some(Self { socket, message: cancel_request(backend), sent: 0, heard: 0 }))
    }

    /// Goes on with it, and tells whether that is all: the server closes the connection when it has taken the request.
    pub fn is_over(&mut self) -> bool {
        while let Some(rest @ [_, ..]) = self.message.get(self.sent..) {
            match done(self.socket.write(rest)) {
                Ok(Done::Some(bytes)) => self.sent += bytes,
                Ok(Done::Blocked) => return false,
                Ok(Done::Closed) | Err(_) => return true,
            }
        }
        let mut answer = [0; 1024];
        while self.heard < MOST_WORDS {
            match done(self.socket.read(&mut answer)) {
                Ok(Done::Some(bytes)) => self.heard += bytes,
                Ok(Done::Blocked) => return false,
                Ok(Done::Closed) | Err(_) => return true,
            }
        }
        true
    }
}
