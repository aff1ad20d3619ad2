//! What a rehearsed change did to the load: figures, the queue for locks, and throughput with the change shaded.

use bench_base::number::{MISSING, bytes, count, fixed, ms, tps};
use bench_questions::rehearsal::sentences;
use bench_results::experiment::ExperimentDocument;
use bench_results::rehearsal::{QueuedSession, RehearsalLine};

use crate::junit::{Case, Outcome, suite};
use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, Chart, GREY, Panel, Plot, WINE};
use crate::report::HeadlineFigure;
use crate::sanitize::{one_line, shortened};
use crate::section::{Plan, Section, Table};

/// The most waits for locks that the report lists.
const WAITS: usize = 40;

/// The most bytes of a statement in a cell.
const STATEMENT: usize = 200;

/// Returns the answers as sentences, that on the change first.
pub fn answers(document: &ExperimentDocument) -> Vec<String> {
    let several = document.rehearsals.len() > 1;
    let answer = |line: &RehearsalLine| {
        let sentence = sentences(line).join(" ");
        if several { format!("{}: {sentence}", line.variant) } else { sentence }
    };
    document.rehearsals.iter().map(answer).collect()
}

/// Returns the verdict on the change as one of the words that reports colour.
pub fn verdict(document: &ExperimentDocument) -> &'static str {
    match document.rehearsals.first().and_then(|line| line.verdict.as_deref()) {
        Some("safe") => "same",
        Some(_) => "slower",
        None => "",
    }
}

/// Returns the large figures.
pub fn headline(document: &ExperimentDocument) -> Vec<HeadlineFigure> {
    let Some(line) = document.rehearsals.first() else { return Vec::new() };
    let secs = |secs: Option<f64>| fixed(secs, 3);
    vec![
        HeadlineFigure::new("longest wait", secs(line.longest_wait_ms.map(|ms| ms / 1e3)), "s").in_large(),
        HeadlineFigure::new("change took", secs(line.change_secs), "s"),
        HeadlineFigure::new("waited for locks", secs(line.lock_wait_secs), "s"),
        HeadlineFigure::new("held its lock", secs(line.held_secs), "s"),
    ]
}

/// A row for each way to make the change.
pub fn figures(document: &ExperimentDocument) -> Section {
    let optional = |value: Option<f64>, decimals: usize| fixed(value, decimals);
    let waited = |line: &RehearsalLine| match (line.waited, line.transactions) {
        (Some(waited), Some(all)) => format!("{} of {}", count(waited), count(all)),
        _ => MISSING.to_owned(),
    };
    let failed = |line: &RehearsalLine| {
        let errors = line.failed.iter().filter(|errors| errors.during + errors.after > 0);
        let texts: Vec<String> = errors
            .map(|errors| {
                format!(
                    "{}: {} before, {} during, {} after",
                    errors.sqlstate, errors.before, errors.during, errors.after
                )
            })
            .collect();
        texts.join("; ")
    };
    let lock = |line: &RehearsalLine| match (&line.lock_mode, &line.locked) {
        (Some(mode), Some(locked)) => format!("{mode} on {}", one_line(locked)),
        _ => String::new(),
    };
    let table = Table::of(&document.rehearsals)
        .text("variant", |line| &line.variant)
        .text("verdict", |line| line.verdict.as_deref().unwrap_or(MISSING))
        .number("longest ms", |line| ms(line.longest_wait_ms))
        .number("before ms", |line| ms(line.quiet_longest_ms))
        .text("waited", waited)
        .number("without commit s", |line| optional(line.secs_without_commit, 2))
        .number("tps before", |line| tps(line.tps_before))
        .number("during", |line| tps(line.tps_during))
        .number("after", |line| tps(line.tps_after))
        .number("back after s", |line| optional(line.back_secs, 2))
        .number("tries", |line| line.tries.map_or(MISSING.to_owned(), |tries| tries.to_string()))
        .text("strongest lock", lock)
        .number("WAL", |line| bytes(line.wal_bytes.map(|bytes| bytes as f64)))
        .number("new files", |line| bytes(line.made_bytes.map(|bytes| bytes as f64)))
        .number("least disk free", |line| bytes(line.least_disk_free_bytes.map(|bytes| bytes as f64)))
        .number("replay lag ms", |line| ms(line.replay_lag_ms))
        .text("failed", failed)
        .text("statements", |line| shortened(&one_line(&line.statements), STATEMENT))
        .table();
    Section::of_table("rehearsal", "The change under load", table.without_idle(&["replay lag ms", "new files"])).with_note(
        "Latencies count from when a transaction was due, so that waiting to be started is part of them. Waited: transactions \
         since the change began that took longer than wait_limit.",
    )
}

/// Who waited for whom while a change was under way.
pub fn queue(document: &ExperimentDocument) -> Section {
    let waits: Vec<(&str, &QueuedSession)> = document
        .changes
        .iter()
        .filter_map(|change| Some((change.variant.as_str(), change.rehearsal.as_ref()?)))
        .flat_map(|(variant, rehearsal)| rehearsal.queue.iter().map(move |wait| (variant, wait)))
        .collect();
    let pids = |pids: &[i32]| pids.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
    let table = Table::of(waits.iter().take(WAITS))
        .text("variant", |(variant, _)| variant)
        .text("session", |(_, wait)| &wait.session)
        .number("process", |(_, wait)| wait.pid)
        .text("behind", |(_, wait)| pids(&wait.blocked_by))
        .text("lock", |(_, wait)| format!("{} on {}", wait.mode, one_line(&wait.locked)))
        .number("from s", |(_, wait)| fixed(Some(wait.begin), 3))
        .number("to s", |(_, wait)| fixed(Some(wait.end), 3))
        .table();
    let left_out = waits.len().saturating_sub(WAITS);
    let note = (left_out > 0).then(|| format!("{left_out} more are in bench.rehearsal_queue."));
    Section::of_table("queue", "Queue for locks", table).with_note_if(note)
}

/// The plans that changed with the change.
pub fn plans(document: &ExperimentDocument) -> Section {
    let changed: Vec<_> = document.rehearsals.iter().flat_map(|line| &line.plans).collect();
    let table = Table::of(changed.iter().copied())
        .text("statement", |plan| shortened(&one_line(&plan.statement), STATEMENT))
        .table();
    let plan = |plan: &&bench_results::rehearsal::ChangedPlan| {
        Some(Plan { title: String::new(), plan: format!("before:\n{}\nafter:\n{}", plan.before, plan.after) })
    };
    Section {
        plans: changed.iter().map(plan).collect(),
        ..Section::of_table("changed-plans", "Plans that changed", table)
    }
}

/// Throughput of the run in which the change was rehearsed, with blocker and change shaded.
pub fn chart(document: &ExperimentDocument) -> Option<Chart> {
    let rehearsal = document.changes.iter().find_map(|change| change.rehearsal.as_ref())?;
    let run = document.runs.iter().find(|run| run.run_id == Some(rehearsal.run_id))?;
    let points: Vec<(f64, f64)> = run
        .samples
        .elapsed
        .iter()
        .zip(&run.samples.tps)
        .filter_map(|(elapsed, tps)| Some(((*elapsed)?, (*tps)?)))
        .filter(|(elapsed, tps)| elapsed.is_finite() && tps.is_finite())
        .collect();
    let end = points.last()?.0;
    let highest = points.iter().map(|(_, tps)| *tps).fold(1.0, f64::max);
    let y = Axis::from_zero(highest * 1.05, 6);
    let (bottom, top) = (y.value_at(0.0), y.value_at(1.0));
    let shade = |begin: f64, end: f64| ((begin, bottom), (end, top));
    let (change_from, change_to) = shade(rehearsal.change_begin, rehearsal.change_end);
    let blocker = rehearsal.blocker_begin.zip(rehearsal.blocker_end).map(|(begin, end)| {
        let (from, to) = shade(begin, end);
        GREY.rectangle(from, to).faint(0.25)
    });
    let mut legend = vec![(BLUE, "throughput".to_owned()), (WINE, "change".to_owned())];
    legend.extend(blocker.is_some().then(|| (GREY, "blocker".to_owned())));
    let panel = Panel::new(y)
        .with(blocker)
        .with([WINE.rectangle(change_from, change_to).faint(0.3)])
        .with([BLUE.line(points, 3)]);
    Some(Chart {
        id: "plot-rehearsal",
        title: "Throughput, tps",
        label: "Throughput over the rehearsal".to_owned(),
        caption: "Transactions per second of each interval.".to_owned(),
        legend,
        plot: Plot { x: Axis::of_time(end), is_upright: false, panels: vec![panel], hover: Vec::new() },
    })
}

/// Returns the rehearsal as a suite of tests: one for each way to make the change.
pub fn rehearsal_junit(document: &ExperimentDocument) -> String {
    let case = |line: &RehearsalLine| Case {
        class: document.sweep.setup.workload.clone(),
        name: format!("{}: {}", line.variant, shortened(&one_line(&line.statements), STATEMENT)),
        ms: line.change_secs.map(|secs| secs * 1e3),
        outcome: match line.verdict.as_deref() {
            Some("safe") => Outcome::Passed,
            None => Outcome::Skipped(sentences(line).join(" ")),
            Some(verdict) => Outcome::Failed {
                kind: "rehearsal".to_owned(),
                message: verdict.to_owned(),
                details: sentences(line).join("\n"),
            },
        },
    };
    let cases: Vec<Case> = document.rehearsals.iter().map(case).collect();
    suite("bench.rehearse", &cases)
}
