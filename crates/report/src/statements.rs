//! Statements of two sides beside each other: in a sentence, as a section of a report, and as tests.

use bench_base::number;
use bench_base::number::{MISSING, finite, fixed, percent};
use bench_questions::statements::{StatementFigures, StatementLine};
use bench_results::Unreplayed;

use crate::junit::{Case, Outcome, suite};
use crate::run::headline::unreplayed;
use crate::sanitize::{cut, one_line};
use crate::section::{Section, Table, or_missing};

/// How many characters of a statement a name has.
const NAME: usize = 120;

/// What the statements say together, in a sentence; `None` without any.
pub fn sentence(lines: &[StatementLine], margin: f64) -> Option<String> {
    Some(other_answers(lines) + &verdicts(lines, margin)?)
}

/// The verdicts on times in a sentence; `None` without any.
pub(crate) fn verdicts(lines: &[StatementLine], margin: f64) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let count = |verdict: &str| lines.iter().filter(|line| line.verdict == verdict).count();
    let [slower, faster, same, open] = ["slower", "faster", "same", "inconclusive"].map(count);
    let fails = match count("fails") {
        0 => String::new(),
        fails => format!("{fails} with more errors, "),
    };
    let mut text = format!(
        "Of {} {fails}{slower} slower, {faster} faster, {same} the same within {}, {open} not decided.",
        match lines.len() {
            1 => "1 statement".to_owned(),
            count => format!("{count} statements"),
        },
        percent(Some(margin))
    );
    let effects: Vec<f64> = lines.iter().filter_map(|line| line.effect).filter(|of| of.is_finite()).collect();
    let whole: f64 = effects.iter().sum();
    if !effects.is_empty() {
        let direction = if whole < 0.0 { "less" } else { "more" };
        text +=
            &format!(" Together they take {} {direction} time per transaction", percent(Some(whole.abs())));
        let first = if whole < 0.0 { lines.last() } else { lines.first() };
        text += &match first.filter(|_| lines.len() > 1).and_then(|line| Some((line, line.effect?))) {
            Some((line, effect)) if effect * whole > 0.0 => format!(
                ", {} points of it by command {} of {}.",
                fixed(Some(effect.abs() * 100.0), 1),
                line.command,
                line.workload
            ),
            _ => ".".to_owned(),
        };
    }
    Some(text)
}

/// Names the statements that answer otherwise, those first that are faster.
pub(crate) fn other_answers(lines: &[StatementLine]) -> String {
    let is_faster = |line: &&StatementLine| line.verdict == "faster";
    let other = || lines.iter().filter(|line| line.answers_otherwise());
    let Some(first) = other().find(is_faster).or_else(|| other().next()) else { return String::new() };
    let faster = if is_faster(&first) { "is faster and " } else { "" };
    let others = match other().count() {
        1 => String::new(),
        2 => ", and so does 1 more".to_owned(),
        count => format!(", and so do {} more", count - 1),
    };
    format!("Command {} of {} {faster}answers differently{others}. ", first.command, first.workload)
}

/// How many statements are named.
const NAMED: usize = 3;

/// The statements that are slower or fail more often, by their beginnings; `None` without any.
pub fn slower(lines: &[StatementLine]) -> Option<String> {
    let is_worse = |line: &&StatementLine| matches!(line.verdict.as_str(), "slower" | "fails");
    let worse: Vec<&StatementLine> = lines.iter().filter(is_worse).collect();
    let named = worse.iter().take(NAMED).map(|line| {
        let text = cut(&one_line(&line.statement), NAME);
        let times =
            finite(line.ratio).map_or(String::new(), |ratio| format!(", {} times", fixed(Some(ratio), 2)));
        format!("{text} ({}{times})", line.verdict)
    });
    let listed = named.collect::<Vec<_>>().join("; ");
    let more =
        if worse.len() > NAMED { format!("; and {} more", worse.len() - NAMED) } else { String::new() };
    (!worse.is_empty()).then(|| format!("{listed}{more}."))
}

/// The statements of both sides.
pub(crate) fn section(lines: &[StatementLine]) -> Section {
    let effect = |line: &StatementLine| finite(line.effect).map(|of| fixed(Some(of * 100.0), 2) + " %");
    let plan =
        |line: &StatementLine| line.plan_changed.map_or(MISSING, |it| if it { "differs" } else { "same" });
    let table = Table::of(lines)
        .number("share", |line| percent(line.baseline.share))
        .number("base ms", |line| number::ms(line.baseline.latency_avg_ms))
        .number("cand ms", |line| number::ms(line.candidate.latency_avg_ms))
        .number("ratio", |line| fixed(line.ratio, 3))
        .number("low", |line| fixed(line.ratio_low, 3))
        .number("high", |line| fixed(line.ratio_high, 3))
        .number("p95", |line| fixed(line.p95_ratio, 3))
        .text("verdict", |line| &line.verdict)
        .number("effect", |line| or_missing(&effect(line)).to_owned())
        .text("errors", errors)
        .text("plan", plan)
        .code("statement", |line| &line.statement)
        .table();
    Section::of_table("compared-statements", "Statements", table.without_idle(&["errors", "plan"])).with_note(
        "share: of the baseline's time. ratio: candidate / baseline of the mean latencies; the intervals of all \
         statements hold together. effect: what the statement adds to the time of a transaction. errors: of both sides.",
    )
}

/// How many executions failed on either side, where any did.
fn errors(line: &StatementLine) -> String {
    match (line.baseline.failed, line.candidate.failed) {
        (0, 0) => MISSING.to_owned(),
        (one, other) => format!("{}, {}", number::count(one), number::count(other)),
    }
}

/// A test for each statement, which fails where the candidate is slower or its transactions fail more often, and is skipped where
/// that is not decided.
pub(crate) fn cases(lines: &[StatementLine]) -> Vec<Case> {
    lines.iter().map(case).collect()
}

fn case(line: &StatementLine) -> Case {
    let StatementLine { baseline, candidate, .. } = line;
    let change = format!(
        "{} ms instead of {} ms, ratio {} ({} to {})",
        number::ms(candidate.latency_avg_ms),
        number::ms(baseline.latency_avg_ms),
        fixed(line.ratio, 3),
        fixed(line.ratio_low, 3),
        fixed(line.ratio_high, 3)
    );
    let plan = |of: &StatementFigures| of.plan.clone().unwrap_or_else(|| "not known".to_owned());
    let failed = |message| Outcome::Failed {
        kind: line.verdict.clone(),
        message,
        details: format!(
            "{change}\n\nplan of the baseline:\n{}\n\nplan of the candidate:\n{}",
            plan(baseline),
            plan(candidate)
        ),
    };
    let outcome = match line.verdict.as_str() {
        _ if line.answers_otherwise() => failed(format!("answers differently; {change}")),
        "fails" => {
            failed(format!("{} transactions failed at it instead of {}", candidate.failed, baseline.failed))
        }
        "slower" => {
            failed(line.advice.as_ref().map_or(change.clone(), |advice| format!("{change}; {advice}")))
        }
        "inconclusive" => {
            Outcome::Skipped(format!("{change}; {}", line.advice.as_deref().unwrap_or("not decided")))
        }
        _ => Outcome::Passed,
    };
    Case {
        class: line.workload.clone(),
        name: format!("{}: {}", line.command, cut(&one_line(&line.statement), NAME)),
        ms: candidate.latency_avg_ms,
        outcome,
    }
}

/// The statements of both sides as JUnit's XML, with what of a capture is not replayed.
pub fn junit(name: &str, lines: &[StatementLine], left_out: Option<&Unreplayed>, max_missing: f64) -> String {
    let mut cases = cases(lines);
    cases.extend(left_out.into_iter().flat_map(|left_out| cases_of_unreplayed(name, left_out, max_missing)));
    suite(name, &cases)
}

/// The share of the captured time that may be missing from a comparison unless the caller names another one.
pub const MAX_MISSING: f64 = 0.05;

/// A test that fails where more than `max_missing` of the captured time is not replayed, and one that is skipped for each
/// statement of it.
pub(crate) fn cases_of_unreplayed(capture: &str, left_out: &Unreplayed, max_missing: f64) -> Vec<Case> {
    let case = |name: String, outcome| Case { class: capture.to_owned(), name, ms: None, outcome };
    let list = || left_out.listed.iter().map(|of| (of, of.query.as_deref().or(of.reason.as_deref())));
    let skipped = list().map(|(of, text)| {
        let reason = of.reason.as_deref().unwrap_or("not known why");
        let why = format!("not replayed, {} of the captured time: {reason}", percent(Some(of.share)));
        case(
            format!("not replayed: {}", cut(&one_line(text.unwrap_or_default()), NAME)),
            Outcome::Skipped(why),
        )
    });
    let is_enough = left_out.share <= max_missing;
    let whole = if is_enough {
        Outcome::Passed
    } else {
        Outcome::Failed {
            kind: "not replayed".to_owned(),
            message: format!(
                "{}; at most {} may be missing",
                unreplayed(left_out),
                percent(Some(max_missing))
            ),
            details: list()
                .map(|(of, text)| {
                    format!("{}: {}", percent(Some(of.share)), one_line(text.unwrap_or_default()))
                })
                .collect::<Vec<_>>()
                .join("\n"),
        }
    };
    std::iter::once(case("share of the captured time that is replayed".to_owned(), whole))
        .chain(skipped)
        .collect()
}

#[cfg(test)]
mod tests {
    use bench_results::UnreplayedStatement;

    use super::*;

    fn line(command: u32, verdict: &str, effect: f64) -> StatementLine {
        let side = |ms: f64| StatementFigures {
            count: Some(100),
            share: Some(0.5),
            latency_avg_ms: Some(ms),
            ..StatementFigures::default()
        };
        StatementLine {
            workload: "app".to_owned(),
            command,
            statement: format!("SELECT '<{command}>' & \u{1b}[1m"),
            baseline: side(1.0),
            candidate: side(1.0 + 2.0 * effect),
            ratio: Some(1.0 + 2.0 * effect),
            verdict: verdict.to_owned(),
            effect: Some(effect),
            ..StatementLine::default()
        }
    }

    #[test]
    fn the_sentence_names_what_makes_the_difference() {
        let lines = [line(2, "slower", 0.25), line(1, "same", -0.01)];
        assert_eq!(
            sentence(&lines, 0.05).unwrap(),
            "Of 2 statements 1 slower, 0 faster, 1 the same within 5.0 %, 0 not decided. Together they take 24.0 % more \
             time per transaction, 25.0 points of it by command 2 of app."
        );
        let faster = sentence(&[line(1, "same", 0.01), line(2, "faster", -0.25)], 0.05).unwrap();
        assert!(
            faster.ends_with("24.0 % less time per transaction, 25.0 points of it by command 2 of app."),
            "{faster}"
        );
        let only = sentence(&[line(1, "inconclusive", 0.5)], 0.05).unwrap();
        assert!(
            only.starts_with("Of 1 statement 0 slower")
                && only.ends_with("50.0 % more time per transaction.")
        );
        assert_eq!(sentence(&[], 0.05), None);
    }

    #[test]
    fn what_answers_differently_is_named_first() {
        let answering = |command, verdict: &str, answers: &str| StatementLine {
            answers: Some(answers.to_owned()),
            ..line(command, verdict, 0.0)
        };
        let lines = [
            answering(1, "slower", "fails"),
            answering(2, "same", "same within 1e-9"),
            answering(3, "faster", "differs"),
        ];
        let text = sentence(&lines, 0.05).unwrap();
        let first = "Command 3 of app is faster and answers differently, and so does 1 more. Of 3 statements";
        assert!(text.starts_with(first), "{text}");
        assert_eq!(other_answers(&lines[..1]), "Command 1 of app answers differently. ");
        assert_eq!(other_answers(&lines[1..2]), "");
        let xml = junit("app", &lines, None, MAX_MISSING);
        assert!(xml.contains("failures=\"2\"") && xml.contains("answers differently; "), "{xml}");
    }

    #[test]
    fn junit_fails_what_got_slower_or_fails() {
        let mut failing = line(4, "fails", 0.0);
        failing.candidate.failed = 3;
        let lines = [line(1, "slower", 0.2), line(2, "same", 0.0), line(3, "inconclusive", 0.0), failing];
        let xml = junit("a \"b\" & <c>", &lines, None, MAX_MISSING);
        assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\">"));
        assert!(xml.contains("name=\"a &quot;b&quot; &amp; &lt;c&gt;\""), "{xml}");
        assert!(xml.contains("name=\"1: SELECT &#39;&lt;1&gt;&#39; &amp;"), "{xml}");
        assert!(
            xml.contains("type=\"slower\"") && xml.contains("type=\"fails\"") && xml.contains("<skipped")
        );
        assert_eq!(xml.matches("<testcase").count(), 4);
        assert!(!xml.chars().any(|c| c.is_control() && c != '\n'));
        assert!(junit("none", &[], None, MAX_MISSING).contains("tests=\"0\""));
    }

    #[test]
    fn what_is_not_replayed_is_a_test_too() {
        let of = |query: Option<&str>, share| UnreplayedStatement {
            query: query.map(str::to_owned),
            reason: Some("its values were not exported".to_owned()),
            share,
        };
        let listed = vec![of(Some("SELECT <1>"), 0.04), of(None, 0.02)];
        let left_out = Unreplayed { statements: 2, share: 0.06, listed };
        let xml = |max_missing| junit("app", &[line(1, "same", 0.0)], Some(&left_out), max_missing);
        assert!(
            xml(MAX_MISSING).contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\""),
            "{}",
            xml(MAX_MISSING)
        );
        assert!(
            xml(MAX_MISSING)
                .contains("2 statements with 6.0 % of the captured time; at most 5.0 % may be missing")
        );
        assert!(xml(MAX_MISSING).contains("name=\"not replayed: SELECT &lt;1&gt;\""));
        assert!(xml(0.06).contains("failures=\"0\" errors=\"0\" skipped=\"2\""), "{}", xml(0.06));
    }
}
