//! What all executions of a statement say.

use std::fmt::Write;

use bench_model::spec::AnswerVerdict;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::compare::{Comparison, Difference, Kind, ShownRow};

/// Whether a statement answers the same in both arms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    /// Within the tolerance.
    Close,
    Differs,
    /// Arm a answers differently each time.
    Unstable,
    /// With an error in one arm alone, or in every execution.
    Fails,
    NotCompared,
}

/// What one execution of a statement came to, in both arms.
#[derive(Clone, Debug, PartialEq)]
pub enum Execution {
    Compared(Comparison),
    /// Arm a does not answer the same twice.
    Unstable,
    /// The SQLSTATE and message of the arms that failed.
    Failed([Option<(String, String)>; 2]),
}

/// A difference with what led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The script's variables that the statement uses.
    pub values: ShownRow,
    pub rows: [Option<ShownRow>; 2],
    /// OIDs of types are shown instead of values.
    pub are_types: bool,
}

/// A statement's executions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementAnswers {
    pub workload: String,
    /// Its place in the script, from 1.
    pub command: u32,
    pub statement: String,
    pub executions: u64,
    pub same: u64,
    /// Of these, within the tolerance, and with other rows of equal sort keys.
    pub close: u64,
    pub tied: u64,
    pub differ: u64,
    pub unstable: u64,
    pub failed: [u64; 2],
    /// Executions that failed in both arms with the same SQLSTATE.
    pub failed_alike: u64,
    pub kind: Option<Kind>,
    /// The arm, and the OID of an index without which it answers differently.
    pub wrong_index: Option<(usize, u32)>,
    pub cause: Option<String>,
    pub advice: Option<String>,
    pub examples: Vec<Example>,
}

impl StatementAnswers {
    /// Counts an execution. Returns its difference, if there is one.
    pub fn add(&mut self, execution: Execution) -> Option<Difference> {
        self.executions += 1;
        match execution {
            Execution::Unstable => self.unstable += 1,
            Execution::Failed(errors) => self.add_failure(errors),
            Execution::Compared(Comparison::Differs(difference)) => {
                self.differ += 1;
                return Some(difference);
            }
            Execution::Compared(same) => {
                self.same += 1;
                self.close += u64::from(same == Comparison::Close);
                self.tied += u64::from(same == Comparison::Tied);
            }
        }
        None
    }

    fn add_failure(&mut self, errors: [Option<(String, String)>; 2]) {
        for (count, error) in self.failed.iter_mut().zip(&errors) {
            *count += u64::from(error.is_some());
        }
        let [a, b] = &errors;
        let sqlstate =
            |error: &Option<(String, String)>| error.as_ref().map(|(sqlstate, _)| sqlstate.clone());
        let is_alike = sqlstate(a) == sqlstate(b);
        self.failed_alike += u64::from(is_alike);
        // An error of only one arm replaces an error of both.
        if self.cause.is_some() && (is_alike || self.kind.is_some()) {
            return;
        }
        let describe = |(arm, error): (&str, &Option<(String, String)>)| {
            let (sqlstate, message) = error.as_ref()?;
            // Without a message where that may show values.
            Some(format!("arm {arm}: {sqlstate} {message}").trim_end().to_owned())
        };
        let failures: Vec<String> = ["a", "b"].into_iter().zip(&errors).filter_map(describe).collect();
        self.cause = Some(failures.join("; "));
        self.kind = (!is_alike).then_some(Kind::Error);
    }

    pub fn verdict(&self) -> Verdict {
        let fails_in_one = self.failed.iter().any(|&failed| failed > self.failed_alike);
        match self {
            _ if self.executions == 0 => Verdict::NotCompared,
            _ if self.differ > 0 => Verdict::Differs,
            _ if fails_in_one || self.failed_alike == self.executions => Verdict::Fails,
            _ if self.unstable > 0 => Verdict::Unstable,
            _ if self.close > 0 => Verdict::Close,
            _ => Verdict::Same,
        }
    }

    /// Returns the rank for sorting, the most urgent first.
    pub fn urgency(&self) -> u8 {
        match self.verdict() {
            Verdict::Differs => 0,
            Verdict::Fails => 1,
            Verdict::Unstable => 2,
            Verdict::NotCompared => 3,
            Verdict::Close => 4,
            Verdict::Same => 5,
        }
    }

    /// Returns the cause, as far as it is known, and advice.
    fn explained(&self) -> (Option<&str>, Option<&str>) {
        let (cause, advice) = (self.cause.as_deref(), self.advice.as_deref());
        if cause.is_some() {
            return (cause, advice);
        }
        match self.verdict() {
            Verdict::Unstable => (Some("arm a answers differently each time"), None),
            Verdict::Same | Verdict::Close if self.tied > 0 => (
                Some("LIMIT or OFFSET takes other rows with equal sort keys"),
                Some("Add columns to ORDER BY until it decides."),
            ),
            _ => (None, None),
        }
    }

    /// Returns the verdict in words.
    fn shown_verdict(&self, tolerance: f64) -> String {
        match self.verdict() {
            Verdict::Same => "same".to_owned(),
            Verdict::Close => format!("same within {}", shown_tolerance(tolerance)),
            Verdict::Differs => "differs".to_owned(),
            Verdict::Unstable => "unstable".to_owned(),
            Verdict::Fails => "fails".to_owned(),
            Verdict::NotCompared => "not compared".to_owned(),
        }
    }

    /// Returns the verdict for a run's record.
    pub fn in_short(&self, tolerance: f64) -> AnswerVerdict {
        let verdict = self.shown_verdict(tolerance);
        AnswerVerdict { workload: self.workload.clone(), command: self.command, verdict }
    }

    /// Returns the statement's row of bench.answers.
    pub fn row(&self, tolerance: f64) -> Value {
        let (cause, advice) = self.explained();
        let examples: Vec<Value> = self.examples.iter().map(Example::json).collect();
        json!({
            "workload": self.workload,
            "command": self.command,
            "statement": self.statement,
            "executions": self.executions,
            "same": self.same,
            "differ": self.differ,
            "unstable": self.unstable,
            "failed_a": self.failed[0],
            "failed_b": self.failed[1],
            "verdict": self.shown_verdict(tolerance),
            "kind": self.kind,
            "cause": cause,
            "example": (!examples.is_empty()).then_some(examples),
            "advice": advice,
        })
    }
}

/// Formats a tolerance as users write it: 1e-9, 0.01.
fn shown_tolerance(tolerance: f64) -> String {
    if tolerance < 1e-3 { format!("{tolerance:e}") } else { tolerance.to_string() }
}

impl Example {
    fn json(&self) -> Value {
        let object = |row: &ShownRow| -> Value {
            row.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into()
        };
        let [a, b] = self.rows.each_ref().map(|row| row.as_ref().map(object));
        json!({ "values": object(&self.values), "a": a, "b": b })
    }
}

/// Summarises all statements: "Of 63 statements 60 answer the same, 2 differ, 1 is not stable."
pub fn sentence(all: &[StatementAnswers]) -> String {
    let count = |verdicts: &[Verdict]| all.iter().filter(|one| verdicts.contains(&one.verdict())).count();
    let same = count(&[Verdict::Same, Verdict::Close]);
    let one_or_more = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let statements = if all.len() == 1 { "statement" } else { "statements" };
    let mut text =
        format!("of {} {statements} {}", all.len(), one_or_more(same, "answers the same", "answer the same"));
    for (verdict, one, more) in [
        (Verdict::Differs, "differs", "differ"),
        (Verdict::Fails, "fails", "fail"),
        (Verdict::Unstable, "is not stable", "are not stable"),
        (Verdict::NotCompared, "was not compared", "were not compared"),
    ] {
        let found = count(&[verdict]);
        if found > 0 {
            // Writing to a String does not fail.
            let _ = write!(text, ", {}", one_or_more(found, one, more));
        }
    }
    text
}
