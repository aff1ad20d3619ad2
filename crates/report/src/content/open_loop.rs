//! What an open loop offered, and how much of it was done.

use bench_base::number;
use bench_base::number::{MISSING, count, finite, percent};
use bench_results::{Document, Topic};

use super::Section;

/// Transactions that were due within the measured time, and what became of them.
pub struct OpenLoop {
    /// Transactions per second that were to be started.
    pub rate: f64,
    pub due: u64,
    pub skipped: u64,
    /// Neither started nor skipped at the end.
    pub backlog: u64,
}

impl OpenLoop {
    /// That of a run with a rate.
    pub fn of(document: &Document) -> Option<OpenLoop> {
        let summary = &document.summary;
        Some(OpenLoop {
            rate: finite(document.run.rate)?,
            due: document.due(),
            skipped: summary.skipped,
            backlog: summary.backlog.unwrap_or_default(),
        })
    }

    /// A part of what was due, with its share.
    fn part(&self, part: u64) -> String {
        format!("{} ({} of those due)", count(part), self.share(part))
    }

    /// Its share of what was due.
    pub fn share(&self, part: u64) -> String {
        percent((self.due > 0).then(|| part as f64 / self.due as f64))
    }
}

/// How a completed run did not do what its rate asked for: where the finding on the rate says so.
pub fn shortfall(document: &Document) -> Option<String> {
    let is_behind = document.findings.iter().any(|finding| finding.topic == Topic::Rate);
    let open_loop = OpenLoop::of(document).filter(|_| is_behind)?;
    let mut parts =
        vec![format!("{} of {} tps", number::tps(document.summary.tps), number::tps(Some(open_loop.rate)))];
    for (part, what) in [(open_loop.skipped, "skipped"), (open_loop.backlog, "not started at the end")] {
        if part > 0 {
            parts.push(format!("{} of the transactions due {what}", open_loop.share(part)));
        }
    }
    Some(format!("fell behind its rate: {}", parts.join(", ")))
}

/// The figures of an open loop; nothing of a closed one.
pub fn open_loop(document: &Document) -> Section {
    let summary = &document.summary;
    let open_loop = OpenLoop::of(document);
    let of = |show: &dyn Fn(&OpenLoop) -> String| open_loop.as_ref().map(show);
    let (lags, unit) = number::in_one_unit(&[summary.lag_avg_ms, summary.lag_max_ms]);
    let lag = |place: usize| {
        let is_known = lags[place] != MISSING && open_loop.is_some();
        is_known.then(|| format!("{} {unit}", lags[place]))
    };
    let limit = finite(document.run.latency_limit);
    Section::of_facts("open-loop", "Open loop")
        .fact(
            "offered",
            of(&|open| format!("{} tps, {} transactions", number::tps(Some(open.rate)), count(open.due))),
        )
        .fact("achieved", of(&|_| format!("{} tps", number::tps(summary.tps))))
        .fact("skipped", limit.and_then(|_| of(&|open| open.part(open.skipped))))
        .fact(
            "late",
            limit.and_then(|limit| {
                let share = number::percent_of(summary.late, summary.transactions);
                let share = percent(Some(share / 100.0));
                of(&|_| format!("{} ({share} of those done) above {limit} ms", count(summary.late)))
            }),
        )
        .fact("backlog at the end", summary.backlog.and_then(|backlog| of(&|open| open.part(backlog))))
        .fact("schedule lag, average", lag(0))
        .fact("schedule lag, maximum", lag(1))
}
