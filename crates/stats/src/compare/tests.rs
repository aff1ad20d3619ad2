use proptest::prelude::*;

use crate::compare::*;

const FOR_TPS: Terms = Terms { margin: 0.02, confidence: 0.95, better: Better::Higher };
const FOR_LATENCY: Terms = Terms { better: Better::Lower, ..FOR_TPS };

fn close(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < 1e-9
}

/// So many values around `level`, with about 3 % between them.
fn around(level: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| level * (1.0 + 0.01 * ((i * 7 + 3) % 11) as f64 - 0.05)).collect()
}

#[test]
fn from_five_runs_on_the_interval_is_welch_s() {
    // By hand: logarithms with means 0.1 and 0.4, variances 0.025 and 0.1, 5 and 5 of them. Standard error
    // √(0.125 / 5) = 0.158114; degrees of freedom 0.125² / ((0.025² + 0.1²) / 4) = 5.882353.
    let logs = |values: [f64; 5]| values.map(f64::exp);
    let compared = groups(&logs([-0.1, 0.0, 0.1, 0.2, 0.3]), &logs([0.0, 0.2, 0.4, 0.6, 0.8]), FOR_TPS);
    let ratio = compared.ratio.unwrap();
    assert!(close(ratio.value, 0.3f64.exp()));
    // Student's quantiles for 5.882353 degrees of freedom: 2.571 for 5, 2.447 for 6.
    let margin = (ratio.high.ln() - ratio.low.ln()) / 2.0;
    assert!((margin / 0.158_114 - 2.4584).abs() < 2e-3, "{}", margin / 0.158_114);
    assert_eq!(compared.verdict, Verdict::Inconclusive);
}

#[test]
fn below_five_runs_the_smaller_side_s_degrees_of_freedom_count() {
    // Student's quantiles for 1, 2 and 3 degrees of freedom.
    for (runs, expected) in [(2, 12.706), (3, 4.303), (4, 3.182)] {
        for (baseline, candidate) in [(runs, 20), (20, runs), (runs, runs)] {
            let (one, other) = (around(100.0, baseline), around(100.0, candidate));
            let variance = |values: &[f64]| {
                let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
                let count = logs.len() as f64;
                let mean = logs.iter().sum::<f64>() / count;
                logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0) / count
            };
            let error = (variance(&one) + variance(&other)).sqrt();
            let width = width(&groups(&one, &other, FOR_TPS), error);
            assert!((width / expected - 1.0).abs() < 1e-3, "{baseline}, {candidate}: {width}");
        }
    }
}

#[test]
fn the_interval_of_few_pairs_is_student_s() {
    // Logarithms of the ratios 0.1, 0.2, 0.3: standard error 0.1 / √3, 2 degrees of freedom.
    let compared =
        pairs(&[(1.0, 0.1f64.exp()), (5.0, 5.0 * 0.2f64.exp()), (9.0, 9.0 * 0.3f64.exp())], FOR_TPS);
    let ratio = compared.ratio.unwrap();
    assert!(close(ratio.value, 0.2f64.exp()));
    assert!((ratio.high.ln() - 0.2 - 4.30265 * 0.1 / 3f64.sqrt()).abs() < 1e-5);
}

/// Half the width of an interval of logarithms, in standard errors.
fn width(compared: &GroupComparison, error: f64) -> f64 {
    let ratio = compared.ratio.unwrap();
    (ratio.high / ratio.low).ln() / 2.0 / error
}

#[test]
fn from_ten_on_the_interval_is_bootstrapped_and_the_smaller_side_decides() {
    use statrs::distribution::{ContinuousCDF, StudentsT};
    let values =
        |count: usize| -> Vec<f64> { (0..count).map(|i| (0.01 * (i as f64 / 2.0).exp()).exp()).collect() };
    let sample = |count: usize| {
        let logs: Vec<f64> = values(count).iter().map(|value| value.ln()).collect();
        let mean = logs.iter().sum::<f64>() / count as f64;
        logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count as f64 - 1.0) / count as f64
    };
    let is_student = |one: usize, other: usize| {
        let (first, second) = (sample(one), sample(other));
        let freedom = (first + second).powi(2)
            / (first.powi(2) / (one as f64 - 1.0) + second.powi(2) / (other as f64 - 1.0));
        let expected = StudentsT::new(0.0, 1.0, freedom).unwrap().inverse_cdf(0.975);
        let width = width(&groups(&values(one), &values(other), FOR_TPS), (first + second).sqrt());
        (width / expected - 1.0).abs() < 1e-6
    };
    assert!(is_student(9, 9) && is_student(9, 12) && is_student(12, 9));
    assert!(!is_student(10, 12) && !is_student(12, 10));
    let paired = |count: usize| values(count).into_iter().map(|value| (1.0, value)).collect::<Vec<_>>();
    // Student's quantiles for 8 and 9 degrees of freedom.
    assert!((width(&pairs(&paired(9), FOR_TPS), sample(9).sqrt()) - 2.306).abs() < 1e-3);
    assert!(width(&pairs(&paired(10), FOR_TPS), sample(10).sqrt()) > 1.2 * 2.262);
}

#[test]
fn verdicts_follow_the_interval() {
    let judge = |low, high, terms: Terms| terms.verdict(&Estimate { value: 1.0, low, high });
    assert_eq!(judge(1.01, 1.03, FOR_TPS), Verdict::Faster);
    assert_eq!(judge(0.97, 0.99, FOR_TPS), Verdict::Slower);
    assert_eq!(judge(1.01, 1.03, FOR_LATENCY), Verdict::Slower);
    assert_eq!(judge(0.97, 0.99, FOR_LATENCY), Verdict::Faster);
    assert_eq!(judge(0.97, 1.01, FOR_TPS), Verdict::Inconclusive);
    assert_eq!(judge(1.0, 1.03, FOR_TPS), Verdict::Inconclusive);
    // Within the margin the sides are the same, a difference that is certain included.
    assert_eq!(judge(1.01, 1.02, FOR_TPS), Verdict::Same);
    assert_eq!(judge(0.98, 1.0, FOR_LATENCY), Verdict::Same);
    assert_eq!(judge(1.01, 1.02, Terms { margin: 0.0, ..FOR_TPS }), Verdict::Faster);
}

#[test]
fn one_run_on_a_side_has_no_interval() {
    for (baseline, candidate) in [(vec![100.0], vec![50.0]), (vec![100.0], around(50.0, 20))] {
        let compared = groups(&baseline, &candidate, FOR_TPS);
        assert_eq!((compared.ratio, compared.verdict, compared.runs), (None, Verdict::Inconclusive, None));
        assert_eq!(compared.baseline, 100.0);
    }
    assert_eq!(pairs(&[(100.0, 50.0)], FOR_TPS).ratio, None);
}

#[test]
fn what_has_no_logarithm_has_no_interval() {
    for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut values = around(100.0, 12);
        values[5] = value;
        for compared in [
            groups(&values, &around(100.0, 12), FOR_TPS),
            groups(&around(100.0, 12), &values, FOR_TPS),
            pairs(&values.iter().map(|&value| (value, 100.0)).collect::<Vec<_>>(), FOR_TPS),
            pairs(&values.iter().map(|&value| (value, value)).collect::<Vec<_>>(), FOR_TPS),
        ] {
            assert_eq!((compared.ratio, compared.verdict), (None, Verdict::Inconclusive), "{value}");
        }
    }
}

#[test]
fn values_without_spread_are_taken_at_their_word() {
    for count in [2, 9, 10, 30] {
        let equal = groups(&vec![123.4; count], &vec![123.4; count], Terms { margin: 0.0, ..FOR_TPS });
        assert_eq!(equal.verdict, Verdict::Same, "{count}");
        let other = groups(&vec![100.0; count], &vec![90.0; count], FOR_TPS);
        assert_eq!(other.verdict, Verdict::Slower);
        let ratio = other.ratio.unwrap();
        assert!(close(ratio.low, 0.9) && close(ratio.high, 0.9));
        assert_eq!(pairs(&vec![(100.0, 90.0); count], FOR_TPS).verdict, Verdict::Slower);
    }
}

#[test]
fn one_side_without_spread_leaves_that_of_the_other() {
    for count in [3, 9, 10, 30] {
        let compared = groups(&vec![100.0; count], &around(100.0, count), FOR_TPS);
        let ratio = compared.ratio.unwrap();
        assert!(ratio.low < 1.0 && ratio.high > 1.0 && ratio.low > 0.8, "{count}: {ratio:?}");
    }
}

#[test]
fn where_few_values_differ_student_s_interval_stands_in() {
    let mut values = vec![100.0; 12];
    values[3] = 110.0;
    let ratio = groups(&values, &values, FOR_TPS).ratio.unwrap();
    assert!(ratio.low > 0.95 && ratio.low < 1.0 && close(ratio.low * ratio.high, 1.0), "{ratio:?}");
}

#[test]
fn few_runs_decide_a_great_difference_and_many_a_small_one() {
    let baseline = [100.0, 104.0, 96.0, 101.0];
    let scaled = |by: f64| baseline.map(|value| by * value);
    let runs = |by: f64, margin: f64| groups(&baseline, &scaled(by), Terms { margin, ..FOR_TPS }).runs;
    // Decided already.
    assert_eq!(runs(0.8, 0.02), None);
    let (great, small) = (runs(0.96, 0.0).unwrap(), runs(0.985, 0.0).unwrap());
    assert!(great < small, "{great} {small}");
    // No difference is never found, and sides that are the same are found to be.
    assert_eq!(runs(1.0, 0.0), None);
    assert!(runs(1.0, 0.02).is_some_and(|runs| runs > 9 && runs < 200));
    // Within the margin is reached before the exclusion of 1.
    assert!(runs(0.999, 0.02).unwrap() < runs(0.999, 0.0).unwrap_or(u32::MAX));
    assert_eq!(runs(0.99999, 0.0), None);
    // The larger side's runs are no reason for as many again.
    let many = baseline.repeat(5);
    let unequal = groups(&many, &scaled(0.93)[..2], Terms { margin: 0.0, ..FOR_TPS });
    assert!(unequal.verdict == Verdict::Inconclusive && unequal.runs.unwrap() < 20, "{unequal:?}");
}

/// Whether an end of Student's interval keeps to its side of a limit with 0.9, of two groups of so many runs with the
/// same spread about ln 1 and ln `by`.
fn would_decide(deviation: f64, by: f64, runs: usize, margin: f64) -> bool {
    use statrs::distribution::{ContinuousCDF, StudentsT};
    let freedom = if runs < 5 { runs as f64 - 1.0 } else { 2.0 * (runs as f64 - 1.0) };
    let student = StudentsT::new(0.0, 1.0, freedom).unwrap();
    let error = deviation * (2.0 / runs as f64).sqrt();
    let half = (student.inverse_cdf(0.975) + student.inverse_cdf(0.9)) * error;
    let terms = Terms { margin, ..FOR_TPS };
    terms.verdict(&ratio(by.ln(), half)) != Verdict::Inconclusive
}

proptest! {
    #[test]
    fn as_many_runs_as_advised_would_decide_and_one_fewer_would_not(
        logs in prop::collection::vec(-0.1..0.1f64, 2..9),
        by in 0.9..1.1f64,
        margin in 0.0..0.05f64,
    ) {
        let baseline: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        let candidate: Vec<f64> = baseline.iter().map(|value| by * value).collect();
        let compared = groups(&baseline, &candidate, Terms { margin, ..FOR_TPS });
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
        match compared.runs {
            Some(runs) => {
                prop_assert!(runs as usize > logs.len() && would_decide(deviation, by, runs as usize, margin));
                prop_assert!(!would_decide(deviation, by, runs as usize - 1, margin));
            }
            None => prop_assert!(
                compared.verdict != Verdict::Inconclusive
                    || !would_decide(deviation, by, MOST_RUNS as usize, margin)
            ),
        }
    }

    #[test]
    fn either_side_may_be_the_baseline(
        baseline in prop::collection::vec(1.0..1000.0f64, 2..15),
        candidate in prop::collection::vec(1.0..1000.0f64, 2..15),
    ) {
        let there = groups(&baseline, &candidate, FOR_TPS);
        let back = groups(&candidate, &baseline, FOR_TPS);
        let (ratio, inverse) = (there.ratio.unwrap(), back.ratio.unwrap());
        prop_assert!(close(ratio.value, 1.0 / inverse.value));
        prop_assert!(close(ratio.low, 1.0 / inverse.high) && close(ratio.high, 1.0 / inverse.low));
        let (there, back): (Vec<_>, Vec<_>) =
            baseline.iter().zip(&candidate).map(|(&one, &other)| ((one, other), (other, one))).unzip();
        if there.len() > 1 {
            let ratio = pairs(&there, FOR_TPS).ratio.unwrap();
            let inverse = pairs(&back, FOR_TPS).ratio.unwrap();
            prop_assert!(close(ratio.low, 1.0 / inverse.high) && close(ratio.high, 1.0 / inverse.low));
        }
    }

    #[test]
    fn the_unit_does_not_matter(
        baseline in prop::collection::vec(1.0..1000.0f64, 2..15),
        candidate in prop::collection::vec(1.0..1000.0f64, 2..15),
        unit in 1e-6..1e6f64,
    ) {
        let scaled = |values: &[f64]| values.iter().map(|value| unit * value).collect::<Vec<_>>();
        let ratio = groups(&baseline, &candidate, FOR_TPS).ratio.unwrap();
        let other = groups(&scaled(&baseline), &scaled(&candidate), FOR_TPS).ratio.unwrap();
        prop_assert!(close(ratio.low, other.low) && close(ratio.high, other.high));
    }

    #[test]
    fn the_order_of_runs_does_not_matter(
        (baseline, shuffled) in prop::collection::vec(1.0..1000.0f64, 2..15)
            .prop_flat_map(|values| (Just(values.clone()), Just(values).prop_shuffle())),
        candidate in prop::collection::vec(1.0..1000.0f64, 2..15),
    ) {
        let ratio = groups(&baseline, &candidate, FOR_TPS).ratio.unwrap();
        let other = groups(&shuffled, &candidate, FOR_TPS).ratio.unwrap();
        prop_assert!(close(ratio.low, other.low) && close(ratio.high, other.high));
    }

    #[test]
    fn more_confidence_is_a_wider_interval(
        baseline in prop::collection::vec(1.0..1000.0f64, 2..15),
        candidate in prop::collection::vec(1.0..1000.0f64, 2..15),
    ) {
        let ratio = groups(&baseline, &candidate, FOR_TPS).ratio.unwrap();
        let wider = groups(&baseline, &candidate, Terms { confidence: 0.9875, ..FOR_TPS }).ratio.unwrap();
        prop_assert!(wider.low <= ratio.low && ratio.low <= ratio.value);
        prop_assert!(ratio.value <= ratio.high && ratio.high <= wider.high);
    }
}

#[test]
fn equal_values_have_no_error() {
    assert_eq!(critical_value(&[vec![0.0; 12], vec![0.0; 15]], 0.95), Some(0.0));
}

#[test]
fn one_value_that_differs_is_not_enough() {
    // A third of all resamples does not have it.
    let mut sample = vec![-0.1; 10];
    sample[0] = 0.9;
    assert_eq!(critical_value(&[sample], 0.95), None);
}

#[test]
fn a_long_tail_asks_for_more_than_student_does() {
    let sample: Vec<f64> = (0..20).map(|i| (f64::from(i) / 4.0).exp()).collect();
    let mean = sample.iter().sum::<f64>() / 20.0;
    let centred: Vec<f64> = sample.iter().map(|value| value - mean).collect();
    // A resample that misses the tail is too low, and takes its spread for too small. Student: 2.093, 2.759.
    let samples = [centred];
    let usual = critical_value(&samples, 0.95).unwrap();
    let wide = critical_value(&samples, 0.9875).unwrap();
    assert!(usual > 2.5 && wide > 1.2 * usual, "{usual} {wide}");
}

#[test]
fn of_normal_values_it_is_near_student_s() {
    // The normal distribution's quantiles at the middles of 30 equal parts.
    use statrs::distribution::{ContinuousCDF, Normal};
    let normal = Normal::standard();
    let sample: Vec<f64> = (0..30).map(|i| normal.inverse_cdf((f64::from(i) + 0.5) / 30.0)).collect();
    let critical = critical_value(&[sample], 0.95).unwrap();
    // 2.045 with 29 degrees of freedom.
    assert!((critical - 2.045).abs() < 0.15, "{critical}");
}
