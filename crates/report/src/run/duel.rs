//! The two arms of a duel beside each other.

use bench_base::number;
use bench_base::number::{MISSING, finite};
use bench_results::{Document, Duel, StatementLine};
use serde_json::Value;

use crate::experiment::sides;
use crate::report::HeadlineFigure;
use crate::run::transactions;
use crate::sanitize::{one_line, width};
use crate::section::{Section, Table, latency, or_missing, pairs};

/// The names of the arms.
const ARMS: [&str; 2] = ["a", "b"];

/// An arm that takes more columns to describe is only named in a sentence.
const NAME: usize = 40;

/// A statement that makes so much of the whole difference is named with it.
const MOST_OF_IT: f64 = 0.5;

/// The difference in time per transaction in one sentence; `None` where it is not known.
pub fn duel_sentence(duel: &Duel) -> Option<String> {
    let line = duel.metric("latency_avg_ms")?;
    let (a, b) = (finite(line.baseline)?, finite(line.candidate)?);
    let difference = signed(b - a);
    let name = arm_name(duel);
    let Some([ratio, low, high]) = of_line(line.ratio, line.ratio_low, line.ratio_high) else {
        return Some(format!(
            "{name} takes {difference} of {}; too few transactions for an interval.",
            latency(a)
        ));
    };
    let interval = match ratio >= sides::TIMES {
        true => format!("({}, {} to {})", sides::change(ratio), sides::change(low), sides::change(high)),
        false => format!("({} %, {} to {})", percentage(ratio), percentage(low), percentage(high)),
    };
    Some(match line.verdict.as_str() {
        "same" => {
            format!("Both arms take the same time: {}, {interval}, within {}.", latency(a), margin(duel))
        }
        "faster" | "slower" => {
            let part = main_part(&duel.statements, b - a);
            format!("{name} takes {difference} {interval} of {}{part}.", latency(a))
        }
        _ => format!("Not decided: {name} takes {difference} {interval} of {}.", latency(a)),
    })
}

/// Arm b with what it is, where that is short: `b (target = new)`.
fn arm_name(duel: &Duel) -> String {
    match describe_arm(&duel.b).map(|arm| one_line(&arm)).filter(|arm| width(arm) <= NAME) {
        Some(arm) => format!("b ({arm})"),
        None => "b".to_owned(),
    }
}

/// What an arm is given; `None` of an empty one.
fn describe_arm(arm: &Value) -> Option<String> {
    arm.as_object().and_then(pairs)
}

/// The arms by their names, and the statements that are slower.
pub fn compared(document: &Document) -> Vec<(String, String)> {
    let Some(duel) = &document.duel else { return Vec::new() };
    let arms = [&duel.a, &duel.b].into_iter().zip(ARMS).enumerate();
    let described = arms.map(|(place, (arm, name))| {
        let given = describe_arm(arm).unwrap_or_else(|| "as the run".to_owned());
        let version = duel.versions.as_ref().map(|versions| short_version(&versions[place]));
        (name.to_owned(), [Some(given), version].into_iter().flatten().collect::<Vec<_>>().join(", "))
    });
    described.collect()
}

/// The beginning of what `version()` returns, as `PostgreSQL 18.1`.
fn short_version(version: &str) -> String {
    version.split(" on ").next().unwrap_or_default().to_owned()
}

fn of_line(ratio: Option<f64>, low: Option<f64>, high: Option<f64>) -> Option<[f64; 3]> {
    Some([finite(ratio)?, finite(low)?, finite(high)?])
}

fn margin(duel: &Duel) -> String {
    number::percent(Some(duel.margin))
}

/// The statement that makes most of a difference in milliseconds per transaction.
fn main_part(statements: &[StatementLine], difference_ms: f64) -> String {
    let is_executed = |of: &&StatementLine| of.is_sql() && finite(of.effect_us).is_some_and(|us| us != 0.0);
    let executed = statements.iter().filter(is_executed);
    // Of the only statement there is nothing to say.
    if executed.clone().count() < 2 {
        return String::new();
    }
    let effect_ms = |of: &StatementLine| of.effect_us.unwrap_or_default() / 1e3;
    let greatest = executed.max_by(|one, other| {
        (effect_ms(one) * difference_ms.signum()).total_cmp(&(effect_ms(other) * difference_ms.signum()))
    });
    match greatest {
        Some(of) if effect_ms(of) / difference_ms >= MOST_OF_IT => {
            format!("; {} of that in command {} of {}", latency(effect_ms(of).abs()), of.command, of.workload)
        }
        _ => String::new(),
    }
}

fn signed(ms: f64) -> String {
    format!("{} {}", latency(ms.abs()), if ms < 0.0 { "less" } else { "more" })
}

/// A ratio as a change in percent, with its sign.
fn percentage(ratio: f64) -> String {
    let change = (ratio - 1.0) * 100.0;
    let digits = if change.abs() < 9.95 { 2 } else { 1 };
    let text = number::fixed(Some(change.abs()), digits);
    let sign = if change < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{text}")
}

/// A ratio as a change in percent, or a dash.
fn change(ratio: Option<f64>) -> String {
    finite(ratio).map_or(MISSING.to_owned(), percentage)
}

/// The interval of such a change.
fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match (finite(low), finite(high)) {
        (Some(low), Some(high)) => format!("{} to {}", percentage(low), percentage(high)),
        _ => MISSING.to_owned(),
    }
}

/// The metrics of both arms.
pub fn metrics(document: &Document) -> Section {
    let lines = document.duel.iter().flat_map(|duel| &duel.metrics);
    let figure = |value| finite(value).map_or(MISSING.to_owned(), number::significant);
    let table = Table::of(lines.filter(|line| line.baseline.is_some() && line.candidate.is_some()))
        .text("metric", |line| &line.metric)
        .number("a", |line| figure(line.baseline))
        .number("b", |line| figure(line.candidate))
        .number("b/a - 1, %", |line| change(line.ratio))
        .number("interval, %", |line| interval(line.ratio_low, line.ratio_high))
        .text("verdict", |line| &line.verdict)
        .text("advice", |line| or_missing(&line.advice))
        .table();
    Section::of_table("duel", "Duel", table.without_idle(&["advice"]))
        .with_note_if(document.duel.as_ref().map(note))
}

/// How sure the metrics are.
fn note(duel: &Duel) -> String {
    format!(
        "Per transaction. Intervals hold with {} confidence; within {} is the same.",
        number::percent(Some(duel.confidence)),
        margin(duel)
    )
}

/// The statements of both arms.
pub fn statements(document: &Document) -> Section {
    let statements = document.duel.iter().flat_map(|duel| &duel.statements).filter(|of| of.is_sql());
    let mut statements: Vec<&StatementLine> = statements.collect();
    statements.sort_by_key(|line| !line.answers_otherwise());
    let rows = |rows| finite(rows).map_or(MISSING.to_owned(), number::significant);
    let plan = |of: &StatementLine| match (&of.baseline.plan, &of.candidate.plan) {
        (Some(a), Some(b)) if a != b => "differs",
        (Some(_), Some(_)) => "same",
        _ => MISSING,
    };
    let table = Table::of(statements)
        .number("a ms", |of| number::ms(of.baseline.latency_avg_ms))
        .number("b ms", |of| number::ms(of.candidate.latency_avg_ms))
        .number("b/a - 1, %", |of| change(of.ratio))
        .number("interval, %", |of| interval(of.ratio_low, of.ratio_high))
        .number("cpu, %", |of| change(of.cpu_ratio))
        .text("verdict", |of| &of.verdict)
        .text("answers", |of| or_missing(&of.answers))
        .number("effect us", |of| number::us(of.effect_us))
        .number("a rows", |of| rows(of.baseline.rows))
        .number("b rows", |of| rows(of.candidate.rows))
        .text("plan", plan)
        .text("advice", |of| or_missing(&of.advice))
        .code("statement", |of| &of.statement)
        .table();
    let table = table.without_idle(&["cpu, %", "answers", "plan", "advice"]);
    Section::of_table("duel-statements", "Statements of both arms", table).with_note(
        "cpu: b/a - 1 of the processor time. Effect: microseconds that it adds to a transaction of b. The intervals of \
         all statements hold together.",
    )
}

/// The latency of each arm and how far they are apart.
pub fn headline(duel: &Duel) -> Vec<HeadlineFigure> {
    let Some(line) = duel.metric("latency_avg_ms") else { return Vec::new() };
    let (values, unit) = number::in_one_unit(&[line.baseline, line.candidate]);
    let named = ["latency of a", "latency of b"].into_iter().zip(values);
    let change = finite(line.ratio).map_or(MISSING.to_owned(), sides::change);
    let change = HeadlineFigure::new("change in latency", change, "").in_large();
    [change].into_iter().chain(named.map(|(name, value)| HeadlineFigure::new(name, value, unit))).collect()
}

/// What both arms waited for.
pub fn waits(document: &Document) -> Section {
    let [a_ms, b_ms] = document.duel.as_ref().map_or([None; 2], |duel| duel.latencies_ms());
    let table = Table::of(document.duel.iter().flat_map(|duel| &duel.waits))
        .text("wait event", |wait| transactions::wait_name(&wait.wait_event_type, &wait.wait_event))
        .number("a", |wait| number::percent(Some(wait.a)))
        .number("b", |wait| number::percent(Some(wait.b)))
        .number("a ms", |wait| number::ms(a_ms.map(|ms| ms * wait.a)))
        .number("b ms", |wait| number::ms(b_ms.map(|ms| ms * wait.b)))
        .table();
    Section::of_table("duel-waits", "Waits of both arms", table)
        .with_note("Shares of the time of each arm's transactions, and milliseconds of a transaction.")
}

#[cfg(test)]
mod tests {
    use bench_results::ComparisonLine;

    use super::*;

    #[test]
    fn a_meta_command_is_no_part_of_a_difference() {
        let command = |command, statement: &str, effect_us| StatementLine {
            command,
            statement: statement.to_owned(),
            workload: "w".to_owned(),
            effect_us: Some(effect_us),
            ..StatementLine::default()
        };
        let select = command(2, "SELECT :id;", 20.0);
        assert_eq!(main_part(&[command(1, "\\set id 1", 1.5), select.clone()], 0.0215), "");
        assert_eq!(
            main_part(&[command(1, "SELECT 1;", 1.5), select], 0.0215),
            "; 20.0 µs of that in command 2 of w"
        );
    }

    #[test]
    fn arms_are_named_before_the_verdict() {
        let line = ComparisonLine {
            metric: "latency_avg_ms".to_owned(),
            baseline: Some(1.0),
            candidate: Some(5.0),
            ratio: Some(5.0),
            ratio_low: Some(4.0),
            ratio_high: Some(6.0),
            verdict: "slower".to_owned(),
            ..ComparisonLine::default()
        };
        let duel = Duel {
            a: serde_json::json!({}),
            b: serde_json::json!({"target": "new <b>"}),
            versions: Some(["PostgreSQL 17.1 on x".to_owned(), "PostgreSQL 18.1 on x".to_owned()]),
            metrics: vec![line],
            ..Duel::default()
        };
        let document = Document { duel: Some(duel), ..Document::default() };
        let text = crate::render(&document, crate::Format::Text);
        let begin = "a: as the run, PostgreSQL 17.1\nb: target = new < b>, PostgreSQL 18.1\n\
                     b (target = new < b>) takes 4.00 ms more (5.0 times, 4.0 times to 6.0 times) of 1.00 ms.\n";
        assert!(text.starts_with(begin), "{text}");
        let page = crate::render(&document, crate::Format::Html);
        assert!(page.contains("<dt>b</dt><dd>target = new &lt;b&gt;, PostgreSQL 18.1</dd>"), "{page}");
        assert!(!page.contains("<dt>throughput</dt>"), "both arms have one together");
    }
}
