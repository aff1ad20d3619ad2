//! What a rehearsed change did to the load: figures, the queue for locks, and throughput with the change shaded.

use bench_base::number::{MISSING, bytes, count, fixed, ms, tps};
use bench_questions::rehearsal::sentences;
use bench_results::experiment::ExperimentDocument;
use bench_results::rehearsal::{ChangedPlan, PhaseErrors, QueuedSession, RehearsalLine};

use crate::junit::{Case, Outcome, suite};
use crate::plot::axis::Axis;
use crate::plot::chart::{BLUE, Chart, GREY, Panel, Plot, WINE};
use crate::report::HeadlineFigure;
use crate::sanitize::{one_line, shortened};
use crate::section::{Plan, Section, Table, or_missing};

/// The most waits for locks that the report lists.
const WAITS: usize = 40;

/// The most bytes of a statement in a cell.
const STATEMENT: usize = 200;

/// Returns the answers as sentences: the verdict on the change first.
pub fn answers(document: &ExperimentDocument) -> Vec<String> {
    let mut answers = Vec::new();
    for line in &document.rehearsals {
        let mut sentences = sentences(line).into_iter();
        let verdict = sentences.next().unwrap_or_default();
        answers.push(if answers.is_empty() { verdict } else { format!("{}: {verdict}", line.variant) });
        answers.extend(sentences);
    }
    answers
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

/// A name, and what it is of a way to make the change.
type Figure = (&'static str, fn(&RehearsalLine) -> String);

const FIGURES: [Figure; 18] = [
    ("verdict", |line| or_missing(&line.verdict).to_owned()),
    ("longest wait", |line| format!("{} ms", ms(line.longest_wait_ms))),
    ("longest wait before", |line| format!("{} ms", ms(line.quiet_longest_ms))),
    ("transactions that waited too long", waited),
    ("without a commit", |line| secs(line.secs_without_commit)),
    ("throughput before", |line| format!("{} tps", tps(line.tps_before))),
    ("throughput during the change", |line| format!("{} tps", tps(line.tps_during))),
    ("throughput after", |line| format!("{} tps", tps(line.tps_after))),
    ("back after", |line| secs(line.back_secs)),
    ("change took", |line| secs(line.change_secs)),
    ("tries", |line| line.tries.map_or(MISSING.to_owned(), |tries| tries.to_string())),
    ("strongest lock", lock),
    ("WAL", |line| bytes(line.wal_bytes.map(|bytes| bytes as f64))),
    ("new files", |line| bytes(line.made_bytes.map(|bytes| bytes as f64))),
    ("least disk free", |line| bytes(line.least_disk_free_bytes.map(|bytes| bytes as f64))),
    ("replay lag", |line| {
        line.replay_lag_ms.map_or(MISSING.to_owned(), |lag| format!("{} ms", ms(Some(lag))))
    }),
    ("failed", failed),
    ("statements", |line| shortened(&one_line(&line.statements), STATEMENT)),
];

fn secs(secs: Option<f64>) -> String {
    secs.map_or(MISSING.to_owned(), |secs| format!("{} s", fixed(Some(secs), 3)))
}

fn waited(line: &RehearsalLine) -> String {
    match (line.waited, line.transactions) {
        (Some(waited), Some(all)) => format!("{} of {}", count(waited), count(all)),
        _ => MISSING.to_owned(),
    }
}

fn failed(line: &RehearsalLine) -> String {
    let errors = line.failed.iter().filter(|errors| errors.during + errors.after > 0);
    let text = |errors: &PhaseErrors| {
        format!(
            "{}: {} before, {} during, {} after",
            errors.sqlstate, errors.before, errors.during, errors.after
        )
    };
    let texts: Vec<String> = errors.map(text).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join("; ") }
}

fn lock(line: &RehearsalLine) -> String {
    match (&line.lock_mode, &line.locked) {
        (Some(mode), Some(locked)) => format!("{mode} on {}", one_line(locked)),
        _ => MISSING.to_owned(),
    }
}

/// A row for each figure, a column for each way to make the change.
pub fn figures(document: &ExperimentDocument) -> Section {
    let mut table = Table::of(&FIGURES).text("figure", |(name, _)| name);
    for line in &document.rehearsals {
        table = table.text(&line.variant, |(_, figure)| figure(line));
    }
    Section::of_table("rehearsal", "The change under load", table.table()).with_note(
        "Latencies count from when a transaction was due, so that waiting to be started is part of them.",
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
    let plan = |plan: &&ChangedPlan| {
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

#[cfg(test)]
mod tests {
    use bench_results::experiment::{ExperimentRun, RunSamples, SweepChange};
    use bench_results::rehearsal::Rehearsal;

    use super::*;

    fn document() -> ExperimentDocument {
        let line = |variant: &str, verdict: &str| RehearsalLine {
            variant: variant.to_owned(),
            verdict: Some(verdict.to_owned()),
            statements: "DROP TABLE \"<b>\"".to_owned(),
            ..RehearsalLine::default()
        };
        let wait = QueuedSession { pid: 5, blocked_by: vec![3, 4], ..QueuedSession::default() };
        let rehearsal =
            Rehearsal { run_id: 7, change_end: 1.0, queue: vec![wait; WAITS + 2], ..Rehearsal::default() };
        let samples = RunSamples { elapsed: vec![Some(1.0), Some(2.0)], tps: vec![Some(10.0), None] };
        ExperimentDocument {
            rehearsals: vec![line("change", "fails: 23505"), line("alternative", "safe")],
            changes: vec![SweepChange { rehearsal: Some(rehearsal), ..SweepChange::default() }],
            runs: vec![ExperimentRun { run_id: Some(7), samples, ..ExperimentRun::default() }],
            ..ExperimentDocument::default()
        }
    }

    #[test]
    fn the_verdict_on_the_change_comes_first() {
        let answers = answers(&document());
        assert!(
            answers[0].starts_with("FAILS: 23505 (0 of 0 transactions waited over 0 ms; none failed)."),
            "{answers:?}"
        );
        assert!(answers.iter().any(|answer| answer.starts_with("alternative: SAFE (")), "{answers:?}");
        assert_eq!(verdict(&document()), "slower");
    }

    #[test]
    fn each_way_has_a_column_and_long_queues_are_cut() {
        let Section { body: crate::section::Body::Table(table), .. } = figures(&document()) else { panic!() };
        assert_eq!((table.columns.len(), table.rows.len()), (3, FIGURES.len()));
        let queue = queue(&document());
        assert_eq!(queue.note.as_deref(), Some("2 more are in bench.rehearsal_queue."));
        assert!(chart(&document()).is_some());
    }

    #[test]
    fn each_way_is_a_test_of_junit() {
        let junit = rehearsal_junit(&document());
        assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
        assert!(junit.contains("&lt;b&gt;"), "{junit}");
    }
}
