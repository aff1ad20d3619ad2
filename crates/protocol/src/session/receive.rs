//! What the server sends.

use bench_base::error::{UserError, sqlstate};
use bench_base::untrusted;
use bench_script::CapturedRows;
use bytes::BytesMut;
use postgres_protocol::message::backend::{
    AUTHENTICATION_TAG, BACKEND_KEY_DATA_TAG, BIND_COMPLETE_TAG, CLOSE_COMPLETE_TAG, COMMAND_COMPLETE_TAG,
    COPY_IN_RESPONSE_TAG, COPY_OUT_RESPONSE_TAG, DATA_ROW_TAG, EMPTY_QUERY_RESPONSE_TAG, ERROR_RESPONSE_TAG,
    Message, NO_DATA_TAG, NOTICE_RESPONSE_TAG, NOTIFICATION_RESPONSE_TAG, PARAMETER_DESCRIPTION_TAG,
    PARAMETER_STATUS_TAG, PARSE_COMPLETE_TAG, PORTAL_SUSPENDED_TAG, READY_FOR_QUERY_TAG, ROW_DESCRIPTION_TAG,
};
use postgres_protocol::message::frontend;

use crate::report::{ErrorReport, MAX_ERROR, shown, violation};
use crate::session::{KEPT, PARAMETERS, SessionEvent, SessionPhase, TransactionStatus, WireSession};

/// Two tags that postgres-protocol does not know.
const NEGOTIATE_PROTOCOL_VERSION_TAG: u8 = b'v';
const COPY_BOTH_RESPONSE_TAG: u8 = b'W';

/// The length of a message's tag and length.
const HEADER: usize = 5;

/// The longest messages in bytes, their own length included: of those that hold data or texts of users, of the others,
/// and of requests for authentication. The first is the server's limit, the other two are libpq's.
const MAX_LONG: i32 = 1 << 30;
const MAX_SHORT: i32 = 30_000;
const MAX_AUTHENTICATION: i32 = 2000;

/// The longest error in the form of protocol 2, in bytes.
const MAX_OLD_ERROR: usize = 30_000;

/// The front of the input.
enum Frame {
    /// The beginning of a message; with this many bytes more will be known of it.
    Partial(usize),
    /// A message of `length` bytes, of which the first `taken` are taken up.
    Whole { taken: usize, length: usize },
    /// The header, at least, of a message of so many bytes that nobody wants.
    Unwanted(usize),
}

impl WireSession {
    /// Takes bytes that came in, from none to any number of messages, the first and the last of them maybe in part.
    /// `Ready`: everything asked for has been answered, and bytes to send, if there are any, are of commands that were
    /// queued meanwhile; it is said again whenever something comes in while nothing is asked for. Answers to requests
    /// for authentication are added to the output.
    ///
    /// # Errors
    /// The session is over: the server ended it (with the server's SQLSTATE, message, DETAIL and HINT), did not let the
    /// client in (28000, 28P01 or the server's), began a COPY (0A000) or did not keep to the protocol (08P01).
    pub fn receive(&mut self, bytes: &[u8]) -> Result<SessionEvent, UserError> {
        if let Err(error) = self.read(bytes) {
            self.phase = SessionPhase::Over;
            self.partial = Vec::new();
            self.unread = 0;
            return Err(error);
        }
        Ok(if self.is_busy() { SessionEvent::Pending } else { SessionEvent::Ready })
    }

    fn read(&mut self, mut bytes: &[u8]) -> Result<(), UserError> {
        while !bytes.is_empty() {
            if self.unread > 0 {
                let passed_over = self.unread.min(bytes.len());
                self.unread -= passed_over;
                bytes = &bytes[passed_over..];
            } else if self.partial.is_empty() {
                match self.frame(bytes)? {
                    Frame::Whole { taken, length } => {
                        let (message, rest) = bytes.split_at(taken);
                        bytes = rest;
                        self.unread = length - taken;
                        self.take(message)?;
                    }
                    Frame::Unwanted(length) => self.pass_over(bytes[0], length)?,
                    Frame::Partial(length) => {
                        add(&mut self.partial, bytes, length)?;
                        bytes = &[];
                    }
                }
            } else {
                bytes = self.complete_partial(bytes)?;
            }
        }
        Ok(())
    }

    /// Takes bytes that belong to the message whose beginning is already here. Returns the others.
    fn complete_partial<'a>(&mut self, mut bytes: &'a [u8]) -> Result<&'a [u8], UserError> {
        if let Frame::Partial(length) = self.frame(&self.partial)? {
            let missing = length.saturating_sub(self.partial.len()).min(bytes.len());
            add(&mut self.partial, &bytes[..missing], length)?;
            bytes = &bytes[missing..];
        }
        match self.frame(&self.partial)? {
            Frame::Partial(_) => {}
            Frame::Whole { taken, length } => {
                let mut message = std::mem::take(&mut self.partial);
                self.unread = length - taken;
                self.take(&message)?;
                if message.capacity() <= KEPT {
                    message.clear();
                    self.partial = message;
                }
            }
            Frame::Unwanted(length) => {
                self.pass_over(self.partial[0], length - self.partial.len())?;
                self.partial.clear();
            }
        }
        Ok(bytes)
    }

    /// What the message that these bytes begin with is.
    ///
    /// # Errors
    /// 08P01 for a length that no message has, and for a message that may not come now.
    fn frame(&self, bytes: &[u8]) -> Result<Frame, UserError> {
        let Some((tag, length)) = header(bytes) else { return Ok(Frame::Partial(HEADER)) };
        let is_wanted = match &self.phase {
            SessionPhase::Authenticating(_) => match tag {
                // Letters in the place of a length make one that is longer.
                ERROR_RESPONSE_TAG if !(8..=MAX_LONG).contains(&length) => return old_error(bytes),
                AUTHENTICATION_TAG if !(8..=MAX_AUTHENTICATION).contains(&length) => {
                    return Err(out_of_sync(tag, length));
                }
                AUTHENTICATION_TAG | ERROR_RESPONSE_TAG | NEGOTIATE_PROTOCOL_VERSION_TAG => true,
                other => {
                    let message = format!(
                        "expected an authentication request of the server, but received {}",
                        shown(other)
                    );
                    return Err(
                        violation(message).hint("Check host and port: this may be no PostgreSQL server.")
                    );
                }
            },
            SessionPhase::Starting | SessionPhase::Running => self.is_wanted(tag, length)?,
            SessionPhase::New | SessionPhase::Over => {
                let message = "received a message in a session that has not begun or is over";
                return Err(violation(message));
            }
        };
        let limit = if may_be_long(tag) { MAX_LONG } else { MAX_SHORT };
        if length < 4 || length > limit {
            return Err(out_of_sync(tag, length));
        }
        let total = 1 + length.unsigned_abs() as usize;
        let taken = if tag == ERROR_RESPONSE_TAG { total.min(MAX_ERROR) } else { total };
        Ok(match is_wanted {
            false => Frame::Unwanted(total),
            true if bytes.len() >= taken => Frame::Whole { taken, length: total },
            true => Frame::Partial(taken),
        })
    }

    /// Whether somebody wants to read a message of this kind.
    ///
    /// # Errors
    /// 08P01 for one that may not come now.
    fn is_wanted(&self, tag: u8, length: i32) -> Result<bool, UserError> {
        match tag {
            NOTICE_RESPONSE_TAG | NOTIFICATION_RESPONSE_TAG => Ok(false),
            PARAMETER_STATUS_TAG | ERROR_RESPONSE_TAG => Ok(true),
            _ if !self.is_busy() => {
                Err(violation(format!("received message {} while no command was executed", shown(tag))))
            }
            PARSE_COMPLETE_TAG
            | BIND_COMPLETE_TAG
            | CLOSE_COMPLETE_TAG
            | NO_DATA_TAG
            | PARAMETER_DESCRIPTION_TAG
            | PORTAL_SUSPENDED_TAG => Ok(false),
            ROW_DESCRIPTION_TAG | DATA_ROW_TAG => {
                let has_room = |captured: &CapturedRows| captured.has_room(length.unsigned_abs() as usize);
                let is_kept = self.captures && self.captured.as_deref().is_some_and(has_room);
                Ok(is_kept || self.watcher.is_some())
            }
            COMMAND_COMPLETE_TAG
            | EMPTY_QUERY_RESPONSE_TAG
            | READY_FOR_QUERY_TAG
            | BACKEND_KEY_DATA_TAG
            | COPY_IN_RESPONSE_TAG
            | COPY_OUT_RESPONSE_TAG
            | COPY_BOTH_RESPONSE_TAG => Ok(true),
            _ => Err(violation(format!("received unexpected message {} of the server", shown(tag)))),
        }
    }

    /// Nobody wants this message, of which so many bytes are still to come.
    ///
    /// # Errors
    /// 08P01 for a second description of one result.
    fn pass_over(&mut self, tag: u8, bytes: usize) -> Result<(), UserError> {
        self.unread = bytes;
        if self.captures && matches!(tag, ROW_DESCRIPTION_TAG | DATA_ROW_TAG) {
            self.begin_query(tag)?;
            if let Some(captured) = &mut self.captured {
                captured.leave_out(tag);
            }
        }
        Ok(())
    }

    /// Takes a whole message.
    fn take(&mut self, message: &[u8]) -> Result<(), UserError> {
        let (tag, body) = (message[0], &message[HEADER..]);
        match tag {
            COMMAND_COMPLETE_TAG => {
                self.rows = self.rows.saturating_add(rows(body)?);
                self.complete_query(tag)?;
            }
            READY_FOR_QUERY_TAG => self.take_ready(body)?,
            ROW_DESCRIPTION_TAG | DATA_ROW_TAG => {
                self.begin_query(tag)?;
                if let Some(captured) = self.captured.as_mut().filter(|_| self.captures) {
                    captured.take(tag, body);
                }
                if let Some(watcher) = &mut self.watcher {
                    watcher(tag, body);
                }
            }
            EMPTY_QUERY_RESPONSE_TAG => self.complete_query(tag)?,
            ERROR_RESPONSE_TAG => self.take_error(body)?,
            AUTHENTICATION_TAG => self.authenticate(message)?,
            PARAMETER_STATUS_TAG | BACKEND_KEY_DATA_TAG => self.take_setting(message)?,
            COPY_IN_RESPONSE_TAG | COPY_OUT_RESPONSE_TAG | COPY_BOTH_RESPONSE_TAG => {
                if tag == COPY_IN_RESPONSE_TAG {
                    frontend::copy_done(&mut self.output);
                }
                let message =
                    "COPY from or to the client is not possible: clients of a run neither send nor keep rows";
                return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
            }
            _ => return Err(unnegotiated(body)),
        }
        Ok(())
    }

    fn authenticate(&mut self, message: &[u8]) -> Result<(), UserError> {
        let SessionPhase::Authenticating(authentication) = &mut self.phase else {
            return Err(violation("received a request for authentication of an authenticated session"));
        };
        let is_accepted = authentication.answer(message, &mut self.output)?;
        self.used_password = authentication.used_password;
        if is_accepted {
            self.phase = SessionPhase::Starting;
        }
        Ok(())
    }

    fn take_ready(&mut self, body: &[u8]) -> Result<(), UserError> {
        self.status = match body {
            b"I" => TransactionStatus::Idle,
            b"T" => TransactionStatus::InBlock,
            b"E" => TransactionStatus::InFailedBlock,
            _ => return Err(violation("received ReadyForQuery with an unknown status of the transaction")),
        };
        let Some(outstanding) = self.outstanding.checked_sub(1) else {
            return Err(violation("received ReadyForQuery before the pipeline was synchronized"));
        };
        self.outstanding = outstanding;
        self.phase = SessionPhase::Running;
        Ok(())
    }

    /// The first error of a command is its outcome; one that ends the session, or comes without a command, is the
    /// session's.
    fn take_error(&mut self, body: &[u8]) -> Result<(), UserError> {
        let ErrorReport { error, is_fatal } = ErrorReport::new(body, self.unread)?;
        let has_command = matches!(self.phase, SessionPhase::Running) && self.is_busy();
        if is_fatal || !has_command {
            return Err(error.into());
        }
        self.error.get_or_insert_with(|| Box::new(error));
        Ok(())
    }

    fn take_setting(&mut self, message: &[u8]) -> Result<(), UserError> {
        match Message::parse(&mut BytesMut::from(message)) {
            Ok(Some(Message::ParameterStatus(body))) => {
                let (Ok(name), Ok(value)) = (body.name(), body.value()) else {
                    // Texts in another encoding than UTF-8, which none of those that are kept has.
                    return Ok(());
                };
                if let Some(place) = PARAMETERS.iter().position(|parameter| *parameter == name) {
                    self.parameters[place] = Some(value.into());
                }
                Ok(())
            }
            Ok(Some(Message::BackendKeyData(body))) => {
                self.backend = Some((body.process_id(), body.secret_key()));
                Ok(())
            }
            _ => Err(violation(format!("received invalid message {} of the server", shown(message[0])))),
        }
    }

    /// The result of a query begins, unless it has.
    ///
    /// # Errors
    /// 08P01 for a second description of one result.
    fn begin_query(&mut self, tag: u8) -> Result<(), UserError> {
        if self.captures && !self.in_query {
            self.in_query = true;
            if let Some(captured) = &mut self.captured {
                captured.next_query();
            }
        } else if self.captures && tag == ROW_DESCRIPTION_TAG {
            return Err(violation("received a second description of the result of one statement"));
        }
        Ok(())
    }

    /// # Errors
    /// 08P01 for more results than statements: a server that goes on and on is not listened to.
    fn complete_query(&mut self, tag: u8) -> Result<(), UserError> {
        self.unanswered = self
            .unanswered
            .checked_sub(1)
            .ok_or_else(|| violation("received more results than statements were sent"))?;
        // One without a row is a query as well.
        self.begin_query(tag)?;
        self.in_query = false;
        if self.error.is_none() {
            self.completed += 1;
        }
        Ok(())
    }
}

/// Adds bytes to a message of this length, of which they are a part. Memory is taken for what is here, at most twice as
/// much.
///
/// # Errors
/// 53200.
fn add(message: &mut Vec<u8>, bytes: &[u8], length: usize) -> Result<(), UserError> {
    let needed = message.len() + bytes.len();
    if needed > message.capacity() {
        let room = length.max(needed).min(2 * needed);
        message.try_reserve_exact(room - message.len()).map_err(|_| {
            UserError::new(sqlstate::OUT_OF_MEMORY, "out of memory for a message of the server")
                .detail(format!("It has {length} bytes."))
        })?;
    }
    message.extend_from_slice(bytes);
    Ok(())
}

/// The tag and the length of a message, if they are here: what `Header::parse` reads, and what it refuses as well,
/// because an old server's error is no message.
fn header(bytes: &[u8]) -> Option<(u8, i32)> {
    let (tag, rest) = bytes.split_first()?;
    Some((*tag, i32::from_be_bytes(*rest.first_chunk()?)))
}

/// The messages that libpq takes at any length (VALID_LONG_MESSAGE_TYPE): those with data or texts of users.
fn may_be_long(tag: u8) -> bool {
    matches!(
        tag,
        DATA_ROW_TAG
            | ERROR_RESPONSE_TAG
            | NOTICE_RESPONSE_TAG
            | NOTIFICATION_RESPONSE_TAG
            | ROW_DESCRIPTION_TAG
    )
}

fn out_of_sync(tag: u8, length: i32) -> UserError {
    violation(format!("lost synchronization with the server: got message {}, length {length}", shown(tag)))
}

/// An error in the form of protocol 2, as servers send it that cannot fork (and all of them before PostgreSQL 7.4): the
/// tag, and a text up to a zero byte.
fn old_error(bytes: &[u8]) -> Result<Frame, UserError> {
    let text = &bytes[1..bytes.len().min(1 + MAX_OLD_ERROR)];
    match text.iter().position(|&byte| byte == 0) {
        Some(end) => {
            let message = untrusted::text(&text[..end], 0);
            Err(UserError::new(sqlstate::CONNECTION_REJECTED, message.trim()))
        }
        None if text.len() < MAX_OLD_ERROR => Ok(Frame::Partial(1 + MAX_OLD_ERROR)),
        None => Err(violation("received an error of the server that does not end")),
    }
}

/// NegotiateProtocolVersion: nothing that the startup message asks for can be negotiated.
fn unnegotiated(body: &[u8]) -> UserError {
    let part =
        |at: usize| body.get(at..at + 2).and_then(|part| part.try_into().ok()).map_or(0, u16::from_be_bytes);
    violation(format!("server offers protocol {}.{} to a client that asks for 3.0", part(0), part(2)))
}

/// The rows that the tag of a CommandComplete message tells of: "SELECT 5", "INSERT 0 5". Others have none.
fn rows(body: &[u8]) -> Result<u64, UserError> {
    let Some((0, tag)) = body.split_last() else {
        return Err(violation("received CommandComplete without an end"));
    };
    let digits = tag.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let number = |sum: u64, &digit: &u8| match digit {
        b'0'..=b'9' => Some(sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?),
        _ => None,
    };
    Ok(digits.iter().try_fold(0, number).unwrap_or(0))
}
