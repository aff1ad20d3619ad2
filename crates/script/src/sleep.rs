//! `\sleep`: how long a client sleeps.

use std::time::Duration;

use bench_base::error::{UserError, sqlstate};

use super::blanks::trim_start;
use super::variables::{Value, VariableId, Variables};

/// `\sleep`: how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sleep {
    pub(super) time: Time,
    pub(super) unit: Unit,
}

/// A number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Time {
    Constant(u64),
    /// The name is for messages.
    Variable {
        id: VariableId,
        name: Box<str>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Microseconds,
    Milliseconds,
    Seconds,
}

/// More than a century. A clock's time can be added to it in any unit.
pub const LONGEST_SLEEP: Duration = Duration::from_secs(u32::MAX as u64);

impl Sleep {
    /// How long to sleep, never less than nothing (`evaluateSleep` in pgbench.c).
    pub(super) fn duration(&self, variables: &Variables) -> Result<Duration, UserError> {
        let number = match &self.time {
            Time::Constant(number) => *number,
            Time::Variable { id, name } => match variables.get(*id) {
                Some(Value::Integer(value)) => u64::try_from(*value).unwrap_or(0),
                Some(value) => sleep_time(name, &value.to_text())?,
                None => {
                    let message = format!("sleep: undefined variable \"{name}\"");
                    return Err(UserError::new(sqlstate::UNDEFINED_COLUMN, message));
                }
            },
        };
        let duration = match self.unit {
            Unit::Microseconds => Duration::from_micros(number),
            Unit::Milliseconds => Duration::from_millis(number),
            Unit::Seconds => Duration::from_secs(number),
        };
        Ok(duration.min(LONGEST_SLEEP))
    }

    /// The variable that it reads, if there is one.
    pub(super) fn variable(&self) -> Option<VariableId> {
        match self.time {
            Time::Constant(_) => None,
            Time::Variable { id, .. } => Some(id),
        }
    }
}

/// What the text of the variable `name` is as a time: the number at its front, as for C's `atoi`.
fn sleep_time(name: &str, text: &str) -> Result<u64, UserError> {
    let number = trim_start(text);
    let number = &number[..integer_length(number)];
    let is_zero = !number.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    if is_zero && !text.starts_with(|first: char| first.is_ascii_digit()) {
        let message = format!("sleep: invalid sleep time \"{text}\" for variable \"{name}\"");
        return Err(UserError::invalid(message));
    }
    Ok(integer(number))
}

/// The length of the sign and the digits at the front of a text.
pub fn integer_length(text: &str) -> usize {
    let sign = usize::from(text.starts_with(['+', '-']));
    sign + text.bytes().skip(sign).take_while(u8::is_ascii_digit).count()
}

/// What a sign and digits amount to: 0 for negative numbers and for none, the largest number for larger ones.
pub fn integer(text: &str) -> u64 {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits.is_empty() || digits.starts_with('-') { 0 } else { digits.parse().unwrap_or(u64::MAX) }
}
