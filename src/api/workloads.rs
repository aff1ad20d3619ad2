//! bench.create_workload, bench.drop_workload, their feeders and bench.preview.

use std::sync::atomic::AtomicU64;

use bench_base::error::{UserError, sqlstate};
use bench_model::feeder::{Feeder, RowSource, Stride, unpack};
use bench_model::spec::{ScriptSpec, check_text, is_name};
use bench_script as script;
use bench_script::{PreviewLine, Prng, Symbols, Variables, parse};
use pgrx::prelude::*;
use serde_json::json;

use super::required;
use crate::capture::spec::check_of_workload;
use crate::error::{OrRaise, notice, raise};
use crate::launch::checks::{check_encoding, check_length};
use crate::load::fixture::{self, local_shard_keys};
use crate::run::client::workload::{shard_values, values_of_one};
use crate::run::feeders::{self, RunFeeders, read_as, schema_of};
use crate::run::prepare::sessions::role_of;
use crate::run::prepare::workload::find;
use crate::server::jsonb::Jsonb;
use crate::server::roles;
use crate::server::rows::{Rows, rows};
use crate::server::spi::quote_identifier;
use crate::store::{self, Workload};

/// Stores a script under a name.
#[pg_extern(sql = false)]
fn create_workload(
    name: Option<String>,
    script: Option<String>,
    fixture: Option<String>,
    description: Option<String>,
) {
    create(name, script, fixture, description).or_raise();
}

fn create(
    name: Option<String>,
    script: Option<String>,
    fixture: Option<String>,
    description: Option<String>,
) -> Result<(), UserError> {
    crate::launch::checks::check_encoding()?;
    crate::launch::checks::check_writable("create a workload")?;
    let name = required("name", name)?;
    let script = required("script", script)?;
    if !is_name(&name, 63) {
        return Err(UserError::invalid(format!("invalid workload name: \"{name}\""),
        )
        .hint("A name has 1 to 63 bytes, without @ and commas, and does not begin with deck: they are part of the syntax of mixes."));
    }
    check_length([script.as_str()])?;
    check_text("description", description.as_deref().unwrap_or_default())?;
    parse(&name, &script, &mut Symbols::new())?;
    if let Some(fixture) = &fixture {
        fixture::known(fixture)?;
    }
    check_of_workload(&name)?;
    if let Some(old) = store::workload(&name)? {
        check_owner(&old)?;
    }
    // Whoever wrote it last answers for it.
    let writer = roles::current_role_oid();
    let dropped = store::put_workload(&name, writer, fixture.as_deref(), &script, description.as_deref())?;
    if dropped > 0 {
        let message = format!("the feeders that another role had given workload \"{name}\" are dropped");
        notice(
            message,
            "Their queries would run with your privileges. Add your own: SELECT bench.add_feeder(…).",
        );
    }
    Ok(())
}

/// Removes a workload.
#[pg_extern(sql = false)]
fn drop_workload(name: Option<String>) {
    remove(name).or_raise();
}

fn remove(name: Option<String>) -> Result<(), UserError> {
    let name = required("name", name)?;
    let Some(old) = store::workload(&name)? else {
        return Err(UserError::new(
            sqlstate::UNDEFINED_OBJECT,
            format!("workload \"{name}\" does not exist"),
        ));
    };
    check_owner(&old)?;
    store::delete_workload(&name)
}

/// That the current role may replace a workload, change its feeders or drop it.
///
/// # Errors
/// 42501.
pub fn check_owner(workload: &store::Workload) -> Result<(), UserError> {
    let refuse = |why: String| UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, why);
    if workload.builtin {
        return Err(
            refuse(format!("workload \"{}\" is built in", workload.name)).hint("Choose another name.")
        );
    }
    if !roles::may_write_for(workload.owner_oid)? {
        return Err(refuse(format!("workload \"{}\" belongs to role \"{}\"", workload.name, workload.owner))
            .hint("Only roles that can SET ROLE to its owner may replace or drop it."));
    }
    Ok(())
}

/// Gives a workload a feeder.
#[pg_extern(sql = false)]
fn add_feeder(
    workload: Option<String>,
    query: Option<String>,
    prefix: Option<String>,
    pick: Option<String>,
    once: Option<bool>,
    max_rows: Option<i32>,
) {
    add(workload, query, prefix, pick, once, max_rows).or_raise();
}

fn add(
    workload: Option<String>,
    query: Option<String>,
    prefix: Option<String>,
    pick: Option<String>,
    once: Option<bool>,
    max_rows: Option<i32>,
) -> Result<(), UserError> {
    check_encoding()?;
    let name = required("workload", workload)?;
    let query = required("query", query)?;
    let (prefix, pick) = (required("prefix", prefix)?, required("pick", pick)?);
    let (once, max_rows) = (required("once", once)?, required("max_rows", max_rows)?);
    check_length([query.as_str()])?;
    let feeder = Feeder::new(prefix, query, &pick, once, max_rows)?;
    let workload = owned(&name)?;
    let mut feeders = store::feeders(&name)?;
    feeders.retain(|other| other.prefix != feeder.prefix);
    feeders::check_new(&workload, &feeder, &feeders)?;
    let workload =
        if workload.owner_oid == roles::current_role_oid() { workload } else { take_over(workload)? };
    store::put_feeder(&workload, &feeder)
}

/// Makes another role's workload the current role's, who from now on answers for its script and all of its feeders.
///
/// # Errors
/// 42501 for a captured one, which runs in sessions of the role that executed it.
fn take_over(workload: Workload) -> Result<Workload, UserError> {
    let Workload { name, owner, captured, .. } = &workload;
    if *captured {
        let message = format!("workload \"{name}\" is a part of a capture of role \"{owner}\"");
        return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
            .detail("It runs in sessions of that role, and so do its feeders.")
            .hint(format!("SET ROLE {} before the call.", quote_identifier(owner))));
    }
    let message =
        format!("workload \"{name}\" of role \"{owner}\" now belongs to role \"{}\"", roles::current_role());
    notice(message, "Its script and all of its feeders may now run with your privileges. Read them.");
    store::take_over(workload)
}

/// Removes a feeder.
#[pg_extern(sql = false)]
fn drop_feeder(workload: Option<String>, prefix: Option<String>) {
    remove_feeder(workload, prefix).or_raise();
}

fn remove_feeder(workload: Option<String>, prefix: Option<String>) -> Result<(), UserError> {
    let name = required("workload", workload)?;
    let prefix = required("prefix", prefix)?;
    let workload = owned(&name)?;
    if store::delete_feeder(&workload, &prefix)? {
        return Ok(());
    }
    let message = format!("workload \"{name}\" has no feeder with prefix \"{prefix}\"");
    let error = UserError::new(sqlstate::UNDEFINED_OBJECT, message);
    let known: Vec<String> =
        store::feeders(&name)?.iter().map(|feeder| format!("\"{}\"", feeder.prefix)).collect();
    Err(if known.is_empty() { error } else { error.hint(format!("Its prefixes: {}.", known.join(", "))) })
}

/// A workload that the caller may replace.
fn owned(name: &str) -> Result<Workload, UserError> {
    let Some(workload) = store::workload(name)? else {
        let message = format!("workload \"{name}\" does not exist");
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message)
            .hint("Create it first: SELECT bench.create_workload(…)."));
    };
    check_owner(&workload)?;
    Ok(workload)
}

/// More than anybody reads.
const MAX_TRANSACTIONS: i32 = 100_000;

/// All lines are kept until the first is returned: their bytes together.
const MAX_BYTES: usize = 64 << 20;

/// Shows what a client would do with a script.
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
