//! A lag that grows through the run, and lags that do not.

use super::*;

fn with(lag: impl Fn(usize, &mut Random) -> (f64, f64)) -> Vec<Finding> {
    let mut document = quiet(3, 40, 1.0, WHITE);
    let mut random = Random::new(17);
    for index in 0..40 {
        let (mb, ms) = lag(index, &mut random);
        document.samples.replay_lag_bytes.push(Some(mb * 1_048_576.0));
        document.samples.replay_lag_ms.push(Some(ms));
    }
    findings(&document)
}

fn told(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.topic.as_str() == "replication")
}

#[test]
fn a_standby_that_cannot_keep_up_is_told_with_its_figures() {
    let findings = with(|index, _| (index as f64 * 2.0, index as f64 * 100.0));
    let finding = told(&findings).expect("a finding");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        finding.finding,
        "The replay lag grew through the run, from 9.0 to 69 MB of WAL and from 450 ms to 3.5 s: replay cannot keep up, and \
         the lag is not steady."
    );
    assert_eq!(finding.figures["replay_lag_ms_after"], 3450.0);
}

#[test]
fn a_steady_a_small_or_a_jagged_lag_is_none() {
    assert!(told(&with(|_, random| (100.0 * random.uniform(), 5000.0 * random.uniform()))).is_none());
    assert!(told(&with(|index, _| (index as f64 * 0.1, index as f64))).is_none());
    // It catches up again and again.
    assert!(told(&with(|index, _| ((index % 8) as f64 * 20.0, (index % 8) as f64 * 900.0))).is_none());
    assert!(told(&with(|_, _| (512.0, 30_000.0))).is_none());
    assert!(told(&with(|_, _| (0.0, 0.0))).is_none());
    assert!(told(&findings(&quiet(3, 40, 1.0, WHITE))).is_none());
}

#[test]
fn chance_makes_no_lag_grow() {
    for seed in 0..2000 {
        let mut document = quiet(1, 24, 1.0, WHITE);
        let mut random = Random::new(seed);
        document.samples.replay_lag_bytes = (0..24).map(|_| Some(random.uniform() * 1e9)).collect();
        assert!(told(&findings(&document)).is_none(), "{seed}");
    }
}
