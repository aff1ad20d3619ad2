//! Assembles the messages of one session into transactions.
//!
//! A transaction begins with BEGIN, or with a statement outside of a block. Statements of one virtual transaction id belong
//! together even if BEGIN is not in the log; its local part is 0 in messages that were written after the commit.

use std::collections::HashMap;

use bench_base::error::MAX_TEXT;

use super::entry::LogEntry;
use super::event::{LogEvent, ParameterValue, Parameters, event};
use super::normalise::{Constant, Normalised, Template, TemplatePart, TemplateValue, normalise};
use super::shapes::{LoggedStatement, LoggedTransaction, TransactionEnding};
use super::tokens::{
    CURSOR, Class, PREPARED, SavepointStep, StatementToken, TWO_PHASE, TokenKind, classify, decode,
    savepoint, statements, tokens,
};
use crate::constants::{is_constant, without_constants};

/// Longest message that is divided into statements, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 20;
const LONG_MESSAGE: &str = "a message with more than 1 MB of statements";

/// Most statements of a transaction, and most bytes of these and their values.
const MAX_STEPS: usize = 10_000;
const MAX_TRANSACTION_BYTES: usize = 16 << 20;
const LONG_TRANSACTION: &str = "more than 10,000 statements, or 16 MB of them";

/// The state of a session between two messages.
#[derive(Debug, Default)]
pub struct LoggedSession {
    open: Option<OpenTransaction>,
    /// End of the previous transaction.
    last_end_ms: Option<f64>,
    /// Time of the last message.
    last_ms: Option<f64>,
    /// End of the server's last work.
    busy_until_ms: Option<f64>,
    /// Whether the last statement's duration is still to come.
    awaits_duration: bool,
    /// Beginning of the first parse or bind since the last execution.
    prepared_since_ms: Option<f64>,
    /// Whether only a sample of the transactions is logged; errors always are.
    is_sampled: bool,
}

/// A transaction that may go on.
#[derive(Debug, Default)]
struct OpenTransaction {
    is_block: bool,
    /// Whether its end has been read, but not the duration of it.
    has_ended: bool,
    /// The virtual transaction id.
    id: Option<String>,
    transaction: LoggedTransaction,
    /// Estimated memory of its statements.
    bytes: usize,
    /// Whether its statements were dropped, because they are too many.
    is_forgotten: bool,
    savepoints: Vec<Savepoint>,
    savepoint_names: SavepointNames,
}

/// A savepoint of an open transaction.
#[derive(Debug)]
struct Savepoint {
    name: String,
    /// Statements up to it, with itself.
    steps: usize,
    /// Whether the transaction had a problem before it.
    had_problem: bool,
}

/// An executed message with its duration and parameters.
struct Execution<'a> {
    text: &'a str,
    query_id: i64,
    duration_ms: Option<f64>,
    parameters: Parameters,
    problem: Option<&'static str>,
}

/// Returns the virtual transaction id, such as `3/17`; `None` for `3/0`, which is no transaction.
fn transaction_id(entry: &LogEntry) -> Option<String> {
    let (_, local) = entry.virtual_transaction.split_once('/')?;
    (local != "0").then(|| entry.virtual_transaction.clone())
}

impl LoggedSession {
    /// Begins a session of a log with all transactions, or with a sample.
    pub fn new(is_sampled: bool) -> Self {
        Self { is_sampled, ..Self::default() }
    }

    /// Advances to the time of the next message; returns the time since the last one.
    pub fn advance_ms(&mut self, at_ms: f64) -> f64 {
        self.last_ms.replace(at_ms).map_or(0.0, |last| at_ms - last)
    }

    /// Returns whether a transaction block has begun and not ended.
    pub fn is_in_transaction(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.is_block && !open.has_ended)
    }

    /// Takes a message; adds the transactions that it ends to `finished`.
    pub fn take(&mut self, entry: &LogEntry, finished: &mut Vec<LoggedTransaction>) {
        let Some(event) = event(entry) else { return };
        let query_id = entry.query_id;
        let execution = |text, duration_ms, parameters, problem| Execution {
            text,
            query_id,
            duration_ms,
            parameters,
            problem,
        };
        let no_parameters = || Parameters::Known(Vec::new());
        match event {
            LogEvent::Statement { text, duration_ms, prepared } => {
                let problem = prepared.map(|_| PREPARED);
                self.execute(entry, execution(text, duration_ms, no_parameters(), problem), finished);
            }
            LogEvent::Execute { text, duration_ms, parameters } => {
                self.execute(entry, execution(text, duration_ms, parameters, None), finished);
            }
            LogEvent::Fetch { text } => {
                self.execute(entry, execution(text, None, no_parameters(), Some(CURSOR)), finished);
                self.awaits_duration = false;
            }
            LogEvent::FastPath => {
                self.execute(
                    entry,
                    execution("", None, no_parameters(), Some("a fast-path function call")),
                    finished,
                );
            }
            LogEvent::Preparation { duration_ms } => self.prepare(entry.at_ms - duration_ms),
            LogEvent::Duration { duration_ms } => self.end_statement(entry, duration_ms, finished),
            LogEvent::Failure => self.fail(entry, finished),
            LogEvent::End => self.end(entry.at_ms, finished),
        }
    }

    /// Ends the session, or the log.
    pub fn end(&mut self, at_ms: f64, finished: &mut Vec<LoggedTransaction>) {
        self.finish_ended(finished);
        if let Some(open) = self.open.as_mut().filter(|open| open.is_block) {
            open.transaction.end_ms = open.transaction.end_ms.max(at_ms);
        }
        self.finish_cut_off(finished);
    }

    fn prepare(&mut self, start_ms: f64) {
        self.prepared_since_ms.get_or_insert(start_ms);
    }

    /// Takes a duration without a statement: that of the last statement, or of a parse or bind.
    fn end_statement(&mut self, entry: &LogEntry, duration_ms: f64, finished: &mut Vec<LoggedTransaction>) {
        if !std::mem::take(&mut self.awaits_duration) {
            self.prepare(entry.at_ms - duration_ms);
            return;
        }
        self.busy_until_ms = Some(entry.at_ms);
        let Some(open) = &mut self.open else { return };
        open.transaction.end_ms = entry.at_ms;
        match open.transaction.steps.last_mut() {
            Some(step) if step.duration_ms.is_none() && !open.has_ended => {
                step.duration_ms = Some(duration_ms)
            }
            _ => open.transaction.frame_ms += duration_ms,
        }
        if open.has_ended || (!open.is_block && transaction_id(entry).is_none()) {
            self.finish_open(finished);
        }
    }

    /// Finishes a transaction whose end was the last message.
    fn finish_ended(&mut self, finished: &mut Vec<LoggedTransaction>) {
        if self.open.as_ref().is_some_and(|open| open.has_ended) {
            self.finish_open(finished);
        }
    }

    fn fail(&mut self, entry: &LogEntry, finished: &mut Vec<LoggedTransaction>) {
        self.finish_ended(finished);
        self.awaits_duration = false;
        self.prepared_since_ms = None;
        self.busy_until_ms = Some(entry.at_ms);
        let id = transaction_id(entry);
        let is_of_open = self.open.as_ref().is_some_and(|open| open.is_block || open.id == id);
        if !is_of_open {
            self.finish_open(finished);
            // It is not part of the sample.
            if self.is_sampled {
                return;
            }
            self.begin(entry, false, entry.at_ms);
        }
        if let Some(open) = &mut self.open {
            let is_state = |state: &str| state.len() == 5 && state.bytes().all(|b| b.is_ascii_alphanumeric());
            let state = Some(entry.sqlstate.as_str()).filter(|state| is_state(state)).unwrap_or("unknown");
            let query = &entry.query[..entry.query.floor_char_boundary(MAX_TEXT)];
            open.record_problem(&format!("aborted by error {state}"), query);
            open.transaction.end_ms = entry.at_ms;
            if !open.is_block {
                self.finish_open(finished);
            }
        }
    }

    fn begin(&mut self, entry: &LogEntry, is_block: bool, start_ms: f64) {
        let transaction = LoggedTransaction {
            start_ms,
            end_ms: start_ms,
            idle_ms: self.last_end_ms.map(|end| (start_ms - end).max(0.0)),
            session: entry.session.clone(),
            user: entry.user.clone(),
            ..LoggedTransaction::default()
        };
        self.open = Some(OpenTransaction {
            is_block,
            id: transaction_id(entry),
            transaction,
            ..OpenTransaction::default()
        });
    }

    /// Returns the estimated memory of the open transaction's statements.
    pub fn bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.bytes)
    }

    fn finish_open(&mut self, finished: &mut Vec<LoggedTransaction>) {
        if let Some(open) = self.open.take() {
            self.finish(open, finished);
        }
    }

    fn finish(&mut self, open: OpenTransaction, finished: &mut Vec<LoggedTransaction>) {
        self.last_end_ms = Some(open.transaction.end_ms);
        finished.push(open.transaction);
    }

    fn execute(&mut self, entry: &LogEntry, execution: Execution, finished: &mut Vec<LoggedTransaction>) {
        self.finish_ended(finished);
        let end_ms = entry.at_ms;
        let start_ms = end_ms - execution.duration_ms.unwrap_or(0.0);
        let start_ms = self.prepared_since_ms.take().map_or(start_ms, |prepared| prepared.min(start_ms));
        // Without durations, neither the end of the previous statement nor the pause is known.
        let mut pause_ms = (self.busy_until_ms.take()).map(|end| (start_ms - end).max(0.0));
        let (text, problem) = match execution.text {
            long if long.len() > MAX_MESSAGE_BYTES => {
                (&long[..long.floor_char_boundary(MAX_TEXT)], Some(LONG_MESSAGE))
            }
            text => (text, execution.problem),
        };
        let parts = statements(text);
        let parts = if parts.is_empty() { vec![tokens(text)] } else { parts };
        for (place, part) in parts.iter().enumerate() {
            // A message has one duration: the first statement gets it, or the last one if it is still to come.
            let is_timed =
                if execution.duration_ms.is_some() { place == 0 } else { place + 1 == parts.len() };
            let duration_ms = if is_timed { execution.duration_ms } else { Some(0.0) };
            let class = problem.map_or_else(|| classify(part), Class::Other);
            match class {
                Class::Begin => {
                    self.finish_cut_off(finished);
                    self.begin(entry, true, start_ms);
                    if let Some(open) = &mut self.open {
                        open.transaction.begin = Some(statement_text(part));
                        open.transaction.frame_ms += duration_ms.unwrap_or(0.0);
                        open.transaction.end_ms = end_ms;
                    }
                }
                Class::Commit | Class::Rollback => {
                    let ending = if class == Class::Commit {
                        TransactionEnding::Commit
                    } else {
                        TransactionEnding::Rollback
                    };
                    self.finish_other(entry, finished);
                    self.close(ending, pause_ms, end_ms, duration_ms, finished);
                }
                Class::Ignored => {
                    if let Some(open) = self.open.as_mut().filter(|open| open.is_block && !open.has_ended) {
                        open.transaction.frame_ms += duration_ms.unwrap_or(0.0);
                        open.transaction.end_ms = end_ms;
                    }
                }
                Class::Other(TWO_PHASE) if self.open.as_ref().is_some_and(|open| open.is_block) => {
                    // Only PREPARE TRANSACTION is allowed in a block, and ends it like COMMIT.
                    self.finish_other(entry, finished);
                    if let Some(open) = &mut self.open {
                        open.record_problem(TWO_PHASE, &statement_text(part));
                    }
                    self.close(TransactionEnding::Commit, pause_ms, end_ms, duration_ms, finished);
                }
                _ => {
                    self.begin_unless_open(entry, start_ms, finished);
                    if let Some(open) = &mut self.open {
                        open.add_statement(part, class, &execution.parameters, pause_ms, duration_ms);
                        // With several statements, the identifier is the last one's.
                        if parts.len() == 1
                            && let Some(LoggedStatement { query_id: Some(id), .. }) =
                                open.transaction.steps.last_mut()
                        {
                            *id = execution.query_id;
                        }
                        open.transaction.end_ms = end_ms;
                    }
                }
            }
            pause_ms = Some(0.0);
        }
        self.awaits_duration = execution.duration_ms.is_none();
        if execution.duration_ms.is_some() {
            self.busy_until_ms = Some(end_ms);
            // Without an id, the message was written after the commit.
            if transaction_id(entry).is_none() && self.open.as_ref().is_some_and(|open| !open.is_block) {
                self.finish_open(finished);
            }
        }
    }

    /// Ends the open transaction: a block whose end is not in the log, or statements outside of a block.
    fn finish_cut_off(&mut self, finished: &mut Vec<LoggedTransaction>) {
        if let Some(mut open) = self.open.take() {
            if open.is_block {
                open.record_problem("its end is not in the log", "");
            }
            self.finish(open, finished);
        }
    }

    /// Begins the transaction of this statement, unless it is the open one.
    fn begin_unless_open(&mut self, entry: &LogEntry, start_ms: f64, finished: &mut Vec<LoggedTransaction>) {
        let id = transaction_id(entry);
        if self.open.as_ref().is_none_or(|open| open.has_ended || open.id != id) {
            self.finish_cut_off(finished);
            self.begin(entry, false, start_ms);
        }
    }

    /// Ends the open transaction if the message has the id of another one; COMMIT's message may have none.
    fn finish_other(&mut self, entry: &LogEntry, finished: &mut Vec<LoggedTransaction>) {
        let id = transaction_id(entry);
        if id.is_some() && self.open.as_ref().is_some_and(|open| open.id.is_some() && open.id != id) {
            self.finish_cut_off(finished);
        }
    }

    /// Ends the open transaction by COMMIT or ROLLBACK.
    fn close(
        &mut self,
        ending: TransactionEnding,
        pause_ms: Option<f64>,
        end_ms: f64,
        duration_ms: Option<f64>,
        finished: &mut Vec<LoggedTransaction>,
    ) {
        // Otherwise its beginning is not in the log, or there was none.
        let Some(mut open) = self.open.take() else { return };
        let transaction = &mut open.transaction;
        transaction.ending = ending;
        transaction.end_pause_ms = pause_ms;
        transaction.end_ms = end_ms;
        transaction.frame_ms += duration_ms.unwrap_or(0.0);
        if duration_ms.is_some() {
            self.finish(open, finished);
        } else {
            open.has_ended = true;
            self.open = Some(open);
        }
    }
}

impl OpenTransaction {
    /// Records why the transaction cannot be replayed; the first reason stays. More roles may see the text, so it has no values.
    fn record_problem(&mut self, reason: &str, text: &str) {
        self.transaction.problem.get_or_insert_with(|| (reason.to_owned(), without_constants(text)));
    }

    /// Adds a statement.
    fn add_statement(
        &mut self,
        tokens: &[StatementToken],
        class: Class,
        parameters: &Parameters,
        pause_ms: Option<f64>,
        duration_ms: Option<f64>,
    ) {
        if self.transaction.steps.len() >= MAX_STEPS || self.bytes > MAX_TRANSACTION_BYTES {
            self.record_problem(LONG_TRANSACTION, "");
            self.transaction.forget_statements();
            self.bytes = 0;
            self.is_forgotten = true;
        }
        if self.is_forgotten {
            self.transaction.frame_ms += duration_ms.unwrap_or(0.0);
            return;
        }
        let savepoint = if class == Class::InBlock { savepoint(tokens) } else { None };
        if let Some((step, name)) = &savepoint {
            self.leave_savepoints(*step, name);
        }
        let text = || statement_text(tokens);
        let none: &[ParameterValue] = &[];
        let values = match parameters {
            Parameters::Known(values) => values,
            Parameters::Truncated => {
                self.record_problem("parameters are cut (log_parameter_max_length)", &text());
                none
            }
            Parameters::Unreadable => {
                self.record_problem("parameters are not as servers write them", &text());
                none
            }
        };
        let normalised = match class {
            Class::Query { .. } => {
                let normalised = normalise(tokens, values);
                if normalised.is_none() {
                    self.record_problem(
                        "parameters are not in the log (log_parameter_max_length = 0)",
                        &text(),
                    );
                }
                normalised
            }
            Class::Other(reason) => {
                self.record_problem(reason, &text());
                None
            }
            Class::InBlock => match normalise_in_block(tokens, text(), &mut self.savepoint_names) {
                Ok(normalised) => Some(normalised),
                Err(omits) => {
                    self.transaction.omits = Some(omits);
                    self.transaction.frame_ms += duration_ms.unwrap_or(0.0);
                    return;
                }
            },
            _ => None,
        };
        let Normalised { template, constants, numbers } =
            normalised.unwrap_or_else(|| without_slots(text(), true));
        let is_first = self.transaction.begin.is_none() && self.transaction.steps.is_empty();
        let writes = class == Class::Query { writes: true };
        let pause_ms = if is_first { Some(0.0) } else { pause_ms };
        let value_bytes = constants
            .iter()
            .map(|constant| 80 + constant.value.as_ref().map_or(0, String::len))
            .sum::<usize>();
        self.bytes += 200 + value_bytes + 2 * tokens.iter().map(|token| token.text.len()).sum::<usize>();
        self.transaction.steps.push(LoggedStatement {
            template,
            constants,
            numbers,
            pause_ms,
            duration_ms,
            writes,
            query_id: matches!(class, Class::Query { .. }).then_some(0),
        });
        if let Some((SavepointStep::Set, name)) = savepoint {
            let had_problem = self.transaction.problem.is_some();
            self.savepoints.push(Savepoint { name, steps: self.transaction.steps.len(), had_problem });
        }
    }

    /// Ends the savepoints that RELEASE or ROLLBACK TO ends. ROLLBACK TO after an error also drops the statements since the
    /// savepoint, and with them the problem.
    fn leave_savepoints(&mut self, step: SavepointStep, name: &str) {
        if step == SavepointStep::Set {
            return;
        }
        let Some(place) = self.savepoints.iter().rposition(|savepoint| savepoint.name == name) else {
            return;
        };
        if step == SavepointStep::Release {
            self.savepoints.truncate(place);
            return;
        }
        self.savepoints.truncate(place + 1);
        let Savepoint { steps, had_problem, .. } = self.savepoints[place];
        if self.transaction.problem.is_some() && !had_problem {
            self.transaction.problem = None;
            self.transaction.steps.truncate(steps);
        }
    }
}

/// Returns a statement's text, trimmed, with blanks for comments.
fn statement_text(tokens: &[StatementToken]) -> String {
    let written = |token: &StatementToken<'_>| if token.is_silent() { " " } else { token.text }.to_owned();
    let text: String = tokens.iter().map(written).collect();
    text.trim().to_owned()
}

/// Settings whose values are lists of names in quotes (GUC_LIST_QUOTE in the server's guc_tables.c).
const LISTS_OF_NAMES: [&str; 4] =
    ["local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"];

/// Settings that set_config() cannot set: a transaction's first query fixes them.
const BEFORE_QUERIES: [&str; 3] =
    ["transaction_deferrable", "transaction_isolation", "transaction_read_only"];

/// An omission of a replay.
const SNAPSHOT: &str = "SET TRANSACTION SNAPSHOT is left out";

/// Numbers of a transaction's savepoints, from 1, by name.
type SavepointNames = HashMap<String, usize>;

/// Normalises a statement of a transaction block that is not a query.
///
/// # Errors
/// The omission, for a statement that a replay leaves out.
fn normalise_in_block(
    tokens: &[StatementToken],
    text: String,
    names: &mut SavepointNames,
) -> Result<Normalised, &'static str> {
    let loud: Vec<StatementToken> = tokens.iter().copied().filter(|token| !token.is_silent()).collect();
    let is_word = |place: usize, word: &str| loud.get(place).is_some_and(|token| token.is(word));
    if is_word(0, "set")
        && (1..4).any(|place| is_word(place, "transaction") && is_word(place + 1, "snapshot"))
    {
        return Err(SNAPSHOT);
    }
    if let Some((step, name)) = savepoint(tokens) {
        let next = names.len() + 1;
        let number = *names.entry(name).or_insert(next);
        let command = match step {
            SavepointStep::Set => "SAVEPOINT",
            SavepointStep::Release => "RELEASE SAVEPOINT",
            SavepointStep::RollBackTo => "ROLLBACK TO SAVEPOINT",
        };
        return Ok(without_slots(format!("{command} s{number}"), false));
    }
    if is_word(0, "set")
        && is_word(1, "local")
        && let Some((name, value)) = local_setting(&loud[2..])
    {
        let takes_any_text = name.contains('.') || name == "application_name";
        let kind = if takes_any_text { TemplateValue::String } else { TemplateValue::Setting };
        return Ok(Normalised {
            template: Template {
                parts: vec![TemplatePart::Setting { name, slot: 0 }],
                slots: vec![kind],
                ..Template::default()
            },
            constants: vec![Constant { value: Some(value), source: Some(text) }],
            numbers: Vec::new(),
        });
    }
    let has_constants = loud.iter().any(|token| is_constant(token.kind));
    Ok(without_slots(text, has_constants))
}

/// Returns a statement without slots.
fn without_slots(text: String, keeps_constants: bool) -> Normalised {
    let template = Template { parts: vec![TemplatePart::Text(text)], keeps_constants, ..Template::default() };
    Normalised { template, ..Normalised::default() }
}

/// Returns the setting of a SET LOCAL, and its value for `set_config`; `None` if that cannot replace the statement.
fn local_setting(loud: &[StatementToken]) -> Option<(String, String)> {
    let is_word = |place: usize, word: &str| loud.get(place).is_some_and(|token| token.is(word));
    if is_word(0, "time") && is_word(1, "zone") {
        let name = "timezone".to_owned();
        return Some((
            name,
            setting_item(&loud[2..]).filter(|_| !is_word(2, "local") && !is_word(2, "default"))?,
        ));
    }
    if is_word(0, "role") && loud.len() == 2 {
        return Some(("role".to_owned(), setting_item(&loud[1..])?));
    }
    let operator = loud.iter().position(|token| token.text == "=" || token.is("to"))?;
    let name: String = loud[..operator].iter().map(|token| token.text).collect();
    let name = name.to_ascii_lowercase();
    let is_name = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'.');
    if !is_name || is_word(operator + 1, "default") || BEFORE_QUERIES.contains(&name.as_str()) {
        return None;
    }
    let items: Option<Vec<String>> =
        loud[operator + 1..].split(|token| token.text == ",").map(setting_item).collect();
    let quoted = |item: String| match LISTS_OF_NAMES.contains(&name.as_str()) {
        true => format!("\"{}\"", item.replace('"', "\"\"")),
        false => item,
    };
    let items: Vec<String> = items?.into_iter().map(quoted).collect();
    Some((name, items.join(", ")))
}

/// Returns one value of a setting: a word, a string, or a number with its sign.
fn setting_item(item: &[StatementToken]) -> Option<String> {
    let (sign, token) = match item {
        [token] => ("", token),
        [sign, token] if token.kind == TokenKind::Number && ["+", "-"].contains(&sign.text) => {
            (sign.text, token)
        }
        _ => return None,
    };
    match token.kind {
        TokenKind::Word => Some(token.text.to_ascii_lowercase()),
        TokenKind::String => decode(token.text),
        TokenKind::QuotedIdentifier => {
            let inside = token.text.strip_prefix('"')?.strip_suffix('"')?;
            Some(inside.replace("\"\"", "\""))
        }
        TokenKind::Number => Some(format!("{}{}", sign.trim_start_matches('+'), token.text.replace('_', ""))),
        _ => None,
    }
}
