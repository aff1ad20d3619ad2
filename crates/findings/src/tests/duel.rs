//! Duels: arms that do the same, and such as do not.

use bench_results::{ComparisonLine, Duel, DuelWait, StatementFigures, StatementLine};

use super::*;

fn line(metric: &str, a: f64, b: f64, half_width: f64) -> ComparisonLine {
    let ratio = b / a;
    ComparisonLine {
        metric: metric.to_owned(),
        baseline: Some(a),
        candidate: Some(b),
        ratio: Some(ratio),
        ratio_low: Some(ratio * (1.0 - half_width)),
        ratio_high: Some(ratio * (1.0 + half_width)),
        ..ComparisonLine::default()
    }
}

fn found(duel: Duel) -> Vec<Finding> {
    let mut document = quiet(10, 60, 1.0, WHITE);
    document.duel = Some(duel);
    findings(&document)
}

#[test]
fn arms_that_do_not_do_the_same_are_told_with_the_statement() {
    let statement = |command: u32, b: f64| StatementLine {
        workload: "x".to_owned(),
        command,
        baseline: StatementFigures { rows: Some(10.0), ..StatementFigures::default() },
        candidate: StatementFigures { rows: Some(b), ..StatementFigures::default() },
        ..StatementLine::default()
    };
    let of = |line: ComparisonLine| Duel {
        metrics: vec![line],
        statements: vec![statement(1, 10.0), statement(2, 5.0)],
        ..Duel::default()
    };
    let told = found(of(line("rows", 20.0, 15.0, 0.001)));
    assert_eq!((told.len(), told[0].topic.as_str(), told[0].severity), (1, "rows", Severity::Warning));
    assert!(told[0].finding.contains("return or change 20 rows, those of b 15; command 2 of x: 10 and 5.0"));
    // Chance, and no rows at all.
    assert_eq!(found(of(line("rows", 20.0, 19.8, 0.02))), []);
    assert_eq!(found(of(line("rows", 20.0, 20.0, 0.0))), []);
    let none = ComparisonLine {
        metric: "rows".to_owned(),
        baseline: Some(2.0),
        candidate: Some(0.0),
        ..ComparisonLine::default()
    };
    assert_eq!(found(of(none)).len(), 1);
}

#[test]
fn what_leaks_from_arm_to_arm_is_told() {
    let wal = Duel { metrics: vec![line("wal_bytes", 100.0, 300.0, 0.05)], ..Duel::default() };
    assert_eq!(found(wal).iter().map(|of| of.topic.as_str()).collect::<Vec<_>>(), ["duel"]);
    let wait = |share: f64| DuelWait {
        wait_event_type: "Lock".to_owned(),
        wait_event: "transactionid".to_owned(),
        a: 0.01,
        b: share,
    };
    let locks = |share: f64| found(Duel { waits: vec![wait(share)], ..Duel::default() });
    assert!(locks(0.2)[0].finding.contains("a for 1 % of their time, b for 20 %"));
    assert_eq!(locks(0.04), []);
}
