//! The leader of a load: makes the staging tables, has them filled by loaders, builds their indexes,
//! and puts them in the fixture's place in one transaction. It is a session of the calling role.

use std::sync::atomic::Ordering::*;
use std::time::Instant;

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::{OnTerminate, Post, crew, loader, nap_until_canceled, report_for_duty, wake};
use crate::catalog;
use crate::engine::{Session, SqlError};
use crate::error::internal;
use crate::fixture::{LoadSpec, STAGING_PREFIX};
use crate::settings::quote_identifier;
use crate::shm::{ClientState, RunState, Segment, StopReason};

/// The kind of worker that a load's leader is.
pub const KIND: super::Kind = super::Kind { entry: c"pgbench_ext_load_main", title: c"pgbench_ext load" };

/// The server's entry into a load's leader.
#[pgrx::pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pgbench_ext_load_main(segment: pg_sys::Datum) {
    let post = report_for_duty(segment, OnTerminate::Die);
    let header = post.segment.header();
    // SAFETY: this process's own pid.
    header.coordinator_pid.store(unsafe { pg_sys::MyProcPid }, Release);
    post.segment.on_detach(stop_loaders);
    if let Err(error) = load(&post) {
        // A cancel by the caller stands for its reason.
        let error = check_stop(&post.segment).err().unwrap_or(error);
        header.fail(&error);
    }
    header.set_state(RunState::Finished);
    wake(header.caller_pid.load(Relaxed));
}

#[pgrx::pg_guard]
unsafe extern "C-unwind" fn stop_loaders(segment: *mut pg_sys::dsm_segment, _argument: pg_sys::Datum) {
    // SAFETY: called by the server with the segment that the callback was registered on.
    unsafe { Segment::header_in_callback(segment) }.request_stop(StopReason::Abandoned);
    crew::terminate();
}

/// An error of the engine's as the user's.
pub fn user_error(error: SqlError) -> UserError {
    UserError::new(&crate::error::unpack(error.sqlstate), error.message)
}

fn load(post: &Post) -> Result<(), UserError> {
    let spec: LoadSpec = serde_json::from_str(post.segment.spec()).map_err(|e| internal(e.to_string()))?;
    let mut session = Session::new(Results::Discard);
    let run = |session: &mut Session, sql: &str| session.run(sql).map_err(user_error);
    session.set(c"application_name", c"pgbench_ext load").map_err(user_error)?;
    let schema = spec.schema.clone();
    if !catalog::transaction(|| schema_exists(&schema))? {
        run(&mut session, &format!("CREATE SCHEMA {}", quote_identifier(&spec.schema)))?;
    }
    // Names in the fixture's statements are the server's own.
    session.set(c"search_path", c"pg_catalog, pg_temp").map_err(user_error)?;
    catalog::transaction(|| claim(&spec))?;
    let result = fill(post, &spec, &mut session);
    if result.is_err() {
        crew::terminate();
        // SAFETY: a flag of this process's: a cancel that has done its work must not hit what
        // follows.
        unsafe { (&raw mut pg_sys::QueryCancelPending).write_volatile(0) };
        // The first error is the one to tell; a leftover is removed by the next load as well.
        let _ = catalog::transaction(|| drop_staging(&spec));
    }
    result
}

fn fill(post: &Post, spec: &LoadSpec, session: &mut Session) -> Result<(), UserError> {
    let began = Instant::now();
    catalog::transaction(|| create_staging(spec))?;
    let mut run = |sql: &str| session.run(sql).map_err(user_error);
    if spec.rows > 0 {
        for sql in spec.small_rows_sql()? {
            check_stop(&post.segment)?;
            run(&sql)?;
        }
        insert_rows(post, spec)?;
    }
    let load_secs = began.elapsed().as_secs_f64();
    for sql in spec.after_sql()? {
        check_stop(&post.segment)?;
        run(&sql)?;
    }
    run(&format!("VACUUM (ANALYZE) {}", spec.staging_tables()?.join(", ")))?;
    check_stop(&post.segment)?;
    catalog::transaction(|| put_in_place(spec, load_secs))
}

/// What tells a table of ours from one that happens to have its name.
const STAGING_MARK: &str = "pgbench_ext: being loaded";

/// Makes the staging tables, in place of those that an interrupted load has left.
fn create_staging(spec: &LoadSpec) -> Result<(), UserError> {
    drop_staging(spec)?;
    let tables = spec.staging_tables()?;
    for table in &tables {
        if relation(table)?.is_some() {
            return Err(in_the_way(table));
        }
    }
    for sql in spec.create_sql()? {
        catalog::run(&sql, &[])?;
    }
    for table in &tables {
        catalog::run(&format!("COMMENT ON TABLE {table} IS '{STAGING_MARK}'"), &[])?;
    }
    Ok(())
}

/// Removes what a failed load has made.
fn drop_staging(spec: &LoadSpec) -> Result<(), UserError> {
    let marked = catalog::fetch::<Vec<pg_sys::Oid>>(
        "SELECT pg_catalog.array_agg(relation::pg_catalog.oid) \
         FROM (SELECT pg_catalog.to_regclass(t) AS relation FROM pg_catalog.unnest($1) AS t) AS tables \
         WHERE pg_catalog.obj_description(relation, 'pg_class') = $2",
        &[spec.staging_tables()?.into(), STAGING_MARK.into()],
    )?;
    catalog::drop_tables(&marked.unwrap_or_default())
}

/// The relation of that name, if there is one.
fn relation(name: &str) -> Result<Option<pg_sys::Oid>, UserError> {
    catalog::fetch::<pg_sys::Oid>("SELECT pg_catalog.to_regclass($1)::pg_catalog.oid", &[name.into()])
}

fn in_the_way(relation: &str) -> UserError {
    UserError::new(sqlstate::WRONG_OBJECT_TYPE, format!("relation {relation} exists and is not a fixture"))
        .hint("Drop it, or choose another schema: options => '{\"schema\": \"…\"}'.")
}

/// Launches the loaders and waits for them.
fn insert_rows(post: &Post, spec: &LoadSpec) -> Result<(), UserError> {
    let segment = &post.segment;
    crew::launch(loader::KIND, segment.handle(), spec.jobs, spec.database_oid, spec.role_oid)?;
    segment.header().set_state(RunState::Running);
    loop {
        check_stop(segment)?;
        let mut done = 0;
        for (index, slot) in segment.slots().enumerate() {
            let stopped = crew::has_stopped(index as u32);
            match slot.state() {
                ClientState::Done => done += 1,
                ClientState::Aborted => return Err(loader_error(segment, index as u32)),
                _ if stopped => {
                    return Err(UserError::new(
                        sqlstate::ADMIN_SHUTDOWN,
                        format!("loader {index} has ended unexpectedly"),
                    )
                    .hint("The server's log says why."));
                }
                _ => {}
            }
        }
        if done == spec.jobs {
            return Ok(());
        }
        nap_until_canceled(100)?;
    }
}

fn loader_error(segment: &Segment, index: u32) -> UserError {
    let entry = &segment.slot(index).errors[0];
    let message = entry.message.get().unwrap_or_else(|| "the loader failed".to_owned());
    UserError::new(&crate::error::unpack(entry.sqlstate.load(Acquire)), message)
}

fn check_stop(segment: &Segment) -> Result<(), UserError> {
    match segment.header().stop() {
        StopReason::None => Ok(()),
        StopReason::BlockedByCaller => Err(UserError::new(
            sqlstate::DEADLOCK_DETECTED,
            "the load waits for a lock that is held by the session waiting for it",
        )
        .hint("Commit before the call.")),
        _ => Err(UserError::new(sqlstate::QUERY_CANCELED, "the load was canceled")),
    }
}

fn schema_exists(schema: &str) -> Result<bool, UserError> {
    let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname OPERATOR(pg_catalog.=) $1::pg_catalog.text)";
    Ok(catalog::fetch::<bool>(sql, &[schema.into()])?.unwrap_or_default())
}

/// Takes the right to load this fixture here, until this process ends; refuses where it is not
/// this role's to replace.
fn claim(spec: &LoadSpec) -> Result<(), UserError> {
    let taken = catalog::fetch::<bool>(
        "SELECT pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1, 0))",
        &[format!("pgbench_ext load {}", spec.place()).into()],
    )?;
    if taken != Some(true) {
        return Err(UserError::new(
            sqlstate::OBJECT_IN_USE,
            format!("fixture \"{}\" is being loaded by another session", spec.name),
        ));
    }
    replaceable_tables(spec).map(drop)
}

/// The fixture's tables that are still there, which the load replaces.
///
/// # Errors
/// 42501 when they are not this role's to replace, 42809 when a relation that is none of them has the name.
fn replaceable_tables(spec: &LoadSpec) -> Result<Vec<pg_sys::Oid>, UserError> {
    let tables = spec.replaced()?.map(|f| f.tables).unwrap_or_default();
    let own = catalog::with_partitions(&tables)?;
    for name in spec.relations()? {
        if relation(&name)?.is_some_and(|there| !own.contains(&there)) {
            return Err(in_the_way(&name));
        }
    }
    Ok(tables)
}

/// Drops what the fixture had, gives the staging tables their names, and registers them.
fn put_in_place(spec: &LoadSpec, load_secs: f64) -> Result<(), UserError> {
    catalog::drop_tables(&replaceable_tables(spec)?)?;
    let mut tables = Vec::new();
    for table in spec.staging_tables()? {
        tables.push(relation(&table)?.ok_or_else(|| {
            UserError::new(sqlstate::UNDEFINED_TABLE, "the table being loaded was dropped meanwhile")
        })?);
    }
    // Indexes, sequences and foreign keys have their table's name in theirs, and so do NOT NULL
    // constraints from PostgreSQL 18 on, where a partition's goes with its parent's; any other
    // constraint goes with its index. The tables come last: the rest is named by them.
    let statements = catalog::fetch::<Vec<String>>(
        "SELECT pg_catalog.array_agg(pg_catalog.format('ALTER %s RENAME %s TO %I', object, part, \
                                                       pg_catalog.substr(name, pg_catalog.length($2) + 1)) \
                                     ORDER BY kind = 'TABLE') \
         FROM (SELECT 'CONSTRAINT' AS kind, n.conname AS name, \
                      'TABLE ' || n.conrelid::pg_catalog.regclass AS object, \
                      'CONSTRAINT ' || pg_catalog.quote_ident(n.conname) AS part \
               FROM pg_catalog.pg_constraint n \
               WHERE n.conrelid = ANY ($1) AND (n.contype = 'f' OR n.contype = 'n' AND n.coninhcount = 0) \
               UNION ALL \
               SELECT k.kind, c.relname, k.kind || ' ' || c.oid::pg_catalog.regclass, '' \
               FROM pg_catalog.pg_class c \
               JOIN (VALUES ('r', 'TABLE'), ('p', 'TABLE'), ('i', 'INDEX'), ('I', 'INDEX'), ('S', 'SEQUENCE')) \
                   AS k (relkind, kind) ON k.relkind = c.relkind::pg_catalog.text \
               WHERE c.oid = ANY ($1) \
                  OR c.oid IN (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = ANY ($1)) \
                  OR c.oid IN (SELECT objid FROM pg_catalog.pg_depend \
                               WHERE refobjid = ANY ($1) AND classid = 'pg_catalog.pg_class'::pg_catalog.regclass \
                                 AND refclassid = classid AND deptype = 'a')) AS renames \
         WHERE pg_catalog.starts_with(name, $2)",
        &[catalog::with_partitions(&tables)?.into(), STAGING_PREFIX.into()],
    )?;
    for sql in statements.unwrap_or_default() {
        catalog::run(&sql, &[])?;
    }
    for table in &tables {
        let name =
            catalog::fetch::<String>("SELECT $1::pg_catalog.regclass::pg_catalog.text", &[(*table).into()])?;
        catalog::run(&format!("COMMENT ON TABLE {} IS NULL", name.unwrap_or_default()), &[])?;
    }
    catalog::put_fixture(spec, &tables, load_secs)
}
