use bench_stats::compare as stats;
use bench_stats::compare::{Better, Terms};

use super::*;

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
