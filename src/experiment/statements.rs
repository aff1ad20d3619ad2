//! Statements by which a sweep's variant changes the database for its runs, and those that undo it, in a session that is
//! there for them.

use std::collections::HashSet;
use std::ffi::CString;

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::RunOptions;
use bench_questions::sweep::{SweepOptions, Variant};
use pgrx::pg_sys;

use crate::driver::session::Session;
use crate::error::internal;
use crate::run::before::execute;
use crate::server::guc::is_own;
use crate::server::rows::select;
use crate::server::transaction::transaction;
use crate::server::{query, relations, spi};

/// Classes of errors of a statement that undoes what is not there: undefined and duplicate objects of all kinds.
pub(super) const UNDONE: [&str; 10] =
    ["42704", "42703", "42P01", "42883", "3F000", "42710", "42701", "42P06", "42P07", "42723"];

/// Begins the detail of a statement's error that has no detail of its own.
pub(super) const STATEMENT: &str = "Statement: ";

/// What can be found wrong with a variant's statements before the first run.
///
/// # Errors
/// 0A000 for runs on other servers; the parser's are raised.
pub(super) fn check(options: &SweepOptions, variant: &Variant) -> Result<(), UserError> {
    let Some(sql) = &variant.sql else { return Ok(()) };
    if options.run_of(variant).target.is_some() {
        let message = format!("sql of variant \"{}\" cannot be applied on a target", variant.name);
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            .hint("Apply it there between two runs, and compare them with bench.compare."));
    }
    for text in sql.apply.iter().chain(&sql.revert) {
        query::parse(&CString::new(text.as_str()).map_err(|e| internal(e.to_string()))?);
    }
    Ok(())
}

/// The settings of a variant's clients.
///
/// # Errors
/// Those of the arguments of its runs.
pub(super) fn settings_of(
    options: &SweepOptions,
    variant: &Variant,
) -> Result<Vec<(String, String)>, UserError> {
    Ok(RunOptions::new(options.run_of(variant))?.settings)
}

/// Executes texts as a client's session with these settings does, but for those that limit how long it may take; an error with
/// one of these codes is passed over. Counts those that are done. Leaves this session as it was.
///
/// # Errors
/// The server's, with the statement.
pub(super) fn execute_all(
    session: &mut Session,
    settings: &[(String, String)],
    texts: &[String],
    passes: &[&str],
    done: &mut u32,
) -> Result<(), UserError> {
    let result = transaction(|| set(settings)).and_then(|()| {
        for text in texts {
            match execute_one(session, text) {
                Err(error) if !passes.contains(&error.sqlstate.as_str()) => {
                    let detail = error.detail.clone().unwrap_or_else(|| format!("{STATEMENT}{text}"));
                    return Err(error.detail(detail));
                }
                _ => *done += 1,
            }
        }
        Ok(())
    });
    // The role first: another one may not reset all that this one could set.
    for statement in ["RESET SESSION AUTHORIZATION", "RESET ALL"] {
        execute(session, statement)?;
    }
    result
}

fn execute_one(session: &mut Session, text: &str) -> Result<(), UserError> {
    execute(session, text)?;
    if !session.in_block() {
        return Ok(());
    }
    session.abort().map_err(UserError::from)?;
    Err(UserError::new(sqlstate::ACTIVE_SQL_TRANSACTION, "the statements leave a transaction open"))
}

/// Sets parameters for the session, up to RESET ALL.
fn set(settings: &[(String, String)]) -> Result<(), UserError> {
    for (name, value) in settings.iter().filter(|(name, _)| !is_own(&name.to_ascii_lowercase())) {
        spi::in_session::run(
            "SELECT pg_catalog.set_config($1, $2, false)",
            &[name.as_str().into(), value.as_str().into()],
        )?;
    }
    Ok(())
}

/// The files of all relations that other sessions see.
pub(super) fn files() -> Result<HashSet<(pg_sys::Oid, pg_sys::Oid)>, UserError> {
    let sql = "SELECT oid, relfilenode FROM pg_class WHERE relfilenode <> 0::oid AND relpersistence <> 't'::\"char\"";
    Ok(select(sql, &[])?.into_iter().collect())
}

/// The relations with files that were not there, TOAST tables left out, and the size of all.
pub(super) fn made_since(
    before: &HashSet<(pg_sys::Oid, pg_sys::Oid)>,
) -> Result<(Vec<String>, i64), UserError> {
    let made: Vec<pg_sys::Oid> = files()?.difference(before).map(|(oid, _)| *oid).collect();
    let rows = select::<(Option<pg_sys::Oid>, Option<i64>)>(
        "SELECT CASE WHEN relkind <> 't' AND relnamespace <> 99 THEN oid END, pg_relation_size(oid) \
         FROM pg_class WHERE oid = ANY ($1) ORDER BY oid",
        &[made.into()],
    )?;
    let bytes = rows.iter().filter_map(|(_, bytes)| *bytes).fold(0, i64::saturating_add);
    Ok((rows.into_iter().filter_map(|(table, _)| table).map(relations::shown_name).collect(), bytes))
}
