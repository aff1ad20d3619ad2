//! What is sent before the first command: requests for TLS, the startup message, and the answers to requests for
//! authentication.

use std::{fmt, io};

use bench_base::error::{UserError, sqlstate};
use bench_base::untrusted;
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::backend::{AuthenticationSaslBody, Message};
use postgres_protocol::message::frontend;
use zeroize::Zeroizing;

use crate::report::{shown, violation};

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
/// [`Session::backend`](crate::Session::backend).
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

/// Answers the server's requests, until it is content.
pub(crate) struct Authentication {
    user: String,
    password: Option<Zeroizing<String>>,
    tls_server_end_point: Option<Vec<u8>>,
    requires_channel_binding: bool,
    exchange: ScramState,
    /// The server has asked for a password, in whatever form.
    pub used_password: bool,
}

/// Where the exchange of SCRAM is.
enum ScramState {
    None,
    Begun(ScramSha256),
    Answered(ScramSha256),
    /// The server has shown that it knows the password as well.
    Verified,
}

impl Authentication {
    pub fn new(startup: &Startup) -> Self {
        Self {
            user: startup.user.clone(),
            password: startup.password.clone().filter(|password| !password.is_empty()),
            tls_server_end_point: startup.tls_server_end_point.clone(),
            requires_channel_binding: startup.requires_channel_binding,
            exchange: ScramState::None,
            used_password: false,
        }
    }

    /// Answers an authentication request by what it adds to `output`; `true`: the server is content.
    ///
    /// # Errors
    /// 28P01 where a password is needed and there is none, 28000 for a method that is not supported or not good enough,
    /// 08P01 for a server that does not keep to the protocol, or asks for more than 100,000 iterations of SCRAM.
    pub fn answer(&mut self, message: &[u8], output: &mut BytesMut) -> Result<bool, UserError> {
        let code = message.get(5..9).and_then(|code| code.try_into().ok()).map_or(-1, i32::from_be_bytes);
        if let Some(method) = unsupported(code) {
            return Err(not_supported(&method));
        }
        match Message::parse(&mut BytesMut::from(message)).map_err(invalid)? {
            Some(Message::AuthenticationOk) => return self.accepted(),
            Some(Message::AuthenticationCleartextPassword) => {
                let password = self.plain_password("password")?;
                frontend::password_message(password.as_bytes(), output).map_err(invalid)?;
            }
            Some(Message::AuthenticationMd5Password(body)) => {
                let user = self.user.clone();
                let password = self.plain_password("md5")?;
                let hash = md5_hash(user.as_bytes(), password.as_bytes(), body.salt());
                frontend::password_message(hash.as_bytes(), output).map_err(invalid)?;
            }
            Some(Message::AuthenticationSasl(body)) => self.begin_scram(&body, output)?,
            Some(Message::AuthenticationSaslContinue(body)) => self.continue_scram(body.data(), output)?,
            Some(Message::AuthenticationSaslFinal(body)) => self.finish_scram(body.data())?,
            _ => return Err(violation("expected an authentication request of the server")),
        }
        Ok(false)
    }

    /// The password for a method that binds no channel and sends it only once.
    fn plain_password(&mut self, method: &str) -> Result<&str, UserError> {
        if self.requires_channel_binding {
            return Err(not_bound().detail(format!("The server asks for method {method}.")));
        }
        // It is said once: a server that asks without end would have it said without end.
        if self.used_password {
            return Err(unexpected("a request for a password"));
        }
        self.password()
    }

    fn password(&mut self) -> Result<&str, UserError> {
        self.used_password = true;
        self.password.as_ref().map(|password| password.as_str()).ok_or_else(|| {
            let message = format!("server asks for a password of user \"{}\", but none is given", self.user);
            UserError::new(sqlstate::INVALID_PASSWORD, message)
                .hint("Set option password of the user mapping on the target; for this server, of one on a foreign server bench_local of wrapper bench_wire that a superuser owns.")
        })
    }

    /// AuthenticationSASL: which mechanisms there are.
    fn begin_scram(&mut self, body: &AuthenticationSaslBody, output: &mut BytesMut) -> Result<(), UserError> {
        if self.used_password {
            return Err(unexpected("AuthenticationSASL"));
        }
        let mechanisms: Vec<&str> = body.mechanisms().collect().map_err(invalid)?;
        let offers = |mechanism: &str| mechanisms.contains(&mechanism);
        let (mechanism, binding) = match self.tls_server_end_point.take() {
            Some(hash) if offers(SCRAM_SHA_256_PLUS) => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash))
            }
            _ if self.requires_channel_binding => return Err(not_bound()),
            _ if !offers(SCRAM_SHA_256) => {
                return Err(not_supported(&untrusted::text(mechanisms.join(", ").as_bytes(), 0)));
            }
            // The server learns that this side could have, and ends a connection from which somebody took the offer.
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        let scram = ScramSha256::new(self.password()?.as_bytes(), binding);
        frontend::sasl_initial_response(mechanism, scram.message(), output).map_err(invalid)?;
        self.exchange = ScramState::Begun(scram);
        Ok(())
    }

    /// AuthenticationSASLContinue: salt, iterations and the server's part of the nonce.
    fn continue_scram(&mut self, data: &[u8], output: &mut BytesMut) -> Result<(), UserError> {
        let ScramState::Begun(mut scram) = std::mem::replace(&mut self.exchange, ScramState::None) else {
            return Err(unexpected("AuthenticationSASLContinue"));
        };
        scram.update(data).map_err(invalid)?;
        frontend::sasl_response(scram.message(), output).map_err(invalid)?;
        self.exchange = ScramState::Answered(scram);
        Ok(())
    }

    /// AuthenticationSASLFinal: the server's proof.
    fn finish_scram(&mut self, data: &[u8]) -> Result<(), UserError> {
        let ScramState::Answered(mut scram) = std::mem::replace(&mut self.exchange, ScramState::None) else {
            return Err(unexpected("AuthenticationSASLFinal"));
        };
        scram.finish(data).map_err(|error| {
            UserError::new(
                sqlstate::INVALID_AUTHORIZATION,
                "server could not prove that it knows the password",
            )
            .detail(format!("{}.", untrusted::text(error.to_string().as_bytes(), 0)))
        })?;
        self.exchange = ScramState::Verified;
        Ok(())
    }

    /// AuthenticationOk.
    fn accepted(&self) -> Result<bool, UserError> {
        match self.exchange {
            ScramState::Begun(_) | ScramState::Answered(_) => Err(unexpected("AuthenticationOk")),
            // Verified comes with channel binding where it is required: nothing else was begun.
            ScramState::None if self.requires_channel_binding => {
                Err(not_bound().detail("The server asks for nothing."))
            }
            ScramState::None | ScramState::Verified => Ok(true),
        }
    }
}

/// The name of a method that is known and not supported, by its code in the message.
fn unsupported(code: i32) -> Option<String> {
    let name = match code {
        0 | 3 | 5 | 10..=12 => return None,
        2 => "Kerberos V5",
        6 => "SCM credentials",
        7 | 8 => "GSSAPI",
        9 => "SSPI",
        other => return Some(format!("number {other}")),
    };
    Some(name.to_owned())
}

fn not_supported(method: &str) -> UserError {
    let message = format!("authentication method {method} is not supported");
    UserError::new(sqlstate::INVALID_AUTHORIZATION, message)
        .detail("The server asks for it.")
        .hint("Use scram-sha-256, md5, password, cert, peer or trust for this user in pg_hba.conf.")
}

fn not_bound() -> UserError {
    let message = "channel binding is required, but the server does not authenticate with it";
    UserError::new(sqlstate::INVALID_AUTHORIZATION, message)
        .hint("It needs TLS, and scram-sha-256 in pg_hba.conf.")
}

fn unexpected(message: &str) -> UserError {
    violation(format!("received {message} out of order during authentication"))
}

fn invalid(error: io::Error) -> UserError {
    violation("invalid authentication message of the server")
        .detail(format!("{}.", untrusted::text(error.to_string().as_bytes(), 0)))
}
