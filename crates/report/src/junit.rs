//! JUnit's XML, as services of continuous integration read it.

use bench_base::number::finite;
use bench_questions::statements::statements_of_duel;
use bench_results::Document;

use super::content::outcome;
use super::escape::escaped;
use super::sanitize::{clean, one_line};
use super::statements::cases as cases_of_statements;

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

/// A run: its statements where it is a duel; otherwise whether it has completed, whether the audit holds, and each script with
/// its mean latency.
pub fn run(document: &Document) -> String {
    let workload = &document.run.workload;
    if let Some(duel) = &document.duel {
        return suite(workload, &cases_of_statements(&statements_of_duel(duel, &Default::default())));
    }
    let case =
        |name: &str, outcome| Case { class: workload.clone(), name: name.to_owned(), ms: None, outcome };
    let status = &document.run.status;
    let status = if status == "completed" {
        Outcome::Passed
    } else {
        let details = outcome(status, document.run.error.as_ref()).unwrap_or_default();
        Outcome::Failed { kind: "status".to_owned(), message: format!("the run is {status}"), details }
    };
    let wrong: Vec<String> = document
        .audit
        .iter()
        .filter(|line| line.ok == Some(false))
        .map(|line| format!("{}: harness {:?}, server {:?}", line.counter, line.harness, line.server))
        .collect();
    let audit = if !wrong.is_empty() {
        let message = format!("{} counters differ from the server's", wrong.len());
        Outcome::Failed { kind: "audit".to_owned(), message, details: wrong.join("\n") }
    } else if document.audit.iter().all(|line| line.ok.is_none()) {
        Outcome::Skipped("no counter was judged".to_owned())
    } else {
        Outcome::Passed
    };
    let scripts = document.scripts.iter().map(|script| Case {
        ms: script.latency_avg_ms,
        ..case(&format!("script {}: {}", script.script, script.workload), Outcome::Passed)
    });
    let cases: Vec<Case> =
        [case("status", status), case("audit", audit)].into_iter().chain(scripts).collect();
    suite(workload, &cases)
}
