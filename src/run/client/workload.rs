//! The workload and the initial variables of a client, for both drivers.

use bench_base::error::SqlError;
use bench_model::client::{Client, ClientStart, ClientWorkload, Pauses, Program, Tolerance, Turns};
use bench_model::feeder::{self, RowSource};
use bench_model::schedule::Schedule;
use bench_model::shard_keys;
use bench_model::spec::{
    Extent, FixtureSpec, OnDisconnect, RunOptions, RunSpec, ScriptSpec, THINK, think_scale,
};
use bench_model::transaction_log::Sampling;
use bench_script::{ClientSeeds, Symbols, Value, VariableId, Variables, client_seeds, parse};
use bench_stats::duel::BATCHES;
use serde_json::{Map, Value as Json};

use super::statements::internal;
use crate::server::process::now_ns;
use crate::shm::{Header, Segment};

/// Parses the scripts of a run, with their feeders' rows if there is a segment.
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
        let sleep_scale = if script.captured { think_scale(pause_variables(spec, script))? } else { 1.0 };
        let script = parse(&script.name, &script.source, &mut symbols)?;
        let commands = script.commands.len();
        let feeds = Vec::new();
        programs.push(Program { script, feeds, weight, pauses, sleep_scale, first_command, tolerance });
        first_command += commands;
    }
    let rows = segment.map_or(Some(Vec::new()), |segment| feeder::unpack(segment.fed()));
    let rows = rows.ok_or_else(|| internal("the rows of the feeders are damaged"))?;
    for (number, (rows, segment)) in rows.into_iter().zip(segment.into_iter().cycle()).enumerate() {
        let script = rows.script;
        let Some(program) = programs.get_mut(script) else { continue };
        // Variables of the run override those of feeders; variables that no script reads are not set.
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

/// Returns the variables with [`THINK`], the scale of a captured script's pauses: its arm's if they have it, or the run's.
fn pause_variables<'a>(spec: &'a RunSpec, script: &ScriptSpec) -> &'a Map<String, Json> {
    let arm_variables =
        spec.options.duel.as_ref().zip(script.arm).map(|(duel, arm)| &duel.arms[arm].variables);
    arm_variables.filter(|variables| variables.contains_key(THINK)).unwrap_or(&spec.options.variables)
}

/// Returns the initial state of a client, before the gate opens.
pub fn beginning(spec: &RunSpec, client: u32, symbols: &mut Symbols) -> ClientStart {
    let (seeds, values) = initial_values(spec, client);
    let mut intern = |values: Vec<(String, Value)>| -> Vec<(VariableId, Value)> {
        values.into_iter().map(|(name, value)| (symbols.intern(&name), value)).collect()
    };
    let values = intern(values);
    let own = spec.scripts.iter().map(|script| intern(own_values(spec, script, client))).collect();
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
        log: (log_rate > 0.0).then(|| {
            let from_ns = (spec.logged_from_ms * 1e6) as u64;
            Sampling::new(client, seeds.sample, log_rate, from_ns)
        }),
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

/// Returns the longest stretch of one arm: half a batch, so that each batch of a duel has both arms.
fn longest_stretch_ns(extent: Extent) -> i64 {
    match extent {
        Extent::Secs(secs) => (secs * 1e9 / (2 * BATCHES) as f64) as i64,
        // A duel is measured by time.
        Extent::Transactions(_) => i64::MAX,
    }
}

/// Returns the schedule of arrivals of a run with a rate, whose warm-up begins at `start_ns`.
pub fn schedule(spec: &RunSpec, start_ns: i64) -> Option<Schedule> {
    let seed = spec.seed.cast_unsigned();
    if let Some(rates) = &spec.options.rates {
        let warmup_ns = (spec.options.warmup_secs.unwrap_or_default() * 1e9) as i64;
        return Some(Schedule::varying(seed, rates.clone(), start_ns, warmup_ns));
    }
    spec.options.rate.map(|rate| Schedule::new(seed, rate, start_ns))
}

/// Starts a client after the gate has opened and the time line is set.
pub fn start(spec: &RunSpec, workload: &ClientWorkload, beginning: ClientStart, header: &Header) -> Client {
    let timeline = header.timeline.load();
    let schedule = schedule(spec, timeline.warmup_start_ns);
    Client::new(workload, beginning, schedule, now_ns())
}

/// Variables that every script has, besides those of the run.
pub const AUTOMATIC: [&str; 4] = ["client_id", "default_seed", "random_seed", SCALE];

/// pgbench's size of its own tables.
pub const SCALE: &str = "scale";

/// The number of rows of a fixture, in scripts of a workload that has one.
pub const ROWS: &str = "rows";

/// Returns a client's random seeds, and its variables before the first transaction. Later ones in the list override earlier
/// ones; the run's own come last.
fn initial_values(spec: &RunSpec, client: u32) -> (ClientSeeds, Vec<(String, Value)>) {
    let own = match &spec.scripts[..] {
        [script] => fixture_values(fixture_of(spec, script), client),
        _ => Vec::new(),
    };
    values_of_one(&spec.options.variables, spec.seed, spec.options.clients, client, own)
}

/// As [`initial_values`]; `own` are the variables of the script's fixture, `given` those of the run.
pub fn values_of_one(
    given: &Map<String, Json>,
    seed: i64,
    clients: u32,
    client: u32,
    own: Vec<(String, Value)>,
) -> (ClientSeeds, Vec<(String, Value)>) {
    let seeds = client_seeds(seed.cast_unsigned(), clients, client, given.contains_key("default_seed"));
    let given = given.iter().map(|(name, json)| (name.clone(), value_of(json)));
    let values = automatic_values(client, seed, &seeds).into_iter().chain(own).chain(given).collect();
    (seeds, values)
}

/// The values of [`AUTOMATIC`]'s variables, in its order, for a script without a fixture.
fn automatic_values(client: u32, seed: i64, seeds: &ClientSeeds) -> Vec<(String, Value)> {
    let values = [i64::from(client), seeds.default_seed, seed, 1];
    AUTOMATIC.iter().zip(values).map(|(&name, value)| (name.to_owned(), Value::Integer(value))).collect()
}

/// Returns the variables of one script of a mix, from its fixture and its arm.
fn own_values(spec: &RunSpec, script: &ScriptSpec, client: u32) -> Vec<(String, Value)> {
    if spec.scripts.len() == 1 {
        return Vec::new();
    }
    let mut values = fixture_values(fixture_of(spec, script), client);
    values.retain(|(name, _)| !spec.options.variables.contains_key(name));
    let arm_variables =
        spec.options.duel.as_ref().zip(script.arm).map(|(duel, arm)| &duel.arms[arm].variables);
    values.extend(arm_variables.into_iter().flatten().map(|(name, json)| (name.clone(), value_of(json))));
    values
}

fn fixture_of<'a>(spec: &'a RunSpec, script: &ScriptSpec) -> Option<&'a FixtureSpec> {
    script.fixture.and_then(|index| spec.fixtures.get(index))
}

/// Returns the variables that a script gets from its fixture.
pub fn fixture_values(fixture: Option<&FixtureSpec>, client: u32) -> Vec<(String, Value)> {
    let rows = fixture.map(|fixture| (ROWS.to_owned(), Value::Integer(fixture.rows)));
    let scale = (SCALE.to_owned(), Value::Integer(fixture.map_or(1, |fixture| fixture.scale)));
    let keys = fixture.map_or_else(Vec::new, |fixture| shard_values(&fixture.shard_keys, client));
    rows.into_iter().chain([scale]).chain(keys).collect()
}

/// Returns a client's variables with keys of shards, chosen from `keys`, one for each shard.
pub fn shard_values(keys: &[i64], client: u32) -> Vec<(String, Value)> {
    shard_keys::names().zip(shard_keys::of_client(keys, client).into_iter().map(Value::Integer)).collect()
}

/// Converts a value in the JSON of `variables`. Texts are interpreted like those of pgbench's -D.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Null | Json::Array(_) | Json::Object(_) => Value::Null,
    }
}
