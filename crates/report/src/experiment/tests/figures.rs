//! What is computed of the runs.

use bench_results::experiment::{ExperimentDocument, ExperimentRun, Variant};
use bench_stats::scalability::FitVerdict;

use super::example::{by_setting, ladder, run, small};
use super::render;
use crate::Format;
use crate::experiment::results::{RangeOf, peak};
use crate::experiment::{results, scalability};

#[test]
fn runs_of_a_rung_are_put_together() {
    let results = results(&small());
    let cells: Vec<_> = results.iter().map(|result| (result.variant.as_str(), result.clients)).collect();
    assert_eq!(cells, [("off", 8), ("off", 16), ("off", 32), ("on", 8), ("on", 16), ("on", 32)]);
    let first = &results[0];
    assert_eq!((first.rounds, first.range_of), (2, RangeOf::Runs));
    assert_eq!((first.tps_avg, first.tps_min, first.tps_max), (Some(9_250.0), Some(9_000.0), Some(9_500.0)));
    let p99 = (8.0 / 9_000.0 + 8.0 / 9_500.0) / 2.0 * 4_000.0;
    assert!((first.latency_p99_ms.unwrap() - p99).abs() < 1e-9, "{first:?}");
    assert_eq!(first.cpu_idle, Some(0.25));
    let cpu = (1e6 / 9_000.0 + 1e6 / 9_500.0) / 2.0;
    assert!((first.server_cpu_us.unwrap() - cpu).abs() < 1e-9, "{first:?}");
    let last = &results[5];
    assert_eq!(
        (last.rounds, last.tps_avg, last.tps_min),
        (1, Some(4_400.0), Some(4_400.0)),
        "the other failed"
    );
    assert_eq!(last.failed, 12);
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
        run.connect_avg_ms = Some(1.0 + f64::from(place));
    }
    let results = results(&document);
    assert_eq!((results[0].connect_avg_ms, results[1].connect_avg_ms), (Some(1.5), None));
    let text = render(&document, Format::Text);
    assert!(text.contains("connect ms") && text.contains("1.50"), "{text}");
}

#[test]
fn the_drivers_processor_time_is_a_column_where_there_is_a_driver() {
    let mut document = small();
    assert!(!render(&document, Format::Text).contains("driver µs"));
    document.runs[0].driver_cpu_us = Some(6.25);
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
    for (variant, name) in document.sweep.variants.iter_mut().zip(["wire", "engine"]) {
        *variant = Variant { name: variant.name.clone(), run: driver(name), ..Default::default() };
    }
    let wire = document.sweep.variants[0].name.clone();
    for run in &mut document.runs {
        let over = f64::from(run.variant == wire);
        run.latency_avg_ms = Some(0.5 + 0.25 * over);
        run.server_cpu_us = Some(20.0 + 12.0 * over);
        run.driver_cpu_us = (run.variant == wire).then_some(7.0);
    }
    assert!(text(&document).contains(said), "{}", text(&document));
    document.sweep.variants[0].settings.insert("work_mem".to_owned(), "1MB".into());
    assert!(!text(&document).contains("Over a connection"), "they differ in more");
}

#[test]
fn of_a_single_round_the_range_is_of_intervals() {
    let results = results(&by_setting());
    assert!(results.iter().all(|result| result.range_of == RangeOf::Intervals));
    assert_eq!((results[0].tps_avg, results[0].tps_min), (Some(40_000.0), Some(32_000.0)));
    assert_eq!(results[0].tps_max, Some(40_000.0 * 1.1));
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
