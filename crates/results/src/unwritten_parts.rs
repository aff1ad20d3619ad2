//! The parts of a run's end that could not be written, and what the run's error says of them.

use bench_base::error::UserError;

/// Parts that could not be written, by the names that users read them under, each with the reason.
#[derive(Clone, Debug, Default)]
pub struct UnwrittenParts {
    parts: Vec<(&'static str, UserError)>,
}

impl UnwrittenParts {
    /// Adds a part; the first reason of each stays.
    pub fn add(&mut self, part: &'static str, reason: UserError) {
        if !self.parts.iter().any(|(name, _)| *name == part) {
            self.parts.push((part, reason));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The error to keep with the run: its own `error`, or else the first reason, and in the detail the parts that are
    /// missing, those with another reason than the error's with theirs.
    pub fn told_with(&self, error: Option<UserError>) -> Option<UserError> {
        let Some((_, first)) = self.parts.first() else { return error };
        let mut error = error.unwrap_or_else(|| first.clone());
        let parts: Vec<String> = self
            .parts
            .iter()
            .map(|(part, reason)| match reason.message == error.message {
                true => (*part).to_owned(),
                false => format!("{part} ({})", reason.message),
            })
            .collect();
        let missing = format!("Not written: {}.", parts.join(", "));
        error.detail = Some(match error.detail.take() {
            Some(detail) => format!("{detail}\n{missing}"),
            None => missing,
        });
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use bench_base::error::UserError;

    use super::UnwrittenParts;

    fn full(disk: &str) -> UserError {
        UserError::new("53100", format!("could not extend file {disk}")).hint("Check free disk space.")
    }

    #[test]
    fn nothing_missing_leaves_the_error_alone() {
        let missing = UnwrittenParts::default();
        assert!(missing.is_empty());
        assert_eq!(missing.told_with(None), None);
        assert_eq!(missing.told_with(Some(full("a"))), Some(full("a")));
    }

    #[test]
    fn the_first_reason_becomes_the_error_and_all_parts_are_named() {
        let mut missing = UnwrittenParts::default();
        missing.add("bench.latencies", full("a"));
        missing.add("bench.waits", full("b"));
        missing.add("bench.audit", full("a"));
        missing.add("bench.waits", full("c"));
        let error = missing.told_with(None).unwrap();
        assert_eq!(error.sqlstate, "53100");
        assert_eq!(error.message, "could not extend file a");
        assert_eq!(error.hint.as_deref(), Some("Check free disk space."));
        let detail = "Not written: bench.latencies, bench.waits (could not extend file b), bench.audit.";
        assert_eq!(error.detail.as_deref(), Some(detail));
    }

    #[test]
    fn an_error_of_the_run_keeps_its_words() {
        let mut missing = UnwrittenParts::default();
        missing.add("bench.latencies", full("a"));
        let own = UserError::new("57P01", "terminated").detail("1 of 2 clients ended early.");
        let error = missing.told_with(Some(own)).unwrap();
        assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("57P01", "terminated"));
        let detail = "1 of 2 clients ended early.\nNot written: bench.latencies (could not extend file a).";
        assert_eq!(error.detail.as_deref(), Some(detail));
    }
}
