//! Tests of whole reports of experiments.

mod comparisons;
mod example;
mod searches;

use std::path::Path;

use bench_results::experiment::{AppliedSql, ExperimentDocument, ExperimentRun, RunFigures, Variant};
use bench_stats::scalability::FitVerdict;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::experiment::results::{RangeOf, peak, results, scalability};
use crate::experiment::tests::example::{by_setting, hostile, ladder, run, small};
use crate::experiment::*;
use crate::formats::Format;
use crate::sanitize::width;
use crate::tests::html::{plot_ids, tags};
use crate::tests::{ALL, html, shows_no_number, text};

/// The report of a sweep.
fn render(document: &ExperimentDocument, format: Format) -> String {
    crate::experiment::render(&Experiment::new(document.clone(), None), format)
}

/// All kinds of documents that reports are tested with.
fn documents() -> [(&'static str, ExperimentDocument); 6] {
    [
        ("empty", ExperimentDocument::default()),
        ("small", small()),
        ("ladder", ladder()),
        ("by setting", by_setting()),
        ("hostile", hostile()),
        ("search", searches::searched()),
    ]
}

#[test]
fn the_text_is_as_expected() {
    let text = render(&small(), Format::Text);
    assert_eq!(text, include_str!("small.txt"), "{text}");
}

#[test]
fn the_table_of_two_variants_is_one() {
    let text = render(&small(), Format::Text);
    assert!(text.contains("  clients  off avg     min     max  on avg    min    max  on / off\n"), "{text}");
    let markdown = render(&small(), Format::Markdown);
    assert!(
        markdown.contains("| clients | off avg | min | max | on avg | min | max | on / off |\n"),
        "{markdown}"
    );
    assert!(markdown.contains("| 16 | 16,500 | 16,000 | 17,000 | 4,050 | 4,000 | 4,100 | 0.245 |\n"));
}

#[test]
fn a_table_too_wide_for_a_line_is_one_for_each_variant() {
    let mut document = small();
    let long = "synchronous_commit_waits_for_the_standby".to_owned();
    document.sweep.setup.variants[1].name.clone_from(&long);
    for run in document.runs.iter_mut().filter(|run| run.variant == "on") {
        run.variant.clone_from(&long);
    }
    let text = render(&document, Format::Text);
    assert!(!text.contains("off avg"), "{text}");
    assert!(text.contains("  off\n  clients     avg     min     max\n        8   9,250"), "{text}");
    let second = format!("\n\n  {long}\n  clients    avg    min    max  ratio\n        8  2,100");
    assert!(text.contains(&second), "{text}");
    assert!(render(&document, Format::Markdown).contains("| off avg |"));
}

#[test]
fn a_single_rung_is_shown_by_variant() {
    let text = render(&by_setting(), Format::Text);
    assert!(
        text.contains("  variant  clients     avg     min     max  ratio\n  off           64  40,000"),
        "{text}"
    );
    assert!(text.contains("  on            64  25,000  20,000  27,500  0.625\n"), "{text}");
    assert!(text.contains("of its intervals. The ratio"), "{text}");
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("variant's. One run of each is no evidence of a difference: use rounds => 5 or more.")
    );
    for absent in ["Highest throughput", "Scalability"] {
        assert!(!text.contains(absent), "{absent}");
    }
}

#[test]
fn without_variants_nothing_is_said_of_them() {
    let document = ladder();
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = render(&document, format);
        let body = report.split_once("</style>").map_or(&*report, |(_, body)| body);
        assert!(!body.to_lowercase().contains("variant") && !body.contains("unnamed"), "{format:?}: {body}");
    }
    let text = render(&document, Format::Text);
    assert!(text.contains("  clients    avg    min     max\n        1  1,010"), "{text}");
    assert!(text.contains("  measured: 9,267 tps at 24 clients\n"), "{text}");
    assert!(text.contains("clients at the peak"), "{text}");
}

#[test]
fn a_sweep_that_did_not_complete_says_why_and_how_to_go_on() {
    let mut document = small();
    document.sweep.status = "canceled".to_owned();
    document.sweep.error = Some(json!({"message": "the sweep was stopped", "hint": null}));
    let expected = "canceled: the sweep was stopped. SELECT bench.resume_sweep(7) continues it.";
    for format in [Format::Text, Format::Markdown, Format::Html] {
        let report = render(&document, format).replace('\\', "");
        assert!(report.contains(expected), "{format:?}: {report}");
        assert!(report.contains("11 of 12 runs completed"), "{format:?}: {report}");
        assert!(report.contains("no client came up"), "{format:?}");
    }
    document.sweep.error = Some(json!({"message": "no ".repeat(5_000)}));
    for format in [Format::Text, Format::Markdown, Format::Html] {
        assert!(render(&document, format).replace('\\', "").contains("resume_sweep(7)"), "{format:?}");
    }
    for (status, is_resumed) in
        [("running", false), ("starting", false), ("crashed", true), ("completed", false)]
    {
        document.sweep.status = status.to_owned();
        document.sweep.error = None;
        assert_eq!(render(&document, Format::Text).contains("resume_sweep"), is_resumed, "{status}");
    }
}

#[test]
fn runs_that_are_missing_are_listed_up_to_a_limit() {
    let mut document = small();
    for run in &mut document.runs {
        (run.run_id, run.status, run.error) = (None, None, None);
    }
    let text = render(&document, Format::Text);
    assert_eq!(text.matches("not run\n").count(), 12, "{text}");
    assert!(text.contains("0 of 12 runs completed"), "{text}");
    document.runs = std::iter::repeat_n(document.runs, 100).flatten().collect();
    let text = render(&document, Format::Text);
    assert_eq!(text.matches("not run\n").count(), 60);
    assert!(text.contains("1,140 more are in the JSON"), "{text}");
}

#[test]
fn a_variant_s_changes_are_told() {
    let mut document = small();
    document.sweep.setup.variants.push(Variant {
        name: "large".to_owned(),
        load: json!({"rows": 100_000_000}).as_object().cloned().unwrap_or_default(),
        system: json!({"full_page_writes": "off"}).as_object().cloned().unwrap_or_default(),
        run: json!({"driver": "wire"}).as_object().cloned().unwrap_or_default(),
        sql: Some(AppliedSql { apply: vec!["VACUUM".to_owned()], revert: vec!["VACUUM".to_owned()] }),
        ..Variant::default()
    });
    document.sweep.setup.variants.push(Variant { name: "as is".to_owned(), ..Variant::default() });
    let text = render(&document, Format::Text);
    for line in [
        "  off: settings: synchronous_commit = off\n",
        "  large: run: driver = wire; load: rows = 100000000; server: full_page_writes = off; sql: VACUUM\n",
        "  as is: nothing\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn json_is_the_document_and_what_is_computed_of_it() {
    for (name, document) in documents().into_iter().take(4) {
        let json = render(&document, Format::Json);
        assert_eq!(serde_json::from_str::<ExperimentDocument>(&json).unwrap(), document, "{name}");
    }
    let json: Value = serde_json::from_str(&render(&small(), Format::Json)).unwrap();
    assert_eq!(json["results"][1]["variant"], "off");
    assert_eq!(json["results"][1]["tps_avg"], 16_500.0);
    assert_eq!(json["results"][1]["range_of"], "runs");
    assert_eq!(json["scalability"][0]["verdict"], "not enough rungs");
}

/// How many elements of a kind a page has.
fn count(page: &str, element: &str) -> usize {
    tags(page).iter().filter(|(tag, _)| tag == element).count()
}

#[test]
fn what_is_known_is_plotted() {
    for (document, circles) in [
        // A dot for each mean, two for each latency.
        (small(), 6 + 12),
        (ladder(), 9 + 18),
    ] {
        let page = render(&document, Format::Html);
        assert_eq!(plot_ids(&page), ["plot-throughput", "plot-latency"]);
        // Over each mean and each latency there is an area with its value.
        let titled = page.matches("<title>").count() - 1;
        assert_eq!(count(&page, "circle"), titled);
        assert_eq!((count(&page, "circle"), count(&page, "rect") - titled), (circles, 0));
    }
}

#[test]
fn the_law_is_drawn_where_it_fits() {
    let dashes =
        |document: &ExperimentDocument| render(document, Format::Html).matches("stroke-dasharray").count();
    let mut document = ladder();
    assert_eq!(dashes(&document), 1);
    assert!(render(&document, Format::Html).contains("Dashed"));
    // Three rungs are too few for it.
    document.runs.truncate(3);
    assert!(!render(&document, Format::Html).contains("Dashed"));
    assert_eq!(dashes(&document), 0);
}

#[test]
fn what_is_not_known_is_not_plotted() {
    let mut document = small();
    for run in &mut document.runs {
        (run.figures.latency_avg_ms, run.figures.latency_p99_ms) = (None, None);
    }
    assert_eq!(plot_ids(&render(&document, Format::Html)), ["plot-throughput"]);
    for run in &mut document.runs {
        run.status = Some("failed".to_owned());
    }
    assert_eq!(plot_ids(&render(&document, Format::Html)), Vec::<String>::new());
    let mut single = ladder();
    single.sweep.setup.clients.truncate(1);
    single.runs.truncate(1);
    assert_eq!(plot_ids(&render(&single, Format::Html)), Vec::<String>::new());
}

#[test]
fn variants_are_bars_with_their_names_and_the_first_are_drawn() {
    let mut document = by_setting();
    let page = render(&document, Format::Html);
    assert_eq!(plot_ids(&page), ["plot-variants"]);
    assert!(page.contains(">off: 40,000 tps</text>"), "{page}");
    assert_eq!(count(&page, "rect"), 3 * 2);
    for index in 0..50 {
        document.runs.push(example::run(1, &format!("more{index}"), 64, 1_000.0));
    }
    let page = render(&document, Format::Html);
    assert!(page.contains("The first 40 of 53 variants."));
    assert_eq!(count(&page, "rect"), 40 * 2);
    assert!(page.contains("<td>more49</td>"));
}

#[test]
fn points_have_their_values() {
    let page = render(&small(), Format::Html);
    assert!(page.contains("<title>off, 16 clients\n16,500 tps (16,000 to 17,000)</title>"));
    assert!(page.contains("<title>on, 32 clients\np99 29.1 ms</title>"));
}

#[test]
fn findings_lead_to_their_runs() {
    let page = render(&small(), Format::Html);
    assert!(page.contains("<a href=\"#run-102\">102</a>, <a href=\"#run-103\">103</a>"));
    assert!(page.contains("<td class=\"number\" id=\"run-107\">107</td>"));
    assert!(page.contains("<td>1 of 11</td>") && page.contains("<td>3 of 11</td>"));
    let text = render(&small(), Format::Text);
    let warning = text.lines().find(|line| line.trim_start().starts_with("warning")).unwrap();
    assert!(warning.contains("dip") && warning.contains("107"), "{warning}");
    assert!(!render(&ladder(), Format::Html).contains("id=\"findings\""));
}

#[test]
fn variants_ten_times_apart_have_a_logarithmic_axis() {
    let is_logarithmic =
        |document: &ExperimentDocument| render(document, Format::Html).contains("The axis is logarithmic.");
    // A ladder that rises tenfold has no variants that differ.
    assert!(!is_logarithmic(&ladder()) && !is_logarithmic(&small()));
    let mut rungs = small();
    rungs
        .runs
        .iter_mut()
        .filter(|run| run.variant == "on")
        .for_each(|run| run.tps = run.tps.map(|tps| tps / 9.0));
    assert!(is_logarithmic(&rungs));
    crate::tests::html::check_plots(&render(&rungs, Format::Html));
}

#[test]
fn runs_of_a_rung_are_put_together() {
    let results = results(&small());
    let cells: Vec<_> = results.iter().map(|result| (result.variant.as_str(), result.clients)).collect();
    assert_eq!(cells, [("off", 8), ("off", 16), ("off", 32), ("on", 8), ("on", 16), ("on", 32)]);
    let first = &results[0];
    assert_eq!((first.rounds, first.range_of), (2, RangeOf::Runs));
    assert_eq!(
        (first.tps_avg, first.figures.tps_min, first.figures.tps_max),
        (Some(9_250.0), Some(9_000.0), Some(9_500.0))
    );
    let p99 = (8.0 / 9_000.0 + 8.0 / 9_500.0) / 2.0 * 4_000.0;
    assert!((first.figures.latency_p99_ms.unwrap() - p99).abs() < 1e-9, "{first:?}");
    assert_eq!(first.figures.cpu_idle, Some(0.25));
    let cpu = (1e6 / 9_000.0 + 1e6 / 9_500.0) / 2.0;
    assert!((first.figures.server_cpu_us.unwrap() - cpu).abs() < 1e-9, "{first:?}");
    let last = &results[5];
    assert_eq!(
        (last.rounds, last.tps_avg, last.figures.tps_min),
        (1, Some(4_400.0), Some(4_400.0)),
        "the other failed"
    );
    assert_eq!(last.figures.failed, 12);
    assert_eq!(peak(&results, "off").map(|peak| peak.clients), Some(16));
    assert_eq!(peak(&results, "on").map(|peak| peak.clients), Some(32));
    assert_eq!(peak(&results, "unknown"), None);
}

#[test]
fn the_time_to_connect_is_the_mean_of_the_runs_that_have_one() {
    let mut document = small();
    assert!(!render(&document, Format::Text).contains("connect ms"));
    let of_first = |run: &&mut ExperimentRun| (&*run.variant, run.clients) == ("off", 8);
    for (place, run) in (0..).zip(document.runs.iter_mut().filter(of_first)) {
        run.figures.connect_avg_ms = Some(1.0 + f64::from(place));
    }
    let results = results(&document);
    assert_eq!((results[0].figures.connect_avg_ms, results[1].figures.connect_avg_ms), (Some(1.5), None));
    let text = render(&document, Format::Text);
    assert!(text.contains("connect ms") && text.contains("1.50"), "{text}");
}

#[test]
fn the_drivers_processor_time_is_a_column_where_there_is_a_driver() {
    let mut document = small();
    assert!(!render(&document, Format::Text).contains("driver µs"));
    document.runs[0].figures.driver_cpu_us = Some(6.25);
    let text = render(&document, Format::Text);
    assert!(text.contains("driver µs") && text.contains("6.25"), "{text}");
}

#[test]
fn what_a_round_trip_costs_is_said_where_variants_differ_in_the_driver() {
    let mut document = small();
    let said = "With 8 clients: Over a connection a transaction is 0.250 ms longer on average, and takes 12.0 µs more of \
                processor time in the server and 7.00 µs in the driver.";
    let text = |document: &ExperimentDocument| render(document, Format::Markdown);
    assert!(!text(&document).contains("Over a connection"));
    let driver = |name: &str| serde_json::Map::from_iter([("driver".to_owned(), name.into())]);
    for (variant, name) in document.sweep.setup.variants.iter_mut().zip(["wire", "engine"]) {
        *variant = Variant { name: variant.name.clone(), run: driver(name), ..Default::default() };
    }
    let wire = document.sweep.setup.variants[0].name.clone();
    for run in &mut document.runs {
        let over = f64::from(run.variant == wire);
        run.figures.latency_avg_ms = Some(0.5 + 0.25 * over);
        run.figures.server_cpu_us = Some(20.0 + 12.0 * over);
        run.figures.driver_cpu_us = (run.variant == wire).then_some(7.0);
    }
    assert!(text(&document).contains(said), "{}", text(&document));
    document.sweep.setup.variants[0].settings.insert("work_mem".to_owned(), "1MB".into());
    assert!(!text(&document).contains("Over a connection"), "they differ in more");
}

#[test]
fn of_a_single_round_the_range_is_of_intervals() {
    let results = results(&by_setting());
    assert!(results.iter().all(|result| result.range_of == RangeOf::Intervals));
    assert_eq!((results[0].tps_avg, results[0].figures.tps_min), (Some(40_000.0), Some(32_000.0)));
    assert_eq!(results[0].figures.tps_max, Some(40_000.0 * 1.1));
}

#[test]
fn what_was_not_measured_is_not_known() {
    let mut document = small();
    document.runs.clear();
    let of_none = results(&document);
    assert_eq!(of_none.len(), 6);
    assert!(of_none.iter().all(|result| result.rounds == 0 && result.tps_avg.is_none()));
    document.runs.push(run(1, "off", 8, f64::NAN));
    assert_eq!(results(&document)[0].tps_avg, None);
    assert_eq!(results(&document)[0].rounds, 1);
    assert_eq!(results(&ExperimentDocument::default()), []);
}

#[test]
fn the_law_is_fitted_to_rungs() {
    assert_eq!(scalability(&by_setting()), [], "a single rung does not scale");
    let few = scalability(&small());
    assert_eq!(
        few.iter().map(|fitted| (&*fitted.variant, fitted.runs)).collect::<Vec<_>>(),
        [("off", 6), ("on", 5)]
    );
    assert!(
        few.iter()
            .all(|fitted| fitted.law.verdict == FitVerdict::NotEnoughRungs && fitted.law.lambda.is_none())
    );
    let fitted = &scalability(&ladder())[0];
    assert_eq!((fitted.law.verdict, fitted.runs), (FitVerdict::Fits, 9));
    let peak = fitted.law.peak_clients.unwrap().value;
    assert!((21.0..23.0).contains(&peak), "{peak}");
    // The curve is that of the estimates: it goes through λ and is level at the peak.
    let lambda = fitted.law.lambda.unwrap().value;
    assert!((fitted.law.tps(1.0).unwrap() - lambda).abs() < 1e-6 * lambda);
    let at_peak = fitted.law.tps(peak).unwrap();
    assert!((at_peak - fitted.law.peak_tps.unwrap().value).abs() < 1e-6 * at_peak);
    assert!(fitted.law.tps(peak * 0.9).unwrap() < at_peak && fitted.law.tps(peak * 1.1).unwrap() < at_peak);
}

prop_compose! {
    fn any_run(clients: Vec<u32>, variants: Vec<String>)(
        round in 0..4u32,
        client in any::<prop::sample::Index>(),
        variant in any::<prop::sample::Index>(),
        run_id in any::<Option<i64>>(),
        status in prop::option::of("completed|failed|\\PC{0,8}"),
        error in prop::option::of(".{0,200}"),
        figures in prop::array::uniform5(prop::option::of(any::<f64>())),
        failed in any::<u64>(),
    ) -> ExperimentRun {
        let [tps, tps_min, tps_max, latency_avg_ms, latency_p99_ms] = figures;
        ExperimentRun {
            round, clients: *client.get(&clients), variant: variant.get(&variants).clone(), run_id, status, error,
            tps,
            figures: RunFigures { tps_min, tps_max, latency_avg_ms, latency_p99_ms, failed, ..RunFigures::default() },
            ..ExperimentRun::default()
        }
    }
}

fn any_document() -> impl Strategy<Value = ExperimentDocument> {
    let clients =
        prop_oneof![prop::collection::vec(any::<u32>(), 1..8), prop::collection::vec(1..300u32, 1..8)];
    let name = prop_oneof![Just(String::new()), "[a-z]{1,12}", ".{0,120}", "[ \n\u{202e}数🐘<|]{1,60}"];
    let variants = prop::collection::vec(name, 1..6);
    (clients, variants, ".{0,150}")
        .prop_flat_map(|(clients, variants, workload)| {
            let runs = prop::collection::vec(any_run(clients.clone(), variants.clone()), 0..30);
            (Just(clients), Just(variants), Just(workload), runs)
        })
        .prop_map(|(clients, variants, workload, runs)| {
            let mut document = small();
            document.sweep.setup.workload = workload;
            document.sweep.setup.clients = clients;
            document.sweep.setup.variants =
                variants.into_iter().map(|name| Variant { name, ..Variant::default() }).collect();
            document.runs = runs;
            document
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_sweep_is_rendered_harmlessly(document in any_document()) {
        text::check_lines("any", &render(&document, Format::Text));
        text::check_tables("any", &render(&document, Format::Markdown));
        let page = render(&document, Format::Html);
        html::check_page("any", &page);
        html::check_plots(&page);
        for format in ALL {
            prop_assert!(!shows_no_number(&render(&document, format).replace(&document.sweep.setup.workload, "")));
        }
    }

    #[test]
    fn every_rung_of_every_variant_has_one_result(document in any_document()) {
        let results = results(&document);
        let cells = |clients: u32, variant: &str| {
            results.iter().filter(|result| result.clients == clients && result.variant == variant).count()
        };
        for variant in &document.sweep.setup.variants {
            for clients in &document.sweep.setup.clients {
                prop_assert_eq!(cells(*clients, &variant.name), 1);
            }
        }
        let completed = document.runs.iter().filter(|run| run.status.as_deref() == Some("completed")).count();
        prop_assert_eq!(results.iter().map(|result| result.rounds as usize).sum::<usize>(), completed);
    }

    #[test]
    fn every_rung_has_one_row_for_each_of_so_many_variants(rungs in 2..30usize, variants in 1..30usize) {
        let mut document = small();
        document.sweep.setup.clients = (1..=rungs as u32).map(|rung| rung * 1_001).collect();
        let named = |index| Variant { name: format!("v{index}"), ..Variant::default() };
        document.sweep.setup.variants = (0..variants).map(named).collect();
        document.runs.clear();
        let text = render(&document, Format::Text);
        let table = text.split("Throughput, tps\n").nth(1).and_then(|rest| rest.split("avg is").next()).unwrap();
        let is_whole = table.contains("v0 avg");
        let word = |wanted: String| table.split_whitespace().filter(|word| *word == wanted).count();
        for rung in &document.sweep.setup.clients {
            prop_assert_eq!(word(rung.to_string()), if is_whole { 1 } else { variants });
        }
        // Beside the heading, two variants are named in that of their ratio.
        let expected = if is_whole && variants == 2 { 2 } else { 1 };
        for index in 0..variants {
            prop_assert_eq!(word(format!("v{index}")), expected);
        }
        prop_assert!(table.lines().all(|line| width(line) <= 100));
    }
}

// Reports as files, to be looked at: `REPORT_DIR=/tmp/reports cargo test -p bench_report experiment_files -- --ignored`.

#[test]
#[ignore = "writes files"]
fn experiment_files() {
    let directory = std::env::var("REPORT_DIR").expect("REPORT_DIR");
    for (name, document) in documents() {
        for (format, ending) in ALL.into_iter().zip(["txt", "md", "json", "html"]) {
            let file = format!("sweep-{}.{ending}", name.replace(' ', "-"));
            std::fs::write(Path::new(&directory).join(file), render(&document, format)).unwrap();
        }
    }
    for (name, report) in comparisons::reports() {
        for (format, ending) in ALL.into_iter().zip(["txt", "md", "json", "html"]) {
            let file = format!("compare-{}.{ending}", name.replace(' ', "-"));
            let text = crate::experiment::render(&report, format);
            std::fs::write(Path::new(&directory).join(file), text).unwrap();
        }
    }
}

#[test]
fn a_sweep_says_which_variant_is_the_fastest_and_what_is_not_decided() {
    let mut document = by_setting();
    let single = render(&document, Format::Markdown);
    assert!(single.contains("Not decided which is the fastest. off: highest throughput"), "{single}");
    assert!(single.contains("One run of each is no evidence"), "{single}");
    let repeated = document.runs.clone();
    document.sweep.setup.rounds = 3;
    for (round, factor) in [(2, 1.001), (3, 0.999)] {
        document.runs.extend(repeated.iter().map(|run| ExperimentRun {
            round,
            tps: run.tps.map(|tps| tps * factor),
            ..run.clone()
        }));
    }
    let decided = render(&document, Format::Markdown);
    assert!(decided.contains("**off: highest throughput, 40,000 tps; faster than "), "{decided}");
    assert!(!decided.contains("ot decided"), "{decided}");
}
