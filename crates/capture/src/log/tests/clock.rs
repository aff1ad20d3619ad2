//! Times of a log over a change of the clocks, a change of log_timezone, and a clock that was set.

use super::super::*;

/// Central European Time, and the time of New York in winter.
fn offset_of(zone: &str, _: f64) -> Option<i32> {
    match zone {
        "CET" => Some(3600),
        "CEST" => Some(7200),
        "EST" => Some(-18_000),
        _ => None,
    }
}

/// A log with a transaction of two statements between BEGIN and COMMIT, at these times.
fn captured(times: [&str; 4]) -> CapturedLog {
    let options = serde_json::json!({ "writes": true });
    let options = LogOptions::new("shop".to_owned(), &options).expect("known options");
    let mut capture = LogCapture::new(options).with_zones(offset_of);
    for (time, statement) in times.into_iter().zip(["BEGIN", "SELECT 1", "SELECT 2", "COMMIT"]) {
        let line = serde_json::json!({
            "timestamp": time, "dbname": "shop", "session_id": "s", "vxid": "3/7", "error_severity": "LOG",
            "message": format!("duration: 0.000 ms  statement: {statement}"),
        });
        capture.take(&from_json(&line.to_string()).expect("a line")).expect("a message");
    }
    capture.finish().expect("a capture")
}

fn secs(times: [&str; 4]) -> f64 {
    captured(times).figures.secs
}

#[test]
fn zones_change() {
    let autumn = ["02:59:00 CEST", "02:00:00 CET", "02:30:00 CET", "02:39:00 CET"];
    assert_eq!(secs(autumn.map(|time| format!("2026-10-25 {time}")).each_ref().map(String::as_str)), 2400.0);
    let spring = ["01:59:59.000 CET", "03:00:00.000 CEST", "03:00:01.000 CEST", "03:00:02.000 CEST"];
    let spring = spring.map(|time| format!("2026-03-29 {time}"));
    let spring = captured(spring.each_ref().map(String::as_str));
    assert_eq!((spring.figures.secs, spring.figures.long_pauses), (3.0, 0));
    assert_eq!(spring.shapes[0].pause_ms, 3000.0);
    let moved = ["17:00:00 UTC", "12:00:33 EST", "12:01:06 EST", "20:01:39 +03"];
    assert_eq!(secs(moved.map(|time| format!("2026-11-30 {time}")).each_ref().map(String::as_str)), 99.0);
}

#[test]
fn steps_and_unknown_zones_are_told() {
    let noted = |times: [&str; 4]| {
        let figures = captured(times).figures;
        (figures.steps_back, figures.long_pauses, figures.unknown_zones)
    };
    let one = [
        "2026-11-30 17:00:00 MOON",
        "2026-11-30 17:00:01 MOON",
        "2026-11-30 17:00:02 MOON",
        "2026-11-30 17:00:03 MOON",
    ];
    assert_eq!(noted(one), (0, 0, Vec::<String>::new()));
    let two = [
        "2026-11-30 17:00:00 UTC",
        "2026-11-30 17:00:01 MOON",
        "2026-11-30 17:00:02 MOON",
        "2026-11-30 17:00:03 MOON",
    ];
    assert_eq!(noted(two), (0, 0, vec!["MOON".to_owned()]));
    let back = [
        "2026-11-30 17:00:00 UTC",
        "2026-11-30 16:00:01 UTC",
        "2026-11-30 16:00:02 UTC",
        "2026-11-30 16:00:03 UTC",
    ];
    assert_eq!(noted(back).0, 1);
    let forward = [
        "2026-11-30 17:00:00 UTC",
        "2026-11-30 18:00:01 UTC",
        "2026-11-30 18:00:02 UTC",
        "2026-11-30 18:00:03 UTC",
    ];
    assert_eq!(noted(forward).1, 1);
}
