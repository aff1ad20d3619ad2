//! Distinguishes semicolons inside a routine's BEGIN ATOMIC … END from those that end statements.

/// How many words a statement's beginning has at most: CREATE OR REPLACE FUNCTION.
const BEGINNING_LENGTH: usize = 4;

/// What a word at a statement's beginning is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RoutineWord {
    #[default]
    Other,
    Create,
    Or,
    Replace,
    /// FUNCTION or PROCEDURE.
    Routine,
}

/// What psql's heuristic remembers of a statement (`psqlscan_track_identifier`): if its first words create a
/// routine, it counts BEGIN and END pairs, and within them CASE, which also ends with END.
#[derive(Debug, Default)]
pub struct Routine {
    beginning: [RoutineWord; BEGINNING_LENGTH],
    /// How many words of the beginning there are so far.
    words: usize,
    begin_depth: usize,
}

impl Routine {
    /// Whether the statement is inside BEGIN … END.
    pub fn is_in_body(&self) -> bool {
        self.begin_depth > 0
    }

    /// Takes note of an identifier outside parentheses.
    pub fn track(&mut self, identifier: &[u8]) {
        let is = |word: &str| identifier.eq_ignore_ascii_case(word.as_bytes());
        if let Some(word) = self.beginning.get_mut(self.words) {
            self.words += 1;
            *word = if is("create") {
                RoutineWord::Create
            } else if is("or") {
                RoutineWord::Or
            } else if is("replace") {
                RoutineWord::Replace
            } else if is("function") || is("procedure") {
                RoutineWord::Routine
            } else {
                RoutineWord::Other
            };
        }
        if !self.creates_routine() {
            return;
        }
        if is("begin") || (is("case") && self.is_in_body()) {
            self.begin_depth += 1;
        } else if is("end") {
            self.begin_depth = self.begin_depth.saturating_sub(1);
        }
    }

    fn creates_routine(&self) -> bool {
        matches!(
            self.beginning,
            [RoutineWord::Create, RoutineWord::Routine, ..]
                | [RoutineWord::Create, RoutineWord::Or, RoutineWord::Replace, RoutineWord::Routine]
        )
    }
}
