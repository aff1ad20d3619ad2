//! Whether the figures are what they seem to be: clients that were lost, transactions that failed, counts that do not
//! agree, a rate that was not reached, arms of a duel that do not do the same work or are in each other's way.

use std::collections::BTreeMap;

use bench_base::error::is_of_data;
use bench_base::sentence::{counted, figure, first_few, grouped, milliseconds, percent};
use bench_results::{
    AuditLine, ComparisonLine, Document, Duel, ErrorLine, FidelityPart, Finding, Severity, StatementLine,
    Topic, whole,
};
use bench_stats::clients_for;
use bench_stats::robust::median;
use serde_json::json;

use crate::intervals::{Intervals, finding};
use crate::nodes::lost_nodes;

/// The reason in `bench.audit` why a greater number of the server's is not judged.
pub const UNSENT: &str = "other sessions were at work in this database just before the run: the server may have counted their work late";

/// Shares of transactions that failed, from which on they are worth a word, and from which on they are grave.
const FAILED_NOTICE: f64 = 0.001;
const FAILED_WARNING: f64 = 0.01;
/// Fidelity below which a replay is another benchmark, and below which that is worth a word.
const FIDELITY_CRITICAL: f64 = 0.5;
const FIDELITY_WARNING: f64 = 0.8;
/// The share of the transactions due that may be left at the end, or skipped, under a rate that was kept.
const BACKLOG: f64 = 0.01;

/// The share of the latency, and the milliseconds, from which on the wait for a client is worth a word.
const LAG_SHARE: f64 = 0.5;
const LAG_MS: f64 = 1.0;

/// The findings on the outcome.
pub fn findings(document: &Document, intervals: &Intervals) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(audit(document));
    findings.extend(fidelity(document));
    findings.extend(unsent(document));
    findings.extend(clients(document, intervals));
    findings.extend(failed(document));
    findings.extend(rate(document));
    findings.extend(log(document));
    findings
}

fn audit(document: &Document) -> Option<Finding> {
    let wrong: Vec<_> = document.audit.iter().filter(|line| line.ok == Some(false)).collect();
    if wrong.is_empty() {
        return None;
    }
    let shown = |count: Option<i64>| count.map_or("unknown".to_owned(), |count| grouped(count as f64));
    let lines: Vec<String> = wrong
        .iter()
        .map(|line| {
            let (harness, server) = (shown(line.harness), shown(line.server));
            format!("{}{} (clients {harness}, server {server})", line.counter, document.on_node(line.node))
        })
        .collect();
    Some(finding(
        Severity::Critical,
        Topic::Audit,
        format!("The clients' counts differ from the server's: {}.", first_few(&lines)),
        json!({
            "counters": wrong
                .iter()
                .map(|line| json!({
                    "node": line.node,
                    "counter": line.counter,
                    "harness": line.harness,
                    "server": line.server,
                }))
                .collect::<Vec<_>>(),
        }),
        "Do not use this run's figures until the difference is explained. See bench.audit, look for other sessions \
         that wrote to the same tables, and run again.",
    ))
}

/// A replay that is not what was captured.
fn fidelity(document: &Document) -> Option<Finding> {
    // What sessions wait for depends on the rate and on the machine, too.
    let judged: Vec<FidelityPart> = (document.fidelity.iter())
        .filter(|part| part.part != "waits" || part.score < Some(FIDELITY_CRITICAL))
        .cloned()
        .collect();
    let (score, reason) = whole(&judged).filter(|(score, _)| *score < FIDELITY_WARNING)?;
    let commits_too_often = (judged.iter()).any(|part| {
        part.part == "statements" && part.score < Some(FIDELITY_WARNING) && part.replayed < part.captured
    });
    let advice = if commits_too_often {
        "The run commits and flushes WAL more often than the application: do not draw conclusions for it. Capture \
         transactions: bench.capture says why it has not. See docs/capture.md."
    } else {
        "See bench.fidelity_parts, and bench.fidelity for each statement or transaction."
    };
    Some(finding(
        if score < FIDELITY_CRITICAL { Severity::Critical } else { Severity::Warning },
        Topic::Fidelity,
        format!(
            "The run is not what was captured, with a fidelity of {score:.2}: {}.",
            reason.unwrap_or_default()
        ),
        json!({ "score": score, "commits_too_often": commits_too_often }),
        advice,
    ))
}

/// A greater number of the server's that other sessions may explain: nobody is wrong for certain.
fn unsent(document: &Document) -> Option<Finding> {
    let greater: Vec<_> =
        document.audit.iter().filter(|line| line.ok.is_none() && line.reason == UNSENT).collect();
    if greater.is_empty() {
        return None;
    }
    let more = |line: &AuditLine| line.server.unwrap_or(0).saturating_sub(line.harness.unwrap_or(0));
    let lines: Vec<String> = greater
        .iter()
        .map(|line| {
            format!("{}{} by {}", line.counter, document.on_node(line.node), grouped(more(line) as f64))
        })
        .collect();
    Some(finding(
        Severity::Notice,
        Topic::Audit,
        format!("The server counted more than the clients: {}.", first_few(&lines)),
        json!({
            "counters": greater
                .iter()
                .map(|line| json!({ "node": line.node, "counter": line.counter, "more": more(line) }))
                .collect::<Vec<_>>(),
        }),
        "Other sessions worked in this database just before the run, and the server may have counted their work \
         late. If one of them wrote to the run's tables during the run, run again without it.",
    ))
}

fn clients(document: &Document, intervals: &Intervals) -> Option<Finding> {
    let run = &document.run;
    let all_clients = document.all_clients();
    let asked = all_clients as f64;
    let at_work = intervals.column(|samples| &samples.clients).and_then(|clients| median(&clients));
    let error = |key| run.error.as_ref().and_then(|error| error.get(key)).and_then(|value| value.as_str());
    // Transaction ids that ran out have a finding of their own.
    let lost = run.status == "crashed" || run.status == "incomplete" && error("sqlstate") != Some("54000");
    // Clients with a number of transactions each go home at different times.
    let fewer = run.transactions.is_none() && at_work.is_some_and(|at_work| at_work < asked);
    // Nodes that were lost are told by their names, and their clients with them.
    if (!lost && !fewer) || lost_nodes(document).next().is_some() {
        return None;
    }
    let aborted = document.summary.aborted.unwrap_or(0);
    let what = match run.status.as_str() {
        "crashed" => "The server, or the run's coordinator, went down during the run".to_owned(),
        "incomplete" if error("sqlstate") == Some("55000") => "The run was disturbed".to_owned(),
        _ if aborted > 0 => {
            format!("An error ended {} of {}", grouped(aborted as f64), counted(all_clients, "client"))
        }
        "incomplete" => "Clients were lost during the run".to_owned(),
        _ => "Some clients did not run".to_owned(),
    };
    let how_many = match at_work {
        Some(at_work) if at_work < asked => {
            format!(": {} of {} clients ran in the middle interval", grouped(at_work), grouped(asked))
        }
        _ => String::new(),
    };
    let reason = error("message").map_or(String::new(), |reason| format!(" ({reason})"));
    Some(finding(
        Severity::Critical,
        Topic::Clients,
        format!("{what}{how_many}{reason}. The figures do not represent {}.", counted(all_clients, "client")),
        json!({ "status": run.status, "clients": all_clients, "clients_at_work": at_work, "aborted": document.summary.aborted }),
        "Find the reason in bench.errors and the server's log, and run again.",
    ))
}

fn failed(document: &Document) -> Option<Finding> {
    let summary = &document.summary;
    let tried = summary.transactions as f64 + summary.failed as f64;
    let share = summary.failed as f64 / tried;
    // Not a number, and so no finding, where nothing was tried.
    let tells = share >= FAILED_NOTICE;
    if !tells {
        return None;
    }
    // Errors of one SQLSTATE are counted as one, whichever node they came from.
    let mut by_sqlstate: BTreeMap<&str, f64> = BTreeMap::new();
    // Each of the others has ended its client, but for those of captures and of clients that continue on errors.
    let others = document.errors.iter().filter(|line| !is_retriable(&line.sqlstate));
    let outlived = others.map(|line| line.failed as f64).sum::<f64>() > summary.aborted.unwrap_or(0) as f64;
    let of_these = |line: &ErrorLine| summary.aborted.is_none() || is_retriable(&line.sqlstate) || outlived;
    for line in document.errors.iter().filter(|line| line.failed > 0 && of_these(line)) {
        *by_sqlstate.entry(&line.sqlstate).or_default() += line.failed as f64;
    }
    let mut errors: Vec<(&str, f64)> = by_sqlstate.into_iter().collect();
    errors.sort_by(|one, other| other.1.total_cmp(&one.1));
    let lines: Vec<String> =
        errors.iter().map(|(sqlstate, failed)| format!("{sqlstate} ({})", grouped(*failed))).collect();
    let of_these = if lines.is_empty() { String::new() } else { format!(": SQLSTATE {}", first_few(&lines)) };
    let retriable = errors.first().is_some_and(|(sqlstate, _)| is_retriable(sqlstate));
    Some(finding(
        if share >= FAILED_WARNING { Severity::Warning } else { Severity::Notice },
        Topic::Failed,
        format!(
            "{} of all transactions failed ({} of {}){of_these}.",
            percent(share),
            grouped(summary.failed as f64),
            grouped(tried)
        ),
        json!({ "share": share, "failed": summary.failed, "transactions": summary.transactions }),
        match (retriable, document.run.max_tries) {
            (false, _) if outlived && errors.first().is_some_and(|(sqlstate, _)| is_of_data(sqlstate)) => {
                "Clients of a capture, and all clients with continue_on_error, continue after data errors. Typical \
                 causes are rows that a run has deleted and keys that it has inserted: run on a fresh copy of the \
                 data. See bench.errors for the messages."
                    .to_owned()
            }
            (false, _) => "See bench.errors for the messages, fix their cause and run again.".to_owned(),
            (true, 1) => {
                "Run with max_tries above 1, so that these transactions are retried as an application would retry \
                 them, or spread the clients over more rows."
                    .to_owned()
            }
            // Without a limit, it was a latency limit that ended the tries.
            (true, 0) => "Spread the clients over more rows, or run fewer clients.".to_owned(),
            (true, tries) => format!(
                "{tries} tries were not enough for these transactions. Spread the clients over more rows, run fewer \
                 clients, or raise max_tries further."
            ),
        },
    ))
}

/// Whether an error fails a transaction only, and not its client.
fn is_retriable(sqlstate: &str) -> bool {
    ["40001", "40P01"].contains(&sqlstate)
}

fn rate(document: &Document) -> Option<Finding> {
    let (run, summary) = (&document.run, &document.summary);
    let rate = run.rate?;
    let due = rate * summary.secs?;
    let backlog = summary.backlog.unwrap_or(0) as f64;
    let skipped = summary.skipped as f64;
    // Some are always under way at the end: one per client.
    let behind = backlog > due * BACKLOG && backlog > document.all_clients() as f64;
    let skips = skipped > due * BACKLOG;
    if !behind && !skips {
        return waits_for_itself(document, rate);
    }
    let mut what = Vec::new();
    if behind {
        what.push(format!("{} transactions were due but not started at the end", grouped(backlog)));
    }
    if skips {
        what.push(format!("{} were skipped because they were already too late", grouped(skipped)));
    }
    let lag = summary
        .lag_avg_ms
        .map_or(String::new(), |lag| format!("; transactions started {} late on average", milliseconds(lag)));
    Some(finding(
        Severity::Warning,
        Topic::Rate,
        format!(
            "The run fell behind its rate of {} tps{} and reached {}: {}{lag}. Latencies do not include transactions \
             that were not started.",
            grouped(rate),
            if run.rates.is_some() { " on average" } else { "" },
            summary.tps.map_or("less".to_owned(), |tps| format!("{} tps", grouped(tps))),
            what.join(", ")
        ),
        json!({
            "rate": rate,
            "tps": summary.tps,
            "backlog": summary.backlog,
            "skipped": summary.skipped,
            "lag_avg_ms": summary.lag_avg_ms,
        }),
        "Lower the rate, or add clients if all were busy while processors were idle. At a rate that the server \
         cannot sustain, latencies grow with the length of the run.",
    ))
}

/// A rate that was kept, while most of the latency was the wait for a client.
fn waits_for_itself(document: &Document, rate: f64) -> Option<Finding> {
    let summary = &document.summary;
    let (lag_ms, latency_ms) = (summary.lag_avg_ms?, summary.latency_avg_ms?);
    if lag_ms < LAG_MS || lag_ms < LAG_SHARE * latency_ms {
        return None;
    }
    let clients = clients_for(rate, latency_ms - lag_ms);
    Some(finding(
        Severity::Warning,
        Topic::Lag,
        format!(
            "The run waited for itself: transactions waited {} for a free client, of a latency of {}.",
            milliseconds(lag_ms),
            milliseconds(latency_ms)
        ),
        json!({
            "rate": rate, "lag_avg_ms": lag_ms, "latency_avg_ms": latency_ms, "clients": document.all_clients(),
            "clients_needed": clients,
        }),
        format!(
            "Latencies contain the wait, which the application does not have. Run with clients => {clients} or more; \
             if they are that many already, transactions come in bursts or the machine has no processor left."
        ),
    ))
}

fn log(document: &Document) -> Option<Finding> {
    let (logged, lost) = (document.run.logged?, document.run.log_lost.filter(|lost| *lost > 0)?);
    let all = logged as f64 + lost as f64;
    let share = lost as f64 / all;
    Some(finding(
        Severity::Notice,
        Topic::Log,
        format!(
            "{} of {} entries of the transaction log were lost ({}).",
            grouped(lost as f64),
            grouped(all),
            percent(share)
        ),
        json!({ "logged": logged, "lost": lost, "log_rate": document.run.log_rate }),
        format!(
            "Transactions ended faster than they could be written to bench.transactions, so the logged ones are not \
             an even sample. All other figures are complete. Run again with log_rate => {} or less.",
            one_digit(document.run.log_rate * (1.0 - share) / 2.0)
        ),
    ))
}

/// A share between 0 and 1 with the digit of it that tells most, as a user would type it.
fn one_digit(share: f64) -> String {
    let share = share.clamp(1e-6, 1.0);
    let digits = (-share.log10().floor()) as usize;
    format!("{share:.digits$}")
}

/// Differences in rows and in LEAST_WAL from which on they are told.
const LEAST_ROWS: f64 = 0.001;
const LEAST_WAL: f64 = 0.05;
/// The share of an arm's time that waits for locks take, from which on they are told.
const LEAST_LOCKS: f64 = 0.05;
/// How many half-widths of its 95 % interval a difference has to be: as of one at 99.9 %.
const SURE: f64 = 1.7;

/// What makes the comparison of a duel's arms doubtful.
pub fn duel_findings(document: &Document) -> Vec<Finding> {
    let Some(duel) = &document.duel else { return Vec::new() };
    [rows(duel), wal(duel), locks(duel)].into_iter().flatten().collect()
}

/// Both values of a metric that surely differs by so much.
fn differs(line: &ComparisonLine, least: f64) -> Option<(f64, f64)> {
    let (a, b) = (line.baseline?, line.candidate?);
    let is_none = |value: f64| value == 0.0;
    if is_none(a) != is_none(b) {
        return Some((a, b));
    }
    let (ratio, low, high) = (line.ratio?, line.ratio_low?, line.ratio_high?);
    let half_width = (high / low).ln() / 2.0;
    ((ratio - 1.0).abs() > least && ratio.ln().abs() > SURE * half_width).then_some((a, b))
}

/// How far two numbers of rows are apart, of the greater one.
fn distance(of: &StatementLine) -> f64 {
    let (a, b) = (of.baseline.rows.unwrap_or_default(), of.candidate.rows.unwrap_or_default());
    (a - b).abs() / a.max(b).max(f64::MIN_POSITIVE)
}

fn rows(duel: &Duel) -> Option<Finding> {
    let (a, b) = differs(duel.metric("rows")?, LEAST_ROWS)?;
    let both = duel.statements.iter().filter(|of| of.baseline.rows.is_some() && of.candidate.rows.is_some());
    let greatest = both.max_by(|one, other| distance(one).total_cmp(&distance(other)));
    let greatest = greatest.filter(|of| distance(of) > LEAST_ROWS);
    let of_statement = greatest.map_or_else(String::new, |of| {
        let (a, b) = (of.baseline.rows.unwrap_or_default(), of.candidate.rows.unwrap_or_default());
        let (command, workload) = (of.command, &of.workload);
        format!("; command {command} of {workload}: {} and {} per execution", figure(a), figure(b))
    });
    Some(finding(
        Severity::Warning,
        Topic::Rows,
        format!(
            "The arms do not do the same work: transactions of a return or change {} rows, those of b {}{of_statement}.",
            figure(a),
            figure(b)
        ),
        json!({ "a": a, "b": b, "command": greatest.map(|of| of.command) }),
        "Check that both arms are to return the same rows. If they are not, the ratio compares different work.",
    ))
}

fn wal(duel: &Duel) -> Option<Finding> {
    let (a, b) = differs(duel.metric("wal_bytes")?, LEAST_WAL)?;
    Some(finding(
        Severity::Notice,
        Topic::Duel,
        format!(
            "The arms write different amounts of LEAST_WAL: a {} bytes per transaction, b {}.",
            figure(a),
            figure(b)
        ),
        json!({ "a": a, "b": b }),
        "Flushes, checkpoints and full-page images that one arm causes also cost the other one. Compare whole runs with \
         bench.ab.",
    ))
}

fn locks(duel: &Duel) -> Option<Finding> {
    let waits = duel.waits.iter().filter(|wait| wait.wait_event_type == "Lock");
    let (a, b) = waits.fold((0.0, 0.0), |(a, b), wait| (a + wait.a, b + wait.b));
    if a.max(b) < LEAST_LOCKS {
        return None;
    }
    Some(finding(
        Severity::Notice,
        Topic::Duel,
        format!("Transactions waited for locks: a for {} of their time, b for {}.", percent(a), percent(b)),
        json!({ "a": a, "b": b }),
        "Either arm may have waited for locks that the other one held. Spread the clients over more rows, or compare whole \
         runs with bench.ab.",
    ))
}
