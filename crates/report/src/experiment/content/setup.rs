//! How a sweep was asked for.

use bench_base::number::{bytes, duration, finite, fixed, percent, to_the_second, tps};
use bench_results::experiment::{ExperimentDocument, Sweep, SweepChange, Variant};
use bench_stats::two_stage::WITHIN;

use super::headline::length;
use super::variants::label;
use crate::content::{Section, Table, given, more_in_json, or_missing, pairs};
use crate::sanitize::{one_line, shortened};

/// How much of a variant's name is shown.
const NAME: usize = 500;

/// What each variant changes; nothing where there are no variants.
pub fn variants(document: &ExperimentDocument) -> Section {
    let mut section = Section::of_facts("variants", "Variants");
    for variant in document.sweep.variants.iter().filter(|variant| !variant.name.is_empty()) {
        let changes = changes(variant);
        // What the duels of a screen compare is in its table of effects.
        if document.screen.is_empty() || changes != NOTHING {
            section = section.fact(&name(variant), Some(changes));
        }
    }
    section
}

/// A variant's name, longer than elsewhere.
fn name(variant: &Variant) -> String {
    shortened(&given(&one_line(&variant.name)).unwrap_or_else(|| label("")), NAME)
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
    let made = |change: &SweepChange| given(&shortened(&one_line(&change.made.join(", ")), NAME));
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
    let rungs: Vec<_> = sweep.clients.iter().map(u32::to_string).collect();
    Section::of_facts("run", "Conditions")
        .fact("workload", given(&sweep.workload))
        .fact("clients", given(&rungs.join(", ")))
        .fact("rounds", Some(sweep.rounds.to_string()))
        .fact(
            "sure within",
            sweep.sure_within.map(|share| format!("±{:.1} %, {}", share * 100.0, as_wanted(share))),
        )
        .fact("trials of a rate", sweep.search.as_ref().map(|search| format!("at most {}", search.trials)))
        .fact("margin", sweep.search.as_ref().map(|search| percent(Some(search.margin))))
        .fact("failed at most", sweep.search.as_ref().map(|search| percent(Some(search.max_failed))))
        .fact("measured", Some(length(sweep)))
        .fact("warm-up", warmup(sweep.warmup))
        .fact("rate", finite(sweep.rate).map(|rate| format!("{} tps", tps(Some(rate)))))
        .fact("before each run", given(&sweep.before.join(", ")))
        .fact("seed", Some(sweep.seed.to_string()))
        .fact("query mode", given(&sweep.query_mode))
        .fact("run", pairs(&sweep.run))
        .fact("variables", pairs(&sweep.variables))
        .fact("settings", pairs(&sweep.settings))
        .fact("tags", pairs(&sweep.tags))
        .fact("role", given(&sweep.role))
        .fact("status", given(&sweep.status))
        .fact("started", sweep.started_at.as_deref().map(to_the_second))
        .fact("finished", sweep.finished_at.as_deref().map(to_the_second))
        .fact("server version", given(&sweep.server_version))
        .fact("extension version", given(&sweep.extension_version))
}
