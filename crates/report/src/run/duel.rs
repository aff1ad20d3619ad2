//! The two arms of a duel beside each other.

use bench_base::number;
use bench_base::number::{MISSING, finite};
use bench_results::{Document, Duel, StatementLine};

use crate::run::transactions;
use crate::section::{Section, Table, latency, or_missing};

/// A statement that makes so much of the whole difference is named with it.
const MOST_OF_IT: f64 = 0.5;

/// The difference in time per transaction in one sentence; `None` where it is not known.
pub fn duel_sentence(duel: &Duel) -> Option<String> {
    let line = duel.metric("latency_avg_ms")?;
    let (a, b) = (finite(line.baseline)?, finite(line.candidate)?);
    let difference = signed(b - a);
    let Some([ratio, low, high]) = of_line(line.ratio, line.ratio_low, line.ratio_high) else {
        return Some(format!(
            "b takes {difference} of {}; too few transactions for an interval.",
            latency(a)
        ));
    };
    let interval = format!("({} %, {} to {})", percentage(ratio), percentage(low), percentage(high));
    Some(match line.verdict.as_str() {
        "same" => {
            format!("Both arms take the same time: {}, {interval}, within {}.", latency(a), margin(duel))
        }
        "faster" | "slower" => {
            let part = main_part(&duel.statements, b - a);
            format!("b takes {difference} {interval} of {}{part}.", latency(a))
        }
        _ => format!("Not decided: b takes {difference} {interval} of {}.", latency(a)),
    })
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

/// What the arms are, and how sure the metrics.
fn note(duel: &Duel) -> String {
    let on = |arm: usize| match &duel.versions {
        Some(versions) => format!(" on {}", versions[arm].split(" on ").next().unwrap_or_default()),
        None => String::new(),
    };
    format!(
        "Per transaction. Arm a: {}{}; arm b: {}{}. Intervals hold with {} confidence; within {} is the same.",
        duel.a,
        on(0),
        duel.b,
        on(1),
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
}
