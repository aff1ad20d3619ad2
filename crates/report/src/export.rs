//! The figures of a run in the formats that services for continuous benchmarking and for monitoring read.

use bench_base::error::cut;
use bench_base::number::finite;
use bench_results::Document;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::content::clients_noun;
use super::junit;
use super::sanitize::{json, one_line};

/// A format of another program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Bencher Metric Format, <https://bencher.dev/docs/reference/bencher-metric-format>: throughput in operations per
    /// second, latencies in nanoseconds, which are the units of Bencher's own measures; processor time in nanoseconds too.
    Bmf,
    /// github-action-benchmark's `customBiggerIsBetter`: throughput.
    GithubBigger,
    /// github-action-benchmark's `customSmallerIsBetter`: latencies and processor time.
    GithubSmaller,
    /// Apache Otava's JSON: an array with one object for the run; those of several runs are concatenated.
    Otava,
    /// OpenMetrics 1.0, as Prometheus reads it.
    OpenMetrics,
    /// JUnit's XML, as services of continuous integration read it.
    JUnit,
}

impl ExportFormat {
    /// The formats' names.
    pub const NAMES: &[&str] = &["bmf", "github-bigger", "github-smaller", "otava", "openmetrics", "junit"];

    /// The format of a name.
    pub fn parse(name: &str) -> Option<ExportFormat> {
        match name {
            "bmf" => Some(ExportFormat::Bmf),
            "github-bigger" => Some(ExportFormat::GithubBigger),
            "github-smaller" => Some(ExportFormat::GithubSmaller),
            "otava" => Some(ExportFormat::Otava),
            "openmetrics" => Some(ExportFormat::OpenMetrics),
            "junit" => Some(ExportFormat::JUnit),
            _ => None,
        }
    }
}

/// Writes a run's figures. Those that are not known are left out.
pub fn export(document: &Document, format: ExportFormat) -> String {
    match format {
        ExportFormat::Bmf => json(&bmf(document).to_string()),
        ExportFormat::GithubBigger => {
            json(&Value::from(github(document, &throughput(document), "tps")).to_string())
        }
        ExportFormat::GithubSmaller => {
            let mut lines = github(document, &latencies(document), "ms");
            lines.extend(github(document, &server_cpu(document), "us"));
            json(&Value::from(lines).to_string())
        }
        ExportFormat::Otava => json(&otava(document).to_string()),
        ExportFormat::OpenMetrics => open_metrics(document),
        ExportFormat::JUnit => junit::run(document),
    }
}

/// What the run is called from build to build: its workload and what else makes it another benchmark.
fn benchmark(document: &Document) -> String {
    let run = &document.run;
    let noun = clients_noun(run);
    let rate = finite(run.rate).map_or(String::new(), |rate| format!(", rate {rate}"));
    format!("{}, {} {noun}{rate}", shown(&run.workload), run.clients)
}

/// A figure under the name that metrics have in `bench.compare`.
type NamedFigure = (&'static str, f64);

fn known(figures: &[(&'static str, Option<f64>)]) -> Vec<NamedFigure> {
    figures.iter().filter_map(|(name, value)| Some((*name, finite(*value)?))).collect()
}

fn throughput(document: &Document) -> Vec<NamedFigure> {
    known(&[("tps", document.summary.tps)])
}

/// In milliseconds.
fn latencies(document: &Document) -> Vec<NamedFigure> {
    let summary = &document.summary;
    known(&[
        ("latency_avg_ms", summary.latency_avg_ms),
        ("latency_p50_ms", summary.latency_p50_ms),
        ("latency_p95_ms", summary.latency_p95_ms),
        ("latency_p99_ms", summary.latency_p99_ms),
    ])
}

/// In microseconds of processor time per transaction.
fn server_cpu(document: &Document) -> Vec<NamedFigure> {
    known(&[("server_cpu_us", document.summary.server_cpu_us)])
}

fn bmf(document: &Document) -> Value {
    let mut measures = Map::new();
    for (_, tps) in throughput(document) {
        measures.insert("throughput".to_owned(), json!({"value": tps}));
    }
    for (name, ms) in latencies(document) {
        let measure = match name {
            "latency_p50_ms" => "latency-p50",
            "latency_p95_ms" => "latency-p95",
            "latency_p99_ms" => "latency-p99",
            _ => "latency",
        };
        measures.insert(measure.to_owned(), json!({"value": ms * 1e6}));
    }
    for (_, us) in server_cpu(document) {
        measures.insert("server-cpu".to_owned(), json!({"value": us * 1e3}));
    }
    json!({benchmark(document): measures})
}

fn github(document: &Document, figures: &[NamedFigure], unit: &str) -> Vec<Value> {
    let run = &document.run;
    let extra = format!("run {}, PostgreSQL {}", run.run_id, shown(&run.server_version));
    let line = |(name, value): &NamedFigure| {
        json!({
            "name": format!("{}: {name}", benchmark(document)),
            "unit": unit,
            "value": value,
            "extra": extra,
        })
    };
    figures.iter().map(line).collect()
}

fn otava(document: &Document) -> Value {
    let run = &document.run;
    let metrics: Vec<Value> = throughput(document)
        .into_iter()
        .map(|figure| (figure, "tps"))
        .chain(latencies(document).into_iter().map(|figure| (figure, "ms")))
        .chain(server_cpu(document).into_iter().map(|figure| (figure, "us")))
        .map(|((name, value), unit)| json!({"name": name, "unit": unit, "value": value}))
        .collect();
    json!([{
        "timestamp": run.started_at.as_deref().and_then(epoch),
        "metrics": metrics,
        "attributes": {
            "run_id": run.run_id.to_string(),
            "workload": shown(&run.workload),
            "server_version": shown(&run.server_version),
        },
    }])
}

/// Whole seconds since 1970-01-01 UTC of a timestamp in ISO 8601 with its offset, as PostgreSQL writes it into JSON; `None`
/// of what is none.
fn epoch(timestamp: &str) -> Option<i64> {
    timestamp.parse::<Timestamp>().ok().map(Timestamp::as_second)
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
    for (_, tps) in throughput(document) {
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
    for (name, ms) in latencies(document).into_iter().filter(|(_, ms)| *ms >= 0.0) {
        let quantile = match name {
            "latency_p50_ms" => "0.5",
            "latency_p95_ms" => "0.95",
            "latency_p99_ms" => "0.99",
            _ => continue,
        };
        let seconds = ms / 1e3;
        text += &format!("pgbench_ext_latency_seconds{{{labels},quantile=\"{quantile}\"}} {seconds}\n");
    }
    if let Some(ms) = finite(summary.latency_avg_ms).filter(|ms| *ms >= 0.0) {
        let count = summary.transactions;
        text += &format!("pgbench_ext_latency_seconds_sum{{{labels}}} {}\n", ms / 1e3 * count as f64);
        text += &format!("pgbench_ext_latency_seconds_count{{{labels}}} {count}\n");
    }
    for (_, us) in server_cpu(document).into_iter().filter(|(_, us)| *us >= 0.0) {
        text += "# TYPE pgbench_ext_server_cpu_seconds gauge\n# UNIT pgbench_ext_server_cpu_seconds seconds\n\
                 # HELP pgbench_ext_server_cpu_seconds Processor time of the clients' processes per committed transaction.\n";
        text += &format!("pgbench_ext_server_cpu_seconds{{{labels}}} {}\n", us / 1e6);
    }
    // Without a line end, which clients of the server add: nothing may follow, not even an empty line.
    text + "# EOF"
}

/// A text on one line, of a bounded length.
fn shown(text: &str) -> String {
    one_line(&cut(text))
}

/// A text as the value of a label.
fn label(text: &str) -> String {
    shown(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::example::believable;
    use crate::tests::hostile::hostile;

    const ALL: [ExportFormat; 6] = [
        ExportFormat::Bmf,
        ExportFormat::GithubBigger,
        ExportFormat::GithubSmaller,
        ExportFormat::Otava,
        ExportFormat::OpenMetrics,
        ExportFormat::JUnit,
    ];

    fn in_json(document: &Document, format: ExportFormat) -> Value {
        serde_json::from_str(&export(document, format)).expect("JSON")
    }

    #[test]
    fn every_name_has_its_format() {
        let parsed: Vec<_> = ExportFormat::NAMES.iter().map(|name| ExportFormat::parse(name)).collect();
        assert_eq!(parsed, ALL.map(Some));
        assert_eq!(ExportFormat::parse("github"), None);
    }

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
    fn bencher_reads_nanoseconds() {
        assert_eq!(
            in_json(&run(), ExportFormat::Bmf),
            json!({"tpcb-like, 16 clients": {
                "throughput": {"value": 1234.5},
                "latency": {"value": 2e6},
                "latency-p50": {"value": 1.5e6},
                "latency-p95": {"value": 4e6},
                "server-cpu": {"value": 231.5e3},
            }})
        );
    }

    #[test]
    fn bigger_and_smaller_are_apart() {
        let extra = "run 42, PostgreSQL 17.6";
        assert_eq!(
            in_json(&run(), ExportFormat::GithubBigger),
            json!([{"name": "tpcb-like, 16 clients: tps", "unit": "tps", "value": 1234.5, "extra": extra}])
        );
        let smaller = in_json(&run(), ExportFormat::GithubSmaller);
        let names: Vec<_> = smaller.as_array().expect("array").iter().map(|line| &line["name"]).collect();
        assert_eq!(
            names,
            [
                "tpcb-like, 16 clients: latency_avg_ms",
                "tpcb-like, 16 clients: latency_p50_ms",
                "tpcb-like, 16 clients: latency_p95_ms",
                "tpcb-like, 16 clients: server_cpu_us"
            ]
        );
        assert_eq!(smaller[0], json!({"name": names[0], "unit": "ms", "value": 2.0, "extra": extra}));
        assert_eq!(smaller[3], json!({"name": names[3], "unit": "us", "value": 231.5, "extra": extra}));
    }

    #[test]
    fn otava_reads_seconds_since_1970() {
        let written = in_json(&run(), ExportFormat::Otava);
        // date -u -d '2026-11-21 22:03:17' +%s
        assert_eq!(written[0]["timestamp"], 1_795_298_597);
        assert_eq!(written[0]["metrics"][0], json!({"name": "tps", "unit": "tps", "value": 1234.5}));
        assert_eq!(written[0]["attributes"]["run_id"], "42");
        for (timestamp, expected) in [
            ("1970-01-01T00:00:00+00:00", Some(0)),
            ("2000-02-29T12:00:00.5+05:30", Some(951_805_800)),
            ("2000-03-01T00:00:00-02", Some(951_876_000)),
            ("1969-12-31T23:59:59Z", Some(-1)),
            ("infinity", None),
            ("2000-13-01T00:00:00Z", None),
            ("2000-01-01T1:2:3:4:5Z", None),
        ] {
            assert_eq!(epoch(timestamp), expected, "{timestamp}");
        }
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
    }

    #[test]
    fn hostile_names_and_numbers_stay_what_they_are() {
        for document in [hostile(), Document::default()] {
            for format in &ALL[..4] {
                assert!(!export(&document, *format).contains(['<', '>', '&']), "{format:?}");
                let written = in_json(&document, *format).to_string();
                assert!(!written.chars().any(|c| c.is_control() || c == '\u{202e}'), "{format:?}");
            }
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
