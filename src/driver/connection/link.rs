//! A connection's socket, with or without TLS.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{Address, Encryption};
use bench_protocol::foreign_server::TcpOptions;
use bench_protocol::tls::TlsSession;
use bench_protocol::{Startup, encryption_accepted, encryption_request};
use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

use super::{Route, failed, failed_by};
use crate::server::process::peer_pid;

/// The result of reading or writing once.
pub enum Done {
    /// The number of bytes.
    Some(usize),
    /// The socket would block.
    Blocked,
    /// The peer has closed the connection.
    Closed,
}

/// Steps of a handshake before `establish` returns to its caller.
const MAX_STEPS: usize = 16;

/// How far encryption has been negotiated.
enum LinkStage {
    /// The request for TLS is sent; the number counts bytes sent already.
    Asking(usize),
    /// The server's answer to the request is awaited.
    Answering,
    /// TLS, during and after its handshake.
    Tls(Box<TlsSession>),
    /// No encryption.
    Plain,
}

/// A connection, possibly still being made.
pub struct Link {
    socket: Socket,
    stage: LinkStage,
    /// Reading stopped at a limit, not at the end of the input.
    has_more: bool,
}

impl Link {
    /// Starts to connect. Returns `None` if the server's queue is full; then the caller tries again.
    ///
    /// # Errors
    /// 08006.
    pub fn connect(route: &Route) -> Result<Option<Self>, UserError> {
        let socket =
            Socket::connect(&route.to.address, &route.tcp).map_err(|error| failed(&route.to, error))?;
        let Some(socket) = socket else { return Ok(None) };
        let stage = match &route.tls {
            Some(tls) if tls.is_direct() => LinkStage::Tls(Box::new(route.tls_session(tls)?)),
            Some(_) => LinkStage::Asking(0),
            None => LinkStage::Plain,
        };
        Ok(Some(Self { socket, stage, has_more: false }))
    }

    /// Registers the connection for edge-triggered events under this token.
    ///
    /// Includes writability, although output seldom waits for it: a job that it wakes finds answers of other connections;
    /// without it, jobs slept more and did less (`benches/connections`, 8 and 64 clients).
    ///
    /// # Errors
    /// Those of the system.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.socket, token, Interest::READABLE | Interest::WRITABLE)
    }

    /// Removes the registration.
    ///
    /// # Errors
    /// Those of the system.
    pub fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        registry.deregister(&mut self.socket)
    }

    /// Returns whether there may be more to read without a further event, because reading stopped at its limit.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Records whether reading stopped at its limit.
    pub fn leave(&mut self, has_more: bool) {
        self.has_more = has_more;
    }

    /// Negotiates encryption as far as possible without waiting; true when the first message can be sent. Returns after a limited
    /// number of steps: see [`has_more`](Self::has_more).
    ///
    /// # Errors
    /// 08001, 08006, 08P01 and those of TLS.
    pub fn establish(&mut self, route: &Route) -> Result<bool, UserError> {
        self.has_more = false;
        for _ in 0..MAX_STEPS {
            match &mut self.stage {
                LinkStage::Plain => return Ok(true),
                LinkStage::Asking(sent) => {
                    let request = encryption_request();
                    match done(self.socket.write(&request[*sent..]))
                        .map_err(|error| failed(&route.to, error))?
                    {
                        Done::Some(bytes) => *sent += bytes,
                        Done::Blocked => return Ok(false),
                        Done::Closed => return Err(closed_early(route)),
                    }
                    if *sent == request.len() {
                        self.stage = LinkStage::Answering;
                    }
                }
                LinkStage::Answering => match self.answer(route)? {
                    Some(stage) => self.stage = stage,
                    None => return Ok(false),
                },
                LinkStage::Tls(tls) if tls.is_established() => return Ok(true),
                LinkStage::Tls(_) => {
                    let mut buffer = [0; 8192];
                    self.flush().map_err(|error| failed(&route.to, error))?;
                    let early = |_: &[u8]| Err(UserError::new(sqlstate::PROTOCOL_VIOLATION, EARLY));
                    let result = self.read(&mut buffer, route, early);
                    // After an error, this sends TLS's alert.
                    let flushed = self.flush();
                    match result? {
                        Done::Some(_) => {
                            flushed.map_err(|error| failed(&route.to, error))?;
                        }
                        Done::Blocked => return Ok(false),
                        Done::Closed => return Err(closed_early(route)),
                    }
                }
            }
        }
        self.has_more = true;
        Ok(false)
    }

    /// Reads the server's answer to the request for TLS. Returns the next stage; `None` if there is no answer yet.
    fn answer(&mut self, route: &Route) -> Result<Option<LinkStage>, UserError> {
        // Bytes after the answer may have been injected (CVE-2021-23222), hence room for a second one.
        let mut answer = [0; 2];
        match done(self.socket.read(&mut answer)).map_err(|error| failed(&route.to, error))? {
            Done::Some(0) | Done::Blocked => return Ok(None),
            Done::Some(1) => {}
            Done::Some(_) => {
                let message = "received unencrypted data after SSL response";
                return Err(failed_by(&route.to, UserError::new(sqlstate::PROTOCOL_VIOLATION, message)));
            }
            Done::Closed => return Err(closed_early(route)),
        }
        let is_accepted = encryption_accepted(answer[0]).map_err(|error| failed_by(&route.to, error))?;
        if let Some(tls) = route.tls.as_ref().filter(|_| is_accepted) {
            return Ok(Some(LinkStage::Tls(Box::new(route.tls_session(tls)?))));
        }
        if route.to.encryption == Encryption::Required {
            return Err(failed(&route.to, "server does not support SSL, but SSL was required")
                .hint("Turn on ssl on the target, or set another sslmode."));
        }
        Ok(Some(LinkStage::Plain))
    }

    /// Returns SCRAM's channel binding data, if the connection is encrypted.
    pub fn tls_server_end_point(&self) -> Option<Vec<u8>> {
        match &self.stage {
            LinkStage::Tls(tls) => tls.tls_server_end_point(),
            _ => None,
        }
    }

    /// Returns the startup message for this connection.
    pub fn startup<'a>(&self, route: &'a Route) -> Cow<'a, Startup> {
        if !self.is_encrypted() || !route.binds {
            return Cow::Borrowed(&route.startup);
        }
        Cow::Owned(Startup { tls_server_end_point: self.tls_server_end_point(), ..route.startup.clone() })
    }

    /// Returns whether the connection uses TLS.
    pub fn is_encrypted(&self) -> bool {
        matches!(self.stage, LinkStage::Tls(_))
    }

    /// Returns the server's process that listens, if it is known.
    pub fn server_pid(&self) -> Option<i32> {
        self.socket.peer_pid()
    }

    /// Reads once and passes the input to `take`. The number returned is that of the socket's bytes; less than the buffer's
    /// length means that there is no more input.
    ///
    /// # Errors
    /// 08006; those of `take`.
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        route: &Route,
        mut take: impl FnMut(&[u8]) -> Result<(), UserError>,
    ) -> Result<Done, UserError> {
        let done = done(self.socket.read(buffer)).map_err(|error| failed(&route.to, error))?;
        match (&mut self.stage, &done) {
            (LinkStage::Tls(tls), Done::Some(bytes)) => {
                let result = tls.receive(&buffer[..*bytes], take);
                let flushed = self.flush();
                result.map_err(|error| match error.sqlstate.as_str() {
                    sqlstate::UNABLE_TO_CONNECT => failed_by(&route.to, error),
                    _ => error,
                })?;
                flushed.map_err(|error| failed(&route.to, error))?;
            }
            (LinkStage::Tls(tls), Done::Closed) => {
                if let Some(error) = tls.end_of_input() {
                    return Err(failed_by(&route.to, error));
                }
            }
            (_, Done::Some(bytes)) if *bytes > 0 => take(&buffer[..*bytes])?,
            _ => {}
        }
        Ok(done)
    }

    /// Reads and drops input of a session that has ended.
    ///
    /// # Errors
    /// Those of the system.
    pub fn drain(&mut self, buffer: &mut [u8]) -> io::Result<Done> {
        done(self.socket.read(buffer))
    }

    /// Writes as much as possible without waiting.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Done> {
        let LinkStage::Tls(tls) = &mut self.stage else { return done(self.socket.write(bytes)) };
        let taken = tls.send(bytes);
        match self.flush()? {
            Done::Closed => Ok(Done::Closed),
            _ if taken == 0 => Ok(Done::Blocked),
            _ => Ok(Done::Some(taken)),
        }
    }

    /// Writes TLS's pending output as far as possible without waiting.
    ///
    /// # Errors
    /// Those of the system.
    pub fn flush(&mut self) -> io::Result<Done> {
        let LinkStage::Tls(tls) = &mut self.stage else { return Ok(Done::Some(0)) };
        while !tls.output().is_empty() {
            match done(self.socket.write(tls.output()))? {
                Done::Some(bytes) => tls.sent(bytes),
                other => return Ok(other),
            }
        }
        Ok(Done::Some(0))
    }
}

const EARLY: &str = "received data before the startup message was sent";

fn closed_early(route: &Route) -> UserError {
    failed(&route.to, "server closed the connection unexpectedly")
        .detail("The session was not begun yet.")
        .hint("The server's log has the reason, if the server ended in good order.")
}

pub(super) fn done(result: io::Result<usize>) -> io::Result<Done> {
    match result {
        Ok(0) => Ok(Done::Closed),
        Ok(bytes) => Ok(Done::Some(bytes)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::NotConnected => Ok(Done::Blocked),
            ErrorKind::Interrupted => Ok(Done::Some(0)),
            // The server's last messages may still be readable.
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Ok(Done::Closed),
            _ => Err(error),
        },
    }
}

/// A socket that does not block.
pub enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Starts to connect. Returns `None` if the queue of a Unix-domain socket is full; then the caller tries again.
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

    /// Returns the process that listens on a Unix-domain socket; `None` for TCP.
    pub fn peer_pid(&self) -> Option<i32> {
        match self {
            Self::Unix(socket) => peer_pid(socket),
            Self::Tcp(_) => None,
        }
    }
}

/// Sets the options that libpq sets: TCP_NODELAY, keepalives and the user timeout.
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

/// Calls a method of either kind of socket.
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
