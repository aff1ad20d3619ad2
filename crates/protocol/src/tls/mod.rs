//! TLS as libpq has it, without the connection: encrypted bytes in, plaintext out, and the other way round. Protocol,
//! certificates and their verification are OpenSSL's, with libpq's settings; the check of a host's name is libpq's own.
//!
//! [`TlsClient`] is made once from a target's options and the files that they name, a [`TlsSession`] for each connection. A
//! session has no socket: it stands between one and a [`Session`](super::Session), and is used as that is. Bytes from the
//! socket go to [`TlsSession::receive`], which hands on the plaintext; what is to be sent goes through
//! [`TlsSession::send`]; [`TlsSession::output`] is for the socket, also before anything was received and after an error.
//! libpq has no TLS over Unix sockets, whatever sslmode says: that is the caller's to know.
//!
//! Verified is where there are root certificates, or sslmode demands it:
//!
//! | sslmode | without sslrootcert | with sslrootcert |
//! |---|---|---|
//! | allow, prefer, require | nothing is | the chain |
//! | verify-ca | refused | the chain |
//! | verify-full | refused | the chain and the name |
//!
//! That is more than libpq's documentation says of `allow` and `prefer`, and what libpq does: where it fails, a connection
//! without TLS may be tried. In any case the server has to have the key of its certificate.

mod certificate;
mod client;
mod session;
#[cfg(test)]
mod tests;

pub use crate::tls::client::{TlsClient, TlsFiles};
pub use crate::tls::session::TlsSession;
