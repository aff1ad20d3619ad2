//! Limits of what users pass that no honest use meets: arguments travel to every client and are kept with every run.

use bench_base::error::{UserError, sqlstate};

/// The longest text beside scripts, and the largest jsonb, in bytes.
pub const MAX_ARGUMENT: usize = 1 << 20;

/// The most configuration parameters of a run: the server knows a few hundred.
pub const MAX_SETTINGS: usize = 1000;

/// The most runs in an array of them.
pub const MAX_RUN_IDS: usize = 10_000;

/// # Errors
/// 54000 for a text above [`MAX_ARGUMENT`].
pub fn check_text(argument: &str, text: &str) -> Result<(), UserError> {
    if text.len() <= MAX_ARGUMENT {
        return Ok(());
    }
    Err(exceeded(format!("{argument} must not be longer than {MAX_ARGUMENT} bytes, not {}", text.len())))
}

/// # Errors
/// 54000 for more than `most` of what `things` names.
pub fn check_count(argument: &str, count: usize, most: usize, things: &str) -> Result<(), UserError> {
    if count <= most {
        return Ok(());
    }
    Err(exceeded(format!("{argument} must not have more than {most} {things}, not {count}")))
}

fn exceeded(message: String) -> UserError {
    UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message)
}
