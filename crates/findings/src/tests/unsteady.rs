//! A warm-up that was to last until throughput was steady.

use super::*;

fn said(warmup: Option<f64>, took: Option<f64>) -> Vec<String> {
    let mut document = quiet(1, 60, 1.0, WHITE);
    (document.run.warmup, document.run.warmup_took) = (warmup, took);
    findings(&document)
        .into_iter()
        .filter(|finding| finding.topic.as_str() == "unsteady")
        .map(|finding| finding.finding)
        .collect()
}

#[test]
fn a_warm_up_that_was_given_up_is_told() {
    assert_eq!(said(None, Some(300.0)), ["Throughput was not steady after 300 s of warm-up."]);
    for (warmup, took) in [(None, Some(299.75)), (None, None), (Some(300.0), Some(300.0))] {
        assert!(said(warmup, took).is_empty());
    }
}
