//! One error type for everything a user can get wrong.

use std::borrow::Cow;
use std::fmt;

/// SQLSTATEs that this project raises itself (appendix A of the PostgreSQL manual).
pub mod sqlstate {
    /// protocol_violation
    pub const PROTOCOL_VIOLATION: &str = "08P01";
    /// sqlserver_rejected_establishment_of_sqlconnection
    pub const CONNECTION_REJECTED: &str = "08004";
    /// sqlclient_unable_to_establish_sqlconnection
    pub const UNABLE_TO_CONNECT: &str = "08001";
    /// connection_failure
    pub const CONNECTION_FAILURE: &str = "08006";
    pub const TRANSACTION_RESOLUTION_UNKNOWN: &str = "08007";
    /// feature_not_supported
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    /// null_value_not_allowed
    pub const NULL_VALUE_NOT_ALLOWED: &str = "22004";
    /// numeric_value_out_of_range
    pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
    /// division_by_zero
    pub const DIVISION_BY_ZERO: &str = "22012";
    /// cardinality_violation
    pub const CARDINALITY_VIOLATION: &str = "21000";
    /// check_violation
    pub const CHECK_VIOLATION: &str = "23514";
    /// invalid_parameter_value
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    /// read_only_sql_transaction
    pub const READ_ONLY_SQL_TRANSACTION: &str = "25006";
    /// invalid_authorization_specification
    pub const INVALID_AUTHORIZATION: &str = "28000";
    /// invalid_password
    pub const INVALID_PASSWORD: &str = "28P01";
    /// insufficient_privilege
    pub const INSUFFICIENT_PRIVILEGE: &str = "42501";
    /// syntax_error
    pub const SYNTAX_ERROR: &str = "42601";
    /// undefined_column: the nearest to an undefined script variable
    pub const UNDEFINED_COLUMN: &str = "42703";
    /// unique_violation
    pub const UNIQUE_VIOLATION: &str = "23505";
    /// trigger_protocol_violated
    pub const TRIGGER_PROTOCOL_VIOLATED: &str = "39P01";
    /// undefined_object
    pub const UNDEFINED_OBJECT: &str = "42704";
    /// duplicate_object
    pub const DUPLICATE_OBJECT: &str = "42710";
    /// duplicate_function
    pub const DUPLICATE_FUNCTION: &str = "42723";
    /// undefined_function
    pub const UNDEFINED_FUNCTION: &str = "42883";
    /// reserved_name
    pub const RESERVED_NAME: &str = "42939";
    /// invalid_transaction_termination
    pub const INVALID_TRANSACTION_TERMINATION: &str = "2D000";
    /// prohibited_sql_statement_attempted: as postgres_fdw, for a connection without a password
    pub const PASSWORD_REQUIRED: &str = "2F003";
    /// fdw_invalid_option_name
    pub const FDW_INVALID_OPTION_NAME: &str = "HV00D";
    /// invalid_sql_statement_name: of a prepared statement, too
    pub const INVALID_STATEMENT_NAME: &str = "26000";
    /// duplicate_prepared_statement
    pub const DUPLICATE_PREPARED_STATEMENT: &str = "42P05";
    /// dependent_objects_still_exist
    pub const DEPENDENT_OBJECTS_STILL_EXIST: &str = "2BP01";
    /// undefined_table
    pub const UNDEFINED_TABLE: &str = "42P01";
    /// wrong_object_type
    pub const WRONG_OBJECT_TYPE: &str = "42809";
    /// deadlock_detected
    pub const DEADLOCK_DETECTED: &str = "40P01";
    /// too_many_connections
    pub const TOO_MANY_CONNECTIONS: &str = "53300";
    /// configuration_limit_exceeded
    pub const CONFIGURATION_LIMIT_EXCEEDED: &str = "53400";
    /// insufficient_resources
    pub const INSUFFICIENT_RESOURCES: &str = "53000";
    /// out_of_memory
    pub const OUT_OF_MEMORY: &str = "53200";
    /// program_limit_exceeded
    pub const PROGRAM_LIMIT_EXCEEDED: &str = "54000";
    /// object_in_use
    pub const OBJECT_IN_USE: &str = "55006";
    /// cant_change_runtime_param
    pub const CANT_CHANGE_RUNTIME_PARAM: &str = "55P02";
    /// lock_not_available
    pub const LOCK_NOT_AVAILABLE: &str = "55P03";
    /// object_not_in_prerequisite_state
    pub const NOT_IN_PREREQUISITE_STATE: &str = "55000";
    /// query_canceled
    pub const QUERY_CANCELED: &str = "57014";
    /// serialization_failure
    pub const SERIALIZATION_FAILURE: &str = "40001";
    /// active_sql_transaction
    pub const ACTIVE_SQL_TRANSACTION: &str = "25001";
    /// character_not_in_repertoire
    pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
    /// admin_shutdown
    pub const ADMIN_SHUTDOWN: &str = "57P01";
    /// data_corrupted
    pub const DATA_CORRUPTED: &str = "XX001";
    /// index_corrupted
    pub const INDEX_CORRUPTED: &str = "XX002";
    /// internal_error
    pub const INTERNAL_ERROR: &str = "XX000";
}

/// Whether an error comes of the rows and values that a statement met, and not of the statement itself, so that another
/// execution may succeed: cardinality_violation (class 21), data_exception (22), integrity_constraint_violation (23),
/// with_check_option_violation (44), what PL/pgSQL raises (P0), and a lock that was not to be had at once (55P03).
pub fn is_of_data(state: &str) -> bool {
    const CLASSES: [&str; 5] = ["21", "22", "23", "44", "P0"];
    CLASSES.iter().any(|class| state.starts_with(class)) || state == sqlstate::LOCK_NOT_AVAILABLE
}

/// The most bytes of a text of others' that errors, the log and reports show.
pub const MAX_TEXT: usize = 4096;

/// The text, or its beginning and how much longer it is.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_TEXT {
        return Cow::Borrowed(text);
    }
    let kept = text.floor_char_boundary(MAX_TEXT);
    Cow::Owned(format!("{} … ({} bytes cut)", &text[..kept], text.len() - kept))
}

/// An error for the user: what PostgreSQL's `ereport` carries.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UserError {
    /// Five characters, see [`sqlstate`].
    pub sqlstate: String,
    /// One sentence without a full stop, lower case, in the style of PostgreSQL's own messages.
    pub message: String,
    /// The figures behind the message.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// What the server was doing, in another process, when it met it: its CONTEXT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

impl UserError {
    /// This error with each text cut to the room that a segment has for it; as JSON it then stays whole.
    pub fn cut(&self) -> Self {
        let cut = |text: &str| text.chars().take(800).collect::<String>();
        Self {
            sqlstate: self.sqlstate.clone(),
            message: cut(&self.message),
            detail: self.detail.as_deref().map(cut),
            hint: self.hint.as_deref().map(cut),
            context: self.context.as_deref().map(cut),
        }
    }

    /// An error with a message only.
    pub fn new(sqlstate: &str, message: impl Into<String>) -> Self {
        Self {
            sqlstate: sqlstate.to_owned(),
            message: message.into(),
            detail: None,
            hint: None,
            context: None,
        }
    }

    /// Returns an error for an argument out of range or of the wrong form: 22023, invalid_parameter_value.
    #[cold]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(sqlstate::INVALID_PARAMETER_VALUE, message)
    }

    /// Adds a detail.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for UserError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.sqlstate)
    }
}

impl std::error::Error for UserError {}

/// MAKE_SQLSTATE of utils/elog.h: five characters of six bits.
pub fn pack(sqlstate: &str) -> i32 {
    sqlstate
        .bytes()
        .take(5)
        .enumerate()
        .fold(0, |packed, (place, byte)| packed | ((i32::from(byte) - i32::from(b'0')) & 0x3F) << (6 * place))
}

/// unpack_sql_state of utils/error/elog.c.
pub fn unpack(mut packed: i32) -> String {
    (0..5)
        .map(|_| {
            let character = (packed & 0x3F) as u8 + b'0';
            packed >>= 6;
            char::from(character)
        })
        .collect()
}

/// What the server said of a statement that failed, or what this project says in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlError {
    /// As PostgreSQL packs it (MAKE_SQLSTATE): see [`pack`].
    pub sqlstate: i32,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// The character in the statement's text, counted from 1; 0: none in particular.
    pub position: u32,
    /// What the server was doing: its CONTEXT.
    pub context: Option<String>,
    /// Not the server's, but of what a client does with a statement or its result.
    pub is_of_client: bool,
}

impl From<UserError> for SqlError {
    fn from(error: UserError) -> Self {
        Self {
            sqlstate: pack(&error.sqlstate),
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            position: 0,
            context: error.context,
            is_of_client: true,
        }
    }
}

impl SqlError {
    /// An error of this project's own.
    pub fn new(sqlstate: &str, message: impl Into<String>) -> Self {
        Self { sqlstate: pack(sqlstate), message: message.into(), ..Self::default() }
    }

    /// Whether it has this SQLSTATE.
    pub fn is(&self, sqlstate: &str) -> bool {
        self.sqlstate == pack(sqlstate)
    }

    /// Whether another try may succeed: serialization_failure or deadlock_detected.
    pub fn is_retryable(&self) -> bool {
        self.is(sqlstate::SERIALIZATION_FAILURE) || self.is(sqlstate::DEADLOCK_DETECTED)
    }

    /// As [`is_of_data`].
    pub fn is_of_data(&self) -> bool {
        is_of_data(&unpack(self.sqlstate))
    }

    /// query_canceled.
    pub fn is_cancel(&self) -> bool {
        self.is(sqlstate::QUERY_CANCELED)
    }
}

impl From<SqlError> for UserError {
    fn from(error: SqlError) -> Self {
        let sqlstate = unpack(error.sqlstate);
        let SqlError { message, detail, hint, context, .. } = error;
        Self { sqlstate, message, detail, hint, context }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("naïve"), "naïve");
        let long = "ï".repeat(5000);
        assert_eq!(cut(&long), format!("{} … (5904 bytes cut)", "ï".repeat(2048)));
    }
}
