//! How a sweep was asked for.

use bench_base::number::{bytes, count, duration, finite, fixed, percent, to_the_second, tps};
use bench_results::sweep::{Sweep, SweepChange, SweepDocument, VariantDescription};
use bench_stats::two_stage::WITHIN;

use super::headline::length;
use super::variants::label;
use crate::content::{Section, Table, given, or_missing, pairs};
use crate::sanitize::{one_line, shortened};

/// How much of a variant's name is shown.
const NAME: usize = 500;

/// What each variant changes; nothing where there are no variants.
pub fn variants(document: &SweepDocument) -> Section {
    let named = document.sweep.variants.iter().filter(|variant| !variant.name.is_empty());
    let facts = named.map(|variant| (name(variant), Some(changes(variant))));
    // What the duels of a screen compare is in its table of effects.
    let facts: Vec<_> = facts
        .filter(|(_, changes)| document.screen.is_empty() || changes.as_deref() != Some(NOTHING))
        .collect();
    let facts = facts.iter().map(|(name, changes)| (name.as_str(), changes.clone())).collect();
    Section::of_facts("variants", "Variants", facts)
}

/// A variant's name, longer than elsewhere.
fn name(variant: &VariantDescription) -> String {
    shortened(&given(&one_line(&variant.name)).unwrap_or_else(|| label("")), NAME)
}

/// What a variant without any change changes.
const NOTHING: &str = "nothing";

/// What a variant changes, in one line.
fn changes(variant: &VariantDescription) -> String {
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
pub fn database_changes(document: &SweepDocument) -> Section {
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
    let more = document.changes.len().saturating_sub(CHANGES);
    let note =
        (more > 0).then(|| format!("The first {CHANGES}; {} more are in the JSON.", count(more as u64)));
    Section::of_table("changes", "Changes by SQL", table.without_idle(&["made", "size", "error"]))
        .with_note_if(note)
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
    let facts = vec![
        ("workload", given(&sweep.workload)),
        ("clients", given(&rungs.join(", "))),
        ("rounds", Some(sweep.rounds.to_string())),
        (
            "sure within",
            sweep.sure_within.map(|share| format!("±{:.1} %, {}", share * 100.0, as_wanted(share))),
        ),
        ("trials of a rate", sweep.search.as_ref().map(|search| format!("at most {}", search.trials))),
        ("margin", sweep.search.as_ref().map(|search| percent(Some(search.margin)))),
        ("failed at most", sweep.search.as_ref().map(|search| percent(Some(search.max_failed)))),
        ("measured", Some(length(sweep))),
        ("warm-up", warmup(sweep.warmup)),
        ("rate", finite(sweep.rate).map(|rate| format!("{} tps", tps(Some(rate))))),
        ("before each run", given(&sweep.before.join(", "))),
        ("seed", Some(sweep.seed.to_string())),
        ("query mode", given(&sweep.query_mode)),
        ("run", pairs(&sweep.run)),
        ("variables", pairs(&sweep.variables)),
        ("settings", pairs(&sweep.settings)),
        ("tags", pairs(&sweep.tags)),
        ("role", given(&sweep.role)),
        ("status", given(&sweep.status)),
        ("started", sweep.started_at.as_deref().map(to_the_second)),
        ("finished", sweep.finished_at.as_deref().map(to_the_second)),
        ("server version", given(&sweep.server_version)),
        ("extension version", given(&sweep.extension_version)),
    ];
    Section::of_facts("run", "Conditions", facts)
}
