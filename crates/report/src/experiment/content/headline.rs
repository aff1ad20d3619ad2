//! What a sweep was and how far it came.

use bench_base::number::{duration, to_the_second};
use bench_base::sentence::counted;
use bench_results::experiment::{ExperimentDocument, Sweep};

use crate::content;
use crate::content::{given, unreplayed};
use crate::experiment::results::{rungs, variants};
use crate::sanitize::shortened;

/// How much is shown of what kept a sweep from completing, so that there is room for how to go on.
const OUTCOME: usize = 500;

/// As `Sweep 7`.
pub fn subject(sweep: &Sweep) -> String {
    format!("Sweep {}", sweep.sweep_id.unwrap_or_default())
}

/// How many runs of what length it is.
fn extent(document: &ExperimentDocument) -> String {
    let sweep = &document.sweep;
    if let Some(search) = &sweep.search {
        let clients = counted(sweep.clients.first().map_or(0, |clients| u64::from(*clients)), "client");
        let rounds = if search.rounds > 1 {
            format!("{}, ", counted(search.rounds as u64, "round"))
        } else {
            String::new()
        };
        return format!("search for a capacity, {clients}, {rounds}trials of {}", length(sweep));
    }
    let mut factors = vec![counted(rungs(document).len() as u64, "rung")];
    if !sweep.variants.iter().all(|variant| variant.name.is_empty()) {
        factors.push(counted(variants(document).len() as u64, "variant"));
    }
    factors.push(counted(sweep.rounds as u64, "round"));
    let each = if sweep.secs.is_some() { " each" } else { "" };
    format!("{}, {}{each}", factors.join(" × "), length(sweep))
}

/// How long each of the runs is.
pub(super) fn length(sweep: &Sweep) -> String {
    match (sweep.secs, sweep.run.get("transactions")) {
        (None, Some(transactions)) => format!("{transactions} transactions per client"),
        (secs, _) => duration(secs.unwrap_or(f64::NAN)),
    }
}

/// How many of the runs completed.
fn completed(document: &ExperimentDocument) -> String {
    let completed = document.runs.iter().filter(|run| run.is_completed()).count();
    format!("{completed} of {} completed", counted(document.runs.len() as u64, "run"))
}

/// When it was.
fn time(sweep: &Sweep) -> Option<String> {
    let shown = |time: &Option<String>| time.as_deref().map(to_the_second);
    match (shown(&sweep.started_at), shown(&sweep.finished_at)) {
        (Some(started), Some(finished)) => Some(format!("{started} to {finished}")),
        (Some(started), None) => Some(format!("since {started}")),
        (None, _) => None,
    }
}

/// The server.
fn server(sweep: &Sweep) -> Option<String> {
    given(&sweep.server_version).map(|version| format!("PostgreSQL {version}"))
}

/// How the sweep ended, where that is not as it should, and how to go on.
pub fn outcome(sweep: &Sweep) -> Option<String> {
    let outcome = shortened(&content::outcome(&sweep.status, sweep.error.as_ref())?, OUTCOME);
    let is_over = !matches!(sweep.status.as_str(), "" | "starting" | "running");
    let advice = format!(". SELECT bench.resume_sweep({}) continues it.", sweep.sweep_id.unwrap_or_default());
    let outcome = if is_over { outcome.trim_end_matches('.').to_owned() + &advice } else { outcome };
    Some(outcome)
}

/// The sweep in one line, without its workload.
pub fn subtitle(document: &ExperimentDocument) -> String {
    let sweep = &document.sweep;
    let left_out = document.unreplayed.as_ref().map(unreplayed);
    let parts = [left_out, Some(extent(document)), Some(completed(document)), time(sweep), server(sweep)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The lines that the text begins with.
pub fn opening_lines(document: &ExperimentDocument) -> Vec<String> {
    let sweep = &document.sweep;
    let when_and_where: Vec<_> = [time(sweep), server(sweep)].into_iter().flatten().collect();
    let status = outcome(sweep).or_else(|| given(&sweep.status));
    let lines = [
        document.unreplayed.as_ref().map(unreplayed),
        Some(format!(
            "sweep {}: {}, {}",
            sweep.sweep_id.unwrap_or_default(),
            sweep.workload,
            extent(document)
        )),
        (!when_and_where.is_empty()).then(|| when_and_where.join(", ")),
        Some(completed(document)),
        status.map(|status| format!("status: {status}")),
    ];
    lines.into_iter().flatten().collect()
}
