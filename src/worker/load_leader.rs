//! The leader of a load: makes the staging table, has it filled by loaders, builds its indexes,
//! and puts it in the fixture's place in one transaction. It is a session of the calling role.

use std::sync::atomic::Ordering::*;
use std::time::Instant;

use bench_core::error::{UserError, sqlstate};
use bench_core::spec::Results;
use pgrx::pg_sys;

use super::{OnTerminate, Post, crew, loader, nap_until_canceled, report_for_duty, wake};
use crate::catalog;
use crate::engine::{Session, SqlError};
use crate::error::internal;
use crate::fixture::LoadSpec;
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
    let staging = spec.staging_table();
    catalog::transaction(|| create_staging(spec))?;
    let mut run = |sql: &str| session.run(sql).map_err(user_error);
    if spec.rows > 0 {
        insert_rows(post, spec)?;
    }
    let load_secs = began.elapsed().as_secs_f64();
    for sql in spec.after_sql()? {
        check_stop(&post.segment)?;
        run(&sql)?;
    }
    run(&format!("VACUUM (ANALYZE) {staging}"))?;
    check_stop(&post.segment)?;
    catalog::transaction(|| put_in_place(spec, load_secs))
}

/// What tells a table of ours from one that happens to have its name.
const STAGING_MARK: &str = "pgbench_ext: being loaded";

/// Makes the staging table, in place of one that an interrupted load has left.
fn create_staging(spec: &LoadSpec) -> Result<(), UserError> {
    let staging = spec.staging_table();
    let mark = catalog::fetch::<String>(
        "SELECT coalesce(pg_catalog.obj_description(pg_catalog.to_regclass($1), 'pg_class'), '') \
         WHERE pg_catalog.to_regclass($1) IS NOT NULL",
        &[staging.as_str().into()],
    )?;
    match mark.as_deref() {
        None => {}
        Some(STAGING_MARK) => {
            catalog::run(&format!("DROP TABLE {staging}"), &[])?;
        }
        Some(_) => return Err(in_the_way(&staging)),
    }
    catalog::run(&spec.create_sql()?, &[])?;
    catalog::run(&format!("COMMENT ON TABLE {staging} IS '{STAGING_MARK}'"), &[]).map(drop)
}

/// Removes what a failed load has made.
fn drop_staging(spec: &LoadSpec) -> Result<(), UserError> {
    let marked = catalog::fetch::<bool>(
        "SELECT pg_catalog.obj_description(pg_catalog.to_regclass($1), 'pg_class') = $2",
        &[spec.staging_table().into(), STAGING_MARK.into()],
    )?;
    if marked == Some(true) {
        catalog::run(&format!("DROP TABLE {}", spec.staging_table()), &[])?;
    }
    Ok(())
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
        &[format!("pgbench_ext load {}", spec.table()).into()],
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
    let there = "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid";
    match catalog::fetch::<pg_sys::Oid>(there, &[spec.table().into()])? {
        Some(relation) if !tables.contains(&relation) => Err(in_the_way(&spec.table())),
        _ => Ok(tables),
    }
}

/// Drops what the fixture had, gives the staging table its name, and registers it.
fn put_in_place(spec: &LoadSpec, load_secs: f64) -> Result<(), UserError> {
    for table in replaceable_tables(spec)? {
        catalog::drop_table(table)?;
    }
    let renamed = quote_identifier(&spec.name);
    let oid = catalog::fetch::<pg_sys::Oid>(
        "SELECT pg_catalog.to_regclass($1)::pg_catalog.oid",
        &[spec.staging_table().into()],
    )?
    .ok_or_else(|| {
        UserError::new(sqlstate::UNDEFINED_TABLE, "the table being loaded was dropped meanwhile")
    })?;
    // Indexes and sequences have the table's name in theirs, and so do NOT NULL constraints from
    // PostgreSQL 18 on; any other constraint goes with its index.
    let statements = catalog::fetch::<Vec<String>>(
        "SELECT pg_catalog.array_agg(renames.sql) FROM ( \
         SELECT pg_catalog.format('ALTER TABLE %s RENAME CONSTRAINT %I TO %I', n.conrelid::pg_catalog.regclass, \
                    n.conname, $2 || pg_catalog.substr(n.conname, pg_catalog.length($3) + 1)) AS sql \
         FROM pg_catalog.pg_constraint n \
         WHERE n.conrelid = $1 AND n.contype = 'n' AND pg_catalog.starts_with(n.conname, $3) \
         UNION ALL \
         SELECT pg_catalog.format('ALTER %s %s RENAME TO %I', \
                    CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'INDEX' END, c.oid::pg_catalog.regclass, \
                    $2 || pg_catalog.substr(c.relname, pg_catalog.length($3) + 1)) \
         FROM pg_catalog.pg_class c \
         WHERE (c.oid IN (SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = $1) \
                OR c.oid IN (SELECT objid FROM pg_catalog.pg_depend \
                             WHERE refobjid = $1 AND classid = 'pg_catalog.pg_class'::pg_catalog.regclass \
                               AND refclassid = classid AND deptype = 'a')) \
           AND c.relkind IN ('i', 'S') AND pg_catalog.starts_with(c.relname, $3)) AS renames",
        &[oid.into(), spec.name.as_str().into(), spec.staging_name().into()],
    )?;
    for sql in statements.unwrap_or_default() {
        catalog::run(&sql, &[])?;
    }
    catalog::run(&format!("ALTER TABLE {} RENAME TO {renamed}", spec.staging_table()), &[])?;
    catalog::run(&format!("COMMENT ON TABLE {} IS NULL", spec.table()), &[])?;
    catalog::put_fixture(spec, &[oid], load_secs)
}
