//! One connection's TLS.

use std::io;
use std::io::{ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bench_base::error::{UserError, sqlstate};
use bench_base::untrusted;
use openssl::error::ErrorStack;
use openssl::ssl::{Error, ErrorCode, Ssl, SslStream, SslVerifyMode};
use openssl::x509::X509StoreContextRef;

use crate::tls::certificate;
use crate::tls::certificate::{failed, reason};

/// The name of PostgreSQL's protocol in ALPN, with its length before it.
pub const PROTOCOL: &[u8] = b"\x0apostgresql";

/// As much encrypted output as is gathered before [`TlsSession::send`] takes no more, in bytes.
const FULL: usize = 65_536;

/// The most plaintext of one record, in bytes.
const RECORD: usize = 16_384;

/// As much plaintext is handed on at once, in bytes.
const READ: usize = 4096;

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
    stream: SslStream<Records>,
    phase: TlsPhase,
    /// Why the server's chain is not good.
    refusal: Arc<Mutex<Option<String>>>,
    /// The host that the certificate has to name.
    host: Option<String>,
    is_direct: bool,
}

impl TlsSession {
    /// The first message is in the output.
    ///
    /// # Errors
    /// 08001.
    pub(crate) fn new(
        mut ssl: Ssl,
        is_chain_verified: bool,
        host: Option<String>,
        is_direct: bool,
    ) -> Result<Self, UserError> {
        let refusal = Arc::new(Mutex::new(None));
        if is_chain_verified {
            let refusal = Arc::clone(&refusal);
            ssl.set_verify_callback(SslVerifyMode::PEER, move |is_good, chain| {
                if !is_good {
                    *refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused(chain));
                }
                is_good
            });
        }
        let stream = SslStream::new(ssl, Records::default())
            .map_err(|error| failed(format!("could not establish SSL connection: {}", reason(&error))))?;
        let mut session = Self { stream, phase: TlsPhase::Handshake, refusal, host, is_direct };
        session.shake_hands().map_err(|error| session.ended(error))?;
        Ok(session)
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
        bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        if self.phase == TlsPhase::Over {
            return Ok(());
        }
        self.stream.get_mut().receive(bytes);
        let result = self.shake_hands().and_then(|()| self.hand_on(&mut take));
        result.map_err(|error| self.ended(error))
    }

    /// Encrypts plaintext into the output, and says how much it has taken: nothing until the connection is established, and
    /// none of what would make the output too long. The rest is to be given again.
    pub fn send(&mut self, plaintext: &[u8]) -> usize {
        if self.phase != TlsPhase::Established {
            return 0;
        }
        let mut taken = 0;
        while taken < plaintext.len() && self.output().len() < FULL {
            let end = plaintext.len().min(taken + RECORD);
            match self.stream.ssl_write(&plaintext[taken..end]) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => taken += bytes,
            }
        }
        taken
    }

    /// The bytes for the socket.
    pub fn output(&self) -> &[u8] {
        self.stream.get_ref().output()
    }

    /// Takes this many bytes off the front of [`output`](Self::output): they have been sent.
    pub fn sent(&mut self, bytes: usize) {
        self.stream.get_mut().sent(bytes);
    }

    /// Whether the handshake is done, and the server the right one: plaintext can be sent.
    pub fn is_established(&self) -> bool {
        self.phase == TlsPhase::Established
    }

    /// The hash of the server's certificate for channel binding (`tls-server-end-point` of RFC 5929), once the connection is
    /// established. `None` for signature algorithms without a hash of their own, as Ed25519: PostgreSQL's server has none
    /// for them either.
    pub fn tls_server_end_point(&self) -> Option<Vec<u8>> {
        certificate::end_point(&*self.stream.ssl().peer_certificate()?)
    }

    /// The server's certificate in DER.
    #[cfg(test)]
    pub(crate) fn peer(&self) -> Vec<u8> {
        self.stream.ssl().peer_certificate().expect("a handshake").to_der().expect("a certificate")
    }

    /// Puts the message that ends the connection into the output (close_notify), behind everything else.
    pub fn close(&mut self) {
        // It has no other end: the server's answer is not awaited.
        drop(self.stream.shutdown());
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

    /// Goes on with the handshake, and checks what is to be checked when it is done.
    fn shake_hands(&mut self) -> Result<(), UserError> {
        if self.phase != TlsPhase::Handshake {
            return Ok(());
        }
        clear_errors();
        match self.stream.connect() {
            Ok(()) => {}
            Err(error) if is_blocked(&error) => return Ok(()),
            Err(error) => return Err(self.failure(&error)),
        }
        let ssl = self.stream.ssl();
        if self.is_direct && ssl.selected_alpn_protocol() != Some(&PROTOCOL[1..]) {
            let message = "direct SSL connection was established without ALPN protocol negotiation extension";
            return Err(failed(message).hint(
                "Servers support direct negotiation since PostgreSQL 17: set option sslnegotiation of the server to \
                 \"postgres\".",
            ));
        }
        if let Some(host) = &self.host {
            let peer = ssl.peer_certificate().ok_or_else(|| failed("certificate could not be obtained"))?;
            certificate::check_name(&peer, host)?;
        }
        self.phase = TlsPhase::Established;
        Ok(())
    }

    /// Hands on all plaintext there is.
    fn hand_on(&mut self, take: &mut impl FnMut(&[u8]) -> Result<(), UserError>) -> Result<(), UserError> {
        if self.phase != TlsPhase::Established {
            return Ok(());
        }
        let mut buffer = [0; READ];
        clear_errors();
        loop {
            match self.stream.ssl_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(bytes) => {
                    take(&buffer[..bytes])?;
                    // Asking once more, for nothing, costs as much as a short record.
                    if self.stream.ssl().pending() == 0 && self.stream.get_ref().is_read() {
                        return Ok(());
                    }
                }
                // The server has said that nothing more comes.
                Err(error) if is_blocked(&error) || error.code() == ErrorCode::ZERO_RETURN => return Ok(()),
                Err(error) => return Err(self.failure(&error)),
            }
        }
    }

    /// The error for what OpenSSL does not like.
    fn failure(&self, error: &Error) -> UserError {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(refusal) = refusal.filter(|_| self.phase == TlsPhase::Handshake) {
            return failed("SSL error: certificate verify failed").detail(refusal).hint(
                "Set option sslrootcert of the server to a file with the certificate of the authority that signed the server's.",
            );
        }
        let reason = error.ssl_error().map_or("no SSL error reported", reason);
        let failed = failed(format!("SSL error: {reason}"));
        if reason.contains(" alert ") {
            return failed.hint(
                "The server's log has the reason. Where it asks for a client certificate, set options sslcert and sslkey of the user mapping.",
            );
        }
        match self.phase {
            TlsPhase::Handshake => failed.hint("Check host and port: this may be no PostgreSQL server."),
            _ => failed,
        }
    }

    /// An error that ends the session; one of TLS with the SQLSTATE of an established connection where it is one.
    fn ended(&mut self, error: UserError) -> UserError {
        let phase = std::mem::replace(&mut self.phase, TlsPhase::Over);
        match phase {
            TlsPhase::Established if error.sqlstate == sqlstate::UNABLE_TO_CONNECT => {
                UserError { sqlstate: sqlstate::CONNECTION_FAILURE.to_owned(), ..error }
            }
            _ => error,
        }
    }
}

/// Whether nothing is wrong but that more has to come in.
fn is_blocked(error: &Error) -> bool {
    [ErrorCode::WANT_READ, ErrorCode::WANT_WRITE].contains(&error.code())
}

/// Which certificate of a chain is not good, by its subject, and why, as a sentence.
fn refused(chain: &X509StoreContextRef) -> String {
    let subject = chain.current_cert().map(certificate::subject).unwrap_or_default();
    format!("Certificate \"{}\": {}.", untrusted::text(subject.as_bytes(), 0), chain.error().error_string())
}

/// Takes away what others' calls of OpenSSL in this process have left in the queue of errors: the next result is judged
/// by it.
fn clear_errors() {
    drop(ErrorStack::get());
}

/// The capacity in bytes that an empty output may keep.
const KEPT: usize = 4096;

/// Encrypted bytes that have come in, and those that are to be sent: what OpenSSL takes for a socket.
#[derive(Default)]
pub struct Records {
    input: Vec<u8>,
    /// How many bytes of the input have been read.
    read: usize,
    output: Vec<u8>,
    /// How many bytes of the output have been sent.
    sent: usize,
}

impl Records {
    /// Takes what has come in.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.drain(..self.read);
        self.read = 0;
        self.input.extend_from_slice(bytes);
    }

    /// Whether all that has come in was read.
    pub fn is_read(&self) -> bool {
        self.read == self.input.len()
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Takes this many bytes off the front of the output.
    pub fn sent(&mut self, bytes: usize) {
        self.sent = self.output.len().min(self.sent.saturating_add(bytes));
        if self.sent == self.output.len() {
            self.sent = 0;
            self.output.clear();
            self.output.shrink_to(KEPT);
        }
    }
}

impl Read for Records {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = &self.input[self.read..];
        if left.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let bytes = left.len().min(buffer.len());
        buffer[..bytes].copy_from_slice(&left[..bytes]);
        self.read += bytes;
        Ok(bytes)
    }
}

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
