//! What the wire driver's jobs took of the latencies.

use super::*;

/// What is said of the driver, where its jobs' connections waited so long on average, of a latency of 1.6 ms.
fn said(wait_us: f64, busy: Option<f64>) -> Vec<String> {
    let mut document = quiet(1, 60, 1.0, WHITE);
    document.summary.latency_avg_ms = Some(1.6);
    document.environment.driver_busy = busy;
    document.environment.driver_wait_avg_us = Some(wait_us);
    document.environment.driver_wait_max_ms = Some(12.0);
    let of_driver = findings(&document).into_iter().filter(|finding| finding.topic.as_str() == "driver");
    of_driver.map(|finding| finding.finding).collect()
}

#[test]
fn a_job_that_was_late_is_told_from_a_quarter_of_the_latency_on() {
    let expected = "The driver was late: answers waited 0.40 ms for their job on average, 12 ms at most, of a latency of 1.6 ms.";
    assert_eq!(said(400.0, Some(0.5)), [expected]);
    assert_eq!(said(400.0, None), [expected]);
    assert!(said(399.0, Some(0.5)).is_empty());
}

#[test]
fn a_job_without_time_left_is_told_once() {
    let told = said(400.0, Some(0.97));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("used a processor for 97 %"), "{told:?}");
}
