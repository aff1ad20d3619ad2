//! What of a duel is found out before it starts: the scripts of its arms, and the indexes that they do without.

use bench_base::error::{UserError, sqlstate};
use bench_model::spec::{
    ARMS, Duel, FixtureSpec, Role, RunOptions, RunSpec, SCRIPT, ScriptSpec, Share, TargetSpec, mix,
};
use pgrx::pg_sys;

use super::settings;
use crate::run::target_server::{Examined, Reached};
use crate::server::spi::fetch_all;
use crate::server::{guc, relations};

const SEARCH_PATH: &str = "search_path";

/// The scripts of both arms, one behind the other, each with whether it came with the extension. `find` finds those of a
/// script or of a mix.
///
/// # Errors
/// 0A000 for scripts that cannot take turns, 22023 for arms with mixes that do not fit together.
pub fn scripts(
    scripts: Vec<(ScriptSpec, bool)>,
    duel: &Duel,
    find: impl FnOnce(Option<&str>, &[Share]) -> Result<Vec<(ScriptSpec, bool)>, UserError>,
) -> Result<Vec<(ScriptSpec, bool)>, UserError> {
    let other = &duel.arms[1];
    let others = if other.has_own_script() {
        let name = other.workload.as_deref().unwrap_or(SCRIPT);
        let found = find(other.script.as_deref(), &mix(name)?)?;
        let weights = |scripts: &[(ScriptSpec, bool)]| -> Vec<u32> {
            scripts.iter().map(|(script, _)| script.weight).collect()
        };
        if weights(&found) != weights(&scripts) {
            let message =
                "the workloads of both arms must have the same number of scripts, with the same weights";
            return Err(UserError::invalid(message)
                .hint("Each script of arm a is compared with the one at the same place of arm b."));
        }
        found
    } else {
        // Both arms take rows of the same feeders.
        let without_feeders = |(script, builtin): &(ScriptSpec, bool)| {
            (ScriptSpec { feeders: Vec::new(), ..script.clone() }, *builtin)
        };
        scripts.iter().map(without_feeders).collect()
    };
    let unsupported = |what: &str| {
        let message = format!("a duel of {what} is not supported");
        UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message).hint("Compare whole runs with bench.ab.")
    };
    let mut both = scripts.iter().chain(&others).map(|(script, _)| script);
    if both.clone().any(|script| script.is_dealt || script.terminal.is_some()) {
        return Err(unsupported("terminals and decks"));
    }
    if both.any(|script| script.role.is_some()) {
        return Err(unsupported("a capture of several roles"));
    }
    let of_arm = |(script, builtin): (ScriptSpec, bool), arm: usize| {
        let name = format!("{} [{}]", script.name, ARMS[arm]);
        (ScriptSpec { arm: Some(arm), name, ..script }, builtin)
    };
    let pairs = scripts.into_iter().zip(others);
    Ok(pairs.flat_map(|(a, b)| [of_arm(a, 0), of_arm(b, 1)]).collect())
}

/// Adds to the arms what ALTER ROLE has set for the roles that they name; what an arm sets itself wins.
///
/// # Errors
/// 42704 for a role that does not exist.
pub fn take_role_settings(duel: &mut Duel) -> Result<(), UserError> {
    for arm in &mut duel.arms {
        let Some(role) = &arm.role_settings else { continue };
        // Those of the role in this database win over those of the role alone.
        let sql = "SELECT split_part(c, '=', 1), substr(c, strpos(c, '=') + 1) \
                   FROM pg_roles r \
                   LEFT JOIN pg_db_role_setting s ON s.setrole = r.oid \
                       AND s.setdatabase = ANY (ARRAY[0, (SELECT d.oid FROM pg_database d \
                           WHERE d.datname = current_database())]::oid[]) \
                   LEFT JOIN LATERAL unnest(s.setconfig) WITH ORDINALITY AS c (c, place) ON true \
                   WHERE r.rolname = $1::name \
                   ORDER BY s.setdatabase DESC NULLS LAST, c.place";
        let found = fetch_all(sql, &[role.as_str().into()], |row| {
            Ok(row.get::<String>(1)?.zip(row.get::<String>(2)?))
        })?;
        if found.is_empty() {
            let message = format!("role \"{role}\" does not exist");
            return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message));
        }
        for (name, value) in found.into_iter().flatten() {
            if !arm.settings.iter().any(|(own, _)| own.eq_ignore_ascii_case(&name)) {
                arm.settings.push((name, value));
            }
        }
    }
    Ok(())
}

/// The target of arm b, where arm a has another one: for the same run, with fixtures of the same rows.
///
/// # Errors
/// Those of a target that cannot be reached or does not have what the workload needs.
pub fn reach_other(name: &str, run: &RunSpec) -> Result<Examined, UserError> {
    let mut reached = Reached::new(name)?;
    let mut fixtures = Vec::with_capacity(run.fixtures.len());
    for of_a in &run.fixtures {
        let of_b = reached.fixture(&of_a.name)?;
        if of_b.rows != of_a.rows {
            let message = format!("fixture \"{}\" differs on the targets of both arms", of_a.name);
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .detail(format!(
                    "It has {} rows on that of arm a, and {} on that of arm b.",
                    of_a.rows, of_b.rows
                ))
                .hint("Load the same number of rows on both."));
        }
        fixtures.push(of_b);
    }
    reached.examine(&RunSpec { fixtures, ..run.clone() }, Some(1))
}

/// # Errors
/// 0A000 where sessions of a target cannot be those of an arm.
pub fn check_target(duel: &Duel, target: &TargetSpec) -> Result<(), UserError> {
    if !target.is_pooled || duel.arms.iter().all(|arm| arm.settings.is_empty()) {
        return Ok(());
    }
    let message = "arms of a duel cannot set parameters through a connection pool";
    Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        .hint("Connect to the server itself, or compare whole runs with bench.ab."))
}

/// Looks at the arms' settings, and up their indexes, where the clients will look names up. `caller` as in [`settings::check`].
///
/// # Errors
/// 42704 and 42809 for what is no index, 0A000 for one of a system catalog, and the server's for the settings.
pub fn check(
    options: &mut RunOptions,
    fixtures: &[FixtureSpec],
    caller: Option<&Role>,
) -> Result<(), UserError> {
    let RunOptions { duel: Some(duel), driver, nodes, settings: of_run, .. } = options else { return Ok(()) };
    let schemas: Vec<&str> = fixtures.iter().filter_map(|fixture| fixture.schema.as_deref()).collect();
    let own = guc::initial_search_path()?;
    let initial = if schemas.is_empty() { own } else { guc::search_path_with(&schemas, &own) };
    for arm in &mut duel.arms {
        settings::check(&arm.settings, *driver, *nodes, caller)?;
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
    let sql = "SELECT c.oid, c.relkind = ANY ('{i,I}'), \
                   c.oid < '16384'::oid, ARRAY(SELECT t.relid::oid FROM pg_partition_tree(c.oid) AS t) \
               FROM pg_class c WHERE c.oid = $1";
    let found = fetch_all(sql, &[relations::named(name).into()], |row| {
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
