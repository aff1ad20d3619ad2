//! What the clients counted of each command, for bench.statements.

use std::collections::{BTreeMap, BTreeSet};

use bench_capture::fidelity::Counts;
use bench_capture::log::is_utility;
use bench_model::spec::RunSpec;
use bench_results::CommandSummary;
use bench_script::{Action, Symbols, parse};
use bench_stats::Histogram;

use crate::observe::counters::CountsById;
use crate::shm::{CommandCounters, CommandTimes, Segment};
use crate::store::recorder::ms;

/// A line for each command of each script, in their order.
pub fn lines(segment: &Segment, spec: &RunSpec) -> Vec<CommandSummary> {
    let mut symbols = Symbols::new();
    let mut lines = Vec::new();
    for (index, script) in spec.scripts.iter().enumerate() {
        // It was parsed before the run began.
        let Ok(parsed) = parse(&script.name, &script.source, &mut symbols) else { continue };
        for (command, at) in parsed.commands.into_iter().zip(1..) {
            let is_sql = matches!(command.action, Action::Sql(_));
            let place = lines.len();
            let of_clients: Vec<&CommandTimes> =
                (0..segment.shape().slots).filter_map(|client| segment.times(client).get(place)).collect();
            let counters: Vec<&CommandCounters> =
                (0..segment.shape().slots).filter_map(|client| segment.commands(client).get(place)).collect();
            let counted = |of: fn(&CommandCounters) -> u64| counters.iter().map(|c| of(c)).sum::<u64>();
            let (generic, custom) = (counted(|c| c.generic_plans.get()), counted(|c| c.custom_plans.get()));
            let changes = counted(|c| c.plan_changes.get());
            let writes = counted(|c| c.writes.get());
            let sum = |of: fn(&CommandTimes) -> u64| of_clients.iter().map(|times| of(times)).sum::<u64>();
            let count = sum(|times| times.count.get());
            let mut histogram = Histogram::new();
            of_clients.iter().for_each(|times| times.add_to(&mut histogram));
            lines.push(CommandSummary {
                node: 0,
                script: index as u32,
                command: at,
                line: command.line,
                statement: command.source,
                count,
                failed: sum(|times| times.failed.get()),
                retried: sum(|times| times.retried.get()),
                latency_avg_ms: (count > 0)
                    .then(|| ms(sum(CommandTimes::latency_sum_ns) as f64 / count as f64)),
                latency_p95_ms: histogram.percentile_ns(0.95).map(ms),
                plan: plan_text(segment, place, (generic, custom), changes)
                    .or_else(|| script.plans.get(&at).cloned()),
                generic_plans: generic,
                custom_plans: custom,
                plan_changes: changes,
                workers_planned: counted(|c| c.workers_planned.get()),
                workers_launched: counted(|c| c.workers_launched.get()),
                rows: is_sql.then(|| counted(|c| c.rows.get())),
                writes: (writes > 0).then_some(writes),
                empty_writes: (writes > 0).then(|| counted(|c| c.empty_writes.get())),
            });
        }
    }
    lines
}

/// What pg_stat_statements has counted of each script's statements between two readings; nothing of a script that it does not
/// know. Of a statement that several scripts have, each gets the part that it executed. BEGIN and COMMIT are left out: they
/// are no statements of a captured transaction either. The second of the readings is that of arm b's target, in a duel of two.
pub fn calls(
    segment: &Segment,
    spec: &RunSpec,
    before: [&Option<CountsById>; 2],
    after: [&Option<CountsById>; 2],
) -> Vec<(i32, Counts)> {
    let mut symbols = Symbols::new();
    let mut place = 0;
    // By target and identifier: how often each script executed it.
    let mut executed: BTreeMap<(usize, i64), BTreeMap<i32, f64>> = BTreeMap::new();
    for (index, script) in (0..).zip(&spec.scripts) {
        let Ok(parsed) = parse(&script.name, &script.source, &mut symbols) else { continue };
        let target = usize::from(spec.other_target.is_some() && script.arm == Some(1));
        for (command, number) in parsed.commands.into_iter().zip(1..) {
            let at = place;
            place += 1;
            let counters =
                (0..segment.shape().slots).filter_map(move |client| segment.commands(client).get(at));
            if is_utility(&command.source) {
                continue;
            }
            // What connections execute is known by what their target says of it.
            let (mut ids, mut executions) = (BTreeSet::from_iter(script.query_ids.get(&number).copied()), 0);
            for of_client in counters {
                ids.extend(of_client.query_ids());
                executions += of_client.executions.get();
            }
            for id in ids {
                *executed.entry((target, id)).or_default().entry(index).or_default() += executions as f64;
            }
        }
    }
    let mut found: BTreeMap<i32, Counts> = BTreeMap::new();
    for ((target, id), scripts) in executed {
        let (Some(before), Some(after)) = (before[target], after[target]) else { continue };
        let Some(counts) = after.get(&id) else { continue };
        let counts = counts.since(before.get(&id).unwrap_or(&Counts::default()));
        let all: f64 = scripts.values().sum();
        for (script, executions) in scripts {
            let share = if all > 0.0 { executions / all } else { 0.0 };
            found.entry(script).or_default().add(&counts.part(share));
        }
    }
    found.retain(|_, counts| counts.calls > 0);
    found.into_iter().collect()
}

/// The forms of a command's plan, each under a line of its own, in the order in which they were first seen; `None`
/// where no plan was executed.
fn plan_text(segment: &Segment, place: usize, (generic, custom): (u64, u64), changes: u64) -> Option<String> {
    let kind = match (generic, custom) {
        (0, 0) => return None,
        (_, 0) => "generic plan".to_owned(),
        (0, _) => "custom plan".to_owned(),
        _ => format!("custom plan in {custom} executions, then generic in {generic}"),
    };
    let forms = segment.plans().get(place)?.described();
    let measure_start_ns = segment.header().timeline.load().measure_start_ns;
    let changed = forms.len() > 1;
    // Or it goes to and fro with the values.
    let for_good = changes <= u64::from(segment.shape().slots) * forms.len().saturating_sub(1) as u64;
    let mut text = kind;
    for (index, (first_ns, form)) in forms.into_iter().enumerate() {
        let elapsed = (first_ns - measure_start_ns) as f64 / 1e9;
        text += &match (changed, index) {
            (false, _) => ":\n".to_owned(),
            (true, 0) => ":\nat first:\n".to_owned(),
            (true, _) if for_good && elapsed < 0.0 => "\nthen, before measuring began:\n".to_owned(),
            (true, _) if for_good => format!("\nfrom {elapsed:.3} s on:\n"),
            (true, _) => format!("\nby turns, first at {elapsed:.3} s:\n"),
        };
        text += form.trim_end();
    }
    Some(text)
}
