//! A run as a suite of tests.

use bench_questions::statements::statements_of_duel;
use bench_results::Document;

use super::suite::{Case, Outcome, suite};
use crate::content::outcome;
use crate::statements::cases as cases_of_statements;

/// A run: its statements where it is a duel; otherwise whether it has completed, whether the audit holds, and each script with
/// its mean latency.
pub fn run(document: &Document) -> String {
    let workload = &document.run.workload;
    if let Some(duel) = &document.duel {
        return suite(workload, &cases_of_statements(&statements_of_duel(duel)));
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
