//! Configuration parameters whose work is done in the server's main loop for client sessions,
//! which a worker does not run: setting one for a run would measure nothing, so it is refused;
//! a server's default that has one on is warned of.

use crate::server::guc;

/// A parameter, the value that means off, and what to do instead.
pub struct UnsupportedSetting {
    pub name: &'static str,
    off: &'static str,
    pub hint: &'static str,
}

const LOGGING: &str =
    "The engine logs no statements; measure the cost of logging them with driver => 'wire'.";
const CLIENT: &str = "It watches the connection of a client, and the engine's sessions have none; those of driver => 'wire' have one.";
const PER_TRANSACTION: &str = "Set the parameter's default_transaction_... counterpart instead.";
const IDENTITY: &str = "A client is a session of the calling role: use SET ROLE before the call.";

/// Settings that only limit how much of a statement is logged and cost nothing by themselves.
const LOGGING_DETAILS: [&str; 3] =
    ["log_statement_sample_rate", "log_parameter_max_length", "log_parameter_max_length_on_error"];

/// The order is that of bits in a run's header, so at most 32.
const UNSUPPORTED: [UnsupportedSetting; 19] = [
    UnsupportedSetting { name: "log_statement", off: "none", hint: LOGGING },
    UnsupportedSetting { name: "log_duration", off: "off", hint: LOGGING },
    UnsupportedSetting { name: "log_min_duration_statement", off: "-1", hint: LOGGING },
    UnsupportedSetting { name: "log_min_duration_sample", off: "-1", hint: LOGGING },
    UnsupportedSetting { name: "log_transaction_sample_rate", off: "0", hint: LOGGING },
    UnsupportedSetting { name: "log_statement_stats", off: "off", hint: LOGGING },
    UnsupportedSetting { name: "log_executor_stats", off: "off", hint: LOGGING },
    UnsupportedSetting { name: "client_connection_check_interval", off: "0", hint: CLIENT },
    UnsupportedSetting { name: "idle_session_timeout", off: "0", hint: CLIENT },
    UnsupportedSetting { name: "idle_in_transaction_session_timeout", off: "0", hint: CLIENT },
    UnsupportedSetting { name: "log_statement_sample_rate", off: "1", hint: LOGGING },
    UnsupportedSetting { name: "transaction_isolation", off: "", hint: PER_TRANSACTION },
    UnsupportedSetting { name: "transaction_read_only", off: "", hint: PER_TRANSACTION },
    UnsupportedSetting { name: "transaction_deferrable", off: "", hint: PER_TRANSACTION },
    UnsupportedSetting { name: "role", off: "", hint: IDENTITY },
    UnsupportedSetting { name: "session_authorization", off: "", hint: IDENTITY },
    UnsupportedSetting { name: "is_superuser", off: "", hint: IDENTITY },
    UnsupportedSetting { name: "log_parameter_max_length", off: "-1", hint: LOGGING },
    UnsupportedSetting { name: "log_parameter_max_length_on_error", off: "0", hint: LOGGING },
];

impl UnsupportedSetting {
    /// Returns whether sessions over connections do not support it either: it belongs to a transaction, or to the session's role.
    pub fn is_unsupported_over_connections(&self) -> bool {
        self.hint == PER_TRANSACTION || self.hint == IDENTITY
    }
}

/// Returns the parameter's entry, if it is unsupported.
pub fn find(name: &str) -> Option<&'static UnsupportedSetting> {
    UNSUPPORTED.iter().find(|u| u.name.eq_ignore_ascii_case(name))
}

/// Returns the bits of parameters that are on in this session and would cost a client's session time.
pub fn on_by_default() -> u32 {
    UNSUPPORTED
        .iter()
        .enumerate()
        .filter(|(_, u)| u.hint == LOGGING && !LOGGING_DETAILS.contains(&u.name))
        .filter(|(_, u)| guc::current(u.name).is_some_and(|value| value != u.off))
        .fold(0, |bits, (bit, _)| bits | 1 << bit)
}

/// Returns the names of the parameters whose bits are set.
pub fn names(bits: u32) -> Vec<&'static str> {
    UNSUPPORTED.iter().enumerate().filter(|(bit, _)| bits & 1 << bit != 0).map(|(_, u)| u.name).collect()
}
