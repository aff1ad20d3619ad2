use bench_base::error::sqlstate;
use serde_json::json;

use crate::screen::*;

fn factor(name: &str, kind: FactorKind) -> Factor {
    Factor { name: name.to_owned(), a: json!("off"), b: json!(1), kind }
}

fn of_server(names: &[&str]) -> Screen {
    Screen { factors: names.iter().map(|name| factor(name, FactorKind::System)).collect(), margin: 0.02 }
}

/// Two rounds of a server whose first setting makes it a tenth faster.
fn rounds(factors: usize, value: impl Fn(&[bool], u32) -> Result<f64, String>) -> ScreenRuns {
    let mut combined = Vec::new();
    for round in 1..=2 {
        for (row, levels) in design(factors).iter().enumerate() {
            combined.push(CombinedRun { row, round, value: value(levels, round) });
        }
    }
    ScreenRuns { combined, ..ScreenRuns::default() }
}

/// Within a thousandth, and never the same.
fn noise(levels: &[bool], round: u32) -> f64 {
    let bits = levels.iter().fold(u64::from(round), |bits, level| bits * 7 + u64::from(*level) * 3 + 1);
    1.0 + (bits.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44) as f64 / 2f64.powi(20) / 1000.0
}

#[test]
fn a_planted_setting_is_found_and_no_other() {
    let names = ["one", "two", "three", "four", "five"];
    let runs =
        rounds(5, |levels, round| Ok(1000.0 * if levels[0] { 1.1 } else { 1.0 } * noise(levels, round)));
    let lines = screen(&of_server(&names), &runs, ScreenMetric::Tps, 0.02);
    let verdicts: Vec<(&str, &str)> =
        lines.iter().map(|line| (line.factor.as_str(), line.verdict.as_str())).collect();
    assert_eq!(verdicts[0], ("one", "faster"));
    assert!(verdicts[1..].iter().all(|(_, verdict)| *verdict == "same"), "{verdicts:?}");
    assert!((lines[0].effect.unwrap() - 0.1).abs() < 0.002);
    assert_eq!((lines[0].a.as_str(), lines[0].b.as_str()), ("off", "1"));
    let said = sentence(&lines).unwrap();
    assert!(
        said.starts_with(
            "of 5 settings 1 matters for tps: one (+10.0 %); 4 make no difference, together less than 0."
        ),
        "{said}"
    );
    let slower = screen(&of_server(&names), &runs, ScreenMetric::Latency, 0.02);
    assert_eq!(slower[0].verdict, "slower");
}

#[test]
fn a_level_that_does_not_work_is_told_and_the_others_are_judged() {
    let names = ["one", "two", "three", "four"];
    let runs = rounds(4, |levels, round| match levels[2] {
        true => Err("out of memory".to_owned()),
        false => Ok(1000.0 * if levels[0] { 1.1 } else { 1.0 } * noise(levels, round)),
    });
    let lines = screen(&of_server(&names), &runs, ScreenMetric::Tps, 0.02);
    assert_eq!((lines[0].factor.as_str(), lines[0].verdict.as_str()), ("three", "fails"));
    assert_eq!(lines[0].error.as_deref(), Some("three = 1: out of memory"));
    assert_eq!((lines[1].factor.as_str(), lines[1].verdict.as_str()), ("one", "faster"));
    assert!(sentence(&lines).unwrap().contains("a level of three fails"));
    let open = |name: &str| ScreenLine {
        verdict: "inconclusive".to_owned(),
        ..empty_line(&factor(name, FactorKind::System), ScreenMetric::Tps, 0.02)
    };
    let said = sentence(&[open("a"), open("b")]).unwrap();
    assert_eq!(said, "of 2 settings none is seen to matter for tps; 2 not decided (a, b)");
}

#[test]
fn a_setting_of_the_session_is_judged_by_its_duel() {
    let batch = |ms: f64| ArmBatch {
        transactions: 1000,
        timed: 1000,
        counted: 1000,
        latency_ms: ms * 1000.0,
        cpu_us: ms * 500_000.0,
        ..ArmBatch::default()
    };
    let batches: Vec<[ArmBatch; 2]> = (0..64)
        .map(|place| [batch(1.0 + f64::from(place % 5) / 1e4), batch(1.25 + f64::from(place % 7) / 1e4)])
        .collect();
    let of_session = Screen { factors: vec![factor("jit", FactorKind::Session)], margin: 0.02 };
    let runs = ScreenRuns { duels: vec![("jit".to_owned(), batches)], ..ScreenRuns::default() };
    let lines = screen(&of_session, &runs, ScreenMetric::Tps, 0.02);
    assert_eq!(lines[0].verdict, "slower");
    assert!((lines[0].effect.unwrap() + 0.2).abs() < 0.001, "{lines:?}");
    assert!(lines[0].effect_low < lines[0].effect && lines[0].effect < lines[0].effect_high);
    let error = ("jit".to_owned(), "no such thing".to_owned());
    let failed = ScreenRuns { failed_duels: vec![error], ..ScreenRuns::default() };
    assert_eq!(screen(&of_session, &failed, ScreenMetric::Cpu, 0.02)[0].verdict, "fails");
    let nothing = screen(&of_session, &ScreenRuns::default(), ScreenMetric::Cpu, 0.02);
    assert_eq!((nothing[0].verdict.as_str(), nothing[0].effect), ("inconclusive", None));
}

fn kind(name: &str) -> Result<FactorKind, UserError> {
    match name {
        "shared_buffers" => Ok(FactorKind::Restart),
        "full_page_writes" => Ok(FactorKind::System),
        "jit" => Ok(FactorKind::Session),
        _ => Err(UserError::new(sqlstate::UNDEFINED_OBJECT, "unrecognized")),
    }
}

#[test]
fn settings_of_the_session_have_duels_and_others_are_combined() {
    let given =
        json!({"shared_buffers": ["1GB", "8GB"], "jit": ["off", "on"], "full_page_writes": [true, false]});
    let screen = screen_of(given, 0.02, &mut kind).unwrap();
    let variants = variants(&screen).unwrap();
    assert_eq!(variants.iter().filter(|variant| variant.duel.is_some()).count(), 1);
    let combined: Vec<&Variant> = variants.iter().filter(|variant| variant.duel.is_none()).collect();
    assert_eq!(combined.len(), design(2).len());
    for (row, variant) in combined.iter().enumerate() {
        assert_eq!(row_of(&variant.name), Some(row));
        assert!(
            variant.system.contains_key("full_page_writes") && variant.restart.contains_key("shared_buffers")
        );
    }
    assert_eq!(row_of("jit"), None);
}

#[test]
fn what_is_no_factor_is_refused() {
    for given in [
        json!({}),
        json!([]),
        json!({"jit": "on"}),
        json!({"jit": ["on"]}),
        json!({"jit": ["on", "on"]}),
        json!({"jit": ["on", {}]}),
        json!({"other": [1, 2]}),
    ] {
        assert!(screen_of(given.clone(), 0.02, &mut kind).is_err(), "{given}");
    }
}
