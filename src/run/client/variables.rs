//! What a client's variables are before its first transaction.

use bench_model::shard_keys;
use bench_model::spec::{FixtureSpec, RunSpec, ScriptSpec};
use bench_script::{ClientSeeds, Value, client_seeds};
use serde_json::{Map, Value as Json};

/// Variables that every script has, beside those that its run is given.
pub const AUTOMATIC: [&str; 4] = ["client_id", "default_seed", "random_seed", SCALE];

/// pgbench's size of its own tables.
pub const SCALE: &str = "scale";

/// The number of rows of a fixture, in scripts of a workload that has one.
pub const ROWS: &str = "rows";

/// Where a client's random numbers come from, and what its variables are before its first
/// transaction; the run's own come last, and win.
pub fn initial_values(spec: &RunSpec, client: u32) -> (ClientSeeds, Vec<(String, Value)>) {
    let own = match &spec.scripts[..] {
        [script] => fixture_values(fixture_of(spec, script), client),
        _ => Vec::new(),
    };
    values_of_one(&spec.options.variables, spec.seed, spec.options.clients, client, own)
}

/// As [`initial_values`], where `own` are those of the script's fixture.
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

/// What variables mean to one script of a mix, by its own fixture.
pub fn own_values(spec: &RunSpec, script: &ScriptSpec, client: u32) -> Vec<(String, Value)> {
    if spec.scripts.len() == 1 {
        return Vec::new();
    }
    let mut values = fixture_values(fixture_of(spec, script), client);
    values.retain(|(name, _)| !spec.options.variables.contains_key(name));
    let of_arm = spec.options.duel.as_ref().zip(script.arm).map(|(duel, arm)| &duel.arms[arm].variables);
    values.extend(of_arm.into_iter().flatten().map(|(name, json)| (name.clone(), value_of(json))));
    values
}

fn fixture_of<'a>(spec: &'a RunSpec, script: &ScriptSpec) -> Option<&'a FixtureSpec> {
    script.fixture.and_then(|index| spec.fixtures.get(index))
}

/// What a script's fixture means to it.
pub fn fixture_values(fixture: Option<&FixtureSpec>, client: u32) -> Vec<(String, Value)> {
    let rows = fixture.map(|fixture| (ROWS.to_owned(), Value::Integer(fixture.rows)));
    let scale = (SCALE.to_owned(), Value::Integer(fixture.map_or(1, |fixture| fixture.scale)));
    let keys = fixture.map_or_else(Vec::new, |fixture| shard_values(&fixture.shard_keys, client));
    rows.into_iter().chain([scale]).chain(keys).collect()
}

/// The keys of shards that a client has, out of one for each shard.
pub fn shard_values(keys: &[i64], client: u32) -> Vec<(String, Value)> {
    shard_keys::names().zip(shard_keys::of_client(keys, client).into_iter().map(Value::Integer)).collect()
}

/// A variable's value as it stands in the JSON of `variables`. A text is read as that of -D is.
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
