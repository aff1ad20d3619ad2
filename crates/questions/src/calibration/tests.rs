use bench_results::{Run, Samples, Summary};

use crate::calibration::*;

/// Completed runs of these TPS, 20 intervals each, whose throughput swings by a share from one to the next.
fn runs(tps: &[f64], swing: f64) -> Vec<Document> {
    let run = |&tps: &f64| {
        let interval = |index: usize| Some(tps * (1.0 + swing * [-1.0, 0.3, 1.2, -0.5][index * 7 / 3 % 4]));
        Document {
            run: Run { warmup: Some(2.0), ..Run::default() },
            summary: Summary {
                secs: Some(10.0),
                tps: Some(tps),
                latency_avg_ms: Some(8_000.0 / tps),
                latency_p50_ms: Some(7_000.0 / tps),
                latency_p95_ms: Some(9_000.0 / tps),
                latency_p99_ms: Some(9_500.0 / tps),
                ..Summary::default()
            },
            samples: Samples {
                tps: (0..20).map(interval).collect(),
                elapsed: (1..=20).map(|index| Some(f64::from(index) / 2.0)).collect(),
                ..Samples::default()
            },
            ..Document::default()
        }
    };
    tps.iter().map(run).collect()
}

/// 2 % between them, in no order.
const STEADY: [f64; 10] = [1000.0, 1021.0, 985.0, 1013.0, 972.0, 1034.0, 996.0, 1002.0, 969.0, 1008.0];

fn of<'a>(lines: &'a [CalibrationLine], metric: &str) -> Vec<&'a CalibrationLine> {
    lines.iter().filter(|line| line.metric == metric).collect()
}

#[test]
fn each_metric_has_a_line_for_each_number_of_runs() {
    let lines = calibrate(&runs(&STEADY, 0.01));
    let tps = of(&lines, "tps");
    assert_eq!(tps.iter().map(|line| line.rounds).collect::<Vec<_>>(), [3, 5, 10, 20]);
    assert_eq!(tps[0].mean, Some(1000.0));
    let cv = tps[0].cv.unwrap();
    assert!((0.015..0.025).contains(&cv) && tps[0].cv_low.unwrap() < cv && tps[0].cv_high.unwrap() > cv);
    assert!(tps.windows(2).all(|pair| pair[0].detectable.unwrap() > pair[1].detectable.unwrap()));
    assert!(tps[1..].iter().all(|line| line.advice.is_none()));
    // Nobody has measured processor time.
    let cpu = of(&lines, "server_cpu_us");
    assert_eq!((cpu[0].mean, cpu[0].cv, cpu[0].detectable), (None, None, None));
    assert_eq!(cpu[0].advice.as_deref(), Some("Not every run has a server_cpu_us."));
    assert_eq!(lines.len(), 6 * 4);
}

#[test]
fn the_advice_is_what_detectable_says() {
    let lines = calibrate(&runs(&STEADY, 0.01));
    let tps = of(&lines, "tps");
    let advice = tps[0].advice.as_ref().unwrap();
    let runs: u32 = advice.split("5 %: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let at = |rounds: u32| compare::detectable(&STEADY, rounds as usize, 0.95).unwrap();
    assert!(at(runs) <= 0.05 && at(runs - 1) > 0.05, "{advice}");
}

#[test]
fn a_drift_is_told() {
    let rising: Vec<f64> = (0..10).map(|run| 1000.0 + 5.0 * f64::from(run)).collect();
    let advice = of(&calibrate(&runs(&rising, 0.01)), "tps")[0].advice.clone().unwrap();
    assert!(
        advice.starts_with("The runs rise from first to last (+4.5 %, Kendall's tau 1.00, p = 0.000)"),
        "{advice}"
    );
    let none = of(&calibrate(&runs(&STEADY, 0.01)), "tps")[0].advice.clone().unwrap();
    assert!(none.starts_with("To show a difference of 1 %: "), "{none}");
}

#[test]
fn neighbors_that_are_alike_are_told() {
    let waves: Vec<f64> =
        (0..16).map(|run| [1000.0, 1001.0, 1050.0, 1049.0][run / 2 % 2 * 2 + run % 2]).collect();
    let waves: Vec<f64> = (0..16).map(|run| waves[run / 2]).collect();
    let advice = of(&calibrate(&runs(&waves, 0.01)), "tps")[0].advice.clone().unwrap();
    assert!(advice.starts_with("Neighboring runs are alike"), "{advice}");
}

#[test]
fn longer_runs_are_advised_where_they_help() {
    let steady = of(&calibrate(&runs(&STEADY, 0.001)), "tps")[0].advice.clone().unwrap();
    assert!(steady.contains("longer runs would hardly help"), "{steady}");
    let restless = of(&calibrate(&runs(&STEADY, 0.2)), "tps")[0].advice.clone().unwrap();
    assert!(restless.contains("runs of 40 s would vary about half as much"), "{restless}");
    let at = compare::detectable(&STEADY, 5, 0.95).expect("a difference");
    let secs = |difference: f64| (10.0 * (at.ln_1p() / difference.ln_1p()).powi(2).max(1.0)).ceil();
    assert!(secs(0.02) > 10.0 && secs(0.02) <= 3600.0);
    let told = format!(
        "5 runs per side of {} s; 5 %: 5 runs per side of {} s.",
        grouped(secs(0.02)),
        grouped(secs(0.05))
    );
    assert!(restless.contains("To show 1 %: ") && restless.contains(&told), "{told}: {restless}");
    let wild: Vec<f64> = STEADY.iter().map(|tps| 1000.0 + 10.0 * (tps - 1000.0)).collect();
    assert_eq!(
        enough_secs(&wild, 0.95, 10.0, 0.01).as_deref(),
        Some("1 %: more than 10 runs per side of 3,600 s")
    );
}

#[test]
fn a_warm_up_is_advised_where_one_is_missing() {
    let mut cold = runs(&STEADY, 0.01);
    for run in &mut cold {
        run.samples.tps[..4].iter_mut().for_each(|tps| *tps = tps.map(|tps| tps / 2.0));
    }
    let advice = of(&calibrate(&cold), "tps")[0].advice.clone().unwrap();
    assert!(advice.ends_with("use warmup => 4."), "{advice}");
    let warm = of(&calibrate(&runs(&STEADY, 0.01)), "tps")[0].advice.clone().unwrap();
    assert!(!warm.contains("warmup"), "{warm}");
}

#[test]
fn runs_that_do_not_vary_show_any_difference() {
    let lines = calibrate(&runs(&[500.0; 5], 0.0));
    let tps = of(&lines, "tps");
    assert_eq!((tps[0].cv, tps[0].detectable), (Some(0.0), Some(0.0)));
}

/// A comparison of so many runs a side, which vary as these.
fn compared(runs: &[Document], candidate_factor: f64) -> Comparison {
    let side = |first: i64, factor: f64| -> Vec<Document> {
        let numbered = |(id, run): (i64, &Document)| {
            let mut run = run.clone();
            run.run.run_id = id;
            run.run.status = "completed".to_owned();
            run.summary.tps = run.summary.tps.map(|tps| tps * factor);
            run
        };
        (first..).zip(runs).map(numbered).collect()
    };
    crate::comparison::compare(&side(1, 1.0), &side(101, candidate_factor), 0.02, Design::Groups)
        .expect("a comparison")
}

fn tps_advice(comparison: &Comparison) -> Option<&str> {
    comparison.lines[0].advice.as_deref()
}

#[test]
fn a_calibration_says_what_an_undecided_comparison_cannot_tell() {
    let equal = runs(&STEADY, 0.01);
    let mut undecided = compared(&equal[..3], 1.001);
    assert_eq!(undecided.lines[0].verdict, "inconclusive");
    let before = tps_advice(&undecided).expect("advice").to_owned();
    tell(&mut undecided, 12, &equal, (3, Design::Groups), 0.02);
    let cv = coefficient(&STEADY, 0.95).expect("a spread").value;
    let detectable = compare::detectable(&STEADY, 3, 0.95).expect("a difference");
    let told = |several: &str| {
        format!(
            "{before} This machine cannot show a difference of 2 % with {several}: equal runs vary by {:.1} % \
             (calibration of sweep 12). It can show differences of {:.0} % or more.",
            cv * 100.0,
            detectable * 100.0
        )
    };
    let expected = told("3 runs per side");
    assert_eq!(tps_advice(&undecided), Some(expected.as_str()));
    let mut pairs = compared(&equal[..3], 1.001);
    tell(&mut pairs, 12, &equal, (3, Design::Pairs), 0.02);
    assert_eq!(tps_advice(&pairs), Some(told("3 pairs").as_str()));
    // Nobody has measured processor time.
    assert!(!undecided.lines[5].advice.as_ref().expect("advice").contains("calibration"));
}

#[test]
fn a_calibration_says_what_the_same_is_worth() {
    let close: Vec<f64> = STEADY.iter().map(|tps| 1000.0 + (tps - 1000.0) / 50.0).collect();
    let equal = runs(&close, 0.01);
    let mut same = compared(&equal, 1.0);
    assert_eq!((same.lines[0].verdict.as_str(), tps_advice(&same)), ("same", None));
    tell(&mut same, 7, &equal, (10, Design::Groups), 0.02);
    assert_eq!(
        tps_advice(&same),
        Some(
            "On this machine equal runs vary by 0.04 % (calibration of sweep 7): 10 runs per side can show \
             differences of 0.06 % or more."
        )
    );
}

#[test]
fn wild_runs_show_nothing() {
    let wild = runs(&[500.0, 900.0, 1500.0, 700.0, 1100.0], 0.01);
    let mut undecided = compared(&wild[..2], 1.0);
    tell(&mut undecided, 3, &wild, (2, Design::Groups), 0.02);
    let told = tps_advice(&undecided).expect("advice");
    assert!(
        told.ends_with("vary by 41 % (calibration of sweep 3). It cannot show differences below 100 %."),
        "{told}"
    );
}

#[test]
fn a_calibration_has_nothing_to_say_of_a_verdict_or_of_single_runs() {
    let equal = runs(&STEADY, 0.01);
    let mut slower = compared(&equal, 0.5);
    assert_eq!(slower.lines[0].verdict, "slower");
    tell(&mut slower, 12, &equal, (10, Design::Groups), 0.02);
    assert_eq!(tps_advice(&slower), None);
    let mut single = compared(&equal[..1], 1.0);
    let before = single.clone();
    tell(&mut single, 12, &equal, (1, Design::Groups), 0.02);
    assert_eq!(single, before);
}
