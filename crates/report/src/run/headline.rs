//! What a run was and how it ended: its title, the lines that pgbench closes with, and, of an open loop, what was offered
//! and what was done.

use bench_base::number;
use bench_base::number::{MISSING, count, finite, percent, percent_of};
use bench_results::{Document, Run, Topic, Unreplayed, plain};
use serde_json::Value;

use crate::run::transactions::nopm_line;
use crate::sanitize::shortened;
use crate::section::{Section, given, pairs};

/// What pgbench prints at its end, of which only [`Document::run`], [`Document::summary`] and, of a run on several
/// nodes, [`Document::nodes`] need be known.
pub fn closing(document: &Document) -> String {
    closing_lines(document).join("\n")
}

/// The lines of [`closing`].
pub fn closing_lines(document: &Document) -> Vec<String> {
    let (run, summary) = (&document.run, &document.summary);
    // Without separators: these lines are also read by programs that know pgbench's.
    let ms = |value| finite(value).map_or("-".to_owned(), |value| format!("{value:.3}"));
    let tps = |value| finite(value).map_or("-".to_owned(), |value| format!("{value:.1}"));
    let done = summary.transactions;
    let mut lines = vec![
        format!(
            "run {}: {} with {}{} {}, {}, seed {}",
            run.run_id,
            run.workload,
            times_nodes(document),
            run.clients,
            clients_noun(run),
            measured_extent(document, |secs| format!("{secs} s")),
            run.seed
        ),
        format!("number of transactions actually processed: {done}"),
        format!(
            "number of failed transactions: {} ({:.3}%)",
            summary.failed,
            percent_of(summary.failed, done.saturating_add(summary.failed))
        ),
    ];
    if let Some(aborted) = summary.aborted.filter(|aborted| *aborted > 0) {
        lines.push(format!("number of aborted clients: {aborted}"));
    }
    if let Some(unknown) = summary.unknown.filter(|unknown| *unknown > 0) {
        lines.push(format!("number of transactions in doubt: {unknown}"));
    }
    if run.max_tries != 1 {
        lines.push(format!(
            "number of transactions retried: {} ({:.3}%)",
            summary.retried,
            percent_of(summary.retried, done.saturating_add(summary.failed))
        ));
    }
    lines.push(format!(
        "latency average = {} ms, stddev = {} ms",
        ms(summary.latency_avg_ms),
        ms(summary.latency_stddev_ms)
    ));
    lines.push(format!(
        "latency p95 = {} ms, p99 = {} ms, max = {} ms",
        ms(summary.latency_p95_ms),
        ms(summary.latency_p99_ms),
        ms(summary.latency_max_ms)
    ));
    lines.push(format!(
        "tps = {} (samples: min {}, max {}, stddev {})",
        tps(summary.tps),
        tps(summary.tps_min),
        tps(summary.tps_max),
        tps(summary.tps_stddev)
    ));
    lines.extend(nopm_line(document));
    if let Some(rate) = finite(run.rate) {
        lines.push(format!(
            "rate limit: {rate} tps, schedule lag: avg {} ms, max {} ms",
            ms(summary.lag_avg_ms),
            ms(summary.lag_max_ms)
        ));
        if let Some(backlog) = summary.backlog.filter(|backlog| *backlog > 0) {
            lines.push(format!("fell behind: {backlog} transactions were due but not started at the end"));
        }
    }
    if let Some(limit) = finite(run.latency_limit) {
        lines.push(format!(
            "number of transactions above the {limit} ms latency limit: {}/{done} ({:.3}%), skipped: {} ({:.3}%)",
            summary.late,
            percent_of(summary.late, done),
            summary.skipped,
            percent_of(summary.skipped, done.saturating_add(summary.failed).saturating_add(summary.skipped)),
        ));
    }
    lines
}

/// What the number of clients is to be multiplied by, where they ran on several nodes.
fn times_nodes(document: &Document) -> String {
    match document.client_nodes() {
        1 => String::new(),
        nodes => format!("{nodes} nodes × "),
    }
}

/// What the number of a run's clients counts.
fn clients_noun(run: &Run) -> &'static str {
    if run.clients == 1 { "client" } else { "clients" }
}

/// How long the run was to be, and how long one was that was stopped before.
fn measured_extent(document: &Document, duration: impl Fn(f64) -> String) -> String {
    let run = &document.run;
    match (finite(run.secs), run.transactions) {
        (_, Some(count)) => format!("{count} transactions per client"),
        (Some(secs), None) => match finite(document.summary.secs).map(tenths) {
            Some(measured) if run.status == "canceled" && measured < secs => {
                format!("{measured} of {}", duration(secs))
            }
            _ => duration(secs),
        },
        (None, None) => "until it was stopped".to_owned(),
    }
}

/// The run in one line, without its workload.
pub fn subtitle(document: &Document) -> String {
    let run = &document.run;
    let clients = format!("{}{} {}", times_nodes(document), run.clients, clients_noun(run));
    let extent = match run.transactions {
        Some(count) => format!("{} transactions per client", number::count(count)),
        None => measured_extent(document, number::duration),
    };
    let mut parts = vec![clients, extent];
    // As asked for, where it was: a stop within the warm-up is told elsewhere.
    let warmup = run.warmup.unwrap_or_else(|| tenths(run.warmed_up_secs()));
    if warmup > 0.0 {
        parts.push(format!("after {} of warm-up", number::duration(warmup)));
    }
    if let Some(rate) = finite(run.rate) {
        let changing = if run.rates.is_some() { "changing rates, on average" } else { "a rate of" };
        parts.push(format!("at {changing} {} tps", number::tps(Some(rate))));
    }
    if !run.query_mode.is_empty() {
        parts.push(format!("query mode {}", run.query_mode));
    }
    if !run.server_version.is_empty() {
        parts.push(format!("PostgreSQL {}", run.server_version));
    }
    parts.extend(run.started_at.as_deref().map(number::to_the_second));
    parts.splice(0..0, document.unreplayed.as_ref().map(unreplayed));
    parts.join(" · ")
}

/// What of a capture is not replayed: it comes first in every report.
pub fn unreplayed(of: &Unreplayed) -> String {
    let noun = if of.statements == 1 { "statement" } else { "statements" };
    let count = number::count(of.statements);
    format!("not replayed: {count} {noun} with {} of the captured time", number::percent(Some(of.share)))
}

/// A verdict with what of a capture it says nothing about.
pub fn with_unreplayed(verdict: String, left_out: Option<&Unreplayed>) -> String {
    let Some(left_out) = left_out.map(unreplayed) else { return verdict };
    match verdict.strip_suffix('.') {
        Some(verdict) => format!("{verdict}; {left_out}."),
        None => format!("{verdict}; {left_out}"),
    }
}

/// How a run ended, where that is not as it should, and where a completed one did not keep its rate.
pub fn run_outcome(document: &Document) -> Option<String> {
    let run = &document.run;
    outcome(&run.status, run.error.as_ref())
        .or_else(|| Some(format!("{}, but {}", run.status, shortfall(document)?)))
}

/// How a run or a sweep ended, where that is not as it should: its status and its error.
pub fn outcome(status: &str, error: Option<&Value>) -> Option<String> {
    if status == "completed" || (status.is_empty() && error.is_none()) {
        return None;
    }
    let Some(error) = error else { return Some(status.to_owned()) };
    let field = |name: &str| error.get(name).filter(|value| !value.is_null()).map(plain);
    let message = field("message").unwrap_or_else(|| plain(error));
    let mut text = format!("{status}: {message}");
    if let Some(detail) = field("detail") {
        text += &format!(" ({detail})");
    }
    if let Some(hint) = field("hint") {
        text += &format!(" {hint}");
    }
    Some(text)
}

/// Where an imported run was made.
fn origin(origin: &Value) -> String {
    let field = |name: &str| origin.get(name).map_or_else(|| "unknown".to_owned(), plain);
    format!(
        "run {} of role {}, database {}, system {}",
        field("run_id"),
        field("role"),
        field("database"),
        field("system_identifier")
    )
}

/// How long the warm-up was, and why.
fn warmup(run: &Run) -> Option<String> {
    if let Some(secs) = run.warmup {
        return (secs != 0.0).then(|| number::duration(secs));
    }
    let took = run.warmup_took.map(|secs| number::duration(tenths(secs)));
    Some(match took {
        Some(took) if run.is_unsteady() => format!("{took}, throughput was not steady by then"),
        Some(took) if run.status == "completed" => format!("{took}, until throughput was steady"),
        Some(took) => took,
        None => "until throughput is steady".to_owned(),
    })
}

/// Transactions per second of an open loop.
fn rate(run: &Run) -> Option<String> {
    let mean = format!("{} tps", number::tps(Some(finite(run.rate)?)));
    Some(match run.changing_rates() {
        Some(rates) => format!("{mean} on average; {}", shortened(&rates.text(), RATES)),
        None => mean,
    })
}

/// How much is shown of rates that change.
const RATES: usize = 300;

/// The end of such a warm-up is within an interval of samples, and not as exact as a clock.
fn tenths(secs: f64) -> f64 {
    (secs * 10.0).round() / 10.0
}

/// How the run was asked for.
pub fn run(document: &Document) -> Section {
    let run = &document.run;
    Section::of_facts("run", "Run")
        .fact("workload", given(&run.workload))
        .fact("fixture", run.fixture.clone())
        .fact("clients", Some(times_nodes(document) + &run.clients.to_string()))
        .fact("measured", Some(measured_extent(document, |secs| format!("{secs} s"))))
        .fact("warm-up", warmup(run))
        .fact("rate", rate(run))
        .fact("latency limit", finite(run.latency_limit).map(|limit| format!("{limit} ms")))
        .fact(
            "tries per transaction",
            match run.max_tries {
                1 => None,
                0 => Some("no limit".to_owned()),
                tries => Some(tries.to_string()),
            },
        )
        .fact("seed", Some(run.seed.to_string()))
        .fact("query mode", given(&run.query_mode))
        .fact("driver", (run.driver == "wire").then(|| run.driver.clone()))
        .fact("target", run.target.clone())
        .fact("jobs", run.jobs.map(|jobs| jobs.to_string()))
        .fact("connections", run.reconnect.then(|| "one for each transaction".to_owned()))
        .fact(
            "at a lost connection",
            (run.on_disconnect == "reconnect").then(|| "the client connects again".to_owned()),
        )
        .fact("results", given(&run.results))
        .fact("variables", pairs(&run.variables))
        .fact("settings", pairs(&run.settings))
        .fact("tags", pairs(&run.tags))
        .fact("sample interval", (run.sample_interval != 0.0).then(|| number::duration(run.sample_interval)))
        .fact("role", given(&run.role))
        .fact("status", given(&run.status))
        .fact("started", run.started_at.as_deref().map(number::to_the_second))
        .fact("finished", run.finished_at.as_deref().map(number::to_the_second))
        .fact("xmin horizon", run.horizon_held.then(|| "held back by the waiting caller".to_owned()))
        .fact("server version", given(&run.server_version))
        .fact("extension version", given(&run.extension_version))
        .fact("imported", run.origin.as_ref().map(origin))
}

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
fn shortfall(document: &Document) -> Option<String> {
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
