//! What is sent before the first command.

use std::fmt;

use bench_base::error::UserError;
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use zeroize::Zeroizing;

use super::violation::{shown, violation};

/// What a server is told first, and what it may ask for.
#[derive(Clone, Default)]
pub struct Startup {
    /// The role.
    pub user: String,
    /// The database.
    pub database: String,
    /// Settings of the session, as `application_name` and `client_encoding`, in the order in which they are sent.
    pub parameters: Vec<(String, String)>,
    /// For a server that asks for one; an empty one is none. Its memory is overwritten when it is let go of.
    pub password: Option<Zeroizing<String>>,
    /// The hash of the server's certificate (`tls-server-end-point` of RFC 5929), with which SCRAM binds itself to the
    /// TLS connection. `None` without TLS, and for `channel_binding=disable`.
    pub tls_server_end_point: Option<Vec<u8>>,
    /// `channel_binding=require`: no other authentication is good enough.
    pub requires_channel_binding: bool,
}

/// Whether a startup message means something else by this name than a setting of the session ("StartupMessage" in the
/// manual; libpq sends none of them as a setting).
pub fn is_startup_word(name: &str) -> bool {
    const WORDS: [&str; 4] = ["user", "database", "options", "replication"];
    const PROTOCOL: &str = "_pq_.";
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(name))
        || name.get(..PROTOCOL.len()).is_some_and(|start| start.eq_ignore_ascii_case(PROTOCOL))
}

/// Without the password, so that no message or log can have it.
impl fmt::Debug for Startup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Startup")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("parameters", &self.parameters)
            .field("requires_channel_binding", &self.requires_channel_binding)
            .finish_non_exhaustive()
    }
}

/// The bytes of a CancelRequest, for a connection of their own: `backend` is the pid and the secret of
/// [`Session::backend`](super::Session::backend).
pub fn cancel_request(backend: (i32, i32)) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frontend::cancel_request(backend.0, backend.1, &mut bytes);
    bytes.to_vec()
}

/// The bytes of an SSLRequest, which asks for TLS before the startup message. The answer is one byte.
pub fn encryption_request() -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frontend::ssl_request(&mut bytes);
    bytes.to_vec()
}

/// What a server's answer to [`encryption_request`] means: `true` that TLS begins now, `false` that the connection stays
/// as it is. The server must not have sent anything behind the byte (CVE-2021-23222): that is for the caller to see.
///
/// # Errors
/// 08P01 for another byte. An "E" begins an error of a server that does not know TLS; it is not authenticated, and so its
/// text is not shown (CVE-2024-10977).
pub fn encryption_accepted(answer: u8) -> Result<bool, UserError> {
    match answer {
        b'S' => Ok(true),
        b'N' => Ok(false),
        b'E' => Err(violation("server answers the request for TLS with an error")),
        other => Err(violation(format!("received invalid answer to the request for TLS: {}", shown(other)))
            .hint("Check host and port: this may be no PostgreSQL server.")),
    }
}
