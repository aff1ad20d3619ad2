use bench_base::error::{UserError, sqlstate};
use bench_results::{Document, Environment, Run, ServerSetting, Summary};
use bench_stats::compare as stats;
use bench_stats::compare::{Better, Terms};
use serde_json::json;

use crate::comparison::{compare as compare_sides, *};

fn compare(baseline: &[Document], candidate: &[Document], margin: f64) -> Result<Comparison, UserError> {
    compare_sides(baseline, candidate, margin, Design::Groups)
}

fn compare_pairs(pairs: &[(Document, Document)], margin: f64) -> Result<Comparison, UserError> {
    let (baseline, candidate): (Vec<_>, Vec<_>) = pairs.iter().cloned().unzip();
    compare_sides(&baseline, &candidate, margin, Design::Pairs)
}

/// A completed run with so many TPS, and latencies to match.
fn run(run_id: i64, tps: f64) -> Document {
    let latency = |factor: f64| Some(factor * 8_000.0 / tps);
    Document {
        run: Run {
            run_id,
            workload: "tpcb".into(),
            clients: 8,
            secs: Some(10.0),
            max_tries: 1,
            query_mode: "prepared".into(),
            results: "serialize".into(),
            sample_interval: 1.0,
            seed: 1000 + run_id,
            status: "completed".into(),
            started_at: Some(format!("2025-06-0{}T12:00:00+00:00", run_id % 9 + 1)),
            server_version: "17.5".into(),
            extension_version: "0.1.0".into(),
            warmup: Some(0.0),
            ..Run::default()
        },
        summary: Summary {
            secs: Some(10.0),
            transactions: (10.0 * tps) as u64,
            tps: Some(tps),
            latency_avg_ms: latency(1.0),
            latency_p50_ms: latency(0.9),
            latency_p95_ms: latency(1.8),
            latency_p99_ms: latency(2.5),
            server_cpu_us: latency(0.12),
            ..Summary::default()
        },
        environment: Environment {
            processors: Some(8),
            memory_bytes: Some(16 << 30),
            clock_read_ns: Some(24.0),
            fsync_us: Some(900.0),
            coordinator_cpu_secs: Some(0.1 * run_id as f64),
            xids_used: Some(run_id * 1000),
            xid_age: Some(run_id * 100_000),
            server_settings: vec![setting("shared_buffers", "1GB"), setting("port", "5432")],
            ..Environment::default()
        },
        ..Document::default()
    }
}

fn setting(name: &str, setting: &str) -> ServerSetting {
    ServerSetting { name: name.into(), setting: setting.into(), source: "configuration file".into() }
}

/// Runs from an id on, with about 2 % between them.
fn side(first: i64, tps: f64, count: usize) -> Vec<Document> {
    let stray = [0.0, 0.02, -0.02, 0.01, -0.01];
    (0..count).map(|i| run(first + i as i64, tps * (1.0 + stray[i % 5]))).collect()
}

/// Runs after a change to each.
fn changed(mut runs: Vec<Document>, change: impl Fn(&mut Document)) -> Vec<Document> {
    runs.iter_mut().for_each(change);
    runs
}

fn object(value: serde_json::Value) -> serde_json::Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap()
}

fn refusal(baseline: &[Document], candidate: &[Document], margin: f64) -> UserError {
    compare(baseline, candidate, margin).unwrap_err()
}

#[test]
fn a_margin_is_a_fraction() {
    let (one, other) = (side(1, 1000.0, 3), side(11, 1000.0, 3));
    for margin in [0.0, 0.02, 0.999] {
        assert!(compare(&one, &other, margin).is_ok(), "{margin}");
    }
    for (margin, hint) in [
        (2.0, "It is a fraction: use 0.02 for 2 %."),
        (2.1, "It is a fraction: use 0.021 for 2.1 %."),
        (1.0, "It is a fraction: use 0.01 for 1 %."),
        (-0.1, "It is a fraction: use 0.02 for 2 %."),
        (250.0, "It is a fraction: use 0.02 for 2 %."),
        (f64::NAN, "It is a fraction: use 0.02 for 2 %."),
    ] {
        let error = refusal(&one, &other, margin);
        assert_eq!(error.sqlstate, sqlstate::INVALID_PARAMETER_VALUE);
        assert_eq!(error.hint.as_deref(), Some(hint));
        assert_eq!(error.message, format!("margin must be at least 0 and below 1, not {margin}"));
    }
}

#[test]
fn each_side_has_runs() {
    let runs = side(1, 1000.0, 3);
    assert_eq!(refusal(&[], &runs, 0.02).message, "there is no baseline run to compare");
    assert_eq!(refusal(&runs, &[], 0.02).message, "there is no candidate run to compare");
    let error = compare_pairs(&[], 0.02).unwrap_err();
    assert_eq!(error.sqlstate, sqlstate::INVALID_PARAMETER_VALUE);
}

#[test]
fn a_run_counts_once() {
    let error = refusal(&side(1, 1000.0, 3), &side(3, 1000.0, 3), 0.02);
    assert_eq!((error.sqlstate.as_str(), error.message.as_str()), ("22023", "run 3 is on both sides"));
    let twice = [side(1, 1000.0, 3), side(2, 1000.0, 1)].concat();
    let error = refusal(&twice, &side(11, 1000.0, 3), 0.02);
    assert_eq!(error.message, "run 2 is named twice among the baseline runs");
    assert_eq!(
        refusal(&side(11, 1000.0, 3), &twice, 0.02).message,
        "run 2 is named twice among the candidate runs"
    );
    let with_itself = [(run(7, 1000.0), run(7, 1000.0)), (run(8, 1000.0), run(9, 1000.0))];
    assert_eq!(compare_pairs(&with_itself, 0.02).unwrap_err().message, "run 7 is on both sides");
}

#[test]
fn runs_must_be_completed() {
    for (status, hint) in [
        ("starting", "Wait for it: SELECT bench.wait(12)."),
        ("running", "Wait for it: SELECT bench.wait(12)."),
        ("incomplete", "Leave it out, or run it again."),
        ("canceled", "Leave it out, or run it again."),
        ("failed", "Leave it out, or run it again."),
        ("crashed", "Leave it out, or run it again."),
    ] {
        let mut candidate = side(11, 1000.0, 3);
        candidate[1].run.status = status.into();
        let error = refusal(&side(1, 1000.0, 3), &candidate, 0.02);
        assert_eq!(
            (error.sqlstate.as_str(), error.message.as_str()),
            (sqlstate::NOT_IN_PREREQUISITE_STATE, "run 12 is not completed")
        );
        assert_eq!(error.detail, Some(format!("Its status is {status}.")));
        assert_eq!(error.hint.as_deref(), Some(hint));
    }
}

fn told(baseline: &[Document], candidate: &[Document]) -> Vec<(String, Option<String>, Option<String>)> {
    let differences = compare(baseline, candidate, 0.02).unwrap().differences;
    differences.into_iter().map(|each| (each.what, each.baseline, each.candidate)).collect()
}

fn row(
    what: &str,
    baseline: Option<&str>,
    candidate: Option<&str>,
) -> (String, Option<String>, Option<String>) {
    (what.into(), baseline.map(str::to_owned), candidate.map(str::to_owned))
}

/// What a change to the candidate's runs makes of differences.
fn after(change: impl Fn(&mut Document)) -> Vec<(String, Option<String>, Option<String>)> {
    told(&side(1, 1000.0, 3), &changed(side(11, 1000.0, 3), change))
}

#[test]
fn ids_seeds_times_and_measurements_are_no_differences() {
    assert_eq!(told(&side(1, 1000.0, 3), &side(11, 700.0, 4)), []);
}

#[test]
fn every_option_is_told() {
    type Mutation = fn(&mut Run);
    let options: [(&str, Mutation, Option<&str>, &str); 18] = [
        ("workload", |run| run.workload = "pk_select".into(), Some("tpcb"), "pk_select"),
        ("fixture", |run| run.fixture = Some("small".into()), None, "small"),
        ("clients", |run| run.clients = 16, Some("8"), "16"),
        ("secs", |run| run.secs = Some(2.5), Some("10"), "2.5"),
        ("transactions", |run| run.transactions = Some(100), None, "100"),
        ("warmup", |run| run.warmup = Some(3.0), Some("0"), "3"),
        ("warmup", |run| run.warmup = None, Some("0"), "until steady"),
        ("rate", |run| run.rate = Some(50.0), None, "50"),
        ("latency_limit", |run| run.latency_limit = Some(20.0), None, "20"),
        ("max_tries", |run| run.max_tries = 5, Some("1"), "5"),
        ("query_mode", |run| run.query_mode = "simple".into(), Some("prepared"), "simple"),
        ("driver", |run| run.driver = "wire".into(), None, "wire"),
        ("target", |run| run.target = Some("replica".into()), None, "replica"),
        ("jobs", |run| run.jobs = Some(2), None, "2"),
        ("reconnect", |run| run.reconnect = true, None, "true"),
        ("on_disconnect", |run| run.on_disconnect = "reconnect".into(), None, "reconnect"),
        ("results", |run| run.results = "discard".into(), Some("serialize"), "discard"),
        ("sample_interval", |run| run.sample_interval = 0.5, Some("1"), "0.5"),
    ];
    for (what, change, before, now) in options {
        assert_eq!(after(|document| change(&mut document.run)), [row(what, before, Some(now))]);
    }
    let versions = after(|document| {
        document.run.server_version = "18.0".into();
        document.run.extension_version = "0.2.0".into();
        document.run.role = "bob".into();
    });
    assert_eq!(
        versions,
        [
            row("role", None, Some("bob")),
            row("server_version", Some("17.5"), Some("18.0")),
            row("extension_version", Some("0.1.0"), Some("0.2.0"))
        ]
    );
}

#[test]
fn every_trait_of_the_machine_is_told() {
    type Mutation = fn(&mut Environment);
    let traits: [(&str, Mutation, Option<&str>, &str); 15] = [
        ("server build", |of| of.version = Some("by clang".into()), None, "by clang"),
        ("data checksums", |of| of.data_checksums = Some(true), None, "on"),
        ("processors", |of| of.processors = Some(4), Some("8"), "4"),
        ("processor model", |of| of.processor_model = Some("EPYC".into()), None, "EPYC"),
        ("quota", |of| of.quota_processors = Some(1.5), None, "1.5 processors"),
        ("memory", |of| of.memory_bytes = Some(8 << 30), Some("16.0 GB"), "8.0 GB"),
        ("swap", |of| of.swap_bytes = Some(1 << 29), None, "0.5 GB"),
        ("kernel", |of| of.kernel = Some("Linux 6.1".into()), None, "Linux 6.1"),
        ("transparent huge pages", |of| of.transparent_huge_pages = Some("never".into()), None, "never"),
        (
            "kernel parameter vm.swappiness",
            |of| drop(of.kernel_parameters.insert("vm.swappiness".into(), "1".into())),
            None,
            "1",
        ),
        ("limit open files", |of| drop(of.limits.insert("open files".into(), "1024".into())), None, "1024"),
        ("filesystem", |of| of.filesystem = Some("xfs".into()), None, "xfs"),
        ("mount options", |of| of.mount_options = Some("noatime".into()), None, "noatime"),
        (
            "server setting shared_buffers",
            |of| of.server_settings = vec![setting("shared_buffers", "8GB")],
            Some("1GB"),
            "8GB",
        ),
        (
            "xmin horizon",
            |of| of.horizon_holder = Some("the session with pid 42".into()),
            None,
            "held back by another",
        ),
    ];
    for (what, change, before, now) in traits {
        assert_eq!(after(|document| change(&mut document.environment)), [row(what, before, Some(now))]);
    }
    assert_eq!(
        after(|document| document.run.horizon_held = true),
        [row("xmin horizon", None, Some("held back by the waiting caller"))]
    );
}

#[test]
fn noise_of_the_machine_is_no_difference() {
    // A new kernel keeps some more megabytes; the clock and the disk are a little slower; the address is another.
    assert_eq!(
        after(|document| {
            let of = &mut document.environment;
            of.memory_bytes = Some((16 << 30) - (20 << 20));
            of.clock_read_ns = Some(35.0);
            of.fsync_us = Some(620.0);
            of.server_settings[1].setting = "5433".into();
        }),
        []
    );
    assert_eq!(
        after(|document| {
            document.environment.clock_read_ns = Some(600.4);
            document.environment.fsync_us = Some(90.0);
        }),
        [
            row("clock reading", Some("24 ns"), Some("600 ns")),
            row("flush of 8 kB", Some("900 µs"), Some("90 µs"))
        ]
    );
    // One run with a slow disk does not make a side.
    let mut candidate = side(11, 1000.0, 3);
    candidate[1].environment.fsync_us = Some(9000.0);
    assert_eq!(told(&side(1, 1000.0, 3), &candidate), []);
}

#[test]
fn variables_and_settings_are_told_by_name() {
    let differences = after(|document| {
        document.run.variables = object(json!({"n": 5, "mode": "fast"}));
        document.run.settings = object(json!({"work_mem": "64MB", "enable_seqscan": false}));
    });
    assert_eq!(
        differences,
        [
            row("variable mode", None, Some("fast")),
            row("variable n", None, Some("5")),
            row("setting enable_seqscan", Some("default"), Some("false")),
            row("setting work_mem", Some("default"), Some("64MB")),
        ]
    );
}

#[test]
fn a_setting_of_the_run_takes_the_place_of_the_server_s() {
    // What a client was given is in force in its session, where the server's settings are read.
    let given = |value: &str| {
        let value = value.to_owned();
        move |document: &mut Document| {
            document.run.settings = object(json!({"Work_Mem": value}));
            document.environment.server_settings.push(setting("work_mem", &value));
        }
    };
    let servers = |document: &mut Document| {
        document.environment.server_settings.push(setting("work_mem", "8MB"));
    };
    let compare = |candidate: Vec<Document>| told(&changed(side(1, 1000.0, 3), servers), &candidate);
    assert_eq!(
        compare(changed(side(11, 1000.0, 3), given("64MB"))),
        [row("setting work_mem", Some("8MB"), Some("64MB"))]
    );
    assert_eq!(compare(changed(side(11, 1000.0, 3), given("8MB"))), []);
}

#[test]
fn several_values_of_a_side_are_told() {
    let mut candidate = side(11, 1000.0, 4);
    candidate[0].run.clients = 16;
    candidate[3].run.rate = Some(100.0);
    assert_eq!(
        told(&side(1, 1000.0, 3), &candidate),
        [row("clients", Some("8"), Some("16, 8")), row("rate", None, Some("100, none"))]
    );
    // Values that both sides have may still be spread unevenly.
    let mut baseline = side(1, 1000.0, 3);
    baseline[0].run.clients = 16;
    candidate[3].run.rate = None;
    assert_eq!(told(&baseline, &candidate), [row("clients", Some("16, 8"), Some("16, 8"))]);
}

#[test]
fn pairs_have_differences_too() {
    let pairs: Vec<(Document, Document)> =
        side(1, 1000.0, 3).into_iter().zip(changed(side(11, 1000.0, 3), |run| run.run.clients = 9)).collect();
    let differences = compare_pairs(&pairs, 0.02).unwrap().differences;
    assert_eq!(differences.len(), 1);
    assert_eq!((differences[0].what.as_str(), differences[0].candidate.as_deref()), ("clients", Some("9")));
}

fn lines(baseline: &[Document], candidate: &[Document], margin: f64) -> Vec<ComparisonLine> {
    compare(baseline, candidate, margin).unwrap().lines
}

type Of = fn(&Summary) -> Option<f64>;

fn values(runs: &[Document], of: Of) -> Vec<f64> {
    runs.iter().map(|document| of(&document.summary).unwrap()).collect()
}

#[test]
fn tps_first_then_latencies_then_processor_time() {
    let (slow, fast) = (side(1, 1000.0, 5), side(11, 2000.0, 5));
    let lines = lines(&slow, &fast, 0.02);
    let names: Vec<&str> = lines.iter().map(|line| line.metric.as_str()).collect();
    assert_eq!(
        names,
        ["tps", "latency_avg_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "server_cpu_us"]
    );
    // More transactions, less latency and less processor time are all faster.
    for line in &lines {
        assert_eq!((line.verdict.as_str(), &line.advice), ("faster", &None), "{}", line.metric);
    }
    assert!(
        (lines[0].baseline.unwrap() - 1000.0).abs() < 1e-9 && (lines[0].ratio.unwrap() - 2.0).abs() < 1e-9
    );
    assert!((lines[1].ratio.unwrap() - 0.5).abs() < 1e-9);
    assert_eq!(compare_sides(&fast, &slow, 0.02, Design::Groups).unwrap().lines[0].verdict, "slower");
}

#[test]
fn a_line_is_what_the_statistics_say_at_its_confidence() {
    let (baseline, candidate) = (side(1, 1000.0, 5), side(11, 970.0, 5));
    let lines = lines(&baseline, &candidate, 0.02);
    let metrics: [(Of, f64, Better); 6] = [
        (|summary| summary.tps, 0.95, Better::Higher),
        (|summary| summary.latency_avg_ms, 0.9875, Better::Lower),
        (|summary| summary.latency_p50_ms, 0.9875, Better::Lower),
        (|summary| summary.latency_p95_ms, 0.9875, Better::Lower),
        (|summary| summary.latency_p99_ms, 0.9875, Better::Lower),
        (|summary| summary.server_cpu_us, 0.95, Better::Lower),
    ];
    assert_eq!(lines.len(), metrics.len());
    for (line, (of, confidence, better)) in lines.iter().zip(metrics) {
        let terms = Terms { margin: 0.02, confidence, better };
        let expected = stats::groups(&values(&baseline, of), &values(&candidate, of), terms);
        let ratio = expected.ratio.unwrap();
        assert_eq!((line.baseline, line.candidate), (Some(expected.baseline), Some(expected.candidate)));
        assert_eq!(
            (line.ratio, line.ratio_low, line.ratio_high),
            (Some(ratio.value), Some(ratio.low), Some(ratio.high))
        );
        assert_eq!(line.verdict, expected.verdict.as_str());
    }
}

#[test]
fn pairs_are_compared_as_pairs() {
    // From pair to pair the machine halves its speed; within each the candidate is 3 to 4 % slower.
    let pairs: Vec<(Document, Document)> = (0..5)
        .map(|i| {
            let tps = 8000.0 / f64::from(1 << i);
            (run(i64::from(2 * i), tps), run(i64::from(2 * i + 1), tps * (0.96 + 0.002 * f64::from(i))))
        })
        .collect();
    let paired = compare_pairs(&pairs, 0.01).unwrap();
    assert!(paired.lines.iter().all(|line| line.verdict == "slower"), "{:?}", paired.lines);
    let (baseline, candidate): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    assert_eq!(lines(&baseline, &candidate, 0.01)[0].verdict, "inconclusive");
}

#[test]
fn advice_is_to_start_anew() {
    let lines = lines(&side(1, 1000.0, 3), &side(11, 985.0, 3), 0.0);
    let terms = Terms { margin: 0.0, confidence: 0.95, better: Better::Higher };
    let of = |summary: &Summary| summary.tps;
    let compared = stats::groups(&values(&side(1, 1000.0, 3), of), &values(&side(11, 985.0, 3), of), terms);
    let runs = compared.runs.unwrap();
    assert!(runs > 3);
    assert_eq!(
        lines[0].advice,
        Some(format!(
            "Start over with {runs} runs per side: at this effect and spread, they decide in four of five cases. \
             Adding runs until there is a verdict makes false verdicts more frequent."
        ))
    );
    let same = compare(&side(1, 1000.0, 3), &side(11, 1000.0, 3), 0.0).unwrap();
    assert_eq!(
        same.lines[0].advice.as_deref(),
        Some(
            "At this effect and spread, not even 1000 runs per side would decide. Try longer runs or a wider margin."
        )
    );
    // Pairs that differ by −1, 0 and 1 %, and so on average hardly.
    let pairs = [(1, 990.0), (3, 1000.0), (5, 1012.0)].map(|(id, tps)| (run(id, 1000.0), run(id + 1, tps)));
    let advice = compare_pairs(&pairs, 0.02).unwrap().lines[0].advice.clone().unwrap();
    assert!(
        advice.starts_with("Start over with ") && advice.contains(" pairs: at this effect and spread"),
        "{advice}"
    );
}

#[test]
fn one_run_has_no_spread() {
    let advice = |baseline: usize, candidate: usize| {
        let lines = lines(&side(1, 1000.0, baseline), &side(11, 500.0, candidate), 0.02);
        assert_eq!((lines[0].verdict.as_str(), lines[0].ratio_low), ("inconclusive", None));
        assert!(lines[0].ratio.is_some_and(|ratio| (ratio - 0.5).abs() < 0.1));
        assert_eq!((lines[0].baseline, lines[0].candidate.is_some()), (Some(1000.0), true));
        lines[0].advice.clone().unwrap()
    };
    assert_eq!(
        advice(1, 1),
        "One run per side shows no spread: use at least 2 per side; 5 or more are better."
    );
    assert!(advice(1, 4).starts_with("One baseline run shows no spread"));
    let pair = compare_pairs(&[(run(1, 1000.0), run(2, 900.0))], 0.02).unwrap();
    assert_eq!(
        pair.lines[0].advice.as_deref(),
        Some("One pair shows no spread: use at least 2 pairs; 5 or more are better.")
    );
}

#[test]
fn a_metric_that_a_run_lacks_has_no_figures() {
    let mut candidate = side(11, 1000.0, 4);
    candidate[1].summary.latency_p99_ms = None;
    candidate[3].summary.latency_p99_ms = Some(f64::NAN);
    candidate[3].summary.latency_p95_ms = None;
    let lines = lines(&side(1, 1000.0, 4), &candidate, 0.02);
    let p99 = &lines[4];
    assert_eq!((p99.baseline, p99.candidate, p99.ratio, p99.ratio_low), (None, None, None, None));
    assert_eq!(p99.verdict, "inconclusive");
    assert_eq!(p99.advice.as_deref(), Some("Runs 12, 14 have no latency_p99_ms."));
    assert_eq!(lines[3].advice.as_deref(), Some("Run 14 has no latency_p95_ms."));
    assert!(lines[0].ratio.is_some());
}

#[test]
fn a_server_that_stands_still_is_slower() {
    let stopped: Vec<Document> = side(11, 1000.0, 3)
        .into_iter()
        .map(|mut document| {
            document.summary.tps = Some(0.0);
            document
        })
        .collect();
    let line = &lines(&side(1, 1000.0, 3), &stopped, 0.02)[0];
    assert_eq!((line.verdict.as_str(), line.ratio, line.ratio_high), ("slower", Some(0.0), None));
    // Two that do nothing tell nothing.
    assert_eq!(
        lines(&stopped, &changed(stopped.clone(), |document| document.run.run_id += 10), 0.02)[0].verdict,
        "inconclusive"
    );
}

#[test]
fn nothing_done_has_no_ratio() {
    let mut candidate = side(11, 1000.0, 4);
    candidate[2].summary.tps = Some(0.0);
    let line = &lines(&side(1, 1000.0, 4), &candidate, 0.02)[0];
    assert_eq!((line.verdict.as_str(), line.ratio_low), ("inconclusive", None));
    assert_eq!(line.advice.as_deref(), Some("Run 13 has a tps of 0 or less, so there is no ratio."));
}

#[test]
fn a_rate_that_was_kept_is_no_measure_of_the_server() {
    let advice = |rate: Option<f64>, achieved: f64| {
        let runs = |first| changed(side(first, achieved, 4), |document| document.run.rate = rate);
        lines(&runs(1), &runs(11), 0.1)[0].advice.clone()
    };
    // 20,000 arrivals in 10 s stray by 141, three times that is 42 TPS; the runs stray by up to 40.
    assert!(advice(Some(2000.0), 2000.0).unwrap().contains("reached their rate"));
    assert_eq!(advice(None, 2000.0), None);
    // Not reached: it is the server that was slow.
    assert_eq!(advice(Some(4000.0), 2000.0), None);
    // Few arrivals stray far: 100 by 10.
    assert!(advice(Some(10.0), 11.5).is_some());
    // One side without a rate.
    let with_rate = changed(side(1, 2000.0, 4), |document| document.run.rate = Some(2000.0));
    assert_eq!(lines(&with_rate, &side(11, 2000.0, 4), 0.1)[0].advice, None);
}
