//! The figures of a run in the formats that continuous integration and monitoring read.

use bench_base::error::cut;
use bench_base::number::finite;
use bench_base::words;
use bench_questions::statements::statements_of_duel;
use bench_results::Document;

use crate::junit::{Case, Outcome, suite};
use crate::run::headline::outcome;
use crate::sanitize::one_line;
use crate::statements::{MAX_MISSING, cases, cases_of_unreplayed};

words! {
    /// A format of another program's.
    pub enum ExportFormat {
        /// OpenMetrics 1.0, as Prometheus reads it.
        OpenMetrics = "openmetrics",
        /// JUnit's XML, as services of continuous integration read it.
        JUnit = "junit",
    }
}

/// Writes a run's figures. Those that are not known are left out.
pub fn export(document: &Document, format: ExportFormat) -> String {
    match format {
        ExportFormat::OpenMetrics => open_metrics(document),
        ExportFormat::JUnit => junit(document, MAX_MISSING),
    }
}

fn open_metrics(document: &Document) -> String {
    let (run, summary) = (&document.run, &document.summary);
    let labels = format!(
        "run_id=\"{}\",workload=\"{}\",clients=\"{}\"",
        run.run_id,
        label(&run.workload),
        run.clients
    );
    let mut text = String::new();
    if let Some(tps) = finite(summary.tps) {
        text += "# TYPE pgbench_ext_tps gauge\n# HELP pgbench_ext_tps Committed transactions per second.\n";
        text += &format!("pgbench_ext_tps{{{labels}}} {tps}\n");
    }
    text += "# TYPE pgbench_ext_transactions counter\n# HELP pgbench_ext_transactions Transactions by their outcome.\n";
    for (outcome, count) in [
        ("committed", Some(summary.transactions)),
        ("failed", Some(summary.failed)),
        ("aborted", summary.aborted),
        ("skipped", Some(summary.skipped)),
    ] {
        let Some(count) = count else { continue };
        text += &format!("pgbench_ext_transactions_total{{{labels},outcome=\"{outcome}\"}} {count}\n");
    }
    text += "# TYPE pgbench_ext_latency_seconds summary\n# UNIT pgbench_ext_latency_seconds seconds\n\
             # HELP pgbench_ext_latency_seconds Latency of committed transactions.\n";
    let latencies =
        [("0.5", summary.latency_p50_ms), ("0.95", summary.latency_p95_ms), ("0.99", summary.latency_p99_ms)];
    for (quantile, ms) in latencies {
        let Some(ms) = not_negative(ms) else { continue };
        let seconds = ms / 1e3;
        text += &format!("pgbench_ext_latency_seconds{{{labels},quantile=\"{quantile}\"}} {seconds}\n");
    }
    if let Some(ms) = not_negative(summary.latency_avg_ms) {
        let count = summary.transactions;
        text += &format!("pgbench_ext_latency_seconds_sum{{{labels}}} {}\n", ms / 1e3 * count as f64);
        text += &format!("pgbench_ext_latency_seconds_count{{{labels}}} {count}\n");
    }
    if let Some(us) = not_negative(summary.server_cpu_us) {
        text += "# TYPE pgbench_ext_server_cpu_seconds gauge\n# UNIT pgbench_ext_server_cpu_seconds seconds\n\
                 # HELP pgbench_ext_server_cpu_seconds Processor time of the clients' processes per committed transaction.\n";
        text += &format!("pgbench_ext_server_cpu_seconds{{{labels}}} {}\n", us / 1e6);
    }
    // Without a line end, which clients of the server add: nothing may follow, not even an empty line.
    text + "# EOF"
}

/// Returns a figure that is finite and not below zero.
fn not_negative(figure: Option<f64>) -> Option<f64> {
    finite(figure).filter(|figure| *figure >= 0.0)
}

/// A text on one line, of a bounded length.
fn shown(text: &str) -> String {
    one_line(&cut(text))
}

/// A text as the value of a label.
fn label(text: &str) -> String {
    shown(text).replace('\\', "\\\\").replace('"', "\\\"")
}

/// Writes a run as JUnit's XML: whether it has completed; the statements of a duel, of other runs whether the audit holds, and
/// each script with its mean latency; and what of a capture is not replayed, of which `max_missing` may be the share.
pub fn junit(document: &Document, max_missing: f64) -> String {
    let workload = &document.run.workload;
    let case =
        |name: &str, outcome| Case { class: workload.clone(), name: name.to_owned(), ms: None, outcome };
    let status = &document.run.status;
    let status = if status == "completed" {
        Outcome::Passed
    } else {
        let details = outcome(status, document.run.error.as_ref()).unwrap_or_default();
        Outcome::Failed { kind: "status".to_owned(), message: format!("the run is {status}"), details }
    };
    let left_out = document.unreplayed.iter().flat_map(|of| cases_of_unreplayed(workload, of, max_missing));
    if let Some(duel) = &document.duel {
        let status = Some(status).filter(|status| !matches!(status, Outcome::Passed));
        let status = status.map(|status| case("status", status));
        let of_statements = cases(&statements_of_duel(duel));
        let all: Vec<Case> = status.into_iter().chain(of_statements).chain(left_out).collect();
        return suite(workload, &all);
    }
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
    let all: Vec<Case> =
        [case("status", status), case("audit", audit)].into_iter().chain(scripts).chain(left_out).collect();
    suite(workload, &all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example::{believable, hostile};

    /// A run with figures that can be checked by head.
    fn run() -> Document {
        let mut document = believable(10);
        let summary = &mut document.summary;
        (summary.tps, summary.transactions, summary.failed) = (Some(1_234.5), 12_345, 3);
        summary.aborted = Some(1);
        (summary.latency_avg_ms, summary.latency_p50_ms) = (Some(2.0), Some(1.5));
        (summary.latency_p95_ms, summary.latency_p99_ms) = (Some(4.0), None);
        summary.server_cpu_us = Some(231.5);
        document
    }

    #[test]
    fn open_metrics_has_units_types_and_an_end() {
        let labels = r#"run_id="42",workload="tpcb-like",clients="16""#;
        let expected = format!(
            "# TYPE pgbench_ext_tps gauge\n\
             # HELP pgbench_ext_tps Committed transactions per second.\n\
             pgbench_ext_tps{{{labels}}} 1234.5\n\
             # TYPE pgbench_ext_transactions counter\n\
             # HELP pgbench_ext_transactions Transactions by their outcome.\n\
             pgbench_ext_transactions_total{{{labels},outcome=\"committed\"}} 12345\n\
             pgbench_ext_transactions_total{{{labels},outcome=\"failed\"}} 3\n\
             pgbench_ext_transactions_total{{{labels},outcome=\"aborted\"}} 1\n\
             pgbench_ext_transactions_total{{{labels},outcome=\"skipped\"}} 0\n\
             # TYPE pgbench_ext_latency_seconds summary\n\
             # UNIT pgbench_ext_latency_seconds seconds\n\
             # HELP pgbench_ext_latency_seconds Latency of committed transactions.\n\
             pgbench_ext_latency_seconds{{{labels},quantile=\"0.5\"}} 0.0015\n\
             pgbench_ext_latency_seconds{{{labels},quantile=\"0.95\"}} 0.004\n\
             pgbench_ext_latency_seconds_sum{{{labels}}} 24.69\n\
             pgbench_ext_latency_seconds_count{{{labels}}} 12345\n\
             # TYPE pgbench_ext_server_cpu_seconds gauge\n\
             # UNIT pgbench_ext_server_cpu_seconds seconds\n\
             # HELP pgbench_ext_server_cpu_seconds Processor time of the clients' processes per committed transaction.\n\
             pgbench_ext_server_cpu_seconds{{{labels}}} 0.0002315\n\
             # EOF"
        );
        assert_eq!(export(&run(), ExportFormat::OpenMetrics), expected);
    }

    #[test]
    fn a_run_is_a_suite_of_tests() {
        let xml = export(&run(), ExportFormat::JUnit);
        assert!(xml.contains("name=\"status\" time=\"0.000000000\"/>"), "{xml}");
        let mut failed = run();
        failed.run.status = "failed".to_owned();
        let xml = export(&failed, ExportFormat::JUnit);
        assert!(xml.contains("<failure message=\"the run is failed\" type=\"status\">"), "{xml}");
        failed.duel = Some(bench_results::Duel::default());
        let xml = export(&failed, ExportFormat::JUnit);
        assert!(xml.contains("<failure message=\"the run is failed\" type=\"status\">"), "{xml}");
    }

    #[test]
    fn hostile_names_and_numbers_stay_what_they_are() {
        for document in [hostile(), Document::default()] {
            let xml = export(&document, ExportFormat::JUnit);
            assert!(
                xml.ends_with("</testsuites>\n") && !xml.contains("<script") && !xml.contains('\u{202e}'),
                "{xml}"
            );
            assert!(!xml.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            let text = export(&document, ExportFormat::OpenMetrics);
            assert!(text.ends_with("\n# EOF") && !text.contains("NaN") && !text.contains("inf\n"));
            for line in text.lines() {
                let quotes = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
                assert!(line.starts_with("# ") || quotes % 2 == 0, "{line}");
                assert!(line.starts_with("# ") || line.starts_with("pgbench_ext_"), "{line}");
            }
        }
    }
}
