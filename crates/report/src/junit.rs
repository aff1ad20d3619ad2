//! A suite of tests as JUnit's XML.

use bench_base::number::finite;

use crate::sanitize::{clean, escaped, one_line};

/// A test.
pub struct Case {
    pub class: String,
    pub name: String,
    pub ms: Option<f64>,
    pub outcome: Outcome,
}

/// How a test ended.
pub enum Outcome {
    Passed,
    /// Nothing can be said.
    Skipped(String),
    Failed {
        kind: String,
        message: String,
        details: String,
    },
}

/// Writes a suite of tests.
pub fn suite(name: &str, cases: &[Case]) -> String {
    let attribute = |text: &str| escaped(&one_line(text));
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    let failures = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
    let counts =
        format!("tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"", cases.len());
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n  <testsuite name=\"{}\" {counts}>\n",
        attribute(name)
    );
    for Case { class, name, ms, outcome } in cases {
        let seconds = finite(*ms).unwrap_or_default() / 1e3;
        let (class, name) = (attribute(class), attribute(name));
        text += &format!("    <testcase classname=\"{class}\" name=\"{name}\" time=\"{seconds:.9}\"");
        text += &match outcome {
            Outcome::Passed => "/>\n".to_owned(),
            Outcome::Skipped(message) => {
                format!(">\n      <skipped message=\"{}\"/>\n    </testcase>\n", attribute(message))
            }
            Outcome::Failed { kind, message, details } => format!(
                ">\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>\n",
                attribute(message),
                attribute(kind),
                escaped(&clean(details))
            ),
        };
    }
    text + "  </testsuite>\n</testsuites>\n"
}
