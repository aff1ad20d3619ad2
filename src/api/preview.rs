//! bench.preview.

use std::sync::atomic::AtomicU64;

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::{RowSource, Stride, unpack};
use bench_model::spec::ScriptSpec;
use bench_script as script;
use bench_script::{PreviewLine, Prng, Symbols, Variables};
use pgrx::prelude::*;
use serde_json::json;

use super::required;
use crate::error::{OrRaise, raise};
use crate::launch::checks::check_length;
use crate::load::fixture::local_shard_keys;
use crate::run::client::workload::{shard_values, values_of_one};
use crate::run::feeders::{RunFeeders, read_as, schema_of};
use crate::run::prepare::sessions::role_of;
use crate::run::prepare::workload::find;
use crate::server::jsonb::Jsonb;
use crate::server::roles;
use crate::server::rows::{Rows, rows};
use crate::store::{self, Workload};

/// More than anybody reads.
const MAX_TRANSACTIONS: i32 = 100_000;

/// All lines are kept until the first is returned: their bytes together.
const MAX_BYTES: usize = 64 << 20;

/// Shows what a client would do with a script. See the COMMENT ON.
#[pg_extern(sql = false)]
fn preview(
    script: Option<String>,
    transactions: Option<i32>,
    client: Option<i32>,
    seed: Option<i64>,
    variables: Option<Jsonb>,
    workload: Option<String>,
) -> Rows {
    let lines = lines(script, transactions, client, seed, variables, workload).or_raise();
    rows(lines.into_iter().map(|line| {
        json!({
            "transaction": line.transaction,
            "command": line.command,
            "line": line.line,
            "output": line.output,
        })
    }))
}

fn lines(
    script: Option<String>,
    transactions: Option<i32>,
    client: Option<i32>,
    seed: Option<i64>,
    variables: Option<Jsonb>,
    workload: Option<String>,
) -> Result<Vec<PreviewLine>, UserError> {
    crate::launch::checks::check_encoding()?;
    let workload = workload.map(|name| find(&name)).transpose()?;
    let script = script.or_else(|| workload.as_ref().map(|workload| workload.script.clone()));
    let script = required("script", script)?;
    check_length([script.as_str()])?;
    let transactions = between("transactions", required("transactions", transactions)?, 1, MAX_TRANSACTIONS)?;
    let client = between("client", required("client", client)?, 0, 100_000)?;
    let seed = required("seed", seed)?;
    let given = bench_model::spec::variables(required("variables", variables)?.0)?;
    let mut symbols = Symbols::new();
    let script = script::parse("preview", &script, &mut symbols)?;
    // As with fixture shards where it is a local table.
    let own = shard_values(&local_shard_keys(), 0);
    let (seeds, values) = values_of_one(&given, seed, client + 1, client, own);
    let mut variables = Variables::new(symbols.len());
    for (name, value) in values {
        variables.set(symbols.intern(&name), value);
    }
    let fed = workload.map_or_else(|| Ok(RunFeeders::default()), |workload| read(workload, seed))?;
    let taken: Vec<AtomicU64> = (0..fed.feeders).map(|_| AtomicU64::new(0)).collect();
    let id_of = |name: &str| symbols.lookup(name).filter(|_| !given.contains_key(name));
    let rows = unpack(&fed.bytes).unwrap_or_default().into_iter();
    let feeds: Vec<RowSource> =
        rows.zip(&taken).map(|(rows, taken)| RowSource::new(rows, taken, Stride::WHOLE, id_of)).collect();
    feeds.iter().flat_map(RowSource::variables).for_each(|variable| variables.feed(variable));
    let mut begin = |variables: &mut Variables, random: &mut Prng| {
        feeds.iter().all(|feed| feed.draw(random).map(|row| feed.set(row, variables)).is_some())
    };
    let mut lines = Vec::new();
    let mut bytes = 0;
    let mut keep = |line: PreviewLine| {
        bytes += size_of::<PreviewLine>() + line.output.len();
        if bytes > MAX_BYTES {
            let message = format!("a preview must not be longer than {MAX_BYTES} bytes");
            let error = UserError::new(sqlstate::PROGRAM_LIMIT_EXCEEDED, message);
            raise(error.hint("Ask for fewer transactions."));
        }
        lines.push(line);
    };
    let mut pulse = || {
        pgrx::check_for_interrupts!();
    };
    script::preview(&script, 0, variables, seeds.functions, transactions, &mut begin, &mut keep, &mut pulse)?;
    Ok(lines)
}

/// The rows of a workload's feeders, as a run reads them.
fn read(workload: Workload, seed: i64) -> Result<RunFeeders, UserError> {
    let feeders = store::feeders(&workload.name)?;
    if feeders.is_empty() && !workload.private {
        return Ok(RunFeeders::default());
    }
    // Whoever has no session of it may not see a private one either.
    let role = role_of(&roles::current(), &workload)?;
    let schema = schema_of(&workload, &role)?;
    let script = ScriptSpec {
        feeders,
        name: workload.name,
        source: workload.script,
        weight: 1,
        captured: workload.captured,
        ..ScriptSpec::default()
    };
    read_as(&role, script, seed, schema.into_iter().collect())
}

fn between(argument: &str, value: i32, least: i32, most: i32) -> Result<u32, UserError> {
    if (least..=most).contains(&value) {
        return Ok(value.unsigned_abs());
    }
    let message = format!("{argument} must be between {least} and {most}, not {value}");
    Err(UserError::invalid(message))
}
