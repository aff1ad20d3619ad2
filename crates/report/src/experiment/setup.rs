//! What a sweep was and how far it came: its title and outcome, its variants and their names, and its conditions.

use bench_base::number::{bytes, duration, finite, fixed, percent, to_the_second, tps};
use bench_base::sentence::counted;
use bench_results::experiment::{ExperimentDocument, Sweep, SweepChange, Variant};
use bench_stats::variation::WITHIN;

use crate::experiment::results::{rungs, variants};
use crate::run::headline;
use crate::run::headline::unreplayed;
use crate::sanitize::{cut, one_line, shortened};
use crate::section::{Section, Table, given, more_in_json, or_missing, pairs};

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
        let clients = counted(sweep.setup.clients.first().map_or(0, |clients| u64::from(*clients)), "client");
        let rounds = if search.rounds > 1 {
            format!("{}, ", counted(search.rounds as u64, "round"))
        } else {
            String::new()
        };
        return format!("search for a capacity, {clients}, {rounds}trials of {}", length(sweep));
    }
    if !document.rehearsals.is_empty() {
        return "rehearsal of a change".to_owned();
    }
    let mut factors = vec![counted(rungs(document).len() as u64, "rung")];
    if !sweep.setup.variants.iter().all(|variant| variant.name.is_empty()) {
        factors.push(counted(variants(document).len() as u64, "variant"));
    }
    factors.push(counted(sweep.setup.rounds as u64, "round"));
    let each = if sweep.setup.secs.is_some() { " each" } else { "" };
    format!("{}, {}{each}", factors.join(" × "), length(sweep))
}

/// How long each of the runs is.
pub(crate) fn length(sweep: &Sweep) -> String {
    match (sweep.setup.secs, sweep.setup.run.get("transactions")) {
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
    let outcome = shortened(&headline::outcome(&sweep.status, sweep.error.as_ref())?, OUTCOME);
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
            sweep.setup.workload,
            extent(document)
        )),
        (!when_and_where.is_empty()).then(|| when_and_where.join(", ")),
        Some(completed(document)),
        status.map(|status| format!("status: {status}")),
    ];
    lines.into_iter().flatten().collect()
}

/// How much of a variant's name is shown.
const LONG_NAME: usize = 500;

/// What each variant changes; nothing where there are no variants.
pub fn variant_changes(document: &ExperimentDocument) -> Section {
    let mut section = Section::of_facts("variants", "Variants");
    for variant in document.sweep.setup.variants.iter().filter(|variant| !variant.name.is_empty()) {
        let changes = changes(variant);
        // What the duels of a screen compare is in its table of effects.
        if document.screen.is_empty() || changes != NOTHING {
            section = section.fact(&name(variant), Some(changes));
        }
    }
    section
}

/// How many variants are named at the top, and how much is shown of what each changes.
const NAMED: usize = 4;
const CHANGE: usize = 120;

/// The first variants with what they change; nothing where there are no variants.
pub fn compared(document: &ExperimentDocument) -> Vec<(String, String)> {
    let named = document.sweep.setup.variants.iter().filter(|variant| !variant.name.is_empty());
    let line = |variant: &Variant| (label(&variant.name), cut(&changes(variant), CHANGE));
    let mut lines: Vec<_> = named.clone().take(NAMED).map(line).collect();
    let more = named.count().saturating_sub(NAMED);
    if more > 0 {
        lines.push(("…".to_owned(), format!("{} more", counted(more as u64, "variant"))));
    }
    lines
}

/// A variant's name, longer than elsewhere.
fn name(variant: &Variant) -> String {
    shortened(&given(&one_line(&variant.name)).unwrap_or_else(|| label("")), LONG_NAME)
}

/// What a variant without any change changes.
const NOTHING: &str = "nothing";

/// What a variant changes, in one line.
fn changes(variant: &Variant) -> String {
    let parts = [
        ("run", &variant.run),
        ("settings", &variant.settings),
        ("variables", &variant.variables),
        ("load", &variant.load),
        ("server", &variant.system),
        ("restarted with", &variant.restart),
    ];
    let given = parts.iter().filter_map(|(name, map)| Some(format!("{name}: {}", pairs(map)?)));
    let applied = variant.sql.iter().map(|sql| format!("sql: {}", one_line(&sql.apply.join("; "))));
    let changes = given.chain(applied).collect::<Vec<_>>().join("; ");
    if changes.is_empty() { NOTHING.to_owned() } else { changes }
}

/// How many changes are listed.
const CHANGES: usize = 60;

/// What variants' statements did to the database, and how long that took.
pub fn database_changes(document: &ExperimentDocument) -> Section {
    let reverted =
        |secs: Option<f64>| secs.map_or_else(|| "not reverted".to_owned(), |secs| fixed(Some(secs), 3));
    let made = |change: &SweepChange| given(&shortened(&one_line(&change.made.join(", ")), LONG_NAME));
    let table = Table::of(document.changes.iter().take(CHANGES))
        .number("round", |change| change.round)
        .text("variant", |change| label(&change.variant))
        .number("apply s", |change| fixed(change.apply_secs, 3))
        .number("revert s", |change| reverted(change.revert_secs))
        .text("made", |change| or_missing(&made(change)).to_owned())
        .number("size", |change| bytes(change.made_bytes.map(|bytes| bytes as f64)))
        .text("error", |change| one_line(or_missing(&change.error)))
        .table();
    Section::of_table("changes", "Changes by SQL", table.without_idle(&["made", "size", "error"]))
        .with_note_if(more_in_json(CHANGES, document.changes.len()))
}

fn warmup(secs: Option<f64>) -> Option<String> {
    match secs {
        None => Some("until throughput is steady".to_owned()),
        Some(secs) => (secs != 0.0).then(|| duration(secs)),
    }
}

/// Whether means are as sure as `rounds => NULL` asks for.
fn as_wanted(share: f64) -> String {
    if share <= WITHIN { "as asked for".to_owned() } else { format!("not ±{:.0} %", WITHIN * 100.0) }
}

/// What was the same for all runs.
pub fn conditions(sweep: &Sweep) -> Section {
    let rungs: Vec<_> = sweep.setup.clients.iter().map(u32::to_string).collect();
    Section::of_facts("run", "Conditions")
        .fact("workload", given(&sweep.setup.workload))
        .fact("clients", given(&rungs.join(", ")))
        .fact("rounds", Some(sweep.setup.rounds.to_string()))
        .fact(
            "sure within",
            sweep.sure_within.map(|share| format!("±{:.1} %, {}", share * 100.0, as_wanted(share))),
        )
        .fact("trials of a rate", sweep.search.as_ref().map(|search| format!("at most {}", search.trials)))
        .fact("margin", sweep.search.as_ref().map(|search| percent(Some(search.margin))))
        .fact("failed at most", sweep.search.as_ref().map(|search| percent(Some(search.max_failed))))
        .fact("measured", Some(length(sweep)))
        .fact("warm-up", warmup(sweep.setup.warmup))
        .fact("rate", finite(sweep.setup.rate).map(|rate| format!("{} tps", tps(Some(rate)))))
        .fact("before each run", given(&sweep.before.join(", ")))
        .fact("seed", Some(sweep.setup.seed.to_string()))
        .fact("query mode", given(&sweep.setup.query_mode))
        .fact("run", pairs(&sweep.setup.run))
        .fact("variables", pairs(&sweep.setup.variables))
        .fact("settings", pairs(&sweep.setup.settings))
        .fact("tags", pairs(&sweep.setup.tags))
        .fact("role", given(&sweep.role))
        .fact("status", given(&sweep.status))
        .fact("started", sweep.started_at.as_deref().map(to_the_second))
        .fact("finished", sweep.finished_at.as_deref().map(to_the_second))
        .fact("server version", given(&sweep.server_version))
        .fact("extension version", given(&sweep.extension_version))
}

/// How many columns a variant's name may take where it stands for the variant.
const NAME: usize = 60;

/// A variant's name where it stands for the variant.
pub fn label(variant: &str) -> String {
    match cut(&one_line(variant), NAME) {
        name if name.is_empty() => "unnamed".to_owned(),
        name => name,
    }
}

/// Takes the column of variants away where there are none.
pub fn without_variants(table: Table, document: &ExperimentDocument) -> Table {
    if variants(document) == [""] { table.without("variant") } else { table }
}
