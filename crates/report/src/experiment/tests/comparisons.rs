//! Tests of whole reports of comparisons.

use bench_questions::comparison::{ComparisonLine, Design, Difference, compare};
use bench_results::experiment::RunSamples;
use bench_results::{CommandSummary, Document};

use crate::experiment::results::Experiment;
use crate::experiment::sides::{Collected, ComparedSides};
use crate::experiment::{comparison, render, sides};
use crate::formats::Format;
use crate::tests::example::{believable, hostile};
use crate::tests::html::plot_ids;
use crate::tests::{ALL, html, shows_no_number, text};

/// A completed run of that TPS.
pub fn run(run_id: i64, tps: f64) -> Document {
    let mut document = believable(30);
    document.run.run_id = run_id;
    let factor = tps / document.summary.tps.expect("known");
    document.summary.tps = Some(tps);
    for value in document.samples.tps.iter_mut().flatten() {
        *value *= factor;
    }
    for ms in [
        &mut document.summary.latency_avg_ms,
        &mut document.summary.latency_p50_ms,
        &mut document.summary.latency_p95_ms,
        &mut document.summary.latency_p99_ms,
        &mut document.summary.server_cpu_us,
    ] {
        *ms = ms.map(|ms| ms / factor);
    }
    document
}

fn collected(documents: &[Document]) -> Collected {
    let mut collected = Collected::default();
    documents.iter().for_each(|document| collected.add(document));
    collected
}

/// The report of two groups, at the usual margin.
fn report_of(baseline: &[Document], candidate: &[Document]) -> Experiment {
    let compared = compare(baseline, candidate, 0.02, Design::Groups).expect("comparable");
    Experiment::of_sides(compared, 0.02, false, [collected(baseline), collected(candidate)], Vec::new())
}

/// What is compared in it.
pub fn sides(report: &Experiment) -> &ComparedSides {
    report.comparison.as_ref().expect("a comparison")
}

/// Five runs against five, by so much slower, with another plan and other settings.
pub fn slower() -> (Vec<Document>, Vec<Document>) {
    let noise = [0.99, 1.0, 1.01, 0.995, 1.005];
    let side = |first: i64, tps: f64| -> Vec<Document> {
        (first..).zip(noise).map(|(run_id, noise)| run(run_id, tps * noise)).collect()
    };
    let (baseline, mut candidate) = (side(1, 10_000.0), side(6, 7_000.0));
    for document in &mut candidate {
        document.run.settings.insert("work_mem".to_owned(), "1MB".into());
        document.environment.processors = Some(4);
        document.statements[4].plan = Some("generic plan:\nSeq Scan on public.bench_accounts".to_owned());
        document.waits[2].share += 0.2;
        document.waits[0].share -= 0.2;
    }
    (baseline, candidate)
}

/// Hostile runs, as far as runs can be compared.
fn hostile_sides() -> (Vec<Document>, Vec<Document>) {
    let side = |first: i64| -> Vec<Document> {
        let run = |run_id: i64| {
            let mut document = hostile();
            document.run.run_id = run_id;
            document.run.status = "completed".to_owned();
            document.summary.tps = Some(10f64.powi(run_id as i32 * 30));
            document
        };
        (first..first + 2).map(run).collect()
    };
    let (baseline, mut candidate) = (side(1), side(3));
    for statement in &mut candidate[0].statements {
        statement.plan = Some(format!("{}\nSeq Scan", crate::tests::example::HOSTILE));
    }
    (baseline, candidate)
}

/// All kinds of comparisons that reports are tested with.
pub fn reports() -> Vec<(&'static str, Experiment)> {
    let (baseline, candidate) = slower();
    let empty = |run_id| {
        let mut document = Document::default();
        (document.run.run_id, document.run.status) = (run_id, "completed".to_owned());
        document
    };
    let (bad, worse) = hostile_sides();
    vec![
        ("slower", report_of(&baseline, &candidate)),
        ("faster", report_of(&candidate, &baseline)),
        ("one each", report_of(&baseline[..1], &candidate[..1])),
        ("empty", report_of(&[empty(1)], &[empty(2)])),
        ("hostile", report_of(&bad, &worse)),
    ]
}

#[test]
fn all_reports_are_well_formed_and_harmless() {
    for (name, report) in reports() {
        text::check_lines(name, &render(&report, Format::Text));
        text::check_tables(name, &render(&report, Format::Markdown));
        let page = render(&report, Format::Html);
        html::check_page(name, &page);
        html::check_plots(&page);
        for format in ALL {
            assert!(!shows_no_number(&render(&report, format)), "{name} as {format:?}");
        }
    }
    let (baseline, candidate) = hostile_sides();
    let report = report_of(&baseline, &candidate);
    assert!(!sides(&report).plans.is_empty());
    html::check_input(&render(&report, Format::Html));
    text::check_input(&render(&report, Format::Markdown));
}

#[test]
fn what_is_known_is_in_every_report() {
    let (baseline, candidate) = slower();
    let report = report_of(&baseline, &candidate);
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let text = render(&report, format).replace('\\', "");
        for known in [
            "The candidate is slower",
            "work_mem",
            "processors",
            "Seq Scan on public.bench_accounts",
            "IO:WALSync",
        ] {
            assert!(text.contains(known), "{known} as {format:?}");
        }
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} as {format:?}"));
        assert!(at("The candidate is slower") < at("TPS"), "the verdict comes first: {format:?}");
        assert!(at("The candidate is slower") < at("Waits"), "{format:?}");
    }
}

#[test]
fn plots_have_their_values() {
    let (baseline, candidate) = slower();
    let page = render(&report_of(&baseline, &candidate), Format::Html);
    assert!(page.contains("\nbaseline: ") && page.contains("\ncandidate: "));
    assert!(page.contains("]: slower</title>"));
}

#[test]
fn hot_updates_are_told_where_they_are_not_alike() {
    let (baseline, mut candidate) = slower();
    let hot = |report: &Experiment| {
        let line = sides(report).differences.iter().find(|line| line.what == "HOT updates");
        line.map(|line| (line.baseline.clone().unwrap(), line.candidate.clone().unwrap()))
    };
    assert_eq!(hot(&report_of(&baseline, &candidate)), None);
    for relation in candidate.iter_mut().flat_map(|document| &mut document.relations) {
        relation.hot_updated = relation.hot_updated.map(|hot| hot / 2);
    }
    let report = report_of(&baseline, &candidate);
    assert_eq!(hot(&report), Some(("93.0 %".to_owned(), "46.5 %".to_owned())));
    // What came of the change is not the change.
    let mut alike = baseline.clone();
    for (place, document) in alike.iter_mut().enumerate() {
        document.run.run_id += 5;
        document.run.settings.insert("work_mem".to_owned(), "1MB".into());
        document.relations.clone_from(&candidate[place].relations);
    }
    let alike = report_of(&baseline, &alike);
    assert!(sides(&alike).conclusion.contains("work_mem 1MB"), "{}", sides(&alike).conclusion);
}

#[test]
fn the_conclusion_is_that_of_the_comparison() {
    let (baseline, candidate) = slower();
    for (one, other, verdict) in [(&baseline, &candidate, "slower"), (&candidate, &baseline, "faster")] {
        let compared = compare(one, other, 0.02, Design::Groups).unwrap();
        let report = report_of(one, other);
        let report = sides(&report);
        let line = &compared.lines[0];
        assert_eq!((line.verdict.as_str(), report.verdict.as_str()), (verdict, verdict));
        let interval = format!(
            "({} to {}; 5 runs against 5).",
            sides::change(line.ratio_low.unwrap()),
            sides::change(line.ratio_high.unwrap())
        )
        .replacen('(', "95 % interval: ", 1);
        assert!(report.conclusion.ends_with(&interval), "{} {interval}", report.conclusion);
        assert!(report.conclusion.starts_with(&format!("The candidate is {verdict}: its TPS differs by ")));
        assert_eq!(report.metrics, compared.lines);
        assert_eq!(report.differences, compared.differences);
    }
    let same = report_of(&baseline[..3], &baseline[3..]);
    let same = sides(&same);
    let within = "The candidate is as fast as the baseline, within the margin of 2.0 %: ";
    let undecided = "It is undecided whether the candidate is faster or slower: its TPS differs by ";
    let starts = if same.verdict == "same" { within } else { undecided };
    assert!(same.conclusion.starts_with(starts), "{}", same.conclusion);
    let single = report_of(&baseline[..1], &candidate[..1]);
    let sentence = format!("{undecided}−30.0 %, without an interval (1 run against 1).");
    assert_eq!(sides(&single).conclusion, sentence);
    assert!(
        comparison::remarks(&single, sides(&single))
            .iter()
            .any(|remark| remark.contains("use at least 2 per side"))
    );
}

#[test]
fn pairs_are_compared_as_pairs() {
    let (baseline, candidate) = slower();
    let compared = compare(&baseline, &candidate, 0.02, Design::Pairs).unwrap();
    let expected = compared.lines.clone();
    let both = [collected(&baseline), collected(&candidate)];
    let report = Experiment::of_sides(compared, 0.02, true, both, Vec::new());
    let report = sides(&report);
    assert_eq!(report.metrics, expected);
    assert!(report.conclusion.contains("5 pairs of runs"), "{}", report.conclusion);
    assert_ne!(report.metrics, sides(&report_of(&baseline, &candidate)).metrics);
}

#[test]
fn the_same_within_the_margin_is_told() {
    let line = |low: f64, high: f64| ComparisonLine {
        metric: "tps".to_owned(),
        script: None,
        baseline: Some(100.0),
        candidate: Some(100.3),
        ratio: Some(1.003),
        ratio_low: Some(low),
        ratio_high: Some(high),
        verdict: "same".to_owned(),
        advice: None,
    };
    assert_eq!(
        sides::conclusion(Some(&line(0.995, 1.0112)), 0.02, false, (5, 4), ""),
        "The candidate is as fast as the baseline, within the margin of 2.0 %: its TPS differs by +0.3 % (95 % interval: \
         −0.5 % to +1.1 %; 5 runs against 4)."
    );
    let still = ComparisonLine {
        ratio: Some(0.0),
        ratio_low: None,
        ratio_high: None,
        verdict: "slower".to_owned(),
        ..line(1.0, 1.0)
    };
    assert_eq!(
        sides::conclusion(Some(&still), 0.02, false, (2, 2), ""),
        "The candidate is slower: its TPS is 0 (2 runs against 2)."
    );
}

#[test]
fn waits_are_means_over_the_runs_that_were_observed() {
    let (baseline, mut candidate) = slower();
    candidate[0].waits.clear();
    let report = report_of(&baseline, &candidate);
    let line = sides(&report).waits.iter().find(|line| line.wait == "IO:WALSync").expect("there");
    let share = |document: &Document| {
        document.waits.iter().find(|wait| wait.wait_event == "WALSync").expect("there").share
    };
    assert!((line.baseline.unwrap() - share(&baseline[0])).abs() < 1e-12);
    assert!((line.candidate.unwrap() - share(&candidate[1])).abs() < 1e-12);
    assert!((line.difference.unwrap() - (share(&candidate[1]) - share(&baseline[0]))).abs() < 1e-12);
    candidate.iter_mut().for_each(|document| document.waits.clear());
    let unobserved = report_of(&baseline, &candidate);
    assert!(
        sides(&unobserved).waits.iter().all(|line| line.candidate.is_none() && line.difference.is_none())
    );
}

#[test]
fn histograms_are_added_up() {
    let (baseline, candidate) = slower();
    let report = report_of(&baseline, &candidate);
    let total = |buckets: &[bench_results::Bucket]| buckets.iter().map(|bucket| bucket.count).sum::<u64>();
    let expected: u64 = baseline.iter().map(|document| total(&document.latencies)).sum();
    assert_eq!(total(&sides(&report).baseline_latencies), expected);
    assert!(sides(&report).baseline_latencies.is_sorted_by(|one, next| one.low_ms < next.low_ms));
}

#[test]
fn plans_differ_by_their_nodes_and_not_by_values() {
    let with_plan = |run_id: i64, plan: &str| {
        let mut document = run(run_id, 1_000.0 + run_id as f64);
        document.statements = vec![CommandSummary {
            command: 1,
            statement: "SELECT v FROM t WHERE id = :id;".to_owned(),
            plan: Some(plan.to_owned()),
            ..CommandSummary::default()
        }];
        document
    };
    let plans = |baseline: &str, candidate: &str| {
        sides(&report_of(&[with_plan(1, baseline)], &[with_plan(2, candidate)])).plans.clone()
    };
    let by_index = "custom plan:\nIndex Scan using i on t\n  Index Cond: (id = 7)";
    assert_eq!(plans(by_index, "custom plan:\nIndex Scan using i on t\n  Index Cond: (id = 9)"), []);
    assert_eq!(plans(by_index, "generic plan:\nIndex Scan using i on t\n  Index Cond: (id = $1)"), []);
    let found = plans(by_index, "generic plan:\nSeq Scan on t\n  Filter: (id = $1)");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].baseline, [by_index]);
    assert_eq!(plans(by_index, "custom plan:\nIndex Scan using other on t\n  Index Cond: (id = 7)").len(), 1);
    let turned = "generic plan:\nat first:\nIndex Scan using i on t\nfrom 3.100 s on:\nSeq Scan on t";
    assert_eq!(plans(by_index, turned).len(), 1, "a form that came later");
}

#[test]
fn what_is_known_is_plotted() {
    let (baseline, candidate) = slower();
    let ids = |report: &Experiment| plot_ids(&render(report, Format::Html));
    let mut report = report_of(&baseline, &candidate);
    assert_eq!(ids(&report), ["plot-forest", "plot-tps", "plot-distribution"]);
    report.comparison.as_mut().expect("there").candidate_latencies.clear();
    assert_eq!(ids(&report).len(), 3, "one side is enough");
    report.comparison.as_mut().expect("there").baseline_latencies.clear();
    assert_eq!(ids(&report), ["plot-forest", "plot-tps"]);
    report.comparison.as_mut().expect("there").metrics.iter_mut().for_each(|line| line.ratio = None);
    assert_eq!(ids(&report), ["plot-tps"]);
    report.document.runs.iter_mut().for_each(|run| run.samples = RunSamples::default());
    assert_eq!(ids(&report), Vec::<String>::new());
}

#[test]
fn the_cost_of_a_round_trip_is_told() {
    let (mut engine, mut wire) = (vec![run(1, 2000.0)], vec![run(2, 1000.0)]);
    let set = |document: &mut Document, driver: &str, latency_ms: f64, cpu_us: f64| {
        document.run.driver = driver.to_owned();
        document.summary.latency_avg_ms = Some(latency_ms);
        document.summary.server_cpu_us = Some(cpu_us);
    };
    set(&mut engine[0], "engine", 0.5, 20.0);
    set(&mut wire[0], "wire", 0.75, 32.0);
    wire[0].summary.driver_cpu_us = Some(7.0);
    let expected = "Over a connection a transaction is 0.250 ms longer on average, and takes 12.0 µs more of processor time in \
                    the server and 7.00 µs in the driver.";
    let said = |baseline: &[Document], candidate: &[Document]| {
        let report = report_of(baseline, candidate);
        let remarks = comparison::remarks(&report, sides(&report));
        remarks.into_iter().filter(|remark| remark.starts_with("Over a connection")).collect::<Vec<_>>()
    };
    assert_eq!(said(&engine, &wire), [expected]);
    assert_eq!(said(&wire, &engine), [expected], "whichever of the two is the baseline");
    engine[0].environment.server_context_switches = Some(0.25);
    assert_eq!(said(&engine, &wire), [expected], "context switches are told where both sides have them");
    wire[0].environment.server_context_switches = Some(1.5);
    wire[0].environment.driver_context_switches = Some(0.5);
    let switches =
        format!("{expected} It has 1.25 context switches more in the server and 0.50 in the driver.");
    assert_eq!(said(&engine, &wire), [switches.as_str()]);
    assert_eq!(said(&wire, &engine), [switches.as_str()]);
    wire[0].run.target = Some("replica".to_owned());
    assert!(said(&engine, &wire).is_empty(), "another server is another one");
}

#[test]
fn a_great_change_is_told_in_times() {
    assert_eq!(sides::change(2.99), "+199.0 %");
    assert_eq!(sides::change(3.04), "3.0 times");
    assert_eq!(sides::change(16.148), "16 times");
    assert_eq!(sides::change(0.05), "−95.0 %");
    let line = ComparisonLine {
        metric: "tps".to_owned(),
        script: None,
        baseline: Some(100.0),
        candidate: Some(1614.8),
        ratio: Some(16.148),
        ratio_low: Some(15.0),
        ratio_high: Some(17.0),
        verdict: "faster".to_owned(),
        advice: None,
    };
    assert_eq!(
        sides::conclusion(Some(&line), 0.02, true, (10, 10), " (fsync off instead of on)"),
        "The candidate (fsync off instead of on) is faster: its TPS is 16 times the baseline's (95 % interval: 15 times \
         to 17 times; 10 pairs of runs)."
    );
}

#[test]
fn the_candidate_is_named_by_what_alone_tells_it() {
    let difference = |what: &str, baseline: Option<&str>, candidate: Option<&str>| Difference {
        what: what.to_owned(),
        baseline: baseline.map(str::to_owned),
        candidate: candidate.map(str::to_owned),
    };
    let commit = difference("setting synchronous_commit", Some("on"), Some("off"));
    assert_eq!(sides::arm(std::slice::from_ref(&commit)), " (synchronous_commit off instead of on)");
    assert_eq!(sides::arm(&[difference("clients", Some("8"), None)]), " (clients the default instead of 8)");
    assert_eq!(sides::arm(&[commit.clone(), commit]), "");
    assert_eq!(sides::arm(&[]), "");
}
