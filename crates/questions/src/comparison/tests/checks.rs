use bench_base::error::sqlstate;

use super::*;

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
