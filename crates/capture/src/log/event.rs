//! What a message says of a session: the wording of PostgreSQL 15 to 18 (`check_log_statement`, `check_log_duration` and
//! `exec_execute_message` in src/backend/tcop/postgres.c). Translated messages are not understood: lc_messages has to be
//! a locale of English.

use super::entry::LogEntry;

/// A value of a parameter; None is NULL.
pub type ParameterValue = Option<String>;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum LogEvent<'a> {
    /// A statement of the simple protocol, or one or several statements of it.
    Statement { text: &'a str, duration_ms: Option<f64>, prepared: Option<&'a str> },
    /// A portal of the extended protocol was executed.
    Execute { text: &'a str, duration_ms: Option<f64>, parameters: Parameters },
    /// A portal was executed for some of its rows, and again for others.
    Fetch { text: &'a str },
    /// A function call of the fast path.
    FastPath,
    /// A statement was parsed or bound.
    Preparation { duration_ms: f64 },
    /// The end of what the line before began, or a preparation.
    Duration { duration_ms: f64 },
    /// A statement failed.
    Failure,
    /// The session ended.
    End,
}

/// Parameters of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    Known(Vec<ParameterValue>),
    /// Cut by log_parameter_max_length.
    Truncated,
    /// Not as any version writes them.
    Unreadable,
}

/// What a line says; None for what is of no concern.
pub fn event(entry: &LogEntry) -> Option<LogEvent<'_>> {
    match entry.severity.as_str() {
        "ERROR" => return Some(LogEvent::Failure),
        "FATAL" | "PANIC" => return Some(LogEvent::End),
        "LOG" => {}
        _ => return None,
    }
    let message = entry.message.as_str();
    if message.starts_with("disconnection: ") {
        return Some(LogEvent::End);
    }
    let (duration_ms, rest) = match message.strip_prefix("duration: ") {
        None => (None, message),
        Some(tail) => {
            let (number, rest) = tail.split_once(" ms")?;
            let duration_ms: f64 = number.parse().ok()?;
            if rest.is_empty() {
                return Some(LogEvent::Duration { duration_ms });
            }
            (Some(duration_ms), rest.strip_prefix("  ")?)
        }
    };
    if let Some(text) = rest.strip_prefix("statement: ") {
        let prepared = entry.detail.strip_prefix("prepare: ");
        return Some(LogEvent::Statement { text, duration_ms, prepared });
    }
    if rest.starts_with("fastpath function call: ") {
        return Some(LogEvent::FastPath);
    }
    if let Some(tail) = rest.strip_prefix("execute fetch from ") {
        return Some(LogEvent::Fetch { text: named(tail)? });
    }
    if let Some(tail) = rest.strip_prefix("execute ") {
        return Some(LogEvent::Execute {
            text: named(tail)?,
            duration_ms,
            parameters: parameters(&entry.detail),
        });
    }
    if rest.starts_with("parse ") || rest.starts_with("bind ") {
        return duration_ms.map(|duration_ms| LogEvent::Preparation { duration_ms });
    }
    None
}

/// The text behind `name: `, or `name/portal: `. A name may contain anything: it ends where a statement begins or, where none does,
/// at the first colon with a blank.
fn named(tail: &str) -> Option<&str> {
    /// Colons that are looked at: a name has at most 63 bytes, and a portal's too.
    const MOST: usize = 64;
    let mut texts = tail.match_indices(": ").map(|(at, colon)| &tail[at + colon.len()..]);
    let first = texts.clone().next()?;
    Some(texts.by_ref().take(MOST).find(|text| begins_statement(text)).unwrap_or(first))
}

/// Whether a text begins with the first word of a statement that a client executes.
fn begins_statement(text: &str) -> bool {
    const WORDS: [&str; 36] = [
        "abort",
        "analyze",
        "begin",
        "call",
        "close",
        "commit",
        "copy",
        "create",
        "deallocate",
        "declare",
        "delete",
        "drop",
        "end",
        "execute",
        "explain",
        "fetch",
        "insert",
        "listen",
        "lock",
        "merge",
        "notify",
        "prepare",
        "release",
        "reset",
        "rollback",
        "savepoint",
        "select",
        "set",
        "show",
        "start",
        "table",
        "truncate",
        "update",
        "vacuum",
        "values",
        "with",
    ];
    let loud = text.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    let word: String = loud.chars().take_while(char::is_ascii_alphabetic).collect();
    WORDS.iter().any(|known| known.eq_ignore_ascii_case(&word))
}

/// The parameters in a DETAIL: `parameters: $1 = '…', $2 = NULL` in 15 and 16, `Parameters: …` from 17 on.
pub fn parameters(detail: &str) -> Parameters {
    let Some(mut rest) = detail.strip_prefix("parameters: ").or_else(|| detail.strip_prefix("Parameters: "))
    else {
        return if detail.is_empty() { Parameters::Known(Vec::new()) } else { Parameters::Unreadable };
    };
    let mut values = Vec::new();
    let mut is_truncated = false;
    loop {
        let Some(tail) = rest.strip_prefix(&format!("${} = ", values.len() + 1)) else {
            return Parameters::Unreadable;
        };
        if let Some(tail) = tail.strip_prefix("NULL") {
            values.push(None);
            rest = tail;
        } else {
            let Some((value, tail)) = tail.strip_prefix('\'').and_then(quoted) else {
                return Parameters::Unreadable;
            };
            is_truncated |= value.ends_with("...");
            values.push(Some(value));
            rest = tail;
        }
        if rest.is_empty() {
            break;
        }
        let Some(tail) = rest.strip_prefix(", ") else { return Parameters::Unreadable };
        rest = tail;
    }
    if is_truncated { Parameters::Truncated } else { Parameters::Known(values) }
}

/// The text up to the closing quote, in which two quotes are one, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('\'')?;
        value.push_str(before);
        let Some(tail) = after.strip_prefix('\'') else { return Some((value, after)) };
        value.push('\'');
        rest = tail;
    }
}
