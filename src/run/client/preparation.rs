//! The preparation of a client's session: checks of its rights, the run's settings, and the scripts' statements.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::*;

use bench_base::error::{SqlError, UserError, pack, sqlstate};
use bench_model::client::{ClientStart, ClientWorkload};
use bench_model::spec::{Role, RunSpec};

use super::statements::{Arms, ClientStatements, text, with_setters};
use super::workload::{beginning, workload};
use crate::driver::session::{Session, Traits};
use crate::guard::session_role::{CLIENT, check_session};
use crate::observe::environment;
use crate::server::guc;
use crate::server::roles::{current_role, current_role_oid, may_become};
use crate::server::spi::{fetch_all, quote_identifier, quote_literal};
use crate::server::transaction::transaction;
use crate::shm::{CommandCounters, Header, unclear, untracked};

/// Checks that this is a session of the client's role, that it has special rights only if the run allows them, and that the
/// caller and the scripts' writers can still SET ROLE to it.
pub fn check_rights(spec: &RunSpec, client: u32) -> Result<(), SqlError> {
    let role = spec.role_of_client(client);
    transaction(|| {
        check_session(&role, spec.may_be_special)?;
        for answering in spec.answering.iter().filter(|answering| answering.oid != role.oid) {
            if !may_become(answering.oid, &role)? {
                let message =
                    format!("role \"{}\" cannot SET ROLE to role \"{}\" any more", answering.name, role.name);
                return Err(UserError::new(sqlstate::INSUFFICIENT_PRIVILEGE, message));
            }
        }
        Ok(())
    })
    .map_err(SqlError::from)
}

/// Records in the header the settings of the clients' sessions.
pub fn describe(header: &Header) {
    let is = |name: &str, value: &str| guc::current(name).as_deref() == Some(value);
    let bit = |name: &str, value: &str, bit: u32| if is(name, value) { bit } else { 0 };
    let untracked = bit("track_counts", "off", untracked::COUNTS)
        | bit("pg_stat_statements.track", "none", untracked::CALLS);
    header.untracked.store(untracked, Relaxed);
    // Missing settings do not fail a run.
    if let Ok(json) = environment::settings_json() {
        header.settings.set(&json);
    }
}

/// Applies the run's settings over those of the role and the database. Returns the search_path if the run sets it.
pub fn prepare_session(session: &Session, spec: &RunSpec) -> Result<Option<String>, SqlError> {
    let settings = &spec.options.settings;
    let given = |name: &str| settings.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    if !given("application_name") {
        session.set(c"application_name", c"pgbench_ext")?;
    }
    // With row_security off the server raises an error instead of silently filtering rows by a policy.
    if !given("row_security") && transaction(|| Ok(current_role() == CLIENT))? {
        session.set(c"row_security", c"off")?;
    }
    let schemas: Vec<&str> = spec.fixtures.iter().filter_map(|f| f.schema.as_deref()).collect();
    let mut path = None;
    if !schemas.is_empty() && !given("search_path") {
        let own = guc::current("search_path").unwrap_or_default();
        let whole = guc::search_path_with(&schemas, &own);
        session.set(c"search_path", &text(&whole)?)?;
        path = Some(whole);
    }
    let own = current_role_oid();
    for (name, value, _) in with_setters(spec, settings)?.iter().filter(|(.., setter)| *setter == own) {
        session.set(name, value)?;
    }
    session.preload_libraries()?;
    // After the libraries, which may define parameters that only superusers set.
    for (name, value, setter) in with_setters(spec, settings)?.iter().filter(|(.., setter)| *setter != own) {
        session.set_with_rights_of(*setter, name, value)?;
    }
    Ok(path)
}

/// Prepares all statements of a run with the wire driver, to record their traits in the counters.
pub fn examine(spec: &RunSpec, session: Session, counters: &[CommandCounters]) -> Result<(), SqlError> {
    let mut workload = workload(spec, None)?;
    let beginning = beginning(spec, 0, &mut workload.symbols);
    compile(
        spec,
        &spec.executed_by(0),
        &workload,
        &beginning,
        &mut ClientStatements::new(session, counters, &[]),
        None,
    )
}

/// Prepares all statements, and records their traits in the client's counters. `executed` says which scripts this client
/// executes.
pub fn compile(
    spec: &RunSpec,
    executed: &[bool],
    workload: &ClientWorkload,
    beginning: &ClientStart,
    statements: &mut ClientStatements,
    arms: Option<&Arms>,
) -> Result<(), SqlError> {
    let counters = statements.counters;
    let session_role = spec.own_role();
    let mut variables = beginning.variables.clone();
    let programs = workload.programs.iter().zip(&beginning.own).zip(executed);
    for (((program, own), is_executed), script) in programs.zip(&spec.scripts) {
        if let (Some(arms), Some(arm)) = (arms, script.arm) {
            arms.enter(&statements.session, arm)?;
        }
        if !is_executed {
            statements.skip(program);
            continue;
        }
        for (variable, value) in own {
            variables.set(*variable, value.clone());
        }
        let mode = spec.options.query_mode_of(script);
        statements
            .compile(program, mode, &variables, |place, traits| {
                record_traits(&counters[place], spec, traits);
            })
            .map_err(|error| {
                explain(error, spec, script.role.as_ref().unwrap_or(&session_role), &script.source)
            })?;
    }
    Ok(())
}

/// Copies the planner's facts about a statement into its shared counters.
fn record_traits(counter: &CommandCounters, spec: &RunSpec, traits: Option<&Traits>) {
    let is_of_run = |relation: &u32| spec.tables().any(|table| table == *relation);
    let relations = traits.and_then(|traits| traits.relations.as_ref());
    if !relations.is_some_and(|all| all.iter().all(is_of_run)) {
        counter.add_unclear(unclear::OUTSIDE);
    }
    if let Some(traits) = traits {
        for (holds, bit) in
            [(traits.takes_back, unclear::TAKES_BACK), (traits.looks_at_ends, unclear::LOOKS_AT_ENDS)]
        {
            if holds {
                counter.add_unclear(bit);
            }
        }
        counter.command_type.store(traits.command_type, Relaxed);
        counter.query_id.store(traits.query_id, Relaxed);
        counter.later_query_id.store(traits.later_query_id, Relaxed);
    }
}

// The hint with missing GRANTs, for errors of sessions of another role than the caller's. It comes from the tables' privileges
// and never from the error's message, which a trigger or a function may have chosen.

/// Adds the missing GRANTs as a hint to a privilege error of a session of another role than the caller's.
pub fn explain(error: SqlError, spec: &RunSpec, role: &Role, script: &str) -> SqlError {
    if error.sqlstate != pack(sqlstate::INSUFFICIENT_PRIVILEGE)
        || spec.owner().oid == role.oid
        || error.hint.is_some()
    {
        return error;
    }
    match transaction(|| missing_grants(role, script)) {
        Ok(Some(hint)) => SqlError { hint: Some(hint), ..error },
        _ => error,
    }
}

/// Returns a hint with the GRANTs that the session's role lacks on the tables that a script names.
fn missing_grants(role: &Role, script: &str) -> Result<Option<String>, UserError> {
    let (schemas, tables): (Vec<String>, Vec<String>) = names(script).into_iter().unzip();
    let denied_tables = fetch_all(
        "SELECT format('%I', n.nspname), format('%I.%I', n.nspname, c.relname), has_schema_privilege(n.oid, 'USAGE'), \
                has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE'), pg_get_userbyid(c.relowner)::text \
         FROM (SELECT DISTINCT * FROM ROWS FROM (unnest($1), unnest($2)) AS u (schema, name)) AS given \
         JOIN pg_class c ON c.relname = given.name::name AND c.relkind = ANY ('{r,p,v,m,f}'::\"char\"[]) \
         JOIN pg_namespace n ON n.oid = c.relnamespace AND (n.nspname = given.schema::name \
             OR given.schema = '' AND n.nspname = ANY (string_to_array(replace($3, ' ', ''), ','))) \
         WHERE NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE')) \
         ORDER BY 2",
        &[
            schemas.into(),
            tables.into(),
            crate::server::guc::current("search_path").unwrap_or_default().into(),
        ],
        |row| {
            let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
            Ok((
                text(1)?,
                text(2)?,
                row.get::<bool>(3)?.unwrap_or_default(),
                row.get::<bool>(4)?.unwrap_or_default(),
                text(5)?,
            ))
        },
    )?;
    let Some((.., owner)) = denied_tables.first() else { return Ok(None) };
    let grantee = quote_identifier(&role.name);
    let mut grants = BTreeSet::new();
    for (schema, table, may_use_schema, may_use_table, _) in &denied_tables {
        if !may_use_schema {
            grants.insert(format!("GRANT USAGE ON SCHEMA {schema} TO {grantee};"));
        }
        if !may_use_table {
            grants.insert(format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {grantee};"));
        }
    }
    let grants: Vec<String> = grants.into_iter().collect();
    Ok(Some(format!(
        "{} Or have clients be sessions of the owner: run_as => {}.",
        grants.join(" "),
        quote_literal(owner)
    )))
}

/// Returns all words of a text that could name a table, in lower case unless quoted, each behind its schema or an empty text.
/// Names of other things do no harm.
pub fn names(text: &str) -> BTreeSet<(String, String)> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    let mut schema = String::new();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (name, after) = if let Some(quoted) = rest.strip_prefix('"') {
            until_quote(quoted)
        } else if is_part(first) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            (rest[..end].to_lowercase(), &rest[end..])
        } else {
            schema.clear();
            rest = &rest[first.len_utf8()..];
            continue;
        };
        if let Some(next) = after.strip_prefix('.') {
            schema = name;
            rest = next;
        } else {
            names.insert((std::mem::take(&mut schema), name));
            rest = after;
        }
    }
    names
}

/// Splits a text behind the quotation mark that ends a name; two of them are one of the name's.
fn until_quote(text: &str) -> (String, &str) {
    let (mut name, mut rest) = (String::new(), text);
    while let Some((part, after)) = rest.split_once('"') {
        name += part;
        match after.strip_prefix('"') {
            Some(after) => rest = after,
            None => return (name, after),
        }
        name.push('"');
    }
    (name + rest, "")
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_found_with_their_schemas() {
        let all = names("INSERT INTO Shop.\"Orders\" SELECT * FROM items, \"a \"\"b\"\"\" -- é");
        for (schema, name) in [("shop", "Orders"), ("", "items"), ("", "a \"b\"")] {
            assert!(all.contains(&(schema.to_owned(), name.to_owned())), "{all:?}");
        }
    }
}
