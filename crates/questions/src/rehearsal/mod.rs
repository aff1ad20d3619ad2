//! `bench.rehearse`: what a change did to the load in the middle of which it was made.

mod better;
mod recovery;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use bench_base::number::{bytes, count, fixed};
use bench_results::experiment::{AppliedSql, SweepChange};
use bench_results::rehearsal::{BlockingSession, PhaseErrors, Rehearsal, RehearsalLine, RehearsalPlan};
use bench_results::{Document, Samples};

pub use better::{Better, KnownStatement, better, patience};
pub use recovery::{Interval, Recovery};

/// The variants of a rehearsal. The first one finds the rate of the others, if none is given.
pub const CLOSED_LOOP: &str = "closed loop";
pub const CHANGE: &str = "change";
pub const ALTERNATIVE: &str = "alternative";

/// The share of a closed loop's throughput that is the rate of a rehearsal: a server with as much to do again catches up
/// within the time that it was blocked.
pub const RATE_SHARE: f64 = 0.5;

/// A wait blocks a client if it is this many times the longest before the change.
const TIMES_QUIET: f64 = 3.0;

/// An SQLSTATE breaks the application if its share of the transactions is this many times the share before the change.
const TIMES_FAILED: f64 = 3.0;

/// The workload is slower afterwards if the median latency is this many times the one before, and above that of each interval
/// before.
const TIMES_LATENCY: f64 = 2.0;

/// SQLSTATE of a canceled statement.
const CANCELED: &str = "57014";

/// What is known of a variant.
#[derive(Clone, Debug, Default)]
pub struct RehearsedVariant<'a> {
    pub name: &'a str,
    pub sql: Option<&'a AppliedSql>,
    pub change: Option<&'a SweepChange>,
    /// Its run, once that has ended.
    pub document: Option<&'a Document>,
    /// Its transactions that ended after the change began and took longer than the limit.
    pub waited: u64,
    /// Why its run failed.
    pub error: Option<String>,
}

/// Returns the answer about one variant.
pub fn line(plan: &RehearsalPlan, variant: &RehearsedVariant) -> RehearsalLine {
    let change = variant.change;
    let undo_error = change.filter(|change| change.revert_secs.is_none() && change.apply_secs.is_some());
    let line = RehearsalLine {
        variant: variant.name.to_owned(),
        statements: variant.sql.map(|sql| sql.apply.join("; ")).unwrap_or_default(),
        wait_limit: plan.wait_limit_secs,
        made_bytes: change.and_then(|change| change.made_bytes),
        error: variant.error.clone().or_else(|| undo_error.and_then(|change| change.error.clone())),
        ..RehearsalLine::default()
    };
    let rehearsal = change.and_then(|change| change.rehearsal.as_ref());
    let (Some(rehearsal), Some(document)) = (rehearsal, variant.document) else { return line };
    let samples = &document.samples;
    let phases = Phases::of(rehearsal, samples);
    let drained_ms = document.summary.latency_max_ms.filter(|longest| {
        // Greater than in any interval: it ended after the last one.
        phases.longest_ms().is_none_or(|in_samples| *longest > in_samples)
    });
    let back = rehearsal.back;
    let line = RehearsalLine {
        longest_wait_ms: drained_ms.or(phases.since_change().max(&samples.latency_max_ms)),
        quiet_longest_ms: phases.quiet.max(&samples.latency_max_ms),
        transactions: Some(phases.since_change().sum(&samples.transactions) as u64),
        waited: Some(variant.waited),
        failed: rehearsal.errors.clone(),
        secs_without_commit: Some(phases.since_change().secs_without_commit()),
        tps_before: phases.quiet.tps(),
        tps_during: phases.change.tps(),
        tps_after: phases.settled(back).tps(),
        back_secs: back.map(|back| back - rehearsal.change_end),
        change_secs: Some(rehearsal.change_end - rehearsal.change_begin),
        tries: Some(rehearsal.tries),
        lock_wait_secs: Some(rehearsal.lock_wait_secs),
        held_secs: rehearsal.held_secs,
        lock_mode: rehearsal.lock_mode.clone(),
        locked: rehearsal.locked.clone(),
        blocked_by: rehearsal.blocked_by.clone(),
        most_queued: Some(rehearsal.most_queued),
        wal_bytes: rehearsal.wal_bytes,
        least_disk_free_bytes: rehearsal.least_disk_free_bytes,
        replay_lag_ms: phases.since_change().max(&samples.replay_lag_ms),
        plans: rehearsal.plans.clone(),
        run_id: Some(rehearsal.run_id),
        ..line
    };
    let (before, after) = (&phases.quiet, phases.settled(back));
    let medians = &samples.latency_p50_ms;
    // Medians of single intervals vary on a busy machine: that afterwards must be above all before.
    let latency_ratio = after
        .median(medians)
        .filter(|after| before.max(medians).is_some_and(|highest| *after > highest))
        .zip(before.median(medians))
        .map(|(after, before)| after / before);
    let verdict = verdict(plan, rehearsal, &line, latency_ratio);
    let better = (verdict != SAFE && variant.name == CHANGE).then(|| {
        let waits_mostly = rehearsal.lock_wait_secs > (rehearsal.change_end - rehearsal.change_begin) / 2.0;
        let patience = patience(plan.lock_timeout_secs).filter(|_| waits_mostly);
        patience.or_else(|| plan.better.clone())
    });
    RehearsalLine { verdict: Some(verdict), better: better.flatten(), ..line }
}

const SAFE: &str = "safe";

/// Returns the first verdict that applies.
fn verdict(
    plan: &RehearsalPlan,
    rehearsal: &Rehearsal,
    line: &RehearsalLine,
    latency_ratio: Option<f64>,
) -> String {
    let longest_ms = line.longest_wait_ms.unwrap_or_default();
    let blocks = format!("blocks clients for {} s", short(longest_ms / 1e3));
    match (rehearsal.canceled_by.as_deref(), rehearsal.sqlstate.as_deref()) {
        (Some("give_up"), Some(_)) => return format!("{blocks}, and was canceled"),
        (Some(_), Some(CANCELED)) => {
            return format!("not done within {} s", short(plan.change_limit_secs));
        }
        (_, Some(sqlstate)) if rehearsal.tries > 1 => {
            return format!("fails: {sqlstate} after {} tries", rehearsal.tries);
        }
        (_, Some(sqlstate)) => return format!("fails: {sqlstate}"),
        (_, None) => {}
    }
    if let Some((sqlstate, share)) = breakage(line) {
        return format!("breaks the application: {sqlstate} in {} %", short(share * 100.0));
    }
    let quiet_ms = line.quiet_longest_ms.unwrap_or_default();
    let slowed = line
        .tps_before
        .zip(line.tps_after)
        .filter(|(before, after)| rehearsal.back.is_none() && after < before);
    // If nobody waited so long for a lock, the backlog is that of a workload that became slower.
    let lock_waits = rehearsal.queue.iter().filter(|wait| wait.session == "client");
    let longest_lock_wait = lock_waits.map(|wait| wait.end - wait.begin).fold(0.0, f64::max);
    let is_overload = slowed.is_some() && longest_lock_wait < plan.wait_limit_secs;
    if !is_overload && longest_ms > plan.wait_limit_secs * 1e3 && longest_ms > TIMES_QUIET * quiet_ms {
        return blocks;
    }
    match slowed {
        Some((before, after)) => {
            format!("slows afterwards: −{} %", short((1.0 - after / before) * 100.0))
        }
        _ if latency_ratio.is_some_and(|ratio| ratio >= TIMES_LATENCY) => {
            let ratio = latency_ratio.map(short).unwrap_or_default();
            format!("slows afterwards: latency {ratio} times")
        }
        _ => SAFE.to_owned(),
    }
}

/// Returns the SQLSTATE that the change brought, and its share of the transactions since the change began.
fn breakage(line: &RehearsalLine) -> Option<(&str, f64)> {
    let since = |errors: &PhaseErrors| errors.during + errors.after;
    let all = line.transactions.unwrap_or_default() + line.failed.iter().map(since).sum::<u64>();
    let before = line.failed.iter().map(|errors| errors.before).sum::<u64>();
    let worst = line.failed.iter().max_by_key(|errors| since(errors))?;
    let share = since(worst) as f64 / all.max(1) as f64;
    // At least one failure is taken as the resolution of the share before.
    let before_share = worst.before as f64 / (before + all).max(1) as f64;
    (since(worst) > 0 && share > TIMES_FAILED * before_share).then_some((worst.sqlstate.as_str(), share))
}

/// Intervals of a run.
struct Intervals<'a> {
    samples: &'a Samples,
    places: Vec<usize>,
}

/// The parts of a rehearsal's run.
struct Phases<'a> {
    /// Intervals that ended before the change began.
    quiet: Intervals<'a>,
    /// Intervals that had begun before the change ended.
    change: Intervals<'a>,
    after: Intervals<'a>,
    change_end: f64,
}

impl<'a> Phases<'a> {
    fn of(rehearsal: &Rehearsal, samples: &'a Samples) -> Self {
        let part = |belongs: &dyn Fn(f64, f64) -> bool| {
            let is_of = |place: &usize| {
                let end = samples.elapsed[*place].unwrap_or_default();
                let secs = samples.secs.get(*place).copied().flatten().unwrap_or_default();
                belongs(end - secs, end)
            };
            Intervals { samples, places: (0..samples.elapsed.len()).filter(is_of).collect() }
        };
        let (begin, end) = (rehearsal.change_begin, rehearsal.change_end);
        Self {
            quiet: part(&|_, last| last <= begin),
            change: part(&|first, last| last > begin && first < end),
            after: part(&|first, last| last > begin && first >= end),
            change_end: end,
        }
    }

    fn since_change(&self) -> Intervals<'a> {
        let places = self.change.places.iter().chain(&self.after.places).copied().collect();
        Intervals { samples: self.change.samples, places }
    }

    /// Returns the intervals after the recovery, or the last half of those after the change if there was none.
    fn settled(&self, back: Option<f64>) -> Intervals<'a> {
        let places = &self.after.places;
        let begins_after = |place: &&usize| {
            let end = self.after.samples.elapsed[**place].unwrap_or_default();
            back.is_some_and(|back| end > back.max(self.change_end))
        };
        let after_recovery: Vec<usize> = places.iter().filter(begins_after).copied().collect();
        let half = places[places.len() / 2..].to_vec();
        Intervals {
            samples: self.after.samples,
            places: if after_recovery.is_empty() { half } else { after_recovery },
        }
    }

    fn longest_ms(&self) -> Option<f64> {
        let quiet = self.quiet.max(&self.quiet.samples.latency_max_ms);
        let since = self.since_change().max(&self.quiet.samples.latency_max_ms);
        [quiet, since].into_iter().flatten().reduce(f64::max)
    }
}

impl Intervals<'_> {
    fn values<'s>(&'s self, series: &'s [Option<f64>]) -> impl Iterator<Item = f64> + 's {
        self.places.iter().filter_map(|place| series.get(*place).copied().flatten())
    }

    fn sum(&self, series: &[Option<f64>]) -> f64 {
        self.values(series).sum()
    }

    fn max(&self, series: &[Option<f64>]) -> Option<f64> {
        self.values(series).reduce(f64::max)
    }

    fn median(&self, series: &[Option<f64>]) -> Option<f64> {
        let mut values: Vec<f64> = self.values(series).collect();
        values.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
        values.get(values.len() / 2).copied()
    }

    fn tps(&self) -> Option<f64> {
        let secs = self.sum(&self.samples.secs);
        (secs > 0.0).then(|| self.sum(&self.samples.transactions) / secs)
    }

    fn secs_without_commit(&self) -> f64 {
        let is_empty =
            |place: &&usize| self.samples.transactions.get(**place).copied().flatten() == Some(0.0);
        let secs = |place: &usize| self.samples.secs.get(*place).copied().flatten();
        // The sum of no numbers is -0.
        self.places.iter().filter(is_empty).filter_map(secs).sum::<f64>() + 0.0
    }
}

/// Writes a verdict in capitals, except for the unit of seconds.
fn in_capitals(verdict: &str) -> String {
    let word =
        |word: &str| if word.trim_end_matches(',') == "s" { word.to_owned() } else { word.to_uppercase() };
    verdict.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// The most characters of a statement within a sentence.
const STATEMENT_CHARS: usize = 60;

fn cut(statement: &str) -> String {
    let one_line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(STATEMENT_CHARS) {
        Some((end, _)) => format!("{}…", &one_line[..end]),
        None => one_line,
    }
}

/// Writes a number with at most three digits that count, as 3.2 or 61.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let text = fixed(Some(value), decimals);
    match decimals {
        0 => text,
        _ => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// Writes a time between milliseconds and minutes.
fn time(secs: f64) -> String {
    if secs < 1.0 { format!("{} ms", short(secs * 1e3)) } else { format!("{} s", short(secs)) }
}

/// Returns the answer about a variant as sentences, the verdict in capitals first.
pub fn sentences(line: &RehearsalLine) -> Vec<String> {
    let Some(verdict) = &line.verdict else {
        return vec![line.error.clone().unwrap_or_else(|| "The rehearsal has not ended.".to_owned())];
    };
    let failed: u64 = line.failed.iter().map(|errors| errors.during + errors.after).sum();
    let failed = if failed == 0 { "none failed".to_owned() } else { format!("{} failed", count(failed)) };
    let mut sentences = vec![format!(
        "{} ({} of {} transactions waited over {}; {failed}).",
        in_capitals(verdict),
        count(line.waited.unwrap_or_default()),
        count(line.transactions.unwrap_or_default()),
        time(line.wait_limit),
    )];
    sentences.push(change_sentence(line));
    if let Some(changed) = line.plans.first() {
        let others = match line.plans.len() {
            1 => String::new(),
            all => format!(" and of {} others", all - 1),
        };
        sentences.push(format!("The plan of {}{others} changed.", cut(&changed.statement)));
    }
    sentences.extend(line.error.iter().cloned());
    sentences.extend(line.better.iter().map(|better| format!("Better: {better}.")));
    sentences
}

/// Returns a sentence about the change's locks and its time.
fn change_sentence(line: &RehearsalLine) -> String {
    let mut parts =
        vec![format!("{} took {}", cut(&line.statements), time(line.change_secs.unwrap_or_default()))];
    if line.lock_wait_secs.is_some_and(|secs| secs > 0.0) {
        let blocker = line.blocked_by.first().map(behind).unwrap_or_default();
        parts.push(format!("waited {} for a lock{blocker}", time(line.lock_wait_secs.unwrap_or_default())));
    }
    if let (Some(mode), Some(locked)) = (&line.lock_mode, &line.locked) {
        parts.push(format!("held {mode} on {locked} for {}", time(line.held_secs.unwrap_or_default())));
    }
    if let Some(queued) = line.most_queued.filter(|queued| *queued > 0) {
        parts.push(format!(
            "{} {} queued",
            count(queued.into()),
            if queued == 1 { "client" } else { "clients" }
        ));
    }
    if let Some(wal) = line.wal_bytes.filter(|wal| *wal > 0) {
        parts.push(format!("wrote {} of WAL", bytes(Some(wal as f64))));
    }
    format!("{}.", parts.join("; "))
}

/// Names the session that the change waited behind.
fn behind(session: &BlockingSession) -> String {
    let statement = session.statement.as_ref().map(|statement| format!("\"{}\"", cut(statement)));
    let age = session.age_secs.map(|secs| format!("{} old", time(secs)));
    let details: Vec<String> = statement.into_iter().chain(age).collect();
    if details.is_empty() {
        format!(" behind process {}", session.pid)
    } else {
        format!(" behind process {} ({})", session.pid, details.join(", "))
    }
}
