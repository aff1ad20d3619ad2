//! Statements of two sides beside each other.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::comparison::statements::*;
use crate::document::{CommandSummary, ScriptSummary};
use crate::stats::compare::Verdict;

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
        blocks: (0..statements).map(|script| (script, 4.0)).collect(),
    }
}

fn verdict(line: &StatementLine) -> Verdict {
    line.latency_avg.as_ref().map_or(Verdict::Inconclusive, |compared| compared.verdict)
}

#[test]
fn equal_statements_are_rarely_told_apart_however_many_there_are() {
    const CASES: u32 = 200;
    let mut random = StdRng::seed_from_u64(5);
    let (mut wrong, mut found) = (0, 0);
    for _ in 0..CASES {
        let mut side = |slower| (0..5).map(|_| run(&mut random, 63, slower)).collect::<Vec<_>>();
        let (baseline, equal, slower) = (side((0, 1.0)), side((0, 1.0)), side((7, 1.3)));
        let decided = |line: &StatementLine| matches!(verdict(line), Verdict::Faster | Verdict::Slower);
        wrong += u32::from(compare_statements(&baseline, &equal, 0.02).iter().any(decided));
        let lines = compare_statements(&baseline, &slower, 0.02);
        found += u32::from(verdict(&lines[0]) == Verdict::Slower && lines[0].statement == "SELECT 7");
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
    assert_eq!((first.baseline.count, first.plan_changed), (4000, Some(true)));
    let p95 = first.latency_p95.as_ref().and_then(|p95| p95.ratio).unwrap();
    assert!(p95.low < 3.0 && p95.high > 3.0);
    assert!(lines[1..].iter().all(|line| line.plan_changed == Some(false)));
}

#[test]
fn a_statement_of_one_side_has_no_ratio() {
    let mut random = StdRng::seed_from_u64(1);
    let baseline = [run(&mut random, 2, (0, 1.0)), run(&mut random, 2, (0, 1.0))];
    let candidate = [run(&mut random, 3, (0, 1.0)), run(&mut random, 3, (0, 1.0))];
    let lines = compare_statements(&baseline, &candidate, 0.02);
    let new = lines.iter().find(|line| line.statement == "SELECT 2").unwrap();
    assert_eq!((new.latency_avg.as_ref(), new.baseline.count, new.plan_changed), (None, 0, None));
    assert!(new.effect.unwrap() > 0.0);
    assert_eq!(compare_statements(&[], &[], 0.02), []);
}
