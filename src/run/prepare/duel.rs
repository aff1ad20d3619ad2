//! The preparation of a duel: the scripts, settings and hidden indexes of its arms.

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

/// Returns the scripts of both arms in turn, each with whether it is built in. `scripts` are those of arm a; `find` looks up
/// those of a script or a mix.
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
        let own_scripts = find(other.script.as_deref(), &mix(name)?)?;
        let weights = |scripts: &[(ScriptSpec, bool)]| -> Vec<u32> {
            scripts.iter().map(|(script, _)| script.weight).collect()
        };
        if weights(&own_scripts) != weights(&scripts) {
            let message =
                "the workloads of both arms must have the same number of scripts, with the same weights";
            return Err(UserError::invalid(message)
                .hint("Each script of arm a is compared with the one at the same place of arm b."));
        }
        own_scripts
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
    let assign_arm = |(script, builtin): (ScriptSpec, bool), arm: usize| {
        let name = format!("{} [{}]", script.name, ARMS[arm]);
        (ScriptSpec { arm: Some(arm), name, ..script }, builtin)
    };
    let pairs = scripts.into_iter().zip(others);
    Ok(pairs.flat_map(|(a, b)| [assign_arm(a, 0), assign_arm(b, 1)]).collect())
}

/// Adds to the arms the ALTER ROLE settings of the roles that they name; an arm's own settings win.
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
        // A role without settings has one row of NULLs.
        let rows = fetch_all(sql, &[role.as_str().into()], |row| {
            Ok(row.get::<String>(1)?.zip(row.get::<String>(2)?))
        })?;
        if rows.is_empty() {
            let message = format!("role \"{role}\" does not exist");
            return Err(UserError::new(sqlstate::UNDEFINED_OBJECT, message));
        }
        for (name, value) in rows.into_iter().flatten() {
            if !arm.settings.iter().any(|(own, _)| own.eq_ignore_ascii_case(&name)) {
                arm.settings.push((name, value));
            }
        }
    }
    Ok(())
}

/// Examines the run on arm b's target `name`, where the fixtures must have as many rows as on arm a's.
///
/// # Errors
/// Those of a target that cannot be reached or lacks something that the workload needs; 55000 for other numbers of rows.
pub fn reach_other(name: &str, run: &RunSpec) -> Result<Examined, UserError> {
    let mut reached = Reached::new(name)?;
    let mut fixtures = Vec::with_capacity(run.fixtures.len());
    for fixture_a in &run.fixtures {
        let fixture_b = reached.fixture(&fixture_a.name)?;
        if fixture_b.rows != fixture_a.rows {
            let message = format!("fixture \"{}\" differs on the targets of both arms", fixture_a.name);
            return Err(UserError::new(sqlstate::NOT_IN_PREREQUISITE_STATE, message)
                .detail(format!(
                    "It has {} rows on that of arm a, and {} on that of arm b.",
                    fixture_a.rows, fixture_b.rows
                ))
                .hint("Load the same number of rows on both."));
        }
        fixtures.push(fixture_b);
    }
    reached.examine(&RunSpec { fixtures, ..run.clone() }, Some(1))
}

/// Checks that the arms' settings can be applied to sessions of a target.
///
/// # Errors
/// 0A000 for settings through a connection pool.
pub fn check_target(duel: &Duel, target: &TargetSpec) -> Result<(), UserError> {
    if !target.is_pooled || duel.arms.iter().all(|arm| arm.settings.is_empty()) {
        return Ok(());
    }
    let message = "arms of a duel cannot set parameters through a connection pool";
    Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
        .hint("Connect to the server itself, or compare whole runs with bench.ab."))
}

/// Checks the arms' settings, and looks up their hidden indexes under the clients' search_path. `caller` as in
/// [`settings::check`].
///
/// # Errors
/// 42704 and 42809 for names that are no index, 0A000 for a system catalog's index, and the server's for the settings.
pub fn check(
    options: &mut RunOptions,
    fixtures: &[FixtureSpec],
    caller: Option<&Role>,
) -> Result<(), UserError> {
    let RunOptions { duel: Some(duel), driver, nodes, settings: run_settings, .. } = options else {
        return Ok(());
    };
    let schemas: Vec<&str> = fixtures.iter().filter_map(|fixture| fixture.schema.as_deref()).collect();
    let own = guc::initial_search_path()?;
    let initial = if schemas.is_empty() { own } else { guc::search_path_with(&schemas, &own) };
    for arm in &mut duel.arms {
        settings::check(&arm.settings, *driver, *nodes, caller)?;
        let mut all_settings = arm.settings.iter().chain(run_settings.iter());
        let path_setting = all_settings.find(|(name, _)| name.eq_ignore_ascii_case(SEARCH_PATH));
        let path = path_setting.map_or_else(|| initial.clone(), |(_, path)| path.clone());
        arm.hidden = Vec::new();
        for name in &arm.hide_indexes {
            arm.hidden.extend(guc::with_search_path(&path, || indexes(name))?);
        }
    }
    Ok(())
}

/// Looks up an index; returns it and those of its partitions.
fn indexes(name: &str) -> Result<Vec<u32>, UserError> {
    let sql = "SELECT c.oid, c.relkind = ANY ('{i,I}'), \
                   c.oid < '16384'::oid, ARRAY(SELECT t.relid::oid FROM pg_partition_tree(c.oid) AS t) \
               FROM pg_class c WHERE c.oid = $1";
    let rows = fetch_all(sql, &[relations::named(name).into()], |row| {
        let oid = row.get::<pg_sys::Oid>(1)?.map_or(0, pg_sys::Oid::to_u32);
        let flag = |column| Ok::<_, pgrx::spi::Error>(row.get::<bool>(column)?.unwrap_or_default());
        let parts = row.get::<Vec<pg_sys::Oid>>(4)?.unwrap_or_default();
        Ok((oid, flag(2)?, flag(3)?, parts))
    })?;
    let Some((oid, is_index, is_of_catalog, parts)) = rows.into_iter().next() else {
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
