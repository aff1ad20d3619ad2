use std::collections::BTreeSet;

use bench_results::{CommandSummary, Duel, ScriptSummary};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::statements::*;

fn normal(random: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (random.random_range(1e-12..1.0), random.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A run of so many statements of a millisecond, each of which varies by itself from run to run, and all of them together; one
/// takes `slower` times as long.
fn run(random: &mut StdRng, statements: u32, slower: (u32, f64)) -> StatementsOfRun {
    let machine = 0.02 * normal(random);
    let command = |script: u32, random: &mut StdRng| {
        let factor = if script == slower.0 { slower.1 } else { 1.0 };
        let ms = factor * (machine + 0.02 * normal(random)).exp();
        CommandSummary {
            script,
            command: 1,
            statement: format!("SELECT {script}"),
            count: 1000,
            rows: Some(2000),
            custom_plans: 1000,
            latency_avg_ms: Some(ms),
            latency_p95_ms: Some(2.0 * ms),
            plan: Some(format!("custom plan\nSeq Scan on t{}\n  Filter: (id = {script})", factor > 1.0)),
            ..CommandSummary::default()
        }
    };
    let script =
        |script| ScriptSummary { script, workload: format!("app/{script}"), ..ScriptSummary::default() };
    StatementsOfRun {
        transactions: 1000 * u64::from(statements),
        scripts: (0..statements).map(script).collect(),
        statements: (0..statements).map(|script| command(script, random)).collect(),
        calls: (0..statements).map(|script| (script, PerCall { rows: 2.0, blocks: 4.0 })).collect(),
    }
}

#[test]
fn equal_statements_are_rarely_told_apart_however_many_there_are() {
    const CASES: u32 = 200;
    let mut random = StdRng::seed_from_u64(5);
    let (mut wrong, mut found) = (0, 0);
    for _ in 0..CASES {
        let mut side = |slower| (0..5).map(|_| run(&mut random, 63, slower)).collect::<Vec<_>>();
        let (baseline, equal, slower) = (side((0, 1.0)), side((0, 1.0)), side((7, 1.3)));
        let decided = |line: &StatementLine| matches!(line.verdict.as_str(), "faster" | "slower");
        wrong += u32::from(compare_statements(&baseline, &equal, 0.02).iter().any(decided));
        let lines = compare_statements(&baseline, &slower, 0.02);
        found += u32::from(lines[0].verdict == "slower" && lines[0].statement == "SELECT 7");
    }
    // 5 % if they are right, and not more than chance makes of that.
    assert!(f64::from(wrong) / f64::from(CASES) < 0.1, "{wrong}");
    assert!(f64::from(found) / f64::from(CASES) > 0.98, "{found}");
}

#[test]
fn a_line_has_what_the_statement_costs_the_whole() {
    let mut random = StdRng::seed_from_u64(9);
    let mut side = |slower| (0..4).map(|_| run(&mut random, 4, slower)).collect::<Vec<_>>();
    let lines = compare_statements(&side((0, 1.0)), &side((2, 3.0)), 0.02);
    let first = &lines[0];
    assert_eq!((first.workload.as_str(), first.statement.as_str()), ("app/2", "SELECT 2"));
    // A quarter of the time takes three times as long.
    assert!((first.effect.unwrap() - 0.5).abs() < 0.05, "{first:?}");
    assert!((first.baseline.share.unwrap() - 0.25).abs() < 0.02);
    assert_eq!((first.baseline.rows, first.candidate.blocks), (Some(2.0), Some(4.0)));
    assert_eq!((first.baseline.count, first.plan_changed), (Some(4000), Some(true)));
    assert!(first.p95_ratio_low < Some(3.0) && first.p95_ratio_high > Some(3.0));
    assert!(lines[1..].iter().all(|line| line.plan_changed == Some(false)));
}

#[test]
fn a_statement_of_one_side_has_no_ratio() {
    let mut random = StdRng::seed_from_u64(1);
    let baseline = [run(&mut random, 2, (0, 1.0)), run(&mut random, 2, (0, 1.0))];
    let candidate = [run(&mut random, 3, (0, 1.0)), run(&mut random, 3, (0, 1.0))];
    let lines = compare_statements(&baseline, &candidate, 0.02);
    let new = lines.iter().find(|line| line.statement == "SELECT 2").unwrap();
    assert_eq!((new.ratio, new.baseline.count, new.plan_changed), (None, Some(0), None));
    assert_eq!(new.advice.as_deref(), Some("only one side executed it"));
    assert!(new.effect.unwrap() > 0.0);
    assert_eq!(compare_statements(&[], &[], 0.02), []);
}

#[test]
fn a_duel_has_the_same_lines() {
    let statement = |command, verdict: &str, effect, failed| StatementLine {
        command,
        statement: format!("SELECT {command}"),
        candidate: StatementFigures { failed, ..StatementFigures::default() },
        verdict: verdict.to_owned(),
        effect: Some(effect),
        ..StatementLine::default()
    };
    let duel = Duel {
        statements: vec![
            statement(1, "same", 0.0, 0),
            statement(2, "slower", 0.2, 0),
            // A meta command is no statement.
            StatementLine { statement: "\\set id 1".to_owned(), ..statement(3, "same", 0.1, 0) },
            statement(4, "same", -0.2, 20),
        ],
        ..Duel::default()
    };
    let lines = statements_of_duel(&duel);
    let shown: Vec<_> = lines.iter().map(|line| (line.command, line.verdict.as_str())).collect();
    assert_eq!(shown, [(2, "slower"), (1, "same"), (4, "fails")]);
}

#[test]
fn a_plan_is_known_by_its_nodes() {
    let seq = "custom plan:\nSeq Scan on t\n  Filter: (id = 1)";
    let both = "custom plan:\nat first:\nIndex Scan using i on t\n  Index Cond: (id = 1)\nby turns, first at 0.100 s:\n\
                Seq Scan on t\n  Filter: (id = 7)";
    assert_eq!(plan_forms(seq), BTreeSet::from(["Seq Scan on t\n".to_owned()]));
    assert_eq!(plan_forms(both).len(), 2);
    assert!(plan_forms(both).is_superset(&plan_forms(seq)));
    assert!(plan_forms("").is_empty());
}
