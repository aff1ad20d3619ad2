//! The messages of a log, as they are read from wherever they are.

use bench_base::error::UserError;
use bench_capture::log::{LogCapture, from_json};
use serde::{Deserialize, Serialize};

/// How much was read.
#[derive(Default, Serialize, Deserialize)]
pub struct Read {
    pub messages: u64,
    /// Lines that no server writes.
    pub unreadable: u64,
    /// Whether this server has written all of it, so that it is known who executed what.
    pub is_servers: bool,
}

/// The longest message of csvlog and line of jsonlog, in bytes: longer ones are taken for broken.
pub(super) const MAX_LINE: u64 = 16 << 20;

/// Gives a line of jsonlog to the capture.
pub(super) fn take_line(line: &str, capture: &mut LogCapture, read: &mut Read) -> Result<(), UserError> {
    match Some(line).filter(|line| line.len() as u64 <= MAX_LINE).and_then(from_json) {
        Some(entry) => {
            read.messages += 1;
            capture.take(&entry)
        }
        None => {
            read.unreadable += 1;
            Ok(())
        }
    }
}
