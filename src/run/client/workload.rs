//! What a client of either driver executes, and what it begins with.

use bench_base::error::SqlError;
use bench_model::client::{Client, ClientStart, ClientWorkload, Pauses, Program, Tolerance, Turns};
use bench_model::feeder;
use bench_model::feeder::RowSource;
use bench_model::schedule::Schedule;
use bench_model::spec::{Extent, OnDisconnect, RunOptions, RunSpec};
use bench_model::transaction_log::Sampling;
use bench_script::{Symbols, Value, VariableId, Variables, parse};
use bench_stats::duel::BATCHES;

use super::internal_error::internal;
use super::variables;
use crate::server::process::now_ns;
use crate::shm::{Header, Segment};

/// The scripts of a run, with the rows of their feeders, where it has a segment.
pub fn workload<'a>(spec: &RunSpec, segment: Option<&'a Segment>) -> Result<ClientWorkload<'a>, SqlError> {
    let mut symbols = Symbols::new();
    let mut first_command = 0;
    let mut programs = Vec::with_capacity(spec.scripts.len());
    for script in &spec.scripts {
        let weight = script.weight;
        let tolerance = match (spec.options.continue_on_error, script.captured) {
            (true, _) => Tolerance::Statements,
            (false, true) => Tolerance::Data,
            (false, false) => Tolerance::None,
        };
        let pauses = script.terminal.map(|times| Pauses::of_secs(times.keying_secs, times.think_secs));
        let script = parse(&script.name, &script.source, &mut symbols)?;
        let commands = script.commands.len();
        programs.push(Program { script, feeds: Vec::new(), weight, pauses, first_command, tolerance });
        first_command += commands;
    }
    let rows = segment.map_or(Some(Vec::new()), |segment| feeder::unpack(segment.fed()));
    let rows = rows.ok_or_else(|| internal("the rows of the feeders are damaged"))?;
    for (number, (rows, segment)) in rows.into_iter().zip(segment.into_iter().cycle()).enumerate() {
        let script = rows.script;
        let Some(program) = programs.get_mut(script) else { continue };
        // What the run itself is given wins, and what no script reads need not be set.
        let find = |name: &str| symbols.lookup(name).filter(|_| !spec.options.variables.contains_key(name));
        let source = RowSource::new(rows, segment.taken(number as u32), spec.stride(), find);
        program.feeds.push(source.clone());
        let is_shared = spec.options.duel.as_ref().is_some_and(|duel| !duel.arms[1].has_own_script());
        if let Some(other_arm) = programs.get_mut(script + 1).filter(|_| is_shared) {
            other_arm.feeds.push(source);
        }
    }
    let max_tries = match spec.options.max_tries {
        0 => u64::MAX,
        tries => u64::from(tries),
    };
    let is_deck = spec.scripts.iter().all(|script| script.is_dealt);
    Ok(ClientWorkload { programs, is_deck, symbols, max_tries })
}

/// What a client of a run begins with, before the gate has opened.
pub fn beginning(spec: &RunSpec, client: u32, symbols: &mut Symbols) -> ClientStart {
    let (seeds, values) = variables::initial_values(spec, client);
    let mut intern = |values: Vec<(String, Value)>| -> Vec<(VariableId, Value)> {
        values.into_iter().map(|(name, value)| (symbols.intern(&name), value)).collect()
    };
    let values = intern(values);
    let own = spec.scripts.iter().map(|script| intern(variables::own_values(spec, script, client))).collect();
    let mut variables = Variables::new(symbols.len());
    for (id, value) in values {
        variables.set(id, value);
    }
    let RunOptions { extent, latency_limit_ms, log_rate, .. } = spec.options;
    ClientStart {
        seeds,
        variables,
        own,
        transactions: match extent {
            Extent::Transactions(count) => count,
            Extent::Secs(_) => u64::MAX,
        },
        skips: latency_limit_ms.is_some(),
        log: (log_rate > 0.0).then(|| Sampling::new(client, seeds.sample, log_rate)),
        reconnects: spec.options.reconnect,
        survives: spec.options.on_disconnect == OnDisconnect::Reconnect,
        turns: spec.options.duel.as_ref().map(|duel| Turns {
            seed: spec.seed.cast_unsigned(),
            has_several_clients: spec.options.clients > 1,
            longest_ns: longest_stretch_ns(extent),
            first: (client % 2) as usize,
            only: duel.arm_of(client),
        }),
    }
}

/// No batch of a duel's time is to be without one of the arms.
fn longest_stretch_ns(extent: Extent) -> i64 {
    match extent {
        Extent::Secs(secs) => (secs * 1e9 / (2 * BATCHES) as f64) as i64,
        // A duel is measured by time.
        Extent::Transactions(_) => i64::MAX,
    }
}

/// The arrivals of a run with a rate, whose warm-up begins at `start_ns`.
pub fn schedule(spec: &RunSpec, start_ns: i64) -> Option<Schedule> {
    let seed = spec.seed.cast_unsigned();
    if let Some(rates) = &spec.options.rates {
        let warmup_ns = (spec.options.warmup_secs.unwrap_or_default() * 1e9) as i64;
        return Some(Schedule::varying(seed, rates.clone(), start_ns, warmup_ns));
    }
    spec.options.rate.map(|rate| Schedule::new(seed, rate, start_ns))
}

/// A client of a run, when the gate has opened and the time line is in place.
pub fn start(spec: &RunSpec, workload: &ClientWorkload, beginning: ClientStart, header: &Header) -> Client {
    let timeline = header.timeline.load();
    let schedule = schedule(spec, timeline.warmup_start_ns);
    Client::new(workload, beginning, schedule, now_ns())
}
