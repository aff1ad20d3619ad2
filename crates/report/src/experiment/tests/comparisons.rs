//! Tests of whole reports of comparisons.

use bench_questions::comparison::{Design, compare};
use bench_results::Document;

use crate::Format;
use crate::experiment::{Collected, ComparedSides, Experiment, render};
use crate::tests::example::believable;
use crate::tests::hostile::hostile;
use crate::tests::{ALL, html, markdown, shows_no_number, text};

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

pub fn collected(documents: &[Document]) -> Collected {
    let mut collected = Collected::default();
    documents.iter().for_each(|document| collected.add(document));
    collected
}

/// The report of two groups, at the usual margin.
pub fn report_of(baseline: &[Document], candidate: &[Document]) -> Experiment {
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
        statement.plan = Some(format!("{}\nSeq Scan", crate::tests::hostile::HOSTILE));
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
        markdown::check_tables(name, &render(&report, Format::Markdown));
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
    markdown::check_input(&render(&report, Format::Markdown));
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
