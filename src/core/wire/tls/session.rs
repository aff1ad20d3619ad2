//! One connection's TLS.

use std::io::{BufRead, ErrorKind, Write};

use rustls::ClientConnection;

use super::certificate::Certificate;
use super::verifier::of_rustls;
use super::{PROTOCOL, failed, names};
use crate::error::{UserError, sqlstate};

/// As much encrypted output as is gathered before [`TlsSession::send`] takes no more, in bytes.
const FULL: usize = 65_536;

/// The room in bytes that an empty output may keep.
const KEPT: usize = 4096;

/// Where a session is in its life.
#[derive(Clone, Copy, PartialEq)]
enum TlsPhase {
    Handshake,
    Established,
    /// After an error, or [`TlsSession::close`].
    Over,
}

/// TLS between a socket and a session of PostgreSQL's protocol.
pub struct TlsSession {
    connection: ClientConnection,
    phase: TlsPhase,
    /// The host that the certificate has to name.
    host: Option<String>,
    is_direct: bool,
    /// What is to be sent, from `sent` on.
    output: Vec<u8>,
    sent: usize,
}

impl TlsSession {
    /// The first message is in the output.
    pub(super) fn new(connection: ClientConnection, host: Option<String>, is_direct: bool) -> Self {
        let mut session =
            Self { connection, phase: TlsPhase::Handshake, host, is_direct, output: Vec::new(), sent: 0 };
        session.gather();
        session
    }

    /// Takes all bytes that have come from the socket, cut in any way, and hands on all plaintext that they make, cut in
    /// any way; nothing of either stays behind but the beginning of a record. Then the [`output`](Self::output) may have
    /// grown.
    ///
    /// # Errors
    /// Those of `take`. 08001 until the connection is established, and 08006 from then on: for a certificate that is not good
    /// enough, and a server that breaks the protocol. The output then tells the server why, and is worth sending; `take`
    /// got all plaintext that came before.
    pub fn receive(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        if self.phase == TlsPhase::Over {
            return Ok(());
        }
        while !bytes.is_empty() {
            // A slice is read without an error, and so that nothing remains inside that could be handed on.
            let read = self.connection.read_tls(&mut bytes);
            let processed = match read {
                Ok(0) => break,
                Ok(_) => self.connection.process_new_packets().map_err(|error| of_rustls(&error)),
                Err(error) => Err(failed(format!("SSL error: {error}"))),
            };
            let result = match processed {
                Ok(_) => self.establish().and_then(|()| self.hand_on(&mut take)),
                // Of what came along with a broken record, what is before it counts.
                Err(error) if self.phase == TlsPhase::Established => self.hand_on(&mut take).and(Err(error)),
                Err(error) => Err(error),
            };
            self.gather();
            if let Err(error) = result {
                let error = self.in_phase(error);
                self.phase = TlsPhase::Over;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Encrypts plaintext into the output, and says how much it has taken: nothing until the connection is established, and
    /// none of what would make the output too long. The rest is to be given again.
    pub fn send(&mut self, plaintext: &[u8]) -> usize {
        if self.phase != TlsPhase::Established {
            return 0;
        }
        let mut taken = 0;
        while taken < plaintext.len() && self.output().len() < FULL {
            // One record at most: its plaintext has 16 kB.
            let end = plaintext.len().min(taken + 16_384);
            match self.connection.writer().write(&plaintext[taken..end]) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => taken += bytes,
            }
            self.gather();
        }
        taken
    }

    /// The bytes for the socket.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Takes this many bytes off the front of [`output`](Self::output): they have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.output.len().min(self.sent.saturating_add(bytes));
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            self.output.shrink_to(KEPT);
        }
    }

    /// Whether the handshake is done, and the server the right one: plaintext can be sent.
    pub fn is_established(&self) -> bool {
        self.phase == TlsPhase::Established
    }

    /// The hash of the server's certificate for channel binding (`tls-server-end-point` of RFC 5929), once the connection is
    /// established. `None` for signature algorithms without a hash of their own, as Ed25519: PostgreSQL's server has none
    /// for them either.
    pub fn tls_server_end_point(&self) -> Option<Vec<u8>> {
        let certificate = self.connection.peer_certificates()?.first()?;
        Certificate::parse(certificate).ok()?.end_point()
    }

    /// The server's certificate in DER.
    #[cfg(test)]
    pub(super) fn peer(&self) -> &[u8] {
        self.connection.peer_certificates().and_then(<[_]>::first).expect("a handshake")
    }

    /// Puts the message that ends the connection into the output (close_notify), behind everything else.
    pub fn close(&mut self) {
        self.connection.send_close_notify();
        self.gather();
        self.phase = TlsPhase::Over;
    }

    /// The error for a server that has closed the connection before it was established. From then on the session of
    /// PostgreSQL's protocol knows what an end means: its last message has come or not, and close_notify says nothing new.
    pub fn end_of_input(&self) -> Option<UserError> {
        (self.phase == TlsPhase::Handshake).then(|| {
            failed("SSL connection has been closed unexpectedly")
                .detail("The handshake was not done yet.")
                .hint("The server's log has the reason, if it speaks TLS.")
        })
    }

    /// Checks what is to be checked when the handshake is done.
    fn establish(&mut self) -> Result<(), UserError> {
        if self.phase != TlsPhase::Handshake || self.connection.is_handshaking() {
            return Ok(());
        }
        if self.is_direct && self.connection.alpn_protocol() != Some(PROTOCOL) {
            let message = "direct SSL connection was established without ALPN protocol negotiation extension";
            return Err(failed(message).hint(
                "Servers support direct negotiation since PostgreSQL 17: set option sslnegotiation of the server to \
                 \"postgres\".",
            ));
        }
        if let Some(host) = &self.host {
            let certificate = self.connection.peer_certificates().and_then(<[_]>::first);
            let certificate = certificate.and_then(|der| Certificate::parse(der).ok());
            names::check(&certificate.ok_or_else(|| failed("certificate could not be obtained"))?, host)?;
        }
        self.phase = TlsPhase::Established;
        Ok(())
    }

    /// Hands on all plaintext there is.
    fn hand_on(&mut self, take: &mut impl FnMut(&[u8]) -> Result<(), UserError>) -> Result<(), UserError> {
        let mut reader = self.connection.reader();
        loop {
            let length = match reader.fill_buf() {
                // The server has said that nothing more comes.
                Ok([]) => return Ok(()),
                Ok(plaintext) => {
                    take(plaintext)?;
                    plaintext.len()
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(failed(format!("SSL error: {error}"))),
            };
            reader.consume(length);
        }
    }

    /// Moves what is to be sent into the output.
    fn gather(&mut self) {
        while self.connection.wants_write() {
            if !matches!(self.connection.write_tls(&mut self.output), Ok(1..)) {
                return;
            }
        }
    }

    /// An error of TLS, with the SQLSTATE of an established connection where it is one.
    fn in_phase(&self, error: UserError) -> UserError {
        match self.phase {
            TlsPhase::Established if error.sqlstate == sqlstate::UNABLE_TO_CONNECT => {
                UserError { sqlstate: sqlstate::CONNECTION_FAILURE.to_owned(), ..error }
            }
            _ => error,
        }
    }
}
