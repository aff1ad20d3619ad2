//! What of a duel is found out before it starts: the scripts of its arms, and the indexes that they do without.

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::{ARMS, Arm, FixtureSpec, RunOptions, ScriptSpec};
use pgrx::pg_sys;

use super::settings;
use crate::server::guc;
use crate::server::spi::fetch_all;

const SEARCH_PATH: &str = "search_path";

/// The scripts of both arms, one behind the other.
///
/// # Errors
/// 0A000 for scripts that cannot take turns.
pub fn scripts(scripts: Vec<ScriptSpec>, options: &RunOptions) -> Result<Vec<ScriptSpec>, UserError> {
    let Some(duel) = &options.duel else { return Ok(scripts) };
    let unsupported = |what: &str| {
        let message = format!("a duel of {what} is not supported");
        UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint("Compare whole runs with bench.ab.")
    };
    if scripts.iter().any(|script| script.is_dealt || script.terminal.is_some()) {
        return Err(unsupported("terminals and decks"));
    }
    let sets_path = |arm: &Arm| arm.settings.iter().any(|(name, _)| name.eq_ignore_ascii_case(SEARCH_PATH));
    if scripts.iter().any(|script| script.captured) && duel.arms.iter().any(sets_path) {
        return Err(unsupported("a capture under another search_path"));
    }
    if scripts.iter().any(|script| script.role.is_some()) {
        return Err(unsupported("a capture of several roles"));
    }
    let of_arms = |script: ScriptSpec| {
        ARMS.into_iter().enumerate().map(move |(arm, name)| ScriptSpec {
            arm: Some(arm),
            name: format!("{} [{name}]", script.name),
            // Both arms take rows of the same ones.
            feeders: if arm == 0 { script.feeders.clone() } else { Vec::new() },
            ..script.clone()
        })
    };
    Ok(scripts.into_iter().flat_map(of_arms).collect())
}

/// Looks at the arms' settings, and up their indexes, where the clients will look names up.
///
/// # Errors
/// 42704 and 42809 for what is no index, 0A000 for one of a system catalog, and the server's for the settings.
pub fn check(options: &mut RunOptions, fixtures: &[FixtureSpec]) -> Result<(), UserError> {
    let RunOptions { duel: Some(duel), driver, settings: of_run, .. } = options else { return Ok(()) };
    let schemas: Vec<&str> = fixtures.iter().filter_map(|fixture| fixture.schema.as_deref()).collect();
    let own = guc::initial_search_path()?;
    let initial = if schemas.is_empty() { own } else { guc::search_path_with(&schemas, &own) };
    for arm in &mut duel.arms {
        settings::check(&arm.settings, *driver)?;
        let mut given = arm.settings.iter().chain(of_run.iter());
        let given = given.find(|(name, _)| name.eq_ignore_ascii_case(SEARCH_PATH));
        let path = given.map_or_else(|| initial.clone(), |(_, path)| path.clone());
        arm.hidden = Vec::new();
        for name in &arm.hide_indexes {
            arm.hidden.extend(guc::with_search_path(&path, || indexes(name))?);
        }
    }
    Ok(())
}

/// An index, and those of its partitions.
fn indexes(name: &str) -> Result<Vec<u32>, UserError> {
    let sql = "SELECT c.oid, c.relkind OPERATOR(pg_catalog.=) ANY ('{i,I}'), \
                   c.oid OPERATOR(pg_catalog.<) '16384'::pg_catalog.oid, ARRAY(SELECT t.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(c.oid) AS t) \
               FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass($1)";
    let found = fetch_all(sql, &[name.into()], |row| {
        let oid = row.get::<pg_sys::Oid>(1)?.map_or(0, pg_sys::Oid::to_u32);
        let is = |place| Ok::<_, pgrx::spi::Error>(row.get::<bool>(place)?.unwrap_or_default());
        let parts = row.get::<Vec<pg_sys::Oid>>(4)?.unwrap_or_default();
        Ok((oid, is(2)?, is(3)?, parts))
    })?;
    let Some((oid, is_index, is_of_catalog, parts)) = found.into_iter().next() else {
        return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, format!("index \"{name}\" does not exist"))
            .hint("Names are looked up where the workload's statements find theirs."));
    };
    if !is_index {
        return Err(UserError::new(sqlstate::WRONG_OBJECT_TYPE, format!("\"{name}\" is not an index")));
    }
    if is_of_catalog {
        let message = format!("index \"{name}\" of a system catalog cannot be hidden");
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
    }
    let mut all: Vec<u32> = parts.into_iter().map(pg_sys::Oid::to_u32).chain([oid]).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
