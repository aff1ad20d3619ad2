//! The log as servers without a collector write it to their stderr, under a log_line_prefix of our own.
//!
//! A line that begins with the mark begins a message or a part of it; what continues a line begins with a tab. A name of a role or
//! a database may have any character, but has fewer bytes than the mark, so that none can look like the beginning of a line.

use super::entry::LogEntry;

/// Bytes of a mark: more than a name has (NAMEDATALEN, with its final NUL).
pub const MARK_BYTES: usize = 64;

/// The longest message with all its parts, in bytes: a longer one is left out.
const MAX_MESSAGE: usize = 16 << 20;

/// Seconds from 1970 to 2000, of which the one is the scale of `%n` and the other that of [`LogEntry::at_ms`].
const EPOCH_OF_2000: f64 = 946_684_800.0;

/// The log_line_prefix with this mark.
pub fn line_prefix(mark: &str) -> String {
    format!("{mark}%n %c %v %e %Q {mark}%u{mark}%d{mark}")
}

/// Which part of a message goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Message,
    Detail,
    Statement,
    Other,
}

/// Reads such a log line by line.
#[derive(Debug)]
pub struct PrefixedLog {
    mark: String,
    pending: Option<(LogEntry, Part, usize)>,
}

impl PrefixedLog {
    /// Of lines with this mark.
    pub fn new(mark: String) -> Self {
        Self { mark, pending: None }
    }

    /// Takes the next line, without its end; the message that it ends.
    pub fn take_line(&mut self, line: &str) -> Option<LogEntry> {
        if let Some(rest) = line.strip_prefix('\t') {
            self.append("\n");
            self.append(rest);
            return None;
        }
        let Some((entry, label, text)) = self.divided(line) else { return self.finish() };
        let part = match label {
            "DETAIL" => Part::Detail,
            "STATEMENT" => Part::Statement,
            "HINT" | "CONTEXT" | "QUERY" | "LOCATION" | "BACKTRACE" => Part::Other,
            _ => {
                let before = self.finish();
                // As log_error_verbosity = verbose has it.
                let code = format!("{}: ", entry.sqlstate);
                let text = text.strip_prefix(&code).unwrap_or(text).to_owned();
                let sqlstate = Some(entry.sqlstate).filter(|state| state != "00000").unwrap_or_default();
                self.pending =
                    Some((LogEntry { severity: label.to_owned(), sqlstate, ..entry }, Part::Message, 0));
                self.append(&text);
                return before;
            }
        };
        let is_same = self.pending.as_ref().is_some_and(|(pending, ..)| pending.session == entry.session);
        if !is_same {
            return self.finish();
        }
        if let Some((_, current, _)) = &mut self.pending {
            *current = part;
        }
        self.append(text);
        None
    }

    /// Takes the rest of a line that is too long, whatever it begins with.
    pub fn take_rest(&mut self, rest: &str) {
        self.append(rest);
    }

    /// The last message, when the log has ended.
    pub fn finish(&mut self) -> Option<LogEntry> {
        self.pending.take().filter(|(.., bytes)| *bytes <= MAX_MESSAGE).map(|(entry, ..)| entry)
    }

    fn append(&mut self, text: &str) {
        let Some((entry, part, bytes)) = &mut self.pending else { return };
        *bytes += text.len();
        if *bytes > MAX_MESSAGE {
            return;
        }
        match part {
            Part::Message => entry.message.push_str(text),
            Part::Detail => entry.detail.push_str(text),
            Part::Statement => entry.query.push_str(text),
            Part::Other => {}
        }
    }

    /// A line with the mark: what its prefix says, `LOG` or `DETAIL`, and the text behind.
    fn divided<'a>(&self, line: &'a str) -> Option<(LogEntry, &'a str, &'a str)> {
        let mut fields = line.strip_prefix(&self.mark)?.splitn(4, self.mark.as_str());
        let mut words = fields.next()?.split(' ');
        let (user, database, rest) = (fields.next()?, fields.next()?, fields.next()?);
        let mut word = || words.next();
        let entry = LogEntry {
            at_ms: (word()?.parse::<f64>().ok()? - EPOCH_OF_2000) * 1e3,
            session: word()?.to_owned(),
            virtual_transaction: word()?.to_owned(),
            sqlstate: word()?.to_owned(),
            query_id: word()?.parse().unwrap_or_default(),
            user: user.to_owned(),
            database: database.to_owned(),
            ..LogEntry::default()
        };
        let (label, text) = rest.split_once(":  ")?;
        Some((entry, label, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Vec<LogEntry> {
        let mut reader = PrefixedLog::new("M".repeat(MARK_BYTES));
        let log = log.replace('@', &"M".repeat(MARK_BYTES));
        let mut entries: Vec<LogEntry> = log.lines().filter_map(|line| reader.take_line(line)).collect();
        entries.extend(reader.finish());
        entries
    }

    #[test]
    fn messages_have_their_parts_and_lines() {
        let found = read(
            "2026-11-30 LOG:  another's\n\tgoes on\n\
             @946684801.500 1a.2b 3/17 00000 -42 @app role@shop@LOG:  duration: 1.2 ms  execute s: SELECT\n\t$1:  x\n\
             @946684801.500 1a.2b 3/17 00000 -42 @app role@shop@DETAIL:  parameters: $1 = 'a\n\t\tb'\n\
             @946684801.600 1a.2b  23505 0 @app role@shop@ERROR:  23505: duplicate\n\
             @946684801.600 1a.2b  23505 0 @app role@shop@HINT:  none\n\
             @946684801.600 1a.2b  23505 0 @app role@shop@STATEMENT:  INSERT\n\
             LOG:  no prefix\n@cut",
        );
        let first = LogEntry {
            at_ms: 1500.0,
            user: "app role".into(),
            database: "shop".into(),
            session: "1a.2b".into(),
            virtual_transaction: "3/17".into(),
            severity: "LOG".into(),
            message: "duration: 1.2 ms  execute s: SELECT\n$1:  x".into(),
            detail: "parameters: $1 = 'a\n\tb'".into(),
            query_id: -42,
            ..LogEntry::default()
        };
        assert_eq!(found[0], first);
        assert_eq!(
            (found[1].sqlstate.as_str(), found[1].message.as_str(), found[1].query.as_str()),
            ("23505", "duplicate", "INSERT")
        );
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn the_rest_of_a_line_begins_no_message() {
        let mark = "M".repeat(MARK_BYTES);
        let line = |name: &str| {
            format!("{mark}1 s 3/1 00000 0 {mark}{name}{mark}shop{mark}LOG:  statement: SELECT 1")
        };
        let mut reader = PrefixedLog::new(mark.clone());
        assert_eq!(reader.take_line(&line("app")), None);
        reader.take_rest(&line("boss"));
        assert_eq!(reader.finish().map(|entry| entry.user), Some("app".to_owned()));
    }
}
