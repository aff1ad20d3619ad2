//! The tables of a load: made in a schema of their own, and put in the fixture's place.

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;
use serde::Deserialize;

use crate::cluster::citus;
use crate::guard::session_role::{CLIENT, OWNER};
use crate::load::fixture::{self, LoadSpec};
use crate::server::relations;
use crate::server::rows::{select, select_one};
use crate::server::spi::{self, quote_identifier};
use crate::store::{self, LoadFigures, OwnLoad};

/// Makes the tables, and sees that they are what a load can put in its place.
pub fn create_tables(spec: &LoadSpec, load_id: i64) -> Result<(), UserError> {
    for sql in &spec.create {
        spi::in_session::run(sql, &[])?;
    }
    fixture::check_made(&spec.name, &store::staging_schema(load_id))?;
    let made = tables_made(spec, load_id)?;
    // What stands in the way of any of them is told now, and not when all are full.
    replaceable_tables(spec, made.iter().map(|(_, name)| name.as_str()))?;
    alter_tables(spec, &made)
}

/// Puts the options into effect that the statements do not know of; only partitions have storage.
fn alter_tables(spec: &LoadSpec, made: &[(pg_sys::Oid, String)]) -> Result<(), UserError> {
    if spec.alter.is_empty() {
        return Ok(());
    }
    let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
    let statements = spi::fetch::<Vec<String>>(
        "SELECT array_agg(format('ALTER TABLE %s %s', c.oid::regclass, a.action)) \
         FROM pg_class c CROSS JOIN unnest($2) AS a (action) \
         WHERE c.oid = ANY ($1) AND c.relkind = 'r'::\"char\"",
        &[relations::with_partitions(&tables)?.into(), spec.alter.clone().into()],
    )?;
    statements.unwrap_or_default().iter().try_for_each(|sql| spi::in_session::run(sql, &[]).map(drop))
}

/// The tables that the load has made, without partitions, in the fixture's order.
///
/// # Errors
/// 42P01 when one that is to be filled is not among them.
pub fn tables_made(spec: &LoadSpec, load_id: i64) -> Result<Vec<(pg_sys::Oid, String)>, UserError> {
    let made = select::<(pg_sys::Oid, String)>(
        "SELECT c.oid, c.relname::text FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = $1::text AND NOT c.relispartition \
           AND c.relkind = ANY ('{r,p}'::\"char\"[]) \
         ORDER BY array_position($2, c.relname::text), c.oid",
        &[store::staging_schema(load_id).into(), spec.relations.clone().into()],
    )?;
    match spec.fills.iter().find(|fill| !made.iter().any(|(_, name)| *name == fill.table)) {
        Some(fill) => Err(fixture::does_not_make(&spec.name, &fill.table)),
        None => Ok(made),
    }
}

/// A relation that has a name of the fixture's tables and is none of them.
#[derive(Deserialize)]
struct Stranger {
    oid: pg_sys::Oid,
    /// A whole table, as loads make them.
    is_table: bool,
    is_mine: bool,
    owner: String,
}

/// The relation of that name, if there is one.
fn relation(name: &str) -> Result<Option<Stranger>, UserError> {
    select_one(
        "SELECT c.oid, c.relkind = ANY ('{r,p}'::\"char\"[]) AND NOT c.relispartition AS is_table, \
                pg_has_role(c.relowner, 'USAGE') AS is_mine, pg_get_userbyid(c.relowner)::text AS owner \
         FROM pg_class c WHERE c.oid = to_regclass($1)::oid",
        &[name.into()],
    )
}

fn in_the_way(spec: &LoadSpec, relation: &str, stranger: &Stranger) -> UserError {
    let error = |message: String| UserError::new(sqlstate::WRONG_OBJECT_TYPE, message);
    let otherwise = "drop it, or choose another schema: options => '{\"schema\": \"…\"}'.";
    let unknown = error(format!("relation {relation} exists and is not a fixture"));
    match stranger {
        Stranger { is_table: true, is_mine: true, .. } => unknown.hint(format!(
            "If an earlier installation of the extension left it, replace it: {}. Otherwise {otherwise}",
            spec.adopting_call()
        )),
        Stranger { is_table: true, owner, .. } if spec.adopt => UserError::new(
            sqlstate::INSUFFICIENT_PRIVILEGE,
            format!("table {relation} belongs to role \"{owner}\""),
        )
        .hint("Choose another schema: options => '{\"schema\": \"…\"}'."),
        _ => unknown.hint(otherwise.replacen('d', "D", 1)),
    }
}

/// The fixture's tables that are still there, and those that it adopts, which the load replaces.
///
/// # Errors
/// 42501 when they are not this role's to replace, 42809 when a relation that is none of them has the name.
pub fn replaceable_tables<'a>(
    spec: &LoadSpec,
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<pg_sys::Oid>, UserError> {
    let mut tables = with_rights(spec, || spec.replaced())?.map(|f| f.tables).unwrap_or_default();
    let mut own = relations::with_partitions(&tables)?;
    for name in names.map(|name| spec.qualified(name)) {
        let Some(there) = with_rights(spec, || relation(&name))?.filter(|there| !own.contains(&there.oid))
        else {
            continue;
        };
        if !(spec.adopt && there.is_table && there.is_mine) {
            return Err(in_the_way(spec, &name, &there));
        }
        tables.push(there.oid);
        own.extend(relations::with_partitions(&[there.oid])?);
    }
    // Those of a fixture whose tables somebody has dropped are still its own.
    if !spec.adopt && !store::fixtures(&spec.name)?.iter().any(|known| known.schema == spec.schema) {
        fixture::check_no_functions(&spec.name, &spec.schema)?;
    }
    Ok(tables)
}

/// Makes the fixture's schema if it is not there.
pub fn make_schema(spec: &LoadSpec) -> Result<(), UserError> {
    if relations::schema_exists(&spec.schema)? {
        return Ok(());
    }
    let schema = quote_identifier(&spec.schema);
    with_rights(spec, || spi::in_session::run(&format!("CREATE SCHEMA {schema}"), &[]).map(drop))
}

/// Drops what the fixture had, moves the new tables to its schema, and registers them. With local tables the load is
/// over with that; others leave the schema behind that they were made in.
pub fn put_in_place(
    spec: &LoadSpec,
    load: OwnLoad,
    is_local: bool,
    figures: &LoadFigures,
) -> Result<(), UserError> {
    fixture::check_made(&spec.name, &store::staging_schema(load.load_id))?;
    let made = tables_made(spec, load.load_id)?;
    let replaced = replaceable_tables(spec, made.iter().map(|(_, name)| name.as_str()))?;
    store::check_unused(&spec.name, &replaced)?;
    if !is_local {
        citus::go_in_sequence();
    }
    let tables: Vec<pg_sys::Oid> = made.iter().map(|(table, _)| *table).collect();
    advance_sequences(&tables)?;
    let with_partitions = relations::with_partitions(&tables)?;
    with_rights(spec, || {
        relations::drop_tables(&replaced)?;
        fixture::drop_functions(&spec.name, &spec.schema)?;
        make_schema(spec)?;
        // Indexes and owned sequences go with their tables; partitions do not.
        let moves = spi::fetch::<Vec<String>>(
            "SELECT array_agg(format('ALTER TABLE %s SET SCHEMA %s', t::regclass, $2)) \
             FROM unnest($1) AS t",
            &[with_partitions.clone().into(), quote_identifier(&spec.schema).into()],
        )?;
        for sql in moves.unwrap_or_default() {
            spi::in_session::run(&sql, &[])?;
        }
        if !spec.functions.is_empty() {
            spi::in_session::run(&spec.functions, &[])?;
        }
        if spec.is_of_superuser() { grant_to_clients(&spec.schema, &with_partitions) } else { Ok(()) }
    })?;
    store::put_fixture(&spec.registration(), &tables, figures)?;
    // To other nodes that schema's owner has a session of its own, which does not see yet that the tables have left.
    if is_local { store::end_load(load) } else { Ok(()) }
}

/// Does what takes rights on a schema, or on what is replaced: where a superuser has called, the extension has them and the role
/// that loads has not. Nothing of a user's is executed by it.
fn with_rights<T>(spec: &LoadSpec, work: impl FnOnce() -> Result<T, UserError>) -> Result<T, UserError> {
    if spec.is_of_superuser() { store::as_owner(work) } else { work() }
}

/// Lets superusers' clients read and write the rows of these tables, and the tables' owner make indexes on them.
fn grant_to_clients(schema: &str, tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let schema = quote_identifier(schema);
    spi::in_session::run(&format!("GRANT USAGE ON SCHEMA {schema} TO {CLIENT}, {OWNER}"), &[])?;
    spi::in_session::run(&format!("GRANT CREATE ON SCHEMA {schema} TO {OWNER}"), &[])?;
    let grants = spi::fetch::<Vec<String>>(
        "SELECT array_agg(g.command) FROM ( \
             SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I', c.oid::regclass, $2) AS command \
             FROM pg_class c WHERE c.oid = ANY ($1) \
             UNION ALL \
             SELECT format('GRANT USAGE, SELECT, UPDATE ON SEQUENCE %s TO %I', d.objid::regclass, $2) \
             FROM pg_depend d JOIN pg_sequence s ON s.seqrelid = d.objid \
             WHERE d.refobjid = ANY ($1) \
               AND d.classid = 'pg_class'::regclass \
               AND d.refclassid = 'pg_class'::regclass) AS g",
        &[tables.to_vec().into(), CLIENT.into()],
    )?;
    grants.unwrap_or_default().iter().try_for_each(|sql| spi::in_session::run(sql, &[]).map(drop))
}

/// Has the sequences of serial and identity columns stand where the values that were loaded end.
fn advance_sequences(tables: &[pg_sys::Oid]) -> Result<(), UserError> {
    let statements = spi::fetch::<Vec<String>>(
        "SELECT array_agg(format( \
             'SELECT pg_catalog.setval(%L::pg_catalog.regclass, v.last) FROM (SELECT pg_catalog.%s(%I)::pg_catalog.int8 AS last FROM %s) v, %s s \
              WHERE v.last BETWEEN %s AND %s AND (NOT s.is_called OR v.last OPERATOR(pg_catalog.%s) s.last_value)', \
             s.seqrelid::regclass, CASE WHEN is_ascending THEN 'max' ELSE 'min' END, a.attname, \
             a.attrelid::regclass, s.seqrelid::regclass, s.seqmin, s.seqmax, \
             CASE WHEN is_ascending THEN '>' ELSE '<' END)) \
         FROM pg_depend d \
         JOIN pg_sequence s ON s.seqrelid = d.objid \
         JOIN pg_attribute a ON a.attrelid = d.refobjid \
              AND a.attnum::int4 = d.refobjsubid, \
         LATERAL (SELECT s.seqincrement > 0 AS is_ascending) direction \
         WHERE d.classid = 'pg_class'::regclass::oid \
           AND d.refclassid = 'pg_class'::regclass::oid \
           AND d.refobjid = ANY ($1) AND d.refobjsubid > 0 \
           AND d.deptype = ANY ('{a,i}'::\"char\"[]) \
           AND a.atttypid = ANY ('{int2,int4,int8}'::regtype[]::oid[])",
        &[tables.to_vec().into()],
    )?;
    for sql in statements.unwrap_or_default() {
        spi::in_session::run(&sql, &[])?;
    }
    Ok(())
}

/// The largest local table's primary key: how many levels it has, and its correlation with the table.
pub fn largest_key(tables: &[pg_sys::Oid]) -> Result<(Option<i32>, Option<f32>), UserError> {
    let tables = relations::with_partitions(&citus::local(tables)?)?;
    let key = select_one::<(pg_sys::Oid, Option<f32>)>(
        // pg_stats looks at privileges for each of its rows, and so is asked about one column only.
        "SELECT k.indexrelid, \
                (SELECT s.correlation FROM pg_stats s \
                 WHERE s.schemaname = n.nspname AND s.tablename = k.relname AND s.attname = a.attname AND NOT s.inherited) \
         FROM (SELECT i.indexrelid, i.indkey[0] AS attnum, c.oid, c.relname, c.relnamespace \
               FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid \
               WHERE i.indisprimary AND c.relkind = 'r'::\"char\" AND c.oid = ANY ($1) \
               ORDER BY c.relpages DESC, c.oid LIMIT 1) k \
         JOIN pg_namespace n ON n.oid = k.relnamespace \
         JOIN pg_attribute a ON a.attrelid = k.oid AND a.attnum = k.attnum",
        &[tables.into()],
    )?;
    Ok(key.map_or((None, None), |(index, correlation)| (relations::btree_levels(index), correlation)))
}
